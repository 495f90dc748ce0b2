"""The backward pass of attention with dropout.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardDropout.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import ScoreMod
from bridge.spec.backward import Gradients, vjp
from bridge.spec.backward_heads import sum_matrices
from bridge.spec.core import Arithmetic, Dual, Score, Value
from bridge.spec.dropout import WeightFactor, attention_dropout, dropped_values
from bridge.spec.dual import const
from bridge.spec.tangent import ScoreSlope, matrix_dual, matrix_tangent


def one_row(A: list[list[Any]], i: int) -> list[list[Any]]:
    """Row `i` of a matrix, as a matrix.

    Lean: `Attention.Spec.oneRow`.
    """
    return [A[i] for _ in range(1)]


def vjp_row(
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    to_value: Callable[[Score], Value],
    dO: list[list[Value]],
    dLse: list[Value],
    i: int,
    *,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Gradients:
    """The backward pass of one query with the values as it sees them.

    Lean: `Attention.Spec.vjpRow`.
    """
    return vjp(
        scale,
        lambda _x, j, i_1: modify(i, j, i_1),
        lambda _x, j, i_1: slope(i, j, i_1),
        one_row(Q, i),
        K,
        dropped_values(V, Z, i, kv_len=kv_len),
        to_value,
        one_row(dO, i),
        [dLse[i] for _ in range(1)],
        q_len=1,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )


def vjp_dropout(
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
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
    """The backward pass of attention with dropout, from the gradients `dO` by its output and
    `dLse` by its log-sum-exp, for any factors Z.

    Lean: `Attention.Spec.vjpDropout`.
    """
    rows = [
        vjp_row(
            scale,
            modify,
            slope,
            Q,
            K,
            V,
            Z,
            to_value,
            dO,
            dLse,
            i,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
        for i in range(q_len)
    ]
    return Gradients(
        dQ=[rows[i].dQ[0] for i in range(q_len)],
        dK=sum_matrices(lambda i: rows[i].dK, list(range(q_len)), m=kv_len, n=d, num=num),
        dV=sum_matrices(
            lambda i: dropped_values(rows[i].dV, Z, i, kv_len=kv_len),
            list(range(q_len)),
            m=kv_len,
            n=d_v,
            num=num,
        ),
        dBias=[rows[i].dBias[0] for i in range(q_len)],
    )


def jvp_dropout(
    scale: Value,
    modify: Callable[[int, int, Dual], Dual | None],
    Z: WeightFactor,
    Q: list[list[Value]],
    dQ: list[list[Value]],
    K: list[list[Value]],
    dK: list[list[Value]],
    V: list[list[Value]],
    dV: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The derivative of attention with dropout along the rates `dQ`, `dK` and `dV`, and those in
    `modify`; the factors do not change.

    Lean: `Attention.Spec.jvpDropout`.
    """
    return matrix_tangent(
        attention_dropout(
            const(scale, zero=num.value(0)),
            modify,
            matrix_dual(Q, dQ, m=q_len, n=d),
            matrix_dual(K, dK, m=kv_len, n=d),
            matrix_dual(V, dV, m=kv_len, n=d_v),
            lambda i, j: const(Z(i, j), zero=num.value(0)),
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num.dual(),
        ),
        m=q_len,
        n=d_v,
    )
