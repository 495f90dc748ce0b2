"""Attention from its mathematical definition: a second derivation, in exact arithmetic where
exp k = 2^k, and to 70 digits where it is the natural exponential.

Nothing here knows of tiles, rescaling, merging or intervals, which the Lean definitions are about.
With weight exp (score) for each unmasked key, the output is Σ weight·v / Σ weight; every operation
comes to that, by the layout of its inputs alone, or has a derivation of its own beside this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from bridge.vectors.exact.decimals import between, decimal_of, scale_of, soften
from bridge.vectors.exact.dropout import wrong_masks, wrong_words
from bridge.vectors.exact.gradients import gradients
from bridge.vectors.exact.tangents import tangent_row
from bridge.vectors.exact.transformers import wrong_layer
from bridge.vectors.model.attention import (
    AttentionVector,
    EnclosedRow,
    Row,
    State,
    Vector,
)
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import (
    CacheVector,
    ComesToAttention,
    Key,
    MergeVector,
    TileBoundsVector,
)
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import LayerVector, TransformerVector

# A weight 2^score has so many digits: a larger score is a mistake.
_LARGEST_SCORE = 1 << 20
# The place of a sink among the scores: no key's.
_SINK = -1
_DIGITS = 70


def visible_keys(vector: AttentionVector, i: int) -> list[int]:
    """The keys that query i may attend to."""
    return [j for j in range(vector.kv_len) if vector.visible(i, j)]


def product(vector: AttentionVector, i: int, j: int) -> Fraction:
    """⟨qᵢ, kⱼ⟩."""
    return Fraction(sum(a * b for a, b in zip(vector.q[i], vector.k[j], strict=True)))


def attention_row(vector: AttentionVector, i: int) -> Row:
    """The exact result for query i of a vector, from its inputs alone.

    Raises ValueError where a score is not an integer: 2^s would be irrational.
    """
    keys = visible_keys(vector, i)
    if not keys and vector.sink is None:
        return Row(None, 0, 1, (0,) * vector.value_dim)
    scores: dict[int, int] = {}
    if vector.sink is not None:
        scores[_SINK] = _integer(Fraction(vector.sink), f"{vector.id}: the sink")
    for j in keys:
        score = Fraction((vector.scale or 0) * product(vector, i, j))
        scores[j] = _integer(score, f"{vector.id}: the score of query {i} and key {j}")
    # Integer weights: every weight times one power of two, which cancels.
    lowest, largest = min(scores.values()), max(scores.values())
    weights = {j: 1 << (s - lowest) for j, s in scores.items()}
    total = sum(weights.values())
    dropped = {j: weights[j] * _factor(vector, i, j) for j in keys}
    outputs = [
        sum((w * vector.v[j][c] for j, w in dropped.items()), Fraction(0)) / total
        for c in range(vector.value_dim)
    ]
    bottom = math.lcm(*(x.denominator for x in outputs))
    return Row(
        largest,
        Fraction(total, 1 << (largest - lowest)),
        bottom,
        tuple(x.numerator * (bottom // x.denominator) for x in outputs),
    )


def _factor(vector: AttentionVector, i: int, j: int) -> Fraction:
    """The factor by which dropout multiplies a weight."""
    return Fraction(1) if vector.dropout is None else vector.dropout.factor(i, j)


def _integer(score: Fraction, what: str) -> int:
    """A score of the exact model. Raises ValueError for a score that is no such integer."""
    if score.denominator != 1:
        raise ValueError(f"{what} is not an integer.")
    if abs(score) > _LARGEST_SCORE:
        raise ValueError(f"{what} is beyond any use.")
    return score.numerator


def attention(vector: AttentionVector) -> tuple[Row, ...]:
    """The exact result for every query."""
    return tuple(attention_row(vector, i) for i in range(vector.q_len))


def natural_score(vector: AttentionVector, i: int, j: int) -> Decimal:
    """The score of query i and a visible key j, in the precision of the context."""
    score, _ = soften(scale_of(vector) * decimal_of(product(vector, i, j)), vector.softcap)
    if vector.alibi is not None:
        score -= decimal_of(vector.alibi.slope) * abs(i + vector.alibi.shift - j)
    if vector.bias is not None:
        score += decimal_of(vector.bias[i][j] or 0)
    return score


def natural_row(vector: AttentionVector, i: int) -> tuple[list[Decimal], Decimal]:
    """Output and log-sum-exp for query i under the natural exponential, to about 65 digits."""
    keys = visible_keys(vector, i)
    with localcontext(prec=_DIGITS):
        if not keys and vector.sink is None:
            return [Decimal(0)] * vector.value_dim, Decimal("-Infinity")
        weights = {j: natural_score(vector, i, j).exp() for j in keys}
        total = sum(weights.values(), Decimal(0))
        if vector.sink is not None:
            total += decimal_of(vector.sink).exp()
        outputs = [
            sum((weights[j] * decimal_of(vector.v[j][c]) for j in keys), Decimal(0)) / total
            for c in range(vector.value_dim)
        ]
        return outputs, total.ln()


def state_of(keys: Sequence[Key], m: int | None, value_dim: int) -> State:
    """The state of these keys with weights that refer to the score m."""
    if m is None:
        return State(None, 0, (0,) * value_dim)
    weights = [Fraction(0) if key.score is None else Fraction(2) ** (key.score - m) for key in keys]
    pairs = list(zip(weights, keys, strict=True))
    o = tuple(sum((w * key.value[c] for w, key in pairs), Fraction(0)) for c in range(value_dim))
    return State(m, sum(weights, Fraction(0)), o)


def largest_score(keys: Iterable[Key]) -> int | None:
    """The largest score of the unmasked keys; None without any."""
    return max((key.score for key in keys if key.score is not None), default=None)


def cache_states(vector: CacheVector) -> list[State]:
    """The states at the beginning and after each edit; m is the largest score up to then."""
    held, seen = list(vector.keys), list(vector.keys)
    states = [state_of(held, largest_score(seen), vector.value_dim)]
    for edit in vector.edits:
        held = edit.apply(held)
        if edit.key is not None:
            seen.append(edit.key)
        states.append(state_of(held, largest_score(seen), vector.value_dim))
    return states


def tile_letters(vector: TileBoundsVector) -> list[str]:
    """Pair by pair: "-" where no real query of the tile sees a real key of the other, "u" where
    each sees each, "m" otherwise."""

    def letter(t: int, u: int) -> str:
        rows = range(t * vector.block_m, min((t + 1) * vector.block_m, vector.q_len))
        keys = range(u * vector.block_n, min((u + 1) * vector.block_n, vector.kv_len))
        seen = [vector.mask.visible(i, j) for i in rows for j in keys]
        return "u" if all(seen) else "m" if any(seen) else "-"

    q_tiles = range(-(-vector.q_len // vector.block_m))
    kv_tiles = range(-(-vector.kv_len // vector.block_n))
    return ["".join(letter(t, u) for u in kv_tiles) for t in q_tiles]


def disagreements(vector: Vector) -> list[str]:
    """One sentence for every number of the vector that differs from the definition's."""
    match vector:
        case AttentionVector():
            return _wrong_rows(vector)
        case MergeVector():
            keys = vector.keys()
            right = state_of(keys, largest_score(keys), vector.value_dim)
            return _wrong(vector, [("expected", vector.expected, right)])
        case PhiloxVector():
            return wrong_words(vector)
        case DropoutVector():
            rows = [wrong for problem in vector.attentions() for wrong in _wrong_rows(problem)]
            return wrong_masks(vector) + rows
        case ComesToAttention():
            return [wrong for problem in vector.attentions() for wrong in _wrong_rows(problem)]
        case CacheVector():
            states = zip(vector.expected, cache_states(vector), strict=True)
            return _wrong(vector, [(f"expected[{n}]", *pair) for n, pair in enumerate(states)])
        case TangentVector():
            return _wrong_tangents(vector)
        case GradientVector():
            return wrong_masks(vector) + _wrong_gradients(vector)
        case LayerVector() | TransformerVector():
            return wrong_layer(vector)
        case TileBoundsVector():
            letters = zip(vector.expected, tile_letters(vector), strict=True)
            return _wrong(vector, [(f"expected[{t}]", *pair) for t, pair in enumerate(letters)])
    raise TypeError(f"there is no way to recompute a {type(vector).__name__}")


def _wrong_gradients(vector: GradientVector) -> list[str]:
    right = dict(vector.judged_gradients(gradients(vector)).numbers())
    if vector.bounds is None:
        found = vector.expected.numbers()
        return _wrong(vector, [(f"expected_{place}", got, right[place]) for place, got in found])
    wrong = []
    with localcontext(prec=_DIGITS):
        for (place, lower), (_, upper) in zip(*(x.numbers() for x in vector.bounds), strict=True):
            if not between(int(lower), right[place], int(upper)):
                wrong.append(
                    f"{vector.id}: expected_{place} is not between its bounds: it is "
                    f"{right[place]:.30f}."
                )
    return wrong


def _wrong(vector: Vector, pairs: Iterable[tuple[str, object, object]]) -> list[str]:
    return [
        f"{vector.id}: {name} is {got}, should be {want}."
        for name, got, want in pairs
        if got != want
    ]


def _wrong_rows(vector: AttentionVector) -> list[str]:
    found = []
    for i, row in enumerate(vector.expected):
        problems = (
            _wrong_exactly(vector, i, row) if isinstance(row, Row) else _outside(vector, i, row)
        )
        found += [f"{vector.id}: expected[{i}].{problem}." for problem in problems]
    return found


def _wrong_exactly(vector: AttentionVector, i: int, row: Row) -> list[str]:
    right = attention_row(vector, i)
    pairs: list[tuple[str, object, object]] = [
        ("max", row.max, right.max),
        ("denominator", row.denominator, right.denominator),
    ]
    outputs = zip(row.output, right.output, strict=True)
    pairs += [(f"output[{c}]", got, want) for c, (got, want) in enumerate(outputs)]
    return [f"{name} is {got}, should be {want}" for name, got, want in pairs if got != want]


def _wrong_tangents(vector: TangentVector) -> list[str]:
    found = []
    for i, row in enumerate(vector.expected):
        outputs, rate = tangent_row(vector, i)
        lse = Decimal("-Infinity") if rate is None else rate
        problems = _beyond_bounds(outputs, lse, row)
        found += [f"{vector.id}: expected[{i}].{problem}." for problem in problems]
    return found


def _outside(vector: AttentionVector, i: int, row: EnclosedRow) -> list[str]:
    return _beyond_bounds(*natural_row(vector, i), row)


def _beyond_bounds(outputs: Sequence[Decimal], log_sum_exp: Decimal, row: EnclosedRow) -> list[str]:
    """Which numbers are not between the bounds of the row; log_sum_exp: −∞ for none."""
    named = [
        (f"output[{c}]", x, lo, hi)
        for c, (x, lo, hi) in enumerate(zip(outputs, row.lower, row.upper, strict=True))
    ]
    if row.lse_bounds is not None and log_sum_exp.is_finite():
        named.append(("log_sum_exp", log_sum_exp, *row.lse_bounds))
    found = []
    if (row.lse_bounds is None) == log_sum_exp.is_finite():
        found.append(f"log_sum_exp is {row.lse_bounds}, should enclose {log_sum_exp}")
    with localcontext(prec=_DIGITS):
        for name, x, lo, hi in named:
            if not between(lo, x, hi):
                found.append(f"{name} is not between its bounds: it is {x:.30f}")
    return found
