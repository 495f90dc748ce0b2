"""The table of how far the vectors reach by option."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import committed
import pytest

from bridge.pages import reached
from bridge.pages.reached import (
    BATCH,
    EACH_HEAD,
    GROUPED,
    LSE,
    NAMES,
    PACKED,
    PACKED_HEADS,
    PAGES,
    Reach,
)
from bridge.vectors.model.attention import Family

_TILE = 64
# That a sequence in pages has one query, and no gradients, is the operation's; only gradients have
# a loss.
_NO_FORWARDS, _NO_GRADIENTS, _ONE_QUERY = {LSE}, {PAGES}, {PAGES}


@cache
def of_all() -> dict[tuple[str, bool], Reach]:
    return reached.reach_by_option(committed.families(*committed.names()))


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_past_a_tile_of_queries_and_of_keys(name: str) -> None:
    for gradients, but_for in ((False, _NO_FORWARDS), (True, _NO_GRADIENTS)):
        found = of_all().get((name, gradients))
        assert (found is None) == (name in but_for)
        if found is not None and name not in _ONE_QUERY and name not in SMALL[gradients]:
            assert min(found.queries, found.keys) > _TILE, gradients


def test_the_small_ones_are_still_small() -> None:
    for gradients, names in SMALL.items():
        for name in names:
            found = of_all()[name, gradients]
            assert min(found.queries, found.keys) <= _TILE


# Given as numbers, Boolean masks past the tiles are larger than all else in their files; masks of
# each head reach as far, and functions get them as booleans.
SMALL = {False: {"a Boolean mask"}, True: {"a Boolean mask"}}


def test_a_vector_counts_for_each_of_its_options() -> None:
    vector = committed.vector("gradient-past-tiles-packed-002")
    family = Family("f", "", vector.operation, "natural", (vector,))
    found = reached.reach_by_option([family])
    names = {"a window", PACKED, PACKED_HEADS, GROUPED}
    # The sequences have 66, 0 and 3 queries, and 68, 2 and 66 keys.
    assert found == {(name, True): Reach(66, 68, 66) for name in names}


def test_masks_of_heads_and_sequences_count() -> None:
    vector = committed.vector("past-tiles-007")
    (name, _), *_ = sorted(
        reached.reach_by_option([Family("f", "", "sampled", "exact", (vector,))])
    )
    assert name == EACH_HEAD
    whole = replace(vector, masks=vector.masks[:1])
    found = reached.reach_by_option([Family("f", "", "sampled", "exact", (whole,))])
    assert {name for name, _ in found} == {"padding", BATCH}


def test_the_table_has_a_row_for_each_option() -> None:
    lines = reached.table([committed.family("paged-past-tiles")]).splitlines()
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]] == list(NAMES)
    assert "| pages | 1 | 192 | 1 |  |  |  |" in lines
