"""Which of the tiles that are visited a kernel takes without mask code.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/WholeTiles.lean`.
"""

from __future__ import annotations

from bridge.spec.core import div
from bridge.spec.masks import Alignment
from bridge.spec.schedule import TileKind, TileRange, tile_range_contains
from bridge.spec.tile_bounds import unmasked_tiles, visited_tiles


def whole_tiles(unmasked: TileRange, visited: TileRange, length: int, block: int) -> TileRange:
    """The tiles of `unmasked` that are among those `visited` and hold `block` of the `length`
    things. The range lies within `visited` where it is empty, too.

    Lean: `Attention.Spec.wholeTiles`.
    """
    first = min(max(unmasked.first, visited.first), visited.stop)
    return TileRange(
        first=first, stop=min(max(min(unmasked.stop, div(length, block)), first), visited.stop)
    )


def whole_kind(
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
    """Of the key tiles that query tile `t` visits under a window, those without mask code are the
    whole ones.

    Lean: `Attention.Spec.wholeKind`.
    """
    unmasked = unmasked_tiles(alignment, left, right, q_len, kv_len, block_m, block_n, t)
    visited = visited_tiles(alignment, left, right, q_len, kv_len, block_m, block_n, t)
    if tile_range_contains(whole_tiles(unmasked, visited, kv_len, block_n), u):
        return TileKind.UNMASKED
    return TileKind.MASKED
