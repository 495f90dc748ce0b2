"""Attention with a sink.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Sink.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import ScoredValue, ScoreMod, attend, scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import tile_loop
from bridge.spec.online import State, finish, step_block
from bridge.spec.vector import vec_zero


def with_sink(sink: Score, row: list[ScoredValue], *, d: int, num: Arithmetic) -> list[ScoredValue]:
    """A row with its sink: one more key, with score `sink` and value 0.

    Lean: `Attention.Spec.withSink`.
    """
    return [ScoredValue(score=sink, value=vec_zero(d=d, zero=num.value(0))), *row]


def attention_sink(
    scale: Score,
    modify: ScoreMod,
    sink: Score,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of whole matrices, each row with the sink.

    Lean: `Attention.Spec.attentionSink`.
    """
    return [
        attend(
            with_sink(
                sink,
                scored(scale, modify, Q, K, V, i, list(range(kv_len)), d=d, num=num),
                d=d_v,
                num=num,
            ),
            d_v=d_v,
            num=num,
        )
        for i in range(q_len)
    ]


def sink_state(sink: Score, *, d: int, num: Arithmetic) -> State:
    """The state of the sink alone.

    Lean: `Attention.Spec.sinkState`.
    """
    return State(m=sink, l=num.value(1), o=vec_zero(d=d, zero=num.value(0)))


def online_sink(sink: Score, blocks: list[list[ScoredValue]], *, d: int, num: Arithmetic) -> State:
    """Online softmax with a sink: it starts from the state of the sink, not from the empty one.

    Lean: `Attention.Spec.onlineSink`.
    """
    result = sink_state(sink, d=d, num=num)
    for block in blocks:
        result = step_block(result, block, d=d, num=num)
    return result


def flash_sink(
    scale: Score,
    modify: ScoreMod,
    sink: Score,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    block_m: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The tile loop of FlashAttention-2 with a sink: each row starts from the state of the sink.

    Lean: `Attention.Spec.flashSink`.
    """
    return [
        finish(s, d=d_v, num=num)
        for s in tile_loop(
            sink_state(sink, d=d_v, num=num),
            lambda i, cols: scored(scale, modify, Q, K, V, i, cols, d=d, num=num),
            block_m,
            block_n,
            q_len=q_len,
            kv_len=kv_len,
            d_v=d_v,
            num=num,
        )
    ]
