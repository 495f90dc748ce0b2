"""Exact results that are computed here: those that Lean gives, number by number."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import committed
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.conformance.tensors.batch import exactly
from bridge.spec import backward_heads, backward_options
from bridge.spec.attention import mask_to_score_mod
from bridge.spec.core import EXACT
from bridge.vectors.exact import attention as exact
from bridge.vectors.load import default_directory
from bridge.vectors.model.attention import AttentionVector, Mask, Matrix, Row
from bridge.vectors.model.by_spec import (
    Integers,
    attention_rows,
    grouped_rows,
    integer_gradients,
    integer_rows,
    spec_mask,
)
from bridge.vectors.model.gradients import Gradients, GradientVector
from bridge.vectors.model.sampled import visible_pairs

# Queries times keys times columns that the translation goes through in a few milliseconds.
_SMALL = 400
# A power of two that makes every value of the files whole.
_UNIT = 1 << 16


@functools.cache
def shared_vectors() -> list[AttentionVector]:
    """The vectors of the files that fresh ones are like: exact, and without a sink."""
    found = committed.vectors("attention")
    return [v for v in found if v.model == "exact" and not v.options]


@functools.cache
def in_files() -> dict[str, Any]:
    """The expected results that Lean has written, by the ids of the vectors."""
    found = {}
    for name in {vector.family for vector in shared_vectors()}:
        document = json.loads((default_directory() / f"{name}.json").read_text("utf-8"))
        found.update({entry["id"]: entry["expected"] for entry in document["vectors"]})
    return found


def text(row: Row) -> dict[str, Any]:
    """A row as Lean writes it."""
    numerators = [str(x) for x in row.numerators]
    return {
        "max": None if row.max is None else str(row.max),
        "denominator": str(row.denominator),
        "output": {"denominator": str(row.output_denominator), "numerators": numerators},
    }


def as_lean_has_it(vector: AttentionVector, rows: tuple[Row, ...]) -> bool:
    # An exact log-sum-exp follows from the denominator, and only some of the files have it.
    written = [
        {name: x for name, x in row.items() if name != "log2_sum_exp"}
        for row in in_files()[vector.id]
    ]
    return [text(row) for row in rows] == written


def whole(matrix: Matrix, unit: int = 1) -> Integers:
    return np.array([[int(x * unit) for x in row] for row in matrix], dtype=np.int64)


def by_integers(vector: AttentionVector) -> tuple[Row, ...]:
    """The rows by integers, with values of the vector made whole."""
    assert vector.scale is not None
    seen = visible_pairs(vector.mask, tuple(range(vector.q_len)), vector.kv_len)
    q, k, v = whole(vector.q), whole(vector.k), whole(vector.v, _UNIT)
    rows = integer_rows(q, k, v, int(vector.scale), seen)
    return tuple(
        replace(row, output_denominator=x.output_denominator, numerators=x.numerators)
        for row, x in ((row, smaller(row)) for row in rows)
    )


def smaller(row: Row) -> Row:
    """The output of a row divided by the unit, in lowest terms."""
    output = [x / _UNIT for x in row.output]
    bottom = int(np.lcm.reduce(np.array([x.denominator for x in output], dtype=object)))
    return Row(row.max, row.denominator, bottom, tuple(int(x * bottom) for x in output))


def test_integers_give_what_lean_gives() -> None:
    """Of every vector of the files: string by string, and so bit by bit the judge's numbers."""
    assert len(shared_vectors()) > 600
    wrong = [v.id for v in shared_vectors() if not as_lean_has_it(v, by_integers(v))]
    assert wrong == []


def test_the_translation_gives_what_lean_gives() -> None:
    small = [
        v for v in shared_vectors() if v.q_len * v.kv_len * (v.head_dim + v.value_dim) <= _SMALL
    ]
    assert len({v.mask.kind for v in small}) == 8
    wrong = [v.id for v in small if not as_lean_has_it(v, attention_rows(v))]
    assert wrong == []


def test_grouped_heads_by_the_translation_are_what_lean_gives() -> None:
    grouped = committed.vectors("grouped-query")
    sizes = [v.num_heads * v.q_len * v.kv_len * (v.head_dim + v.value_dim) for v in grouped]
    small = [v for v, size in zip(grouped, sizes, strict=True) if size <= 4 * _SMALL]
    assert len(small) > 20
    assert [v.id for v in small if grouped_rows(v) != v.expected] == []


def test_what_is_judged_by_is_the_same_bit_by_bit() -> None:
    vector = next(v for v in shared_vectors() if v.id == "small-random-004")
    again = exactly(replace(vector, expected=attention_rows(vector)))
    for name in ("out", "out_low", "lse", "lse_low", "uncertainty"):
        mine, leans = getattr(again, name), getattr(exactly(vector), name)
        assert mine.tobytes() == leans.tobytes()


@st.composite
def problems(draw: st.DrawFn) -> tuple[Integers, Integers, Integers, int, Any]:
    q_len, kv_len, head_dim, value_dim = (draw(st.integers(1, n)) for n in (3, 9, 3, 3))
    bound = draw(st.sampled_from([1, 3, 40]))

    def matrix(rows: int, columns: int, most: int) -> Integers:
        size = rows * columns
        numbers = draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
        return np.array(numbers, dtype=np.int64).reshape(rows, columns)

    seen = draw(st.lists(st.booleans(), min_size=q_len * kv_len, max_size=q_len * kv_len))
    return (
        matrix(q_len, head_dim, bound),
        matrix(kv_len, head_dim, bound),
        matrix(kv_len, value_dim, 1 << 24),
        draw(st.integers(-2, 2)),
        np.array(seen).reshape(q_len, kv_len),
    )


@settings(max_examples=60)
@given(problems())
def test_integers_translation_and_definition_agree(problem: Any) -> None:
    q, k, v, scale, seen = problem
    vector = replace(
        shared_vectors()[0],
        q_len=len(q), kv_len=len(k), head_dim=q.shape[1], value_dim=v.shape[1], scale=scale,
        **{name: tuple(map(tuple, x.tolist())) for name, x in (("q", q), ("k", k), ("v", v))},
        mask=replace(
            shared_vectors()[0].mask, kind="boolean", rows=tuple(map(tuple, seen.tolist()))
        ),
        expected=(),
    )  # fmt: skip
    rows = integer_rows(q, k, v, scale, seen)
    assert rows == attention_rows(vector)
    assert rows == exact.attention(vector)


def test_a_wrong_number_is_seen() -> None:
    vector = shared_vectors()[0]
    row = vector.expected[0]
    assert isinstance(row, Row)
    off = replace(row, numerators=(row.numerators[0] + 1, *row.numerators[1:]))
    assert not as_lean_has_it(vector, (off, *vector.expected[1:]))  # type: ignore[arg-type]


def test_numbers_that_int64_might_not_hold_are_refused() -> None:
    ones = np.ones((1, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="too large for sums of 64 bits"):
        integer_rows(ones << 31, ones << 31, ones, 1, np.ones((1, 1), bool))
    with pytest.raises(ValueError, match="too large for sums of 64 bits"):
        integer_rows(ones, ones, ones << 62, 1, np.ones((1, 1), bool))


def test_the_translation_refuses_what_the_exact_model_lacks() -> None:
    vector = replace(shared_vectors()[0], sink=1)
    with pytest.raises(ValueError, match="a scale and a mask alone"):
        attention_rows(vector)


def gradients_by_integers(vector: GradientVector) -> Gradients:
    rows, keys = range(vector.q_len), range(vector.kv_len)
    seen = [visible_pairs(mask, tuple(rows), vector.kv_len) for mask in vector.masks]
    return integer_gradients(vector, rows, keys, seen)


def gradients_by_translation(vector: GradientVector) -> Gradients:
    """All gradients, by the translation of `Spec.groupedQueryVjp`."""
    modify = [
        mask_to_score_mod(spec_mask(vector.mask_of(h), vector.q_len, vector.kv_len))
        for h in range(vector.num_heads)
    ]
    sizes: dict[str, Any] = {
        "q_len": vector.q_len, "kv_len": vector.kv_len,
        "d": vector.head_dim, "d_v": vector.value_dim,
        "num_kv_heads": vector.num_kv_heads, "group": vector.num_heads // vector.num_kv_heads,
        "num": EXACT,
    }  # fmt: skip
    q, k, v = ([[*map(list, x)] for x in part] for part in (vector.q, vector.k, vector.v))
    by_output = [[*map(list, x)] for x in vector.grad_output]
    given = q, k, v, Fraction, by_output, [*map(list, vector.grad_log_sum_exp)]
    changes = (
        vector.scale, lambda h, i, j, s: modify[h](i, j, s), lambda _h, _i, _j, _s: Fraction(1)
    )  # fmt: skip
    sinks = None
    if vector.sinks is None:
        found = backward_heads.grouped_query_vjp(*changes, *given, **sizes)
    else:
        whole = backward_options.sink_vjp(*changes, [*vector.sinks], *given, **sizes)
        found, sinks = whole.inputs, tuple(whole.dSinks)
    parts = (found.dQ, found.dK, found.dV, found.dBias)
    return Gradients(
        *(tuple(tuple(map(tuple, rows)) for rows in part) for part in parts), sinks=sinks
    )


def whole_gradients() -> list[GradientVector]:
    """The exact vectors of the files that are whole numbers and a mask alone."""
    found = committed.vectors("gradient")
    exact = (v for v in found if v.model == "exact" and not v.options)
    given = ((v, (v.q, v.k, v.v, v.grad_output, (v.grad_log_sum_exp,))) for v in exact)
    return [
        v
        for v, parts in given
        if all(Fraction(x).denominator == 1 for p in parts for m in p for r in m for x in r)
    ]


def test_gradients_by_integers_are_what_lean_gives() -> None:
    """And those of the translation, fraction by fraction."""
    vectors = whole_gradients()
    assert len(vectors) > 10
    assert [v.id for v in vectors if gradients_by_integers(v) != v.expected] == []
    small = [v for v in vectors if v.num_heads * v.q_len * v.kv_len <= _SMALL // 8]
    assert small
    assert [v.id for v in small if gradients_by_translation(v) != v.expected] == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32))
def test_gradients_by_integers_and_translation_agree(seed: int) -> None:
    """With masks, heads that share keys, and a loss by the log-sum-exp."""
    drawn = np.random.default_rng(seed)
    q_len, kv_len, size, columns, kv_heads, group = (
        int(drawn.integers(1, n)) for n in (4, 7, 4, 4, 3, 3)
    )
    heads = kv_heads * group

    def matrices(*shape: int) -> Any:
        return tuple(tuple(map(tuple, x)) for x in drawn.integers(-3, 4, shape).tolist())

    seen = drawn.random((heads, q_len, kv_len)) < 0.6
    vector = GradientVector(
        "x", "x", "", "", "", "exact", num_heads=heads, num_kv_heads=kv_heads, q_len=q_len,
        kv_len=kv_len, head_dim=size, value_dim=columns, scale=int(drawn.integers(-2, 3)),
        q=matrices(heads, q_len, size), k=matrices(kv_heads, kv_len, size),
        v=matrices(kv_heads, kv_len, columns), grad_output=matrices(heads, q_len, columns),
        masks=tuple(Mask("boolean", rows=tuple(map(tuple, x))) for x in seen.tolist()),
        grad_log_sum_exp=matrices(1, heads, q_len)[0], expected=Gradients(*[()] * 4),
    )  # fmt: skip
    found = gradients_by_integers(vector)
    assert found == gradients_by_translation(vector)
    assert exact.disagreements(replace(vector, expected=found)) == []
    # Sinks of 0, whose weight is 1 in every base.
    behind = replace(vector, sinks=(0,) * heads)
    found = gradients_by_integers(behind)
    assert found == gradients_by_translation(behind)
    assert found != gradients_by_integers(vector)


def test_gradients_of_fractions_are_refused() -> None:
    vector = whole_gradients()[0]
    half = tuple(tuple(tuple(Fraction(1, 2) for _ in r) for r in m) for m in vector.v)
    with pytest.raises(ValueError, match="whole numbers are accepted"):
        gradients_by_integers(replace(vector, v=half))
    for more in ({"softcap": 1}, {"sinks": (1,) * vector.num_heads}):
        with pytest.raises(ValueError, match="a scale, masks and sinks of 0 alone"):
            gradients_by_integers(replace(vector, **more))
