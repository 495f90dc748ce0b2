"""Finite sums over a list.

Written by `.venv/bin/python -m bridge translate` from `Attention/Algebra/Sum.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.core import Value


def sum_over(f: Callable[[Any], Value], xs: list[Any], *, zero: Value) -> Value:
    """`sumOver f xs` is Σ f x for x in `xs`.

    Lean: `Attention.sumOver`.
    """
    result = zero
    for x in reversed(xs):
        result = f(x) + result
    return result
