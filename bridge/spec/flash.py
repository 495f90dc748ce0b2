"""FlashAttention-2: the tile loop.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Flash.lean`.
"""

from __future__ import annotations

from typing import Any

from bridge.spec.attention import ScoreMod, scored
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
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    rows: list[int],
    states: list[State],
    cols: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """One key tile `cols` updates the states of all rows of a query tile.

    Lean: `Attention.Spec.stepTile`.
    """
    return [
        step_block(s, scored(scale, modify, Q, K, V, i, cols, d=d, num=num), d=d_v, num=num)
        for i, s in zip(rows, states, strict=False)
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
    """The rows of attention's output, in order, computed tile by tile with `block_m` queries and
    `block_n` keys to a tile.

    Lean: `Attention.Spec.flash`.
    """
    result = []
    for rows in tiles(block_m, list(range(q_len))):
        start = [empty(d=d_v, num=num) for _ in rows]
        col_tiles = tiles(block_n, list(range(kv_len)))
        states = start
        for cols in col_tiles:
            states = step_tile(scale, modify, Q, K, V, rows, states, cols, d=d, d_v=d_v, num=num)
        result.extend([finish(s, d=d_v, num=num) for s in states])
    return result
