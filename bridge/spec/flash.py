"""FlashAttention-2: the tile loop.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Flash.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from bridge.spec.attention import ScoredValue, ScoreMod, scored
from bridge.spec.core import Arithmetic, Score, Value, div
from bridge.spec.online import State, empty, finish, step_block


def num_tiles(n: int, b: int) -> int:
    """The number of tiles of size `b` that cover `n` things; the last one may be ragged.

    Lean: `Attention.Spec.numTiles`.
    """
    return div(max(n + b - 1, 0), b)


def tiles(b: int, xs: list[Any]) -> list[list[Any]]:
    """A list cut into consecutive tiles of size `b`; the last one may be shorter.

    Lean: `Attention.Spec.tiles`.
    """
    return [xs[t * b :][:b] for t in range(num_tiles(len(xs), b))]


def step_tile(
    seen: Callable[[int, list[int]], list[ScoredValue]],
    rows: list[int],
    states: list[State],
    cols: list[int],
    *,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """One key tile `cols` updates the states of all rows of a query tile; `seen i cols` are these
    keys as query `i` sees them, `scored` in plain attention.

    Lean: `Attention.Spec.stepTile`.
    """
    return [
        step_block(s, seen(i, cols), d=d_v, num=num) for i, s in zip(rows, states, strict=False)
    ]


def tile_loop(
    start: State,
    seen: Callable[[int, list[int]], list[ScoredValue]],
    block_m: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """The states of all rows, in order, computed tile by tile with `block_m` queries and `block_n`
    keys to a tile. Each row starts from `start`.

    Lean: `Attention.Spec.tileLoop`.
    """
    return [
        x
        for rows in tiles(block_m, list(range(q_len)))
        for x in reduce(
            lambda states, cols: step_tile(seen, rows, states, cols, d_v=d_v, num=num),
            tiles(block_n, list(range(kv_len))),
            [start for _ in rows],
        )
    ]


def flash(
    scale: Score,
    modify: ScoreMod,
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
    """The rows of attention's output, in order, computed by the tile loop.

    Lean: `Attention.Spec.flash`.
    """
    return [
        finish(s, d=d_v, num=num)
        for s in tile_loop(
            empty(d=d_v, num=num),
            lambda i, cols: scored(scale, modify, Q, K, V, i, cols, d=d, num=num),
            block_m,
            block_n,
            q_len=q_len,
            kv_len=kv_len,
            d_v=d_v,
            num=num,
        )
    ]
