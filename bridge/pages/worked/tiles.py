"""The tile loop over a vector, and which tiles a window visits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from bridge.pages.worked import inputs as given
from bridge.pages.worked.shown import Cells, show, show_all
from bridge.source.excerpt import SourceError
from bridge.spec import tile_bounds
from bridge.spec.core import EXACT
from bridge.spec.flash import flash, step_tile, tiles
from bridge.spec.masks import Alignment
from bridge.spec.online import empty, finish
from bridge.spec.schedule import TileKind, TileRange
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.operations import TileBoundsVector

_LETTERS = {TileKind.SKIP: "-", TileKind.UNMASKED: "u", TileKind.MASKED: "m"}


@dataclass(frozen=True)
class WorkedTiles:
    """A vector of the exact model in tiles of `block_m` queries and `block_n` keys."""

    vector: AttentionVector
    block_m: int
    block_n: int

    def states(self, tile: int) -> Cells:
        """By tile of keys and by query of a tile of queries: the scores of the pair of tiles, and
        the query's state after it; at last the outputs. Raises SourceError unless the loop ends in
        the vector's output, for all queries."""
        v, sizes = self.vector, given.sizes(self.vector)
        whole = flash(*(*given.inputs(v), self.block_m, self.block_n), **sizes)
        for query, row in enumerate(whole):
            given.same(row, given.output(v, query), f"{v.id}, query {query}, in tiles")
        rows = tiles(self.block_m, list(range(v.q_len)))[tile]
        width: dict[str, Any] = {"d": v.value_dim, "num": EXACT}
        keys_seen = partial(given.keys_seen, v)
        states = [empty(**width) for _ in rows]
        cells = []
        for number, cols in enumerate(tiles(self.block_n, list(range(v.kv_len)))):
            states = step_tile(keys_seen, rows, states, cols, d_v=v.value_dim, num=EXACT)
            for i, s in zip(rows, states, strict=True):
                scores = show_all([key.score for key in keys_seen(i, cols)])
                cells.append([f"{number}", f"{i}", scores, show(s.m), show(s.l), show_all(s.o)])
        for i, s in zip(rows, states, strict=True):
            cells.append(["o / l", f"{i}", "", "", "", show_all(finish(s, **width))])
        return cells


def worked_tiles(family: Family, vector: str, block_m: int, block_n: int) -> WorkedTiles:
    """A vector to be worked in tiles. Raises SourceError if there is no such vector."""
    return WorkedTiles(given.find_attention(family, vector), block_m, block_n)


def bounds(family: Family, vector: str) -> Cells:
    """By tile of queries: its first and last query, the first key that one of them sees and one
    past the last, the tiles visited, those without mask code, and a letter for each tile. Raises
    SourceError unless the letters are those of the vector."""
    v = given.find(family, vector)
    if not isinstance(v, TileBoundsVector):
        raise SourceError(f"{vector} is no vector of tile bounds")
    window = v.mask.window
    assert window is not None
    at = Alignment.BOTTOM_RIGHT if window.shift else Alignment.TOP_LEFT
    lengths = (v.q_len, v.kv_len)
    blocks = (v.block_m, v.block_n)
    cells = []
    for t, letters in enumerate(v.expected):
        visited = tile_bounds.visited_tiles(at, window.left, window.right, *lengths, *blocks, t)
        plain = tile_bounds.unmasked_tiles(at, window.left, window.right, *lengths, *blocks, t)
        found = "".join(
            _LETTERS[
                tile_bounds.window_kind(at, window.left, window.right, *lengths, *blocks, t, u)
            ]
            if visited.first <= u < visited.stop
            else "-"
            for u in range(len(letters))
        )
        given.same(found, letters, f"{v.id}, tile {t},")
        first = tile_bounds.first_key(at, window.left, *lengths, v.block_m, t)
        stop = tile_bounds.stop_key(at, window.right, *lengths, v.block_m, t)
        rows = (
            tile_bounds.tile_row_first(v.block_m, t),
            tile_bounds.tile_row_last(v.q_len, v.block_m, t),
        )
        ranges = (_range(*rows), f"{first} ≤ j < {stop}", _tiles(visited), _tiles(plain))
        cells.append([str(t), *ranges, f"`{letters}`"])
    return cells


def _range(first: int, last: int) -> str:
    return f"{first} … {last}" if first < last else str(first)


def _tiles(found: TileRange) -> str:
    return _range(found.first, found.stop - 1) if found.first < found.stop else "none"
