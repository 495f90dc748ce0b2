"""The backward pass of grouped-query attention.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardHeads.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.backward import Gradients, vjp
from bridge.spec.core import Arithmetic, Dual, Score, Value
from bridge.spec.dual import const
from bridge.spec.heads import grouped_query, kv_head
from bridge.spec.tangent import matrix_dual, matrix_tangent
from bridge.spec.vector import vec_sum_over


@dataclass(frozen=True)
class GroupedGradients:
    """The gradients of a loss by the inputs of grouped-query attention, head by head.

    dQ: by the queries.

    dK: by the keys.

    dV: by the values.

    dBias: by a bias, which each query head has of its own.

    Lean: `Attention.Spec.GroupedGradients`.
    """

    dQ: list[list[list[Value]]]
    dK: list[list[list[Value]]]
    dV: list[list[list[Value]]]
    dBias: list[list[list[Value]]]


def group_heads(group: int, c: int, *, num_kv_heads: int) -> list[int]:
    """The query heads that share the head `c` of keys and values.

    Lean: `Attention.Spec.groupHeads`.
    """
    return [h for h in range(num_kv_heads * group) if kv_head(h, group=group) == c]


def sum_matrices(
    X: Callable[[Any], list[list[Value]]], xs: list[Any], *, m: int, n: int, num: Arithmetic
) -> list[list[Value]]:
    """A sum of matrices.

    Lean: `Attention.Spec.sumMatrices`.
    """
    return [vec_sum_over(lambda x: X(x)[i], xs, d=n, zero=num.value(0)) for i in range(m)]


def group_gradients(
    each: list[Gradients],
    *,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> GroupedGradients:
    """The gradients of grouped heads from those of each query head by itself: dK and dV summed
    over the heads that share a head of keys and values.

    Lean: `Attention.Spec.groupGradients`.
    """
    return GroupedGradients(
        dQ=[each[h].dQ for h in range(num_kv_heads * group)],
        dK=[
            sum_matrices(
                lambda h: each[h].dK,
                group_heads(group, c, num_kv_heads=num_kv_heads),
                m=kv_len,
                n=d,
                num=num,
            )
            for c in range(num_kv_heads)
        ],
        dV=[
            sum_matrices(
                lambda h: each[h].dV,
                group_heads(group, c, num_kv_heads=num_kv_heads),
                m=kv_len,
                n=d_v,
                num=num,
            )
            for c in range(num_kv_heads)
        ],
        dBias=[each[h].dBias for h in range(num_kv_heads * group)],
    )


def grouped_query_vjp(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    slope: Callable[[int, int, int, Score], Value],
    Q: list[list[list[Score]]],
    K: list[list[list[Score]]],
    V: list[list[list[Value]]],
    to_value: Callable[[Score], Value],
    dO: list[list[list[Value]]],
    dLse: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> GroupedGradients:
    """The backward pass of grouped-query attention: that of each query head, dK and dV summed over
    the heads that share a head of keys and values.

    Lean: `Attention.Spec.groupedQueryVjp`.
    """
    return group_gradients(
        [
            vjp(
                scale,
                lambda i, j, x: modify(h, i, j, x),
                lambda i, j, x: slope(h, i, j, x),
                Q[h],
                K[kv_head(h, group=group)],
                V[kv_head(h, group=group)],
                to_value,
                dO[h],
                dLse[h],
                q_len=q_len,
                kv_len=kv_len,
                d=d,
                d_v=d_v,
                num=num,
            )
            for h in range(num_kv_heads * group)
        ],
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num_kv_heads=num_kv_heads,
        group=group,
        num=num,
    )


def grouped_query_jvp(
    scale: Score,
    modify: Callable[[int, int, int, Dual], Dual | None],
    Q: list[list[list[Score]]],
    dQ: list[list[list[Score]]],
    K: list[list[list[Score]]],
    dK: list[list[list[Score]]],
    V: list[list[list[Score]]],
    dV: list[list[list[Score]]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> list[list[list[Score]]]:
    """The derivative of grouped-query attention along the rates `dQ`, `dK` and `dV`, and those in
    `modify`: grouped-query attention, run over dual numbers.

    Lean: `Attention.Spec.groupedQueryJvp`.
    """
    O = grouped_query(
        const(scale, zero=num.score(0)),
        modify,
        [matrix_dual(Q[h], dQ[h], m=q_len, n=d) for h in range(num_kv_heads * group)],
        [matrix_dual(K[c], dK[c], m=kv_len, n=d) for c in range(num_kv_heads)],
        [matrix_dual(V[c], dV[c], m=kv_len, n=d_v) for c in range(num_kv_heads)],
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num_kv_heads=num_kv_heads,
        group=group,
        num=num.dual(),
    )
    return [matrix_tangent(O[h], m=q_len, n=d_v) for h in range(num_kv_heads * group)]
