"""The bounds of the tile loop against every pair of query and key: `tile-bounds` in numbers."""

from __future__ import annotations

import committed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyimpl.backends.tile_bounds import TileBounds, num_tiles

sides = st.none() | st.integers(0, 12)
all_bounds = st.builds(
    TileBounds,
    q_len=st.integers(1, 20),
    kv_len=st.integers(0, 20),
    block_m=st.integers(1, 8),
    block_n=st.integers(1, 8),
    left=sides,
    right=sides,
    shift=st.integers(-25, 25),
)


def sees(bounds: TileBounds, i: int, j: int) -> bool:
    distance = i + bounds.shift - j
    left = bounds.left is None or distance <= bounds.left
    return left and (bounds.right is None or -distance <= bounds.right)


@settings(max_examples=300, deadline=None)
@given(all_bounds)
def test_exactly_the_tiles_that_have_a_visible_pair_are_visited(bounds: TileBounds) -> None:
    for t in range(num_tiles(bounds.q_len, bounds.block_m)):
        rows = range(bounds.row_first(t), bounds.row_last(t) + 1)
        assert len(rows) >= 1
        visited, unmasked = bounds.visited_tiles(t), bounds.unmasked_tiles(t)
        for u in range(num_tiles(bounds.kv_len, bounds.block_n)):
            stop = min((u + 1) * bounds.block_n, bounds.kv_len)
            pairs = [sees(bounds, i, j) for i in rows for j in range(u * bounds.block_n, stop)]
            assert (u in visited) == any(pairs)
            assert not (u in unmasked and u in visited) or all(pairs)
            assert u in unmasked or not all(pairs)


@settings(max_examples=300, deadline=None)
@given(all_bounds)
def test_first_and_stop_key_are_the_ends_of_what_is_seen(bounds: TileBounds) -> None:
    for t in range(num_tiles(bounds.q_len, bounds.block_m)):
        rows = range(bounds.row_first(t), bounds.row_last(t) + 1)
        seen = [j for j in range(bounds.kv_len) if any(sees(bounds, i, j) for i in rows)]
        if seen:
            assert seen == list(range(bounds.first_key(t), bounds.stop_key(t)))
        else:
            assert bounds.first_key(t) >= bounds.stop_key(t)


@pytest.mark.parametrize("id", committed.ids("tile-bounds"))
def test_vectors(id: str) -> None:
    vector = committed.vector(id)
    window = vector.mask
    bounds = TileBounds(
        vector.q_len, vector.kv_len, vector.block_m, vector.block_n,
        left=window.left, right=window.right, shift=window.shift,
    )  # fmt: skip
    found = []
    for t in range(num_tiles(vector.q_len, vector.block_m)):
        visited, unmasked = bounds.visited_tiles(t), bounds.unmasked_tiles(t)
        tiles = range(num_tiles(vector.kv_len, vector.block_n))
        letters = ["-" if u not in visited else "u" if u in unmasked else "m" for u in tiles]
        found.append("".join(letters))
    assert tuple(found) == vector.expected
