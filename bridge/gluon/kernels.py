"""This project's Gluon kernels in the simulator: tiles of a domain's numbers in, tiles out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from bridge.gluon.launch import run
from bridge.gluon.load import Loader
from bridge.ttir.domain import Array
from bridge.ttir.launches import Kernels
from pyimpl.backends.kernels.hopper import choice, forward, forward_kernel
from pyimpl.internal.scores import ScoreOptions

FORWARD = Path(forward_kernel.__file__)


@dataclass
class GluonKernels(Kernels):
    """The kernels that are written in Gluon, for one dtype; the others are those of Triton.

    blocks: rows of queries of a warp group, and keys in a tile. seed: of the schedule. chosen:
    fields of `choice.launch_options` that are others. processors: how many programs there are at
    most. module: what `load` made of `FORWARD`. in_order: as in `program.Program`.
    """

    dtype: torch.dtype = torch.bfloat16
    seed: int = 0
    chosen: dict[str, int] = field(default_factory=dict)
    processors: int = 2
    module: ModuleType = field(default_factory=lambda: Loader().module(FORWARD))
    in_order: bool = True

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, options: ScoreOptions
    ) -> tuple[Tensor, Tensor]:
        """`pyimpl.backends.kernels.hopper.forward`, heads padded with zeros to a size it takes.

        Raises:
            ValueError: the kernel does not take these tensors or options, and why.
            Fault: it does what none may.
        """
        value_dim = v.shape[-1]
        largest = max(q.shape[-1], value_dim)
        size = next((size for size in choice.HEAD_DIMS if size >= largest), largest)
        q, k, v = (self._padded(x, size) for x in (q, k, v))
        out = self.memory.empty(q.shape, self.dtype)
        lse = self.memory.empty(q.shape[:-1])
        # Of the device and of Triton it asks for what is not here.
        with mock.patch.object(choice, "_why_not_on", return_value=None):
            refusal = choice.why_not(q, k, v, out, options)
        if refusal is not None:
            raise ValueError(refusal)
        chosen = {**choice.launch_options(size, False), "block_n": self.blocks[1], **self.chosen}
        with mock.patch.object(forward, "BLOCK_M", self.blocks[0]):
            launch = forward.launch(
                q, k, v, out, lse, options, processors=self.processors, chosen=chosen
            )
        self.ran(launch)
        run(launch, self.module, self.memory, self.seed, in_order=self.in_order)
        return out[..., :value_dim], lse

    def _padded(self, given: Tensor, size: int) -> Tensor:
        """The same vectors with zeros behind."""
        more = size - given.shape[-1]
        domain = self.memory.domain

        def pad(numbers: Array, zero: Array) -> Array:
            behind = np.broadcast_to(zero, (*numbers.shape[:-1], more))
            return np.concatenate([numbers, behind], axis=-1)

        return self.tensor(domain.each(pad, self.memory.read(given), domain.constant(0.0)))
