"""Vectors and matrices.

Written by `.venv/bin/python -m bridge translate` from `Attention/Algebra/Vector.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.core import Value
from bridge.spec.sum import sum_over


def vec_zero(*, d: int, zero: Value) -> list[Value]:
    """The zero vector.

    Lean: `Attention.Vec.zero`.
    """
    return [zero] * d


def vec_add(a: list[Value], b: list[Value]) -> list[Value]:
    """The sum of two vectors.

    Lean: `Attention.Vec.add`.
    """
    return [x + x_1 for x, x_1 in zip(a, b, strict=False)]


def vec_smul(c: Value, a: list[Value]) -> list[Value]:
    """A vector multiplied by a number.

    Lean: `Attention.Vec.smul`.
    """
    return [c * x for x in a]


def vec_dot(a: list[Value], b: list[Value], *, d: int, zero: Value) -> Value:
    """The inner product ⟨a, b⟩ = Σ aᵢ bᵢ.

    Lean: `Attention.Vec.dot`.
    """
    return sum_over(lambda i: a[i] * b[i], list(range(d)), zero=zero)


def vec_sum_over(
    f: Callable[[Any], list[Value]], xs: list[Any], *, d: int, zero: Value
) -> list[Value]:
    """`sumOver f xs` is Σ f x for x in `xs`, a vector.

    Lean: `Attention.Vec.sumOver`.
    """
    result = vec_zero(d=d, zero=zero)
    for x in reversed(xs):
        result = vec_add(f(x), result)
    return result
