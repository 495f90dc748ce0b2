"""Dropout in modules: by PyTorch's generators, or by a seed and the place of each number, so that
one process and several that hold the sequence in shards drop the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pyimpl.internal.dropout import Dropout, checked_seed, seed_of

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel


@dataclass(frozen=True)
class Drops:
    """The source of dropout at one site of a model: `seed`, int64 of no dimension, or
    PyTorch's generators for None. context: the sequence is in shards, those of its queries."""

    seed: Tensor | None = None
    context: ContextParallel | None = None

    @classmethod
    def of(cls, seed: object, context: ContextParallel | None, like: Tensor) -> Drops:
        """Those of a `dropout_seed` for a tensor; raises TypeError or ValueError for none."""
        return cls(checked_seed(seed, "the module", like), context)

    def site(self, number: int) -> Drops:
        """Those of one of the sites inside, by its number from 0 on: each draws others."""
        return self if self.seed is None else replace(self, seed=seed_of(self.seed, number))

    def drop(self, dropout: nn.Dropout, x: Tensor) -> Tensor:
        """`[batch, length, width]` or `[length, width]` with numbers dropped as `dropout` has it.

        Raises:
            ValueError: the sequence is in shards, and there is no seed.
        """
        p = dropout.p if dropout.training else 0.0
        if p == 0.0 or self.seed is None:
            if p and self.context is not None:
                raise ValueError(
                    "dropout_seed must be given with context_parallel, the same in every process: "
                    "drawn by each alone dropout would not be that of one process"
                )
            out: Tensor = dropout(x)
            return out
        sequences = x if x.dim() == 3 else x[None]
        batch, length, width = sequences.shape
        if self.context is None:
            places = torch.arange(length, device=x.device)
        else:
            places = self.context.places(x.device)
        drawn = Dropout(p, self.seed)
        kept = drawn.kept_numbers(batch, places, width)
        return torch.where(kept, sequences * drawn.scale, 0.0).view(x.shape)


# A default that is not made at each call.
PYTORCH = Drops()
