"""The bounds of the loops of the backward pass under a causal mask or a sliding window.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardBounds.lean`.
"""

from __future__ import annotations

from bridge.spec.backward_tiles import TileLoop
from bridge.spec.masks import Alignment
from bridge.spec.schedule import TileKind
from bridge.spec.tile_bounds import visited_tiles
from bridge.spec.whole_tiles import whole_kind


def window_queries(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    q_len: int,
    kv_len: int,
    block_m: int,
    block_n: int,
) -> TileLoop:
    """The loop over tiles of keys for each tile of queries, under a window.

    Lean: `Attention.Spec.windowQueries`.
    """
    return TileLoop(
        block_outer=block_m,
        block_inner=block_n,
        visit=lambda t: visited_tiles(alignment, left, right, q_len, kv_len, block_m, block_n, t),
        kind=lambda t, u: whole_kind(alignment, left, right, q_len, kv_len, block_m, block_n, t, u),
    )


def window_keys(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    q_len: int,
    kv_len: int,
    block_m: int,
    block_n: int,
) -> TileLoop:
    """The loop over tiles of queries for each tile of keys, under a window. A ragged last tile of
    keys takes every tile with mask code, for its own padding.

    Lean: `Attention.Spec.windowKeys`.
    """
    return TileLoop(
        block_outer=block_n,
        block_inner=block_m,
        visit=lambda t: visited_tiles(alignment, right, left, kv_len, q_len, block_n, block_m, t),
        kind=lambda u, t: (
            whole_kind(alignment, right, left, kv_len, q_len, block_n, block_m, u, t)
            if (u + 1) * block_n <= kv_len
            else TileKind.MASKED
        ),
    )
