"""Which key tiles a query tile must visit under a causal mask or a sliding window.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TileBounds.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import ScoreMod
from bridge.spec.core import Arithmetic, Score, Value, div
from bridge.spec.flash import num_tiles
from bridge.spec.masks import Alignment, alignment_shift, mask_window
from bridge.spec.schedule import TileKind, TileRange, flash_schedule, tile_range_contains


def tile_row_first(block_m: int, t: int) -> int:
    """The first row of query tile `t`.

    Lean: `Attention.Spec.tileRowFirst`.
    """
    return t * block_m


def tile_row_last(q_len: int, block_m: int, t: int) -> int:
    """The last row of query tile `t`: of a ragged last tile the last query.

    Lean: `Attention.Spec.tileRowLast`.
    """
    return max(min((t + 1) * block_m, q_len) - 1, 0)


def first_key(
    alignment: Alignment, left: int | None, q_len: int, kv_len: int, block_m: int, t: int
) -> int:
    """The first key that some query of tile `t` sees, clipped to 0.

    Lean: `Attention.Spec.firstKey`.
    """
    if left is None:
        return 0
    return max(tile_row_first(block_m, t) + alignment_shift(q_len, kv_len, alignment) - left, 0)


def stop_key(
    alignment: Alignment, right: int | None, q_len: int, kv_len: int, block_m: int, t: int
) -> int:
    """One past the last key that some query of tile `t` sees, clipped to 0 and `kv_len`.

    Lean: `Attention.Spec.stopKey`.
    """
    if right is None:
        return kv_len
    return min(
        kv_len,
        max(
            tile_row_last(q_len, block_m, t)
            + alignment_shift(q_len, kv_len, alignment)
            + right
            + 1,
            0,
        ),
    )


def visited_tiles(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    q_len: int,
    kv_len: int,
    block_m: int,
    block_n: int,
    t: int,
) -> TileRange:
    """The key tiles of which some query of query tile `t` sees some key.

    Lean: `Attention.Spec.visitedTiles`.
    """
    first = first_key(alignment, left, q_len, kv_len, block_m, t)
    stop = stop_key(alignment, right, q_len, kv_len, block_m, t)
    if first < stop:
        return TileRange(first=div(first, block_n), stop=num_tiles(stop, block_n))
    return TileRange(first=0, stop=0)


def unmasked_tiles(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    q_len: int,
    kv_len: int,
    block_m: int,
    block_n: int,
    t: int,
) -> TileRange:
    """The key tiles of which every query of query tile `t` sees every key: from the first key that
    the last query sees, up to the last key that the first query sees.

    Lean: `Attention.Spec.unmaskedTiles`.
    """
    if right is None:
        stop = num_tiles(kv_len, block_n)
    else:
        stop_1 = max(
            tile_row_first(block_m, t) + alignment_shift(q_len, kv_len, alignment) + right + 1, 0
        )
        stop = num_tiles(kv_len, block_n) if kv_len <= stop_1 else div(stop_1, block_n)
    return TileRange(
        first=0
        if left is None
        else num_tiles(
            max(
                tile_row_last(q_len, block_m, t) + alignment_shift(q_len, kv_len, alignment) - left,
                0,
            ),
            block_n,
        ),
        stop=stop,
    )


def window_kind(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    q_len: int,
    kv_len: int,
    block_m: int,
    block_n: int,
    t: int,
    u: int,
) -> TileKind:
    """Within its range a tile needs mask code unless every query sees every key of it.

    Lean: `Attention.Spec.windowKind`.
    """
    if tile_range_contains(
        unmasked_tiles(alignment, left, right, q_len, kv_len, block_m, block_n, t), u
    ):
        return TileKind.UNMASKED
    return TileKind.MASKED


def flash_window(
    scale: Score,
    modify: ScoreMod,
    alignment: Alignment,
    left: int | None,
    right: int | None,
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
    """The tile loop under a sliding window, by these bounds.

    Lean: `Attention.Spec.flashWindow`.
    """
    return flash_schedule(
        scale,
        modify,
        mask_window(alignment, left, right, q_len=q_len, kv_len=kv_len),
        Q,
        K,
        V,
        lambda t: visited_tiles(alignment, left, right, q_len, kv_len, block_m, block_n, t),
        lambda t, u: window_kind(alignment, left, right, q_len, kv_len, block_m, block_n, t, u),
        block_m,
        block_n,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )
