"""Which places of a sequence each process of a group holds.

Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context" (contiguous); Brandon et al. 2023, "Striped Attention"; zigzag: the two ends of Llama 3's
context parallelism, Grattafiori et al. 2024, section 3.3.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyimpl.internal import arguments as check
from pyimpl.internal.implements import implements

# A shard of more stretches than this is taken place by place.
MOST_RUNS = 8


class Run(NamedTuple):
    """`size` ≥ 1 neighbours in a shard, from number `start` of it on, that stand in the sequence
    at `first`, first + step, …"""

    start: int
    first: int
    size: int
    step: int

    @property
    def last(self) -> int:
        """The place of the last of them."""
        return self.first + (self.size - 1) * self.step

    @property
    def inside(self) -> slice:
        """Where they are in the shard."""
        return slice(self.start, self.start + self.size)

    @property
    def outside(self) -> slice:
        """Where they are in the sequence."""
        return slice(self.first, self.last + 1, self.step)

    @implements("Attention.Spec.Stretch.part")
    def part(self, first: int, stop: int) -> Run | None:
        """Those at the places from `first` up to but without `stop`, for a step of 1."""
        low, high = max(self.first, first), min(self.first + self.size, stop)
        return Run(self.start + low - self.first, low, high - low, 1) if low < high else None


@dataclass(frozen=True, eq=False)
class Shards:
    """For each process of a group the places of the sequence that it holds, in the order in which
    its tensors have them: `[n]`, int64, on the CPU. Every place from 0 on belongs to exactly one
    process, which may hold none.

    Make one by `contiguous`, `of_lengths`, `zigzag`, `striped` or `of_places`, the same in every
    process, and once for all calls: it keeps its properties once they are computed.
    """

    places: tuple[Tensor, ...]

    @classmethod
    @implements("Attention.Spec.contiguousOwner")
    def contiguous(cls, length: int, processes: int) -> Shards:
        """A stretch for each process, one after another, of lengths that differ by at most 1."""
        return cls(_sequence(length, processes).tensor_split(processes))

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> Shards:
        """A stretch of each of these lengths, which may be 0, one after another."""
        _check_whole("lengths", lengths, 0)
        ends = accumulate(lengths, initial=0)
        return cls(tuple(torch.arange(first, stop) for first, stop in pairwise(ends)))

    @classmethod
    @implements("Attention.Spec.zigzagOwner")
    def zigzag(cls, length: int, processes: int) -> Shards:
        """Of 2 · processes stretches, process r holds those with the numbers r and 2 · processes −
        1 − r: under causality all have about as many keys to see."""
        some = _sequence(length, processes).tensor_split(2 * processes)
        pairs = zip(some[:processes], reversed(some[processes:]), strict=True)
        return cls(tuple(torch.cat(pair) for pair in pairs))

    @classmethod
    @implements("Attention.Spec.stripedOwner")
    def striped(cls, length: int, processes: int) -> Shards:
        """Process r holds the places r, r + processes, r + 2 · processes, …"""
        places = _sequence(length, processes)
        return cls(tuple(places[r::processes] for r in range(processes)))

    @classmethod
    def of_places(cls, places: Iterable[Tensor]) -> Shards:
        """Any places for each process, int32 or int64.

        Raises:
            TypeError: an entry is no such tensor.
            ValueError: they are not the numbers from 0 on, each once.
        """
        given = tuple(places)
        for r, some in enumerate(given):
            check.check_integers(f"places[{r}]", some)
            if some.dim() != 1:
                raise ValueError(f"places[{r}] must be of one dimension, not {check.shape(some)}")
        if not given:
            raise ValueError("places must have an entry for each process, at least 1, not 0")
        moved = tuple(some.to("cpu", torch.int64).clone() for some in given)
        whole = torch.cat(moved)
        if not torch.equal(whole.sort().values, torch.arange(len(whole))):
            raise ValueError(
                f"places must hold each number from 0 to {len(whole) - 1} exactly once, "
                f"not {check.describe([x.tolist() for x in moved])}"
            )
        return cls(moved)

    @property
    def processes(self) -> int:
        """The number of processes."""
        return len(self.places)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many places each process holds."""
        return tuple(len(some) for some in self.places)

    @property
    def length(self) -> int:
        """The length of the sequence."""
        return sum(self.lengths)

    @cached_property
    def digest(self) -> str:
        """A short text that differs where shards do."""
        found = hashlib.sha256()
        for places in self.places:
            found.update(len(places).to_bytes(8, "little") + places.numpy().tobytes())
        return f"{check.describe(list(self.lengths))} ({found.hexdigest()[:8]})"

    def take(self, whole: Tensor, process: int, dim: int = 2) -> Tensor:
        """The part of a tensor over the sequence that `process` holds, along `dim`."""
        if whole.shape[dim] != self.length:
            raise ValueError(
                f"dimension {dim} of the tensor must be the length of the sequence, "
                f"{self.length}, not {whole.shape[dim]}"
            )
        return whole.index_select(dim, self.places[process].to(whole.device))

    def join(self, parts: Sequence[Tensor], dim: int = 2) -> Tensor:
        """The whole of the parts that the processes hold, along `dim`: the inverse of `take`."""
        found = [part.shape[dim] for part in parts]
        if found != list(self.lengths):
            raise ValueError(f"parts must have the lengths {list(self.lengths)}, not {found}")
        return torch.cat(list(parts), dim).index_select(dim, self._order.to(parts[0].device))

    @cached_property
    def _order(self) -> Tensor:
        """Where each place is in the shards one after another."""
        return torch.cat(self.places).argsort()

    @property
    def are_stretches(self) -> bool:
        """Whether each shard is a few stretches of neighbouring places."""
        return all(runs is not None and all(run.step == 1 for run in runs) for runs in self.runs)

    @cached_property
    def runs(self) -> tuple[tuple[Run, ...] | None, ...]:
        """The shard of each process as stretches of neighbouring places or as one of a step; None:
        it is neither one of a step nor at most `MOST_RUNS` stretches."""
        return tuple(_runs(some) for some in self.places)


@lru_cache(maxsize=128)
def in_rows(shards: Shards, width: int) -> tuple[Shards, tuple[Shards, ...]]:
    """The shards of rows of `width` processes that have neighbouring numbers, each row holding all
    that its processes hold, in the order of the sequence; and for each row which of these its
    processes hold."""
    rows = [shards.places[i : i + width] for i in range(0, shards.processes, width)]
    held = [torch.cat(row).sort().values for row in rows]
    inside = [
        Shards(tuple(torch.searchsorted(all_of_row, places.contiguous()) for places in row))
        for row, all_of_row in zip(rows, held, strict=True)
    ]
    return Shards(tuple(held)), tuple(inside)


@implements("Attention.Spec.runsOf")
def _runs(places: Tensor) -> tuple[Run, ...] | None:
    if len(places) == 0:
        return ()
    steps = places.diff()
    first = int(places[0])
    if len(steps) and int(steps[0]) > 1 and bool((steps == steps[0]).all()):
        return (Run(0, first, len(places), int(steps[0])),)
    starts = [0, *((steps != 1).nonzero().flatten() + 1).tolist(), len(places)]
    if len(starts) - 1 > MOST_RUNS:
        return None
    return tuple(
        Run(start, int(places[start]), stop - start, 1) for start, stop in pairwise(starts)
    )


def _sequence(length: int, processes: int) -> Tensor:
    _check_whole("length", [length], 0)
    _check_whole("processes", [processes], 1)
    return torch.arange(length)


def _check_whole(name: str, given: Sequence[Any], least: int) -> None:
    if not isinstance(given, list | tuple) or not given:
        raise TypeError(f"{name} must be a list of whole numbers, not {check.describe(given)}")
    for number in given:
        if not check.is_whole(number) or number < least:
            raise ValueError(
                f"{name} must be whole, at least {least}, not {check.describe(number)}"
            )
