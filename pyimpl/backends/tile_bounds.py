"""Which tiles of keys a tile of queries has to visit under a causal mask or a sliding window, and
which of them need no mask: `Attention.Spec.TileBounds`.

Query i stands at i + shift on the axis of the keys and sees the keys from i + shift − left to
i + shift + right, None: no bound on that side. All bounds are taken from the first and the last
real query of a tile. Source: flash-attention, `n_block_min` and `n_block_max`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyimpl.internal.implements import implements


@implements("Attention.Spec.TileRange")
@dataclass(frozen=True)
class TileRange:
    """The tiles first, first + 1, …, stop − 1."""

    first: int
    stop: int

    @implements("Attention.Spec.TileRange.contains")
    def __contains__(self, tile: int) -> bool:
        return self.first <= tile < self.stop


@implements("Attention.Spec.numTiles")
def num_tiles(length: int, block: int) -> int:
    """The number of tiles of size `block` ≥ 1 that cover `length` things."""
    return (length + block - 1) // block


@dataclass(frozen=True)
class TileBounds:
    """The bounds for tiles of `block_m` queries and `block_n` keys, both at least 1.

    `left` and `right` are at least 0 or None; `shift` is any whole number.
    """

    q_len: int
    kv_len: int
    block_m: int
    block_n: int
    left: int | None = None
    right: int | None = None
    shift: int = 0

    @implements("Attention.Spec.tileRowFirst")
    def row_first(self, t: int) -> int:
        """The first query of query tile `t`."""
        return t * self.block_m

    @implements("Attention.Spec.tileRowLast")
    def row_last(self, t: int) -> int:
        """The last query of query tile `t`: of a ragged last tile the last of all."""
        return min((t + 1) * self.block_m, self.q_len) - 1

    @implements("Attention.Spec.firstKey")
    def first_key(self, t: int) -> int:
        """The first key that some query of tile `t` sees, clipped to 0."""
        if self.left is None:
            return 0
        return max(self.row_first(t) + self.shift - self.left, 0)

    @implements("Attention.Spec.stopKey")
    def stop_key(self, t: int) -> int:
        """One past the last key that some query of tile `t` sees, clipped to 0 and `kv_len`."""
        if self.right is None:
            return self.kv_len
        return min(self.kv_len, max(self.row_last(t) + self.shift + self.right + 1, 0))

    @implements("Attention.Spec.visitedTiles")
    def visited_tiles(self, t: int) -> TileRange:
        """The key tiles of which some query of tile `t` sees some key."""
        first, stop = self.first_key(t), self.stop_key(t)
        if first >= stop:
            return TileRange(0, 0)
        return TileRange(first // self.block_n, num_tiles(stop, self.block_n))

    @implements("Attention.Spec.unmaskedTiles")
    def unmasked_tiles(self, t: int) -> TileRange:
        """The key tiles of which every query of tile `t` sees every key: from the first key that
        the last query sees to the last key that the first query sees."""
        first = 0
        if self.left is not None:
            seen_from = max(self.row_last(t) + self.shift - self.left, 0)
            first = num_tiles(seen_from, self.block_n)
        stop = num_tiles(self.kv_len, self.block_n)
        if self.right is not None:
            seen_to = max(self.row_first(t) + self.shift + self.right + 1, 0)
            if seen_to < self.kv_len:
                stop = seen_to // self.block_n
        return TileRange(first, stop)
