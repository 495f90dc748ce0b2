"""Linear layers.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Linear.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.vector import vec_add, vec_dot


@dataclass(frozen=True)
class Linear:
    """The parameters of a linear layer from vectors of length `d_in` to vectors of length `d_out`.

    weight: w: row j holds the coefficients of output j.

    bias: b.

    Lean: `Attention.Spec.Linear`.
    """

    weight: list[list[Value]]
    bias: list[Value]


def add_rows(X: list[list[Value]], Y: list[list[Value]], *, m: int) -> list[list[Value]]:
    """The sum of two matrices, as a residual connection takes it.

    Lean: `Attention.Spec.addRows`.
    """
    return [vec_add(X[i], Y[i]) for i in range(m)]


def linear_row(W: Linear, x: list[Value], *, d_in: int, d_out: int, num: Arithmetic) -> list[Value]:
    """A linear layer on one row: W x + b.

    Lean: `Attention.Spec.Linear.row`.
    """
    return [vec_dot(W.weight[j], x, d=d_in, zero=num.value(0)) + W.bias[j] for j in range(d_out)]


def linear_rows(
    W: Linear, X: list[list[Value]], *, d_in: int, d_out: int, num: Arithmetic
) -> list[list[Value]]:
    """A linear layer on each row of a matrix: X Wᵀ + b.

    Lean: `Attention.Spec.Linear.rows`.
    """
    return [linear_row(W, x, d_in=d_in, d_out=d_out, num=num) for x in X]
