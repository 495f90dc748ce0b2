"""The vectors that `pyimpl.backends.tile_bounds` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

from generated_checks import vector_of, vectors

from pyimpl.backends.tile_bounds import TileBounds, num_tiles


def check(vector_id: str) -> None:
    vector = vector_of(vector_id)
    bounds = TileBounds(
        vector.q_len,
        vector.kv_len,
        vector.block_m,
        vector.block_n,
        left=vector.mask.left,
        right=vector.mask.right,
        shift=vector.mask.shift,
    )
    found = []
    for t in range(num_tiles(vector.q_len, vector.block_m)):
        visited, unmasked = bounds.visited_tiles(t), bounds.unmasked_tiles(t)
        tiles = range(num_tiles(vector.kv_len, vector.block_n))
        letters = ["-" if u not in visited else "u" if u in unmasked else "m" for u in tiles]
        found.append("".join(letters))
    assert tuple(found) == vector.expected, vector.reason


@vectors("tile-bounds", 20)
def test_tile_bounds(vector_id: str) -> None:
    """The integer bounds of a kernel's inner loop are exact: for every window, alignment, size and
    tile size, query tile t visits key tile u if and only if some query of tile t sees some key of
    tile u.

    Theorem tile-bounds, `Spec.visitedTiles`. Which key tiles a query tile visits, and which of them
    need mask code: from the tile's last real row, not from where it would end if it were full.
    """
    check(vector_id)
