"""A shared prefix, computed once.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Cascade.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.attention import scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import step_tile, tiles
from bridge.spec.online import State, empty, finish, merge, online
from bridge.spec.rows import KeyValue, scored_rows


def prefix_states(
    scale: Score,
    modify: Callable[[int, int, Score], Score | None],
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    block_n: int,
    *,
    q_len: int,
    prefix_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """The states of all queries after one pass over the shared prefix in tiles of `block_n` keys.

    Lean: `Attention.Spec.prefixStates`.
    """
    rows = list(range(q_len))
    result = [empty(d=d_v, num=num) for _ in rows]
    for cols in tiles(block_n, list(range(prefix_len))):
        result = step_tile(
            lambda i, cols_1: scored(scale, modify, Q, K, V, i, cols_1, d=d, num=num),
            rows,
            result,
            cols,
            d_v=d_v,
            num=num,
        )
    return result


def suffix_state(
    scale: Score,
    modify: Callable[[int, int, Score], Score | None],
    Q: list[list[Score]],
    prefix_len: int,
    i: int,
    suffix: list[KeyValue],
    block_n: int,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> State:
    """The state of query `i` over its own suffix, which begins at position `prefix_len`, in tiles
    of `block_n` keys.

    Lean: `Attention.Spec.suffixState`.
    """
    return online(
        tiles(
            block_n,
            scored_rows(
                scale, lambda j, i_1: modify(i, prefix_len + j, i_1), Q[i], suffix, d=d, num=num
            ),
        ),
        d=d_v,
        num=num,
    )


def cascade(
    scale: Score,
    modify: Callable[[int, int, Score], Score | None],
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    suffix: Callable[[int], list[KeyValue]],
    block_n: int,
    *,
    q_len: int,
    prefix_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of each query over the shared prefix and its own suffix.

    Lean: `Attention.Spec.cascade`.
    """
    return [
        finish(
            merge(
                s,
                suffix_state(
                    scale, modify, Q, prefix_len, i, suffix(i), block_n, d=d, d_v=d_v, num=num
                ),
                num=num,
            ),
            d=d_v,
            num=num,
        )
        for i, s in zip(
            range(q_len),
            prefix_states(
                scale,
                modify,
                Q,
                K,
                V,
                block_n,
                q_len=q_len,
                prefix_len=prefix_len,
                d=d,
                d_v=d_v,
                num=num,
            ),
            strict=False,
        )
    ]
