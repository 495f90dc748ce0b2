"""Which places of a sequence each process holds, and tensors in shards.

Written apart from `pyimpl.distributed.internal.shards`, which is judged by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LAYOUTS = ("contiguous", "zigzag", "striped")
# The dimension of the sequence.
_DIM = 2
# Arguments that have a row for each query, by their names in a request, and for each key.
_OF_QUERIES, _OF_KEYS = ("0", "attn_mask", "bias"), ("1", "2")
# How the shards of queries and keys lie: of each process the places that it holds.
Places = Sequence[Tensor]


@dataclass(frozen=True)
class Shards:
    """Of how many processes, and in which layout of `LAYOUTS` each has its part.

    contiguous: a stretch for each process, one after another. zigzag: of twice as many stretches,
    process r has those with the numbers r and 2 · processes − 1 − r. striped: process r has the
    places r, r + processes, … Stretches have lengths that differ by at most 1, the longer ones
    first.
    """

    processes: int
    layout: str

    def __str__(self) -> str:
        many = "es" if self.processes > 1 else ""
        return f"{self.processes} process{many}, {self.layout}"

    @property
    def multiple(self) -> int:
        """The lengths that this divides come in shards, and stretches, of one length."""
        return self.processes * (2 if self.layout == "zigzag" else 1)

    def places(self, length: int) -> Places:
        """For each process the places that it holds of a sequence, in the order of its shard."""
        every = torch.arange(length)
        if self.layout == "striped":
            return [every[r :: self.processes] for r in range(self.processes)]
        parts = every.tensor_split(self.multiple)
        if self.layout == "contiguous":
            return list(parts)
        return [torch.cat((parts[r], parts[-1 - r])) for r in range(self.processes)]


@dataclass(frozen=True)
class Split:
    """The places of the queries and of the keys of one call, by process."""

    queries: Places
    keys: Places

    def of(self, name: str) -> Places | None:
        """Those of an argument, by its name in a request; None for one that every process has
        whole, such as slopes."""
        if name in _OF_QUERIES:
            return self.queries
        return self.keys if name in _OF_KEYS else None

    def take(self, tensors: Mapping[str, Tensor], process: int) -> dict[str, Tensor]:
        """The arguments of one process."""
        return {name: take(x, self.of(name), process) for name, x in tensors.items()}


def take(whole: Tensor, places: Places | None, process: int) -> Tensor:
    """The shard of a process; the whole for None."""
    return whole if places is None else whole.index_select(_DIM, places[process])


def fits(shard: Tensor, places: Tensor) -> bool:
    """Whether a tensor has a row for each of these places."""
    return shard.ndim > _DIM and shard.shape[_DIM] == len(places)


def join(shards: Sequence[Tensor], places: Places) -> Tensor:
    """The inverse of `take`, for shards that fit."""
    return torch.cat(tuple(shards), _DIM).index_select(_DIM, torch.cat(tuple(places)).argsort())
