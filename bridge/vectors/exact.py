"""Attention from its mathematical definition: a second derivation, in exact arithmetic where
exp k = 2^k, and to 70 digits where it is the natural exponential.

Nothing here knows of maxima, tiles, rescaling or intervals, which is what the Lean definitions are
about. With weight exp (scale·⟨q, k⟩) for each unmasked key, the output is Σ weight·v / Σ weight.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from bridge.vectors.model import BOUNDS_UNIT, EnclosedRow, Row, Vector

_DIGITS = 70
# What rounding to 70 digits can have done to a result of moderate size.
_ROUNDED = Decimal("1e-60")


def visible_keys(vector: Vector, i: int) -> list[int]:
    """The keys that query i may attend to."""
    return [j for j in range(vector.kv_len) if vector.mask.visible(i, j)]


def product(vector: Vector, i: int, j: int) -> Fraction:
    """⟨qᵢ, kⱼ⟩."""
    return Fraction(sum(a * b for a, b in zip(vector.q[i], vector.k[j], strict=True)))


def attention_row(vector: Vector, i: int) -> Row:
    """The exact result for query i of a vector, from its inputs alone.

    Raises ValueError where a score is not an integer: 2^s would be irrational.
    """
    keys = visible_keys(vector, i)
    if not keys:
        return Row(None, 0, 1, (0,) * vector.value_dim)
    scores: dict[int, int] = {}
    for j in keys:
        score = Fraction((vector.scale or 0) * product(vector, i, j))
        if score.denominator != 1:
            raise ValueError(f"{vector.id}: the score of query {i} and key {j} is not an integer.")
        scores[j] = score.numerator
    # Integer weights: every weight times one power of two, which cancels.
    lowest, largest = min(scores.values()), max(scores.values())
    weights = {j: 1 << (s - lowest) for j, s in scores.items()}
    total = sum(weights.values())
    outputs = [
        Fraction(sum(weights[j] * vector.v[j][c] for j in keys)) / total
        for c in range(vector.value_dim)
    ]
    bottom = math.lcm(*(x.denominator for x in outputs))
    return Row(
        largest,
        Fraction(total, 1 << (largest - lowest)),
        bottom,
        tuple(x.numerator * (bottom // x.denominator) for x in outputs),
    )


def attention(vector: Vector) -> tuple[Row, ...]:
    """The exact result for every query."""
    return tuple(attention_row(vector, i) for i in range(vector.q_len))


def natural_row(vector: Vector, i: int) -> tuple[list[Decimal], Decimal]:
    """Output and log-sum-exp for query i under the natural exponential, to about 65 digits."""
    keys = visible_keys(vector, i)
    with localcontext(prec=_DIGITS):
        if not keys:
            return [Decimal(0)] * vector.value_dim, Decimal("-Infinity")
        if vector.scale is None:
            scale = 1 / Decimal(vector.head_dim).sqrt()
        else:
            scale = _decimal(Fraction(vector.scale))
        weights = {j: (scale * _decimal(product(vector, i, j))).exp() for j in keys}
        total = sum(weights.values(), Decimal(0))
        outputs = [
            sum((weights[j] * _decimal(Fraction(vector.v[j][c])) for j in keys), Decimal(0)) / total
            for c in range(vector.value_dim)
        ]
        return outputs, total.ln()


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def disagreements(vector: Vector) -> list[str]:
    """One sentence for every number of the vector that is not what the definition gives."""
    found = []
    for i, row in enumerate(vector.expected):
        problems = (
            _wrong_exactly(vector, i, row) if isinstance(row, Row) else _outside(vector, i, row)
        )
        found += [f"{vector.id}: expected[{i}].{problem}." for problem in problems]
    return found


def _wrong_exactly(vector: Vector, i: int, row: Row) -> list[str]:
    right = attention_row(vector, i)
    pairs: list[tuple[str, object, object]] = [
        ("max", row.max, right.max),
        ("denominator", row.denominator, right.denominator),
    ]
    outputs = zip(row.output, right.output, strict=True)
    pairs += [(f"output[{c}]", got, want) for c, (got, want) in enumerate(outputs)]
    return [f"{name} is {got}, should be {want}" for name, got, want in pairs if got != want]


def _outside(vector: Vector, i: int, row: EnclosedRow) -> list[str]:
    outputs, log_sum_exp = natural_row(vector, i)
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
            if not lo - BOUNDS_UNIT * _ROUNDED <= x * BOUNDS_UNIT <= hi + BOUNDS_UNIT * _ROUNDED:
                found.append(f"{name} is not between its bounds: it is {x:.30f}")
    return found
