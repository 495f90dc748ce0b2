"""Functions that the kernels call inside, each in a kernel of its own that stores its results: the
random words of dropout and the bounds of the loops over keys."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from bridge.ttir.launches import Kernels
from bridge.vectors.model.attention import Window
from pyimpl.backends.kernels.parts.bounds import (
    first_key,
    stop_key,
    tile_row_first,
    tile_row_last,
    unmasked_tiles,
    visited_tiles,
)
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.numerics import kernel

Words = tuple[int, ...]


@kernel
def _words_kernel(seed_ptr, counters_ptr, words_ptr, number, BLOCK: tl.constexpr):
    """Four words for each counter of four, as `dropout` has them."""
    place = tl.arange(0, BLOCK)
    inside = place < number
    at = counters_ptr + 4 * place
    c0 = tl.load(at, mask=inside, other=0)
    c1 = tl.load(at + 1, mask=inside, other=0)
    c2 = tl.load(at + 2, mask=inside, other=0)
    c3 = tl.load(at + 3, mask=inside, other=0)
    w0, w1, w2, w3 = tl.philox(tl.load(seed_ptr), c0, c1, c2, c3)
    to = words_ptr + 4 * place
    tl.store(to, w0.to(tl.int32, bitcast=True), mask=inside)
    tl.store(to + 1, w1.to(tl.int32, bitcast=True), mask=inside)
    tl.store(to + 2, w2.to(tl.int32, bitcast=True), mask=inside)
    tl.store(to + 3, w3.to(tl.int32, bitcast=True), mask=inside)


def words(
    kernels: Kernels, key: Sequence[int], counters: Sequence[Sequence[int]], rounds: int
) -> list[Words]:
    """The four words of Philox4x32 for each counter of four words, as kernels compute them.

    key: two words. Raises ValueError for other rounds than 10: kernels have no others.
    """
    if rounds != 10:
        raise ValueError(f"rounds must be 10, those of the kernels, not {rounds}")
    seed = torch.tensor([_as_signed(key[0] | key[1] << 32, 64)])
    given = torch.tensor([[_as_signed(x, 32) for x in words] for words in counters]).to(torch.int32)
    found = torch.zeros_like(given)
    arguments = {"seed_ptr": seed, "counters_ptr": given, "words_ptr": found}
    block = triton.next_power_of_2(len(counters))
    launch = Launch(
        _words_kernel, 1, {**arguments, "number": len(counters)}, {"BLOCK": block}, 4, 1
    )
    stored = kernels.integers(launch, found)
    return [tuple(int(x) & 0xFFFFFFFF for x in row) for row in stored]


@kernel
def bounds_kernel(
    bounds_ptr, q_len, kv_len, left, right, shift, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """The bounds of a tile of queries, as the forward kernel takes them from its window."""
    tile = tl.program_id(0)
    row_first = tile_row_first(BLOCK_M, tile)
    row_last = tile_row_last(q_len, BLOCK_M, tile)
    first, stop = visited_tiles(
        first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len), BLOCK_N
    )
    whole_first, whole_stop = unmasked_tiles(
        row_first, row_last, shift, left, right, kv_len, BLOCK_N
    )
    at = bounds_ptr + 4 * tile
    tl.store(at, first)
    tl.store(at + 1, stop)
    tl.store(at + 2, whole_first)
    tl.store(at + 3, whole_stop)


def visits(
    kernels: Kernels, q_len: int, kv_len: int, block_m: int, block_n: int, window: Window | None
) -> list[str]:
    """A letter for each pair of a tile of queries and a tile of keys, as in `TileBoundsVector`. The
    block sizes need be no powers of two."""
    left, right, shift = window or Window(None, None, 0)
    query_tiles, key_tiles = triton.cdiv(q_len, block_m), triton.cdiv(kv_len, block_n)
    bounds = torch.zeros((query_tiles, 4), dtype=torch.int32)
    sizes = {"q_len": q_len, "kv_len": kv_len, "left": left, "right": right, "shift": shift}
    launch = Launch(
        bounds_kernel, query_tiles, {"bounds_ptr": bounds, **sizes},
        {"BLOCK_M": block_m, "BLOCK_N": block_n}, 4, 1,
    )  # fmt: skip
    return [
        "".join(
            "-" if not first <= tile < stop else "u" if whole_first <= tile < whole_stop else "m"
            for tile in range(key_tiles)
        )
        for first, stop, whole_first, whole_stop in kernels.integers(launch, bounds)
    ]


def _as_signed(x: int, bits: int) -> int:
    """The signed integer with the bits of an unsigned one."""
    return x - (1 << bits) if x >= 1 << (bits - 1) else x
