"""Helpers of the second derivations with decimal numbers: turn exact numbers into decimal ones, and
check that a result lies between published bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bridge.vectors.model.attention import BOUNDS_UNIT, Exact

# The largest error that rounding to 70 digits or more may make in a result of moderate size.
_ROUNDED = Decimal("1e-60")


def decimal_of(x: Exact) -> Decimal:
    """The number, in the precision of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def scale_of(vector: Any) -> Decimal:
    """The factor of the scores, for which None is 1/√head_dim."""
    if vector.scale is None:
        return 1 / Decimal(vector.head_dim).sqrt()
    return decimal_of(vector.scale)


def soften(score: Decimal, cap: Exact | None) -> tuple[Decimal, Decimal]:
    """cap·tanh(score / cap), and its derivative by the score; None: no cap."""
    if cap is None:
        return score, Decimal(1)
    most = decimal_of(cap)
    e = (2 * score / most).exp()
    return most * (e - 1) / (e + 1), 4 * e / (e + 1) ** 2


def between(lower: int, x: Any, upper: int) -> bool:
    """Whether a result that was rounded to 70 digits or more lies between bounds, integers over
    2^128."""
    slack = BOUNDS_UNIT * _ROUNDED
    return bool(lower - slack <= x * BOUNDS_UNIT <= upper + slack)
