"""Decoding with the keys split.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/SplitKV.lean`.
"""

from __future__ import annotations

from functools import reduce

from bridge.spec.attention import ScoreMod, scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import tiles
from bridge.spec.online import State, empty, finish, merge, online


def split_states(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    split_len: int,
    block_n: int,
    i: int,
    *,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """The state of query `i` for each split of `split_len` keys, taken `block_n` keys at a time.

    Lean: `Attention.Spec.splitStates`.
    """
    return [
        online(
            [
                scored(scale, modify, Q, K, V, i, cols_1, d=d, num=num)
                for cols_1 in tiles(block_n, cols)
            ],
            d=d_v,
            num=num,
        )
        for cols in tiles(split_len, list(range(kv_len)))
    ]


def split_kv(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    split_len: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The rows of attention's output, in order, each from the merged states of its splits.

    Lean: `Attention.Spec.splitKV`.
    """
    return [
        finish(
            reduce(
                lambda a, b: merge(a, b, num=num),
                split_states(
                    scale,
                    modify,
                    Q,
                    K,
                    V,
                    split_len,
                    block_n,
                    i,
                    kv_len=kv_len,
                    d=d,
                    d_v=d_v,
                    num=num,
                ),
                empty(d=d_v, num=num),
            ),
            d=d_v,
            num=num,
        )
        for i in range(q_len)
    ]
