"""A ring leaves out the same as the Spec, of which `ring-net-skips` says that it changes nothing:
rounds, and shards that a process does not compute with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from itertools import product
from types import ModuleType

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from shard_cases import SHARDS, Draw, plant

import pyimpl.distributed
from bridge.spec import ring_skip, shard_bounds
from pyimpl.distributed.internal import blocks
from pyimpl.distributed.internal.blocks import Sequence
from pyimpl.distributed.internal.shards import MOST_RUNS
from pyimpl.internal.scores import ScoreOptions

KINDS = st.sampled_from(sorted(SHARDS))
BOUND = st.none() | st.integers(0, 6)
Meet = Callable[[int, int], bool]


def sequence_of(
    kind: str, key_kind: str, lengths: tuple[int, int], count: int, window: tuple[int | None, ...],
    bottom_right: bool, documents: bool, seed: int,
) -> Sequence:  # fmt: skip
    """Queries and keys in shards; with documents they are of one length and lie alike."""
    draw = Draw(seed)
    queries = SHARDS[kind](lengths[0], count, draw)
    keys = queries if documents else SHARDS[key_kind](lengths[1], count, draw)
    sums = None
    if documents:
        sums = (0, *torch.tensor(draw.cuts(lengths[0], 3)).cumsum(0).tolist())
    shift = keys.length - queries.length if bottom_right else 0
    return Sequence(queries, keys, sums, *window, shift)


SEQUENCES = st.builds(
    sequence_of, KINDS, KINDS, st.tuples(st.integers(0, 24), st.integers(0, 24)),
    st.integers(1, 5), st.tuples(BOUND, BOUND), st.booleans(), st.booleans(),
    st.integers(0, 2**31),
)  # fmt: skip
LONG = sequence_of("striped", "striped", (200, 200), 2, (3, 0), False, True, 0)


def by_the_spec(sequence: Sequence) -> Meet:
    """Which process needs the keys of which."""
    documents = None if sequence.documents is None else [*sequence.documents]

    def meet(i: int, j: int) -> bool:
        return shard_bounds.meets(
            MOST_RUNS, sequence.left, sequence.right, sequence.shift, documents,
            sequence.queries.places[i].tolist(), sequence.keys.places[j].tolist(),
        )  # fmt: skip

    return meet


def pairs(sequence: Sequence) -> Iterator[tuple[int, int]]:
    """Each process with each."""
    return product(range(sequence.queries.processes), repeat=2)


def leaves_out(module: ModuleType, sequence: Sequence) -> tuple[list[bool], int]:
    """Which process needs the keys of which, and the number of rounds, by a `blocks`."""
    met = [module._meet(sequence, to, source) for to, source in pairs(sequence)]
    return met, module.needed_rounds(sequence)


@settings(max_examples=100, deadline=None)
@given(SEQUENCES)
@example(LONG)
def test_the_rule_is_that_of_the_spec(sequence: Sequence) -> None:
    meet = by_the_spec(sequence)
    rounds = ring_skip.needed_rounds(meet, n=sequence.queries.processes)
    assert leaves_out(blocks, sequence) == ([meet(*pair) for pair in pairs(sequence)], rounds)


@settings(max_examples=60, deadline=None)
@given(SEQUENCES)
def test_a_process_computes_with_shards_that_it_needs_alone(sequence: Sequence) -> None:
    """All of them, where they are runs of one step; of others those of which it sees a place."""
    meet = by_the_spec(sequence)
    options = ScoreOptions(1.0, left=sequence.left, right=sequence.right, shift=sequence.shift)
    for to, source in pairs(sequence):
        query = torch.empty(1, 1, sequence.queries.lengths[to], 1)
        computes = any(True for _ in blocks.blocks(sequence, to, source, options, query))
        needs = meet(to, source)
        if sequence.runs(to, source, by_place=False) is None:
            assert computes <= needs
        else:
            assert computes == needs


@settings(max_examples=60, deadline=None)
@given(SEQUENCES)
def test_the_bounds_are_those_of_the_places(sequence: Sequence) -> None:
    """`shard-bounds` and `shard-skipped`: exact of runs, and no pair is left out."""
    documents = None if sequence.documents is None else [*sequence.documents]
    meet = by_the_spec(sequence)
    for to, source in pairs(sequence):
        seen = any(
            shard_bounds.sees_place(sequence.left, sequence.right, sequence.shift, documents, i, j)
            for i, j in product(
                sequence.queries.places[to].tolist(), sequence.keys.places[source].tolist()
            )
        )
        exact = sequence.runs(to, source, by_place=False) is not None
        assert seen == meet(to, source) if exact else seen <= meet(to, source)


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 60), st.integers(1, 4), st.integers(0, 2**31))
def test_runs_are_those_of_the_spec(kind: str, length: int, count: int, seed: int) -> None:
    shards = SHARDS[kind](length, count, Draw(seed))
    for runs, places in zip(shards.runs, shards.places, strict=True):
        found = shard_bounds.runs_of(MOST_RUNS, places.tolist())
        shown = None if found is None else [(run.first, run.size, run.step) for run in found]
        assert shown == (None if runs is None else [run[1:] for run in runs])


@given(BOUND, BOUND, st.integers(-20, 20), st.integers(1, 5))
def test_windows_of_runs_are_those_of_the_spec(
    left: int | None, right: int | None, distance: int, step: int
) -> None:
    """`shard-window`. Of a bound that is missing nothing is said."""
    assume(left is not None or right is not None)
    shards = SHARDS["contiguous"](1, 1, Draw(0))
    found = blocks._window(Sequence(shards, shards, None, left, right, 0), distance, step)
    least = shard_bounds.least_apart(left, step, distance)
    most = shard_bounds.most_apart(right, step, distance)
    assert least == (None if found.left is None else found.shift - found.left)
    assert most == (None if found.right is None else found.shift + found.right)


# Edits in a copy of `blocks.py`.
MUTANTS = {
    "off by one": ("shift - left > highest", "shift - left >= highest"),
    "not divided by the step": ("step = max(a.step, b.step)", "step = 1"),
    "documents ignored": (
        "if sequence.documents is None:\n        yield",
        "if True:\n        yield",
    ),
    "one round less": ("            return t + 1\n", "            return t\n"),
}


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_fault_of_the_rule_is_seen(fault: str) -> None:
    """By the same comparison."""
    with plant(pyimpl.distributed, ("internal/blocks.py", *MUTANTS[fault])) as package:
        copy = importlib.import_module(f"{package.__name__}.internal.blocks")

        def agrees(kind: str, left: int | None, documents: bool) -> bool:
            sequence = sequence_of(kind, kind, (24, 24), 3, (left, 0), False, documents, 1)
            meet = by_the_spec(sequence)
            return leaves_out(copy, sequence) == (
                [meet(*pair) for pair in pairs(sequence)],
                ring_skip.needed_rounds(meet, n=3),
            )

        kinds = ("contiguous", "zigzag", "striped", "uneven")
        assert not all(agrees(*one) for one in product(kinds, (None, 0, 1, 2, 3), (False, True)))
