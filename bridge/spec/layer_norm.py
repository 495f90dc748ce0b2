"""Layer normalisation.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/LayerNorm.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.sum import sum_over


@dataclass(frozen=True)
class LayerNorm:
    """The parameters of a layer normalisation of vectors of length `d`.

    gain: the factor of each normalised component.

    bias: the number that is added to it then.

    Lean: `Attention.Spec.LayerNorm`.
    """

    gain: list[Value]
    bias: list[Value]


def mean(x: list[Value], *, d: int, num: Arithmetic) -> Value:
    """The mean of the components: Σ xᵢ / Σ 1.

    Lean: `Attention.Spec.mean`.
    """
    return sum_over(lambda i: x[i], list(range(d)), zero=num.value(0)) / sum_over(
        lambda _x: num.value(1), list(range(d)), zero=num.value(0)
    )


def centred(x: list[Value], *, d: int, num: Arithmetic) -> list[Value]:
    """The components less their mean.

    Lean: `Attention.Spec.centred`.
    """
    m = mean(x, d=d, num=num)
    return [c - m for c in x]


def variance(x: list[Value], *, d: int, num: Arithmetic) -> Value:
    """The mean of the squared distances from the mean: σ², with the divisor d.

    Lean: `Attention.Spec.variance`.
    """
    return mean([c * c for c in centred(x, d=d, num=num)], d=d, num=num)


def layer_norm_row(
    sqrt: Callable[[Value], Value],
    eps: Value,
    N: LayerNorm,
    x: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> list[Value]:
    """Layer normalisation of one row.

    Lean: `Attention.Spec.LayerNorm.row`.
    """
    root = sqrt(variance(x, d=d, num=num) + eps)
    c = centred(x, d=d, num=num)
    return [c[i] / root * N.gain[i] + N.bias[i] for i in range(d)]


def layer_norm_rows(
    sqrt: Callable[[Value], Value],
    eps: Value,
    N: LayerNorm,
    X: list[list[Value]],
    *,
    d: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Layer normalisation of each row of a matrix.

    Lean: `Attention.Spec.LayerNorm.rows`.
    """
    return [layer_norm_row(sqrt, eps, N, x, d=d, num=num) for x in X]
