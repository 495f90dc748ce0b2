"""The parts of a sequence by process, and the queries of one shard that are computed with keys of
another: against every pair looked at one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shard_cases import SHARDS, Draw
from torch import Tensor

from bridge.spec.shards import contiguous_owner, places_of, striped_owner, zigzag_owner
from pyimpl.backends import reference
from pyimpl.distributed import Shards
from pyimpl.distributed.internal import blocks
from pyimpl.distributed.internal.blocks import Sequence, needed_rounds
from pyimpl.internal.scores import ScoreOptions

KINDS = st.sampled_from(sorted(SHARDS))
BOUND = st.none() | st.integers(0, 5)


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**31))
def test_every_place_belongs_to_one_process(kind: str, length: int, count: int, seed: int) -> None:
    shards = SHARDS[kind](length, count, Draw(seed))
    assert (shards.processes, shards.length) == (count, length)
    assert sorted(torch.cat(shards.places).tolist()) == list(range(length))
    whole = torch.randn(2, 3, length, 4)
    parts = [shards.take(whole, r) for r in range(count)]
    assert [part.shape[2] for part in parts] == list(shards.lengths)
    assert torch.equal(shards.join(parts), whole)
    for runs, places in zip(shards.runs, shards.places, strict=True):
        if runs is not None:
            listed = [n for run in runs for n in range(run.first, run.last + 1, run.step)]
            assert listed == places.tolist()
            assert [n for run in runs for n in range(len(places))[run.inside]] == list(
                range(len(places))
            )


def test_layouts() -> None:
    def list_places(shards: Shards) -> list[list[int]]:
        return [places.tolist() for places in shards.places]

    assert list_places(Shards.contiguous(7, 3)) == [[0, 1, 2], [3, 4], [5, 6]]
    assert list_places(Shards.of_lengths([2, 0, 1])) == [[0, 1], [], [2]]
    assert list_places(Shards.zigzag(8, 2)) == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert list_places(Shards.zigzag(5, 2)) == [[0, 1, 4], [2, 3]]
    assert list_places(Shards.striped(5, 2)) == [[0, 2, 4], [1, 3]]
    assert list_places(Shards.of_places([torch.tensor([2, 0]), torch.tensor([1])])) == [[2, 0], [1]]


@given(st.integers(0, 30), st.integers(1, 5))
def test_layouts_are_those_of_the_spec(length: int, count: int) -> None:
    owners: dict[str, Callable[[int], int]] = {
        "contiguous": lambda j: contiguous_owner(j, n=count, len_=length),
        "zigzag": lambda j: zigzag_owner(j, n=count, len_=length),
        "striped": lambda j: striped_owner(j, n=count),
    }
    for kind, owner in owners.items():
        shards = SHARDS[kind](length, count, Draw(0))
        held = [places_of(owner, i, len_=length) for i in range(count)]
        assert [places.tolist() for places in shards.places] == held


def window_of(sequence: Sequence, **options: Any) -> ScoreOptions:
    return ScoreOptions(
        1.0, left=sequence.left, right=sequence.right, shift=sequence.shift, **options
    )


def visible_pairs(sequence: Sequence) -> Tensor:
    """Which key each query sees, by the whole."""
    m, n = sequence.queries.length, sequence.keys.length
    seen = reference.window(window_of(sequence), m, n, torch.device("cpu"))
    if sequence.documents is not None:
        lengths = torch.tensor(sequence.documents).diff()
        numbers = torch.arange(len(lengths)).repeat_interleave(lengths)
        seen &= numbers[:, None] == numbers
    return seen


# Each shard is one of a step, but not all of the same.
@example((5, 11), 3, "any places", "any places", None, 0, -2, False, False, 1)
@settings(max_examples=150, deadline=None)
@given(
    st.tuples(st.integers(0, 20), st.integers(0, 20)), st.integers(1, 4), KINDS, KINDS,
    BOUND, BOUND, st.integers(-6, 6), st.booleans(), st.booleans(), st.integers(0, 2**31),
)  # fmt: skip
def test_every_visible_pair_is_in_one_block(
    lengths, count, kind, key_kind, left, right, shift, documents, slopes, seed
) -> None:
    draw = Draw(seed)
    queries = SHARDS[kind](lengths[0], count, draw)
    keys = queries if documents else SHARDS[key_kind](lengths[1], count, draw)
    sums = None
    if documents:
        shift = 0
        sums = (0, *torch.tensor(draw.cuts(lengths[0], 3)).cumsum(0).tolist())
    sequence = Sequence(queries, keys, sums, left, right, shift)
    options = window_of(sequence, alibi_slopes=torch.ones(1, 1) if slopes else None)
    expected = visible_pairs(sequence)
    found = torch.zeros(expected.shape, dtype=torch.int64)
    distances = torch.zeros(expected.shape)
    meeting = set()
    for to in range(count):
        for source in range(count):
            query = torch.empty(1, 1, queries.lengths[to], 1)
            for block in blocks.blocks(sequence, to, source, options, query):
                i = queries.places[to][block.rows]
                j = keys.places[source][block.keys]
                assert torch.equal(torch.arange(keys.length)[block.columns], j)
                one = block.options
                seen = reference.window(one, len(i), len(j), i.device)
                if one.mask is not None:
                    seen = seen & one.mask[0, 0]
                found[i[:, None], j] += seen.long()
                meeting |= {(to, source)} if bool(seen.any()) else set()
                zeros = torch.zeros(1, 1, len(i), len(j))
                if one.alibi_slopes is not None:
                    zeros = reference.alibi(zeros, one.alibi_slopes, one.shift)
                if one.bias is not None:
                    zeros = zeros + one.bias
                distances[i[:, None], j] = torch.where(seen, zeros[0, 0].float(), 0.0)
    assert torch.equal(found, expected.long())
    if slopes:
        places = torch.arange(queries.length)[:, None] + shift - torch.arange(keys.length)
        assert torch.equal(distances, torch.where(expected, -places.abs().float(), 0.0))
    rounds = max(((to - source) % count for to, source in meeting), default=0) + 1
    pairs = [(to, source) for to in range(count) for source in range(count)]
    if documents or None in (sequence.runs(*pair, by_place=False) for pair in pairs):
        assert needed_rounds(sequence) >= rounds
    else:
        assert needed_rounds(sequence) == rounds


def test_a_window_needs_few_rounds_and_causality_none_of_what_comes_later() -> None:
    shards = Shards.contiguous(80, 8)
    assert needed_rounds(Sequence(shards, shards, None, 10, 0, 0)) == 2
    assert needed_rounds(Sequence(shards, shards, None, 0, 0, 0)) == 1
    assert needed_rounds(Sequence(shards, shards, None, None, 0, 0)) == 8
    documents = tuple(range(0, 81, 10))
    assert needed_rounds(Sequence(shards, shards, documents, None, 0, 0)) == 1
    options = ScoreOptions(1.0, right=0)
    query = torch.empty(1, 1, 10, 1)
    causal = Sequence(shards, shards, None, None, 0, 0)
    taken = [
        [len([*blocks.blocks(causal, r, s, options, query)]) for s in range(8)] for r in (0, 5)
    ]
    assert taken == [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]]


REFUSALS: list[tuple[Any, type[Exception], str]] = [
    (lambda: Shards.contiguous(-1, 2), ValueError, "length must be whole, at least 0, not -1"),
    (lambda: Shards.zigzag(4, 0), ValueError, "processes must be whole, at least 1, not 0"),
    (lambda: Shards.striped(4.0, 2), ValueError, "length must be whole, at least 0, not 4.0"),
    (lambda: Shards.of_lengths(4), TypeError, "lengths must be a list of whole numbers, not 4"),
    (lambda: Shards.of_places([]), ValueError, "places must have an entry for each process"),
    (
        lambda: Shards.of_places([torch.tensor([0.0])]),
        TypeError,
        r"places\[0\] must be a torch.Tensor of int32 or int64, not torch.float32",
    ),
    (
        lambda: Shards.of_places([torch.tensor([0]), torch.tensor([[1]])]),
        ValueError,
        r"places\[1\] must be of one dimension, not \[1, 1\]",
    ),
    (
        lambda: Shards.of_places([torch.tensor([0, 1]), torch.tensor([1])]),
        ValueError,
        r"places must hold each number from 0 to 2 exactly once, not \[\[0, 1\], \[1\]\]",
    ),
    (
        lambda: Shards.contiguous(4, 2).take(torch.zeros(1, 1, 5), 0),
        ValueError,
        "dimension 2 of the tensor must be the length of the sequence, 4, not 5",
    ),
    (
        lambda: Shards.contiguous(4, 2).join([torch.zeros(1, 1, 1), torch.zeros(1, 1, 3)]),
        ValueError,
        r"parts must have the lengths \[2, 2\], not \[1, 3\]",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
