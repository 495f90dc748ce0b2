"""The tile bounds of the kernels against `Attention.Spec.TileBounds`, counted out key by key, and
the whole tiles against `Attention.Spec.wholeTiles`."""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

from bridge.spec import whole_tiles as spec
from bridge.spec.schedule import TileRange
from bridge.ttir.probes import bounds_kernel
from pyimpl.backends.kernels.parts.bounds import whole_tiles
from pyimpl.backends.kernels.parts.numerics import kernel


def test_every_small_case() -> None:
    """A tile is visited if and only if some query of the tile sees some key of it, and taken
    without mask code if and only if each query sees each key."""
    block_m, block_n = 4, 3
    sizes = itertools.product((5, 8), (0, 1, 7, 12), (None, 0, 2, 5), (None, 0, 3), (-3, 0, 4))
    for q_len, kv_len, left, right, shift in sizes:
        tiles = triton.cdiv(q_len, block_m)
        result = torch.empty(tiles, 4, dtype=torch.int32)
        bounds_kernel[(tiles,)](
            result, q_len, kv_len, left, right, shift, BLOCK_M=block_m, BLOCK_N=block_n
        )
        for tile, (first, stop, whole_first, whole_stop) in enumerate(result.tolist()):
            visited, whole = range(first, stop), range(whole_first, whole_stop)
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


@kernel
def whole_kernel(ends_ptr, whole_ptr, BLOCK: tl.constexpr):
    """The whole tiles for the numbers of a row of `ends`: the ends of the unmasked tiles and of
    those visited, and the length."""
    row = tl.program_id(0)
    at = ends_ptr + 5 * row
    first, stop = whole_tiles(
        tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3), tl.load(at + 4), BLOCK
    )
    tl.store(whole_ptr + 2 * row, first)
    tl.store(whole_ptr + 2 * row + 1, stop)


def test_whole_tiles() -> None:
    """Any ranges, those whose ends are not in order too."""
    block, ends = 3, range(4)
    rows = list(itertools.product(ends, ends, ends, ends, (0, 1, 5, 6, 10)))
    whole = torch.empty(len(rows), 2, dtype=torch.int32)
    whole_kernel[(len(rows),)](torch.tensor(rows, dtype=torch.int32), whole, BLOCK=block)
    for (first, stop, visited, end, length), found in zip(rows, whole.tolist(), strict=True):
        expected = spec.whole_tiles(TileRange(first, stop), TileRange(visited, end), length, block)
        assert TileRange(*found) == expected
