"""Dual numbers: derivatives without limits.

Written by `.venv/bin/python -m bridge translate` from `Attention/Algebra/Dual.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Dual, Value


def const(a: Value, *, zero: Value) -> Dual:
    """A number that does not change.

    Lean: `Attention.Dual.const`.
    """
    return Dual(a, zero)
