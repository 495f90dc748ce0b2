"""Random exact vectors, for properties that must hold of more than the committed ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from bridge.vectors.exact import attention as exact
from bridge.vectors.model.attention import AttentionVector, Family, Mask


@st.composite
def vectors(draw: st.DrawFn, largest_score: int = 2000) -> AttentionVector:
    """A small vector with integer scores, its result computed exactly from the definition."""
    q_len, kv_len = draw(st.integers(1, 4)), draw(st.integers(1, 36))
    head_dim, value_dim = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size = draw(st.sampled_from([1, 3, 12, 25]))
    size = min(size, int((largest_score / head_dim / 2) ** 0.5))
    values = st.integers(-255, 255)
    denominator = 1 << draw(st.integers(0, 12))

    def matrix(rows: int, columns: int, numbers: st.SearchStrategy[int]) -> list[list[int]]:
        row = st.lists(numbers, min_size=columns, max_size=columns)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    kind = draw(st.sampled_from(["none", "causal", "boolean"]))
    mask = Mask("causal") if kind == "causal" else Mask("none")
    if kind == "boolean":
        flags = st.lists(st.booleans(), min_size=kv_len, max_size=kv_len)
        rows = draw(st.lists(flags, min_size=q_len, max_size=q_len))
        mask = Mask("boolean", tuple(tuple(row) for row in rows))
    numbers = st.integers(-size, size)
    bare = AttentionVector(
        "random-1",
        "random",
        "Attention.Spec.attention",
        "flash-eq-attention",
        "Drawn at random.",
        "exact",
        q_len,
        kv_len,
        head_dim,
        value_dim,
        draw(st.sampled_from([1, 2, -1])),
        tuple(tuple(row) for row in matrix(q_len, head_dim, numbers)),
        tuple(tuple(row) for row in matrix(kv_len, head_dim, numbers)),
        tuple(
            tuple(Fraction(x, denominator) for x in row)
            for row in matrix(kv_len, value_dim, values)
        ),
        mask,
        (),
    )
    return replace(bare, expected=exact.attention(bare))


def family(*members: AttentionVector) -> Family:
    """A family of just these vectors."""
    return Family("random", "Drawn at random.", "attention", "exact", members)
