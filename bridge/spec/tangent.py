"""The derivative of attention, forwards.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Tangent.lean`.
`Attention.Spec.ScoreMod.IsLift` is not here: it is a statement about all there is of a kind, which
nothing decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bridge.spec.attention import attention
from bridge.spec.core import Arithmetic, Dual, Score, Value
from bridge.spec.dual import const
from bridge.spec.sink import attention_sink
from bridge.spec.softmax import denominator
from bridge.spec.sum import sum_over
from bridge.spec.vector import vec_dot


def matrix_dual(A: list[list[Value]], dA: list[list[Value]], *, m: int, n: int) -> list[list[Dual]]:
    """The matrix `A`, changing at the rates `dA`.

    Lean: `Attention.Matrix.dual`.
    """
    return [[Dual(A[i][j], dA[i][j]) for j in range(n)] for i in range(m)]


def matrix_tangent(A: list[list[Dual]], *, m: int, n: int) -> list[list[Value]]:
    """The rates at which a matrix changes.

    Lean: `Attention.Matrix.tangent`.
    """
    return [[A[i][j].der for j in range(n)] for i in range(m)]


def matrix_inner(
    A: list[list[Value]], B: list[list[Value]], *, m: int, n: int, zero: Value
) -> Value:
    """The inner product of two matrices, Σ Aᵢⱼ Bᵢⱼ.

    Lean: `Attention.Matrix.inner`.
    """
    return sum_over(lambda i: vec_dot(A[i], B[i], d=n, zero=zero), list(range(m)), zero=zero)


def score_tangent(s: Dual | None, *, num: Arithmetic) -> Value:
    """The rate of change of a score; a masked one has none, which counts 0.

    Lean: `Attention.Spec.scoreTangent`.
    """
    return num.value(0) if s is None else s.der


# The slope of a score transformation: its derivative by the score, at a query, a key and the score
# before the transformation. Lean: `Attention.Spec.ScoreSlope`.
ScoreSlope: TypeAlias = Callable[[int, int, Score], Value]


def jvp(
    scale: Value,
    modify: Callable[[int, int, Dual], Dual | None],
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
    """The derivative of attention along the rates `dQ`, `dK` and `dV`, and those in `modify`: the
    Jacobian of attention, times these (Jacobian-vector product).

    Lean: `Attention.Spec.jvp`.
    """
    return matrix_tangent(
        attention(
            const(scale, zero=num.value(0)),
            modify,
            matrix_dual(Q, dQ, m=q_len, n=d),
            matrix_dual(K, dK, m=kv_len, n=d),
            matrix_dual(V, dV, m=kv_len, n=d_v),
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num.dual(),
        ),
        m=q_len,
        n=d_v,
    )


def jvp_sink(
    scale: Value,
    modify: Callable[[int, int, Dual], Dual | None],
    sink: Value,
    dSink: Value,
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
    """The same with a sink, which changes too.

    Lean: `Attention.Spec.jvpSink`.
    """
    return matrix_tangent(
        attention_sink(
            const(scale, zero=num.value(0)),
            modify,
            Dual(sink, dSink),
            matrix_dual(Q, dQ, m=q_len, n=d),
            matrix_dual(K, dK, m=kv_len, n=d),
            matrix_dual(V, dV, m=kv_len, n=d_v),
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num.dual(),
        ),
        m=q_len,
        n=d_v,
    )


def lse_tangent(row: list[Dual | None], *, num: Arithmetic) -> Value:
    """The rate at which the log-sum-exp of a row of scores changes that change: the rate of the
    denominator, by the denominator.

    Lean: `Attention.Spec.lseTangent`.
    """
    l = denominator(row, num=num.dual())
    return l.der / l.val
