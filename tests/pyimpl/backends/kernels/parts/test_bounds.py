"""The tile bounds of the kernels against `Attention.Spec.TileBounds`, counted out key by key."""

from __future__ import annotations

import itertools

import torch
import triton

from bridge.ttir.probes import bounds_kernel


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
