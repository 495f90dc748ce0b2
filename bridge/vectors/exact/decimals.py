"""What the second derivations with decimal numbers share: exact numbers as decimal ones, and
whether a result lies between published bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bridge.vectors.model.attention import BOUNDS_UNIT, Exact

# What rounding to 70 digits or more can have done to a result of moderate size.
_ROUNDED = Decimal("1e-60")


def decimal_of(x: Exact) -> Decimal:
    """The number, in the precision of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def between(lower: int, x: Any, upper: int) -> bool:
    """Whether a result that was rounded to 70 digits or more lies between bounds, integers over
    2^128."""
    slack = BOUNDS_UNIT * _ROUNDED
    return bool(lower - slack <= x * BOUNDS_UNIT <= upper + slack)
