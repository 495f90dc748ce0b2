"""The backward pass.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Backward.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.attention import ScoreMod, attention, probabilities
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.tangent import ScoreSlope
from bridge.spec.vector import vec_dot, vec_smul, vec_sum_over


@dataclass(frozen=True)
class Gradients:
    """The gradients of a loss by the inputs of attention.

    dQ: by the queries.

    dK: by the keys.

    dV: by the values.

    dBias: by a bias that is added to the scores after they have been transformed.

    Lean: `Attention.Spec.Gradients`.
    """

    dQ: list[list[Value]]
    dK: list[list[Value]]
    dV: list[list[Value]]
    dBias: list[list[Value]]


def row_delta(
    O: list[list[Value]],
    dO: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    d_v: int,
    num: Arithmetic,
) -> list[Value]:
    """The number that a row subtracts from dP: D = rowsum (dO ∘ O), less the gradient by its log-
    sum-exp.

    Lean: `Attention.Spec.rowDelta`.
    """
    return [vec_dot(dO[i], O[i], d=d_v, zero=num.value(0)) - dLse[i] for i in range(q_len)]


def score_gradient(
    p: Value, dO: list[Value], v: list[Value], delta: Value, *, d_v: int, num: Arithmetic
) -> Value:
    """The gradient by one transformed score: p · (⟨dO, v⟩ − D).

    Lean: `Attention.Spec.scoreGradient`.
    """
    return p * (vec_dot(dO, v, d=d_v, zero=num.value(0)) - delta)


def score_gradients(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    dO: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The gradients by all transformed scores: dS = P ∘ (dP − D), with dP = dO Vᵀ.

    Lean: `Attention.Spec.scoreGradients`.
    """
    P = probabilities(scale, modify, Q, K, q_len=q_len, kv_len=kv_len, d=d, num=num)
    delta = row_delta(
        attention(scale, modify, Q, K, V, q_len=q_len, kv_len=kv_len, d=d, d_v=d_v, num=num),
        dO,
        dLse,
        q_len=q_len,
        d_v=d_v,
        num=num,
    )
    return [
        [score_gradient(P[i][j], dO[i], V[j], delta[i], d_v=d_v, num=num) for j in range(kv_len)]
        for i in range(q_len)
    ]


def vjp(
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    to_value: Callable[[Score], Value],
    dO: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Gradients:
    """The backward pass of attention, from the gradients `dO` by its output and `dLse` by its log-
    sum-exp (vector-Jacobian product): dV = Pᵀ dO, dQ = scale · dZ K and dK = scale · dZᵀ Q,
    where dZ is dS times the slope of the score transformation; the gradient by the bias is dS.

    Lean: `Attention.Spec.vjp`.
    """
    P = probabilities(scale, modify, Q, K, q_len=q_len, kv_len=kv_len, d=d, num=num)
    dS = score_gradients(
        scale, modify, Q, K, V, dO, dLse, q_len=q_len, kv_len=kv_len, d=d, d_v=d_v, num=num
    )
    dZ = [
        [
            dS[i][j] * slope(i, j, scale * vec_dot(Q[i], K[j], d=d, zero=num.score(0)))
            for j in range(kv_len)
        ]
        for i in range(q_len)
    ]
    return Gradients(
        dQ=[
            vec_smul(
                to_value(scale),
                vec_sum_over(
                    lambda j: vec_smul(dZ[i][j], [to_value(x) for x in K[j]]),
                    list(range(kv_len)),
                    d=d,
                    zero=num.value(0),
                ),
            )
            for i in range(q_len)
        ],
        dK=[
            vec_smul(
                to_value(scale),
                vec_sum_over(
                    lambda i: vec_smul(dZ[i][j], [to_value(x) for x in Q[i]]),
                    list(range(q_len)),
                    d=d,
                    zero=num.value(0),
                ),
            )
            for j in range(kv_len)
        ],
        dV=[
            vec_sum_over(
                lambda i: vec_smul(P[i][j], dO[i]), list(range(q_len)), d=d_v, zero=num.value(0)
            )
            for j in range(kv_len)
        ],
        dBias=dS,
    )
