"""Which queries of one shard are computed with which keys of another, and by which options: those
that depend on places in the whole sequence, for a part of it.

A stretch of queries and one of keys differ from a sequence of their own by one number, where the
first query stands seen from the first key: `shift`. So every backend computes causality, windows
and ALiBi of them, tiles are skipped by its bounds (`Attention.Spec.TileBounds`), and pairs of
stretches that do not see each other are left out. Places that are no stretches are compared one by
one, and become a mask and a bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from pyimpl.distributed.internal.shards import Run, Shards
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, cut

# Queries and keys that are compared place by place at a time.
PLACES_AT_ONCE = 1024
EVERY = slice(None)


@dataclass(frozen=True)
class Sequence:
    """A sequence of queries and keys in shards, and the arguments that are the same everywhere.

    documents: the prefix sums of the lengths of documents, which do not see each other; one
    document: (0, length). left, right, shift: as in `ScoreOptions`, of the whole.
    """

    queries: Shards
    keys: Shards
    documents: tuple[int, ...] | None
    left: int | None
    right: int | None
    shift: int

    def runs(
        self, to: int, source: int, *, by_place: bool
    ) -> tuple[tuple[Run, ...], tuple[Run, ...]] | None:
        """The queries of one process and the keys of another as runs, where one number says how
        those of each pair stand to each other; by_place: the result depends on distances or places,
        and not on which keys are seen alone."""
        queries, keys = self.queries.runs[to], self.keys.runs[source]
        if queries is None or keys is None:
            return None
        steps = {_step(runs) for runs in (queries, keys)} - {None}
        by_place = by_place or self.documents is not None
        return (queries, keys) if steps <= {1} or (len(steps) == 1 and not by_place) else None


class Block(NamedTuple):
    """Some queries and keys: where they are in their shards, and the options of these alone.

    columns: where the keys are in the sequence. distance: how far each key stands from each query,
    `[rows, keys]`, where ALiBi is a part of the bias; None: it is not.
    """

    rows: slice
    keys: slice
    options: ScoreOptions
    columns: slice | Tensor
    distance: Tensor | None


@lru_cache(maxsize=128)
@implements("Attention.Spec.neededRounds")
def needed_rounds(sequence: Sequence) -> int:
    """After how many rounds, in the t-th of which process r holds the keys of process r − t, no
    query sees a key that it has not met: from 1 to the number of processes."""
    count = sequence.queries.processes
    for t in reversed(range(1, count)):
        if any(_meet(sequence, r, (r - t) % count) for r in range(count)):
            return t + 1
    return 1


@implements("Attention.Spec.meets")
def _meet(sequence: Sequence, to: int, source: int) -> bool:
    """Whether some query of one process may see some key of another: if not, none does."""
    runs = sequence.runs(to, source, by_place=False)
    if runs is None:
        return bool(sequence.queries.lengths[to] and sequence.keys.lengths[source])
    return next(_visible(sequence, *runs), None) is not None


def blocks(
    sequence: Sequence, to: int, source: int, options: ScoreOptions, query: Tensor
) -> Iterator[Block]:
    """The queries of process `to` with the keys of process `source`: each pair that may attend to
    each other is in exactly one block.

    options: of the queries of `to` and all keys; masks and biases as `[batch|1, heads|1, q_len|1,
    kv_len|1]`. query: gives dtype and device.
    """
    by_place = options.alibi_slopes is not None or options.dropout is not None
    runs = sequence.runs(to, source, by_place=by_place)
    if runs is None:
        yield from _by_place(sequence, to, source, options, query)
        return
    for a, b, window in _visible(sequence, *runs):
        dropout = options.dropout
        if dropout is not None:
            dropout = dropout.from_row(a.first, b.first)
        one = replace(
            options,
            left=window.left,
            right=window.right,
            shift=window.shift,
            mask=cut(options.mask, EVERY, EVERY, a.inside, b.outside),
            bias=cut(options.bias, EVERY, EVERY, a.inside, b.outside),
            dropout=dropout,
        )
        yield Block(a.inside, b.inside, one, b.outside, None)


def _step(runs: tuple[Run, ...]) -> int | None:
    """The step of the places, None where there are so few that any is."""
    return None if sum(run.size for run in runs) < 2 else max(run.step for run in runs)


class _Window(NamedTuple):
    left: int | None
    right: int | None
    shift: int


@implements("Attention.Spec.Stretch.sees")
def _visible(
    sequence: Sequence, queries: tuple[Run, ...], keys: tuple[Run, ...]
) -> Iterator[tuple[Run, Run, _Window]]:
    """The pairs of runs of one document that see each other, and their window."""
    for a, b in _of_one_document(sequence, queries, keys):
        step = max(a.step, b.step)
        window = _window(sequence, a.first + sequence.shift - b.first, step)
        # Of key j and query i the bounds are on j − i.
        highest, lowest = b.size - 1, 1 - a.size
        left, right, shift = window
        if left is not None and left < 0:  # A step takes all of them over the window.
            continue
        if right is not None and shift + right < lowest:
            continue
        if left is not None and shift - left > highest:
            continue
        if right is not None and shift + right >= highest:
            right = None
        if left is not None and shift - left <= lowest:
            left = None
        yield a, b, _Window(left, right, shift)


@implements("Attention.Spec.leastApart")
@implements("Attention.Spec.mostApart")
def _window(sequence: Sequence, distance: int, step: int) -> _Window:
    """The window of two runs of this step, the first query of which stands `distance` after the
    first key: −right ≤ distance + step · (i − j) ≤ left, solved for j − i."""
    left, right = sequence.left, sequence.right
    if step == 1 or (left is None and right is None):
        return _Window(left, right, distance if step == 1 else 0)
    if right is None:
        assert left is not None
        return _Window(0, None, -((left - distance) // step))
    shift = (distance + right) // step
    if left is None:
        return _Window(None, 0, shift)
    return _Window(shift + (left - distance) // step, 0, shift)


@implements("Attention.Spec.runsSee")
def _of_one_document(
    sequence: Sequence, queries: tuple[Run, ...], keys: tuple[Run, ...]
) -> Iterator[tuple[Run, Run]]:
    """The pairs of runs, cut where documents end, that are of one document."""
    if sequence.documents is None:
        yield from ((a, b) for a in queries for b in keys)
        return
    for first, stop in pairwise(sequence.documents):
        some = [part for a in queries if (part := a.part(first, stop)) is not None]
        others = [part for b in keys if (part := b.part(first, stop)) is not None]
        yield from ((a, b) for a in some for b in others)


def _by_place(
    sequence: Sequence, to: int, source: int, options: ScoreOptions, query: Tensor
) -> Iterator[Block]:
    """The blocks of shards whose places are compared one by one."""
    rows, columns = sequence.queries.places[to], sequence.keys.places[source]
    for i in range(0, len(rows), PLACES_AT_ONCE):
        for j in range(0, len(columns), PLACES_AT_ONCE):
            some, others = slice(i, i + PLACES_AT_ONCE), slice(j, j + PLACES_AT_ONCE)
            distance = rows[some, None] + sequence.shift - columns[others]
            visible = _visible_places(sequence, rows[some], columns[others], distance)
            if bool(visible.any()):
                numbers = [x.to(query.device) for x in (rows[some], columns[others], distance)]
                visible = visible.to(query.device)
                yield _place_block(numbers, visible, some, others, options, query)


@implements("Attention.Spec.seesPlace")
def _visible_places(sequence: Sequence, rows: Tensor, columns: Tensor, distance: Tensor) -> Tensor:
    """Which pairs window and documents let see each other, `[rows, columns]`."""
    visible = torch.ones_like(distance, dtype=torch.bool)
    if sequence.left is not None:
        visible &= distance <= sequence.left
    if sequence.right is not None:
        visible &= distance >= -sequence.right
    if sequence.documents is not None:
        ends = torch.tensor(sequence.documents[1:])
        of_rows, of_columns = (
            torch.bucketize(x.contiguous(), ends, right=True) for x in (rows, columns)
        )
        visible &= of_rows[:, None] == of_columns
    return visible


def _place_block(
    numbers: list[Tensor],
    visible: Tensor,
    rows: slice,
    keys: slice,
    options: ScoreOptions,
    query: Tensor,
) -> Block:
    """The block of queries and keys with these places, these distances and this mask."""
    of_rows, columns, distance = numbers
    mask = cut(cut(options.mask, EVERY, EVERY, rows), EVERY, EVERY, EVERY, columns)
    mask = visible[None, None] if mask is None else mask & visible
    bias = cut(cut(options.bias, EVERY, EVERY, rows), EVERY, EVERY, EVERY, columns)
    slopes = options.alibi_slopes
    if slopes is not None:
        wide = compute_dtype(query.dtype)
        alibi = -slopes.to(wide)[..., None, None] * distance.abs()
        bias = alibi if bias is None else alibi + bias.to(wide)
    dropout = options.dropout
    if dropout is not None:
        dropout = dropout.at(of_rows, columns)
    one = replace(
        options,
        alibi_slopes=None, left=None, right=None, shift=0, mask=mask, bias=bias, dropout=dropout,
    )  # fmt: skip
    return Block(rows, keys, one, columns, None if slopes is None else distance)
