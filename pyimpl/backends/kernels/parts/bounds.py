"""Which key tiles a query tile visits, and which of them need no mask code: the integer bounds of
`Attention.Spec.TileBounds` and `Attention.Spec.WholeTiles`.

`left` and `right` are None where the window has no bound on that side; `shift` is where query 0
stands on the axis of the keys. Everything is a 32-bit integer; a number that the Spec clips to 0 by
`toNat` is clipped to 0 here, so no number below 0 is ever divided.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import triton.language as tl

from pyimpl.backends.kernels.parts.numerics import device_function
from pyimpl.internal.implements import implements


@implements("Attention.Spec.numTiles")
@device_function
def num_tiles(n, b):
    """The number of tiles of size b that cover n things; the last one may be ragged."""
    return (n + b - 1) // b


@implements("Attention.Spec.tileRowFirst")
@device_function
def tile_row_first(block_m, t):
    """The first row of query tile t."""
    return t * block_m


@implements("Attention.Spec.tileRowLast")
@device_function
def tile_row_last(q_len, block_m, t):
    """The last row of query tile t: of a ragged last tile the last query."""
    return tl.minimum((t + 1) * block_m, q_len) - 1


@implements("Attention.Spec.firstKey")
@device_function
def first_key(row_first, shift, left):
    """The first key that some query from `row_first` on sees, clipped to 0."""
    first = 0
    if left is not None:
        first = tl.maximum(row_first + shift - left, 0)
    return first


@implements("Attention.Spec.stopKey")
@device_function
def stop_key(row_last, shift, right, kv_len):
    """One past the last key that some query up to `row_last` sees, clipped to 0 and `kv_len`."""
    stop = kv_len
    if right is not None:
        stop = tl.minimum(kv_len, tl.maximum(row_last + shift + right + 1, 0))
    return stop


@implements("Attention.Spec.visitedTiles")
@device_function
def visited_tiles(first, stop, block_n):
    """(first, one past the last) of the key tiles that hold some key from `first` to `stop` − 1."""
    some = first < stop
    return tl.where(some, first // block_n, 0), tl.where(some, num_tiles(stop, block_n), 0)


@implements("Attention.Spec.unmaskedTiles")
@device_function
def unmasked_tiles(row_first, row_last, shift, left, right, kv_len, block_n):
    """(first, one past the last) of the key tiles of which each query from `row_first` to
    `row_last` sees every key; the range is empty where first is not below the other."""
    first = 0
    stop = num_tiles(kv_len, block_n)
    if left is not None:
        first = num_tiles(tl.maximum(row_last + shift - left, 0), block_n)
    if right is not None:
        seen = tl.maximum(row_first + shift + right + 1, 0)
        stop = tl.where(kv_len <= seen, stop, seen // block_n)
    return first, stop


@implements("Attention.Spec.wholeTiles")
@device_function
def whole_tiles(whole_first, whole_stop, first, stop, length, block):
    """The unmasked tiles, from `whole_first` to `whole_stop` − 1, that are among those from `first`
    to `stop` − 1 and no ragged last one: it needs the check of where the `length` ends."""
    whole_stop = tl.minimum(whole_stop, length // block)
    whole_first = tl.minimum(tl.maximum(whole_first, first), stop)
    whole_stop = tl.minimum(tl.maximum(whole_stop, whole_first), stop)
    return whole_first, whole_stop
