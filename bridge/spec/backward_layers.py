"""The backward passes of linear layers, layer normalisation and feed-forward networks.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardLayers.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.core import Arithmetic, Value
from bridge.spec.feed_forward import FeedForward, relu
from bridge.spec.layer_norm import LayerNorm, centred, mean, variance
from bridge.spec.linear import Linear, linear_rows
from bridge.spec.vector import vec_smul, vec_sum_over


def linear_rows_vjp(
    W: Linear,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    m: int,
    d_in: int,
    d_out: int,
    num: Arithmetic,
) -> tuple[Linear, list[list[Value]]]:
    """The backward pass of a linear layer: dW = dYᵀ X, db = Σ dY over the rows, and dX = dY W.

    Lean: `Attention.Spec.Linear.rowsVjp`.
    """
    return (
        Linear(
            weight=[
                vec_sum_over(
                    lambda i: vec_smul(dY[i][j], X[i]), list(range(m)), d=d_in, zero=num.value(0)
                )
                for j in range(d_out)
            ],
            bias=vec_sum_over(lambda i: dY[i], list(range(m)), d=d_out, zero=num.value(0)),
        ),
        [
            vec_sum_over(
                lambda j: vec_smul(dY[i][j], W.weight[j]),
                list(range(d_out)),
                d=d_in,
                zero=num.value(0),
            )
            for i in range(m)
        ],
    )


def normalised(
    sqrt: Callable[[Value], Value], eps: Value, x: list[Value], *, d: int, num: Arithmetic
) -> list[Value]:
    """The normalised components of a row, before gain and bias: n = (x − μ) / √(σ² + ε).

    Lean: `Attention.Spec.normalised`.
    """
    root = sqrt(variance(x, d=d, num=num) + eps)
    return [c / root for c in centred(x, d=d, num=num)]


def normalised_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    x: list[Value],
    dn: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> list[Value]:
    """The gradient by a row that is normalised, from that by its normalised components: (dn − mean
    dn − n · mean (dn ∘ n)) / √(σ² + ε). The two means are there because μ and σ depend on the
    row too.

    Lean: `Attention.Spec.normalisedVjp`.
    """
    root = sqrt(variance(x, d=d, num=num) + eps)
    n = normalised(sqrt, eps, x, d=d, num=num)
    a = mean(dn, d=d, num=num)
    b = mean([dn[k] * n[k] for k in range(d)], d=d, num=num)
    return [(dn[k] - a - n[k] * b) / root for k in range(d)]


def layer_norm_rows_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    N: LayerNorm,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    m: int,
    d: int,
    num: Arithmetic,
) -> tuple[LayerNorm, list[list[Value]]]:
    """The backward pass of layer normalisation: over the rows, the gradient by the gain is Σ of dY
    times the normalised components, that by the bias Σ dY; the normalised components get dY ∘
    gain.

    Lean: `Attention.Spec.LayerNorm.rowsVjp`.
    """

    def function(i_1: int) -> Any:
        n = normalised(sqrt, eps, X[i_1], d=d, num=num)
        return [dY[i_1][k] * n[k] for k in range(d)]

    return (
        LayerNorm(
            gain=vec_sum_over(function, list(range(m)), d=d, zero=num.value(0)),
            bias=vec_sum_over(lambda i_1: dY[i_1], list(range(m)), d=d, zero=num.value(0)),
        ),
        [
            normalised_vjp(
                sqrt, eps, X[i_1], [dY[i_1][k] * N.gain[k] for k in range(d)], d=d, num=num
            )
            for i_1 in range(m)
        ],
    )


def relu_vjp(x: Value, dy: Value, *, num: Arithmetic) -> Value:
    """The gradient by what is rectified: that by the result where the number is positive, and
    otherwise 0, at 0 too, where max(0, x) has no derivative.

    Lean: `Attention.Spec.reluVjp`.
    """
    return num.value(0) if x <= num.value(0) else dy


def feed_forward_rows_vjp(
    F: FeedForward,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    m: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[FeedForward, list[list[Value]]]:
    """The backward pass of a feed-forward network: of its output layer, of the rectified linear
    units, of its hidden layer.

    Lean: `Attention.Spec.FeedForward.rowsVjp`.
    """
    H = linear_rows(F.hidden, X, d_in=d, d_out=d_ff, num=num)
    output = linear_rows_vjp(
        F.output, [[relu(x, num=num) for x in a] for a in H], dY, m=m, d_in=d_ff, d_out=d, num=num
    )
    dH = [[relu_vjp(H[i][j], output[1][i][j], num=num) for j in range(d_ff)] for i in range(m)]
    hidden = linear_rows_vjp(F.hidden, X, dH, m=m, d_in=d, d_out=d_ff, num=num)
    return (FeedForward(hidden=hidden[0], output=output[0]), hidden[1])
