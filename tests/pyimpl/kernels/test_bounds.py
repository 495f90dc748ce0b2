"""The tile bounds of the kernels against `Attention.Spec.TileBounds`, counted out key by key."""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

from pyimpl.kernels._bounds import (
    first_key,
    stop_key,
    tile_row_first,
    tile_row_last,
    unmasked_tiles,
    visited_tiles,
)


@triton.jit
def _bounds(
    result, tile, q_len, kv_len, left, right, shift, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row_first, row_last = tile_row_first(BLOCK_M, tile), tile_row_last(q_len, BLOCK_M, tile)
    first, stop = first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len)
    visited = visited_tiles(first, stop, BLOCK_N)
    whole = unmasked_tiles(row_first, row_last, shift, left, right, kv_len, BLOCK_N)
    tl.store(result, visited[0])
    tl.store(result + 1, visited[1])
    tl.store(result + 2, whole[0])
    tl.store(result + 3, whole[1])


def test_every_small_case() -> None:
    """A tile is visited if and only if some query of the tile sees some key of it, and taken
    without mask code if and only if each query sees each key."""
    block_m, block_n = 4, 3
    sizes = itertools.product((5, 8), (0, 1, 7, 12), (None, 0, 2, 5), (None, 0, 3), (-3, 0, 4))
    result = torch.empty(4, dtype=torch.int32)
    for q_len, kv_len, left, right, shift in sizes:
        for tile in range(triton.cdiv(q_len, block_m)):
            _bounds[(1,)](
                result, tile, q_len, kv_len, left, right, shift, BLOCK_M=block_m, BLOCK_N=block_n
            )
            visited, whole = range(*result[:2].tolist()), range(*result[2:].tolist())
            queries = range(tile * block_m, min((tile + 1) * block_m, q_len))
            for number in range(triton.cdiv(kv_len, block_n)):
                keys = range(number * block_n, min((number + 1) * block_n, kv_len))
                seen = [
                    (left is None or j >= i + shift - left)
                    and (right is None or j <= i + shift + right)
                    for i in queries
                    for j in keys
                ]
                assert (number in visited) == any(seen)
                assert (number in whole) == all(seen)
