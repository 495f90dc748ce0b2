"""The Gluon kernel for dK and dV with a grid of fixed programs, to which tiles of keys are dealt
out, in the simulator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from gluon_cases import FULL, WINDOW, causal, gradient_case, grid_case
from planted_grid import PLANTED

from bridge.gluon.clocks import Clock
from bridge.gluon.kernels import BACKWARD
from bridge.gluon.load import Loader
from bridge.gluon.program import Program, enter
from bridge.gluon.schedule import Partition
from bridge.gluon.tiles import Int
from bridge.gluon.vectors import differences
from bridge.ttir.rational import RationalDomain
from bridge.vectors.model.attention import Mask

QUICK = {
    "phase-of-the-keys-begun-anew", "sum-not-begun-anew", "a-tile-twice", "a-tile-left-out",
    "keys-released-too-early", "one-buffer-for-the-keys-of-two-tiles",
}  # fmt: skip


def few(items: int = 1, **more: int) -> dict[str, Any]:
    """One program has all tiles."""
    return {"processors": 1, "chosen": {"waves": 1, "items": items, **more}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("head_dim", "items"),
    [(64, 1), (128, 2), pytest.param(256, 1, marks=pytest.mark.thorough)],
)
def test_it_is_the_gradient(head_dim: int, items: int) -> None:
    """128: scores come ahead, if it does not add to the gradient of queries."""
    assert list(differences(grid_case(), head_dim=head_dim, **few(items))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize(("items", "stages"), [(1, 2), (2, 3), (2, 2)])
@pytest.mark.parametrize(
    "mask",
    [FULL, causal(50, 140), causal(50, 140, True), WINDOW, Mask("window", left=5, right=None)],
    ids=["full", "causal", "causal-bottom-right", "window", "left"],
)
def test_it_is_the_gradient_in_many_schedules(
    head_dim: int, items: int, stages: int, mask: Mask
) -> None:
    """Ragged; grouped heads and not; one program, and several with unequal shares."""
    for seed, heads in enumerate(((2, 2), (4, 2), (3, 1))):
        how = {**few(items, stages=stages), "processors": 1 + seed, "seed": seed}
        vector = gradient_case(50, 140, mask, heads, seed)
        assert list(differences(vector, head_dim=head_dim, **how)) == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n not in QUICK)) for n in PLANTED]
)
def test_what_is_planted_is_seen(name: str) -> None:
    bug = PLANTED[name]
    # With three buffers a tile's queries do not end where they began.
    how = few(bug.items, stages=3)
    bug.check(2, **how, backward_module=bug.module, head_dim=bug.head_dim)


@pytest.mark.parametrize("programs", [1, 2, 3, 5, 12])
def test_each_tile_falls_to_one_program_and_the_longest_come_first(programs: int) -> None:
    """Three heads in two batches, causal: no tile is begun before one that has more queries."""
    module = Loader().module(BACKWARD)
    sizes = (Int(6), Int(3), Int(300), Int(290), Int(0))
    found: dict[int, tuple[int, int, int]] = {}
    for number in range(programs):
        program = Program(RationalDomain(), number, programs, random.Random(0))
        enter(program, Partition("program", Clock()))
        try:
            rounds = int(module._rounds(Int(6 * 3)))
            for turn in range(rounds):
                batch, head, first, tiles, place, parity = module._tile(
                    Int(turn), sizes, (None, Int(0)), 64, 128, 2
                )
                where = number if turn % 2 == 0 else programs - 1 - number
                found[turn * programs + where] = (int(batch), int(head), int(first))
                assert int(tiles[0]) == int(first) // 64
                assert (int(place), int(parity)) == (turn % 2, turn // 2 % 2)
        finally:
            enter(None, None)
    assert sorted(found.values()) == [
        (batch, head, first)
        for batch in range(2)
        for head in range(3)
        for first in range(0, 384, 128)
    ]
    firsts = [found[n][2] for n in sorted(found)]
    assert firsts == sorted(firsts)
