"""The gradients by what changes the scores: biases, slopes of ALiBi, sinks.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardOptions.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import ScoreMod
from bridge.spec.backward_heads import GroupedGradients, grouped_query_vjp
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.masks import Alignment
from bridge.spec.score_mods import distance
from bridge.spec.sum import sum_over
from bridge.spec.tangent import ScoreSlope
from bridge.spec.vector import vec_sum_over, vec_zero


def sum_rows(A: list[list[Value]], *, m: int, n: int, num: Arithmetic) -> list[list[Value]]:
    """A sum over the rows of a matrix, as a matrix of one row: the gradient by a bias that all
    queries share. One that all heads share gets `sumMatrices`.

    Lean: `Attention.Spec.sumRows`.
    """
    return [vec_sum_over(lambda i: A[i], list(range(m)), d=n, zero=num.value(0)) for _ in range(1)]


def slope_gradient(
    alignment: Alignment, dS: list[list[Value]], *, q_len: int, kv_len: int, num: Arithmetic
) -> Value:
    """The gradient by the slope of a head's linear biases: Σ dSᵢⱼ · (−distance of i and j).

    Lean: `Attention.Spec.slopeGradient`.
    """
    return sum_over(
        lambda i: sum_over(
            lambda j: dS[i][j] * num.value(-distance(alignment, i, j, q_len=q_len, kv_len=kv_len)),
            list(range(kv_len)),
            zero=num.value(0),
        ),
        list(range(q_len)),
        zero=num.value(0),
    )


def sink_first(of_sink: Any, of_key: Callable[[int], Any], j: int) -> Any:
    """The part of a sink, before the parts of the keys.

    Lean: `Attention.Spec.sinkFirst`.
    """
    return of_sink if j == 0 else of_key(max(j - 1, 0))


def rows_behind_sink(
    A: list[list[Value]], *, kv_len: int, d: int, num: Arithmetic
) -> list[list[Value]]:
    """Keys, or values, behind those of a sink, which are 0.

    Lean: `Attention.Spec.rowsBehindSink`.
    """
    return [
        sink_first(vec_zero(d=d, zero=num.value(0)), lambda j_1: A[j_1], j)
        for j in range(kv_len + 1)
    ]


def score_mod_behind_sink(sink: Score, modify: ScoreMod) -> ScoreMod:
    """Whatever its product with a query, the score of a sink is `sink`.

    Lean: `Attention.Spec.ScoreMod.behindSink`.
    """
    return lambda i, j, s: sink_first(sink, lambda k: modify(i, k, s), j)


def score_slope_behind_sink(slope: ScoreSlope, *, num: Arithmetic) -> ScoreSlope:
    """And does not change with it.

    Lean: `Attention.Spec.ScoreSlope.behindSink`.
    """
    return lambda i, j, s: sink_first(num.value(0), lambda k: slope(i, k, s), j)


def rows_of_keys(A: list[list[Value]], *, kv_len: int) -> list[list[Value]]:
    """Without the first row, that of a sink.

    Lean: `Attention.Spec.rowsOfKeys`.
    """
    return [A[j + 1] for j in range(kv_len)]


@dataclass(frozen=True)
class SinkGradients:
    """The gradients of a loss by the inputs of grouped-query attention with sinks.

    inputs: by queries, keys, values and a bias.

    dSinks: by the sink of each query head.

    Lean: `Attention.Spec.SinkGradients`.
    """

    inputs: GroupedGradients
    dSinks: list[Value]


def sink_vjp(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    slope: Callable[[int, int, int, Score], Value],
    sinks: list[Score],
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
) -> SinkGradients:
    """The backward pass of grouped-query attention in which each query head has a sink: that of
    attention with one more key.

    Lean: `Attention.Spec.sinkVjp`.
    """
    g = grouped_query_vjp(
        scale,
        lambda h, i, j, x: score_mod_behind_sink(sinks[h], lambda i, j, x: modify(h, i, j, x))(
            i, j, x
        ),
        lambda h, i, j, x: score_slope_behind_sink(lambda i, j, x: slope(h, i, j, x), num=num)(
            i, j, x
        ),
        Q,
        [rows_behind_sink(K[c], kv_len=kv_len, d=d, num=num) for c in range(num_kv_heads)],
        [rows_behind_sink(V[c], kv_len=kv_len, d=d_v, num=num) for c in range(num_kv_heads)],
        to_value,
        dO,
        dLse,
        q_len=q_len,
        kv_len=kv_len + 1,
        d=d,
        d_v=d_v,
        num_kv_heads=num_kv_heads,
        group=group,
        num=num,
    )
    return SinkGradients(
        inputs=GroupedGradients(
            dQ=g.dQ,
            dK=[rows_of_keys(g.dK[c], kv_len=kv_len) for c in range(num_kv_heads)],
            dV=[rows_of_keys(g.dV[c], kv_len=kv_len) for c in range(num_kv_heads)],
            dBias=[
                [[g.dBias[h][i][j + 1] for j in range(kv_len)] for i in range(q_len)]
                for h in range(num_kv_heads * group)
            ],
        ),
        dSinks=[
            sum_over(lambda i: g.dBias[h][i][0], list(range(q_len)), zero=num.value(0))
            for h in range(num_kv_heads * group)
        ],
    )
