"""This project's Gluon kernels in the simulator: tiles of a domain's numbers in, tiles out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from bridge.gluon.launch import run
from bridge.gluon.load import Loader
from bridge.ttir.domain import Array
from bridge.ttir.launches import Kernels
from pyimpl.backends.kernels.hopper import (
    backward,
    backward_kernel,
    choice,
    forward,
    forward_kernel,
    queries,
    queries_kernel,
)
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.scores import ScoreOptions

FORWARD, BACKWARD = Path(forward_kernel.__file__), Path(backward_kernel.__file__)
QUERIES = Path(queries_kernel.__file__)
_LOG2E = float(np.float32(1 / math.log(2.0)))


@dataclass
class GluonKernels(Kernels):
    """The kernels that are written in Gluon, for one dtype; the others are those of Triton.

    blocks: rows of queries of a warp group, and keys in a tile. seed: of the schedule. chosen:
    fields of `choice.launch_options` and `keys_options` to replace, chosen_queries: of
    `queries_options`. processors: the largest number of programs. head_dim: the least size to
    which heads are padded. module, backward_module, queries_module: the modules that `load` made of
    `FORWARD`, `BACKWARD` and `QUERIES`. in_order: as in `program.Program`.
    """

    dtype: torch.dtype = torch.bfloat16
    seed: int = 0
    chosen: dict[str, int] = field(default_factory=dict)
    chosen_queries: dict[str, int] = field(default_factory=dict)
    processors: int = 2
    head_dim: int = 64
    module: ModuleType = field(default_factory=lambda: Loader().module(FORWARD))
    backward_module: ModuleType = field(default_factory=lambda: Loader().module(BACKWARD))
    queries_module: ModuleType = field(default_factory=lambda: Loader().module(QUERIES))
    in_order: bool = True

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, options: ScoreOptions
    ) -> tuple[Tensor, Tensor]:
        """`pyimpl.backends.kernels.hopper.forward`, heads padded with zeros to a size it takes.

        Raises:
            ValueError: the kernel does not take these tensors or options, and why.
            Fault: it does something that no kernel may do.
        """
        value_dim = v.shape[-1]
        q, k, v = self._pad(self._size(q, v), q, k, v)
        out = self.memory.empty(q.shape, self.dtype)
        lse = self.memory.empty(q.shape[:-1])
        _check(choice.why_not, q, k, v, out, options)
        chosen = {
            **choice.launch_options(q.shape[-1], False, q.shape[-2]),
            "block_n": self.blocks[1],
            **self.chosen,
        }
        with mock.patch.object(forward, "BLOCK_M", self.blocks[0]):
            launch = forward.launch(
                q, k, v, out, lse, options, processors=self.processors, chosen=chosen
            )
        self.ran(launch)
        run(launch, self.module, self.memory, self.seed, in_order=self.in_order)
        return out[..., :value_dim], lse

    def backward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        out: Tensor,
        lse: Tensor,
        grad_out: Tensor,
        grad_lse: Tensor | None,
        options: ScoreOptions,
        sequences: Sequences | None = None,
        *,
        atomics: bool = True,
    ) -> dict[str, Tensor]:
        """`pyimpl.backends.kernels.hopper.backward`, heads padded as in `forward`: gradients by the
        names "key", "value" and "query", the last, with `atomics` and for heads for which it has
        it, by additions, else by `hopper.queries`.

        blocks: rows of queries in a tile, of a warp group of the kernel for dQ; and of that kernel
        keys in a tile. Raises as `forward` does.
        """
        size, dims = self._size(q, v), (q.shape[-1], v.shape[-1])
        row_lse, delta = self._row_numbers(out, lse, grad_out, grad_lse)
        atomics = atomics and self.has_sums(q, v)
        q, k, v, grad_out = self._pad(size, q, k, v, grad_out)
        given = Given(q, k, v, grad_out, row_lse, delta, options, sequences)
        grad_key, grad_value = self.memory.empty(k.shape), self.memory.empty(v.shape)
        _check(backward.why_not, given, grad_key, grad_value)
        domain, sums = self.memory.domain, None
        if atomics:
            sums = self.memory.tensor(domain.integers(np.zeros(q.shape, np.int64)))
        chosen = {**choice.keys_options(size, False, atomics), "block_m": self.blocks[0]}
        launch = backward.launch(
            given, grad_key, grad_value, sums, processors=self.processors,
            chosen={**chosen, **self.chosen},
        )  # fmt: skip
        if sums is None:
            # The descriptor of the sums has the memory of other numbers; nobody uses it.
            unused = {"sums_desc": launch.arguments["k_desc"]}
            launch = replace(launch, arguments={**launch.arguments, **unused})
        self.ran(launch)
        run(launch, self.backward_module, self.memory, self.seed, in_order=self.in_order)
        grads = {"key": grad_key[..., : dims[0]], "value": grad_value[..., : dims[1]]}
        if sums is not None:
            # As the caller of the kernel does with the sums.
            scaled = domain.multiply(self.memory.read(sums), domain.scalar(options.scale))
            grads["query"] = self.memory.tensor(scaled)[..., : dims[0]]
        else:
            grads["query"] = self._queries(given)[..., : dims[0]]
        return grads

    def has_sums(self, q: Tensor, v: Tensor) -> bool:
        """Whether the backward kernel can add to the gradient of queries of such heads."""
        return self._size(q, v) in choice.WITH_SUMS

    def _queries(self, given: Given) -> Tensor:
        """dQ by the kernel that computes it alone. Raises as `forward` does."""
        grad_query = self.memory.empty(given.query.shape, self.dtype)
        _check(queries.why_not, given, grad_query)
        chosen = {
            **choice.queries_options(given.query.shape[-1], False, given.query.shape[-2]),
            "block_n": self.blocks[1],
            **self.chosen_queries,
        }
        with mock.patch.object(queries, "BLOCK_M", self.blocks[0]):
            launch = queries.launch(given, grad_query, processors=self.processors, chosen=chosen)
        self.ran(launch)
        run(launch, self.queries_module, self.memory, self.seed, in_order=self.in_order)
        return grad_query

    def _row_numbers(
        self, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The numbers that `gradient.row_numbers` describes, in tensors as of `row_buffers`."""
        domain, read = self.memory.domain, self.memory.read
        delta = domain.sum(domain.multiply(read(out), read(grad_out)), 3)
        if grad_lse is not None:
            delta = domain.subtract(delta, read(grad_lse))
        some = domain.compare("une", read(lse), domain.constant(-math.inf))
        lengths = (*lse.shape[:-1], -(-lse.shape[-1] // 4) * 4)
        found = []
        for numbers, otherwise in (
            (domain.multiply(read(lse), domain.constant(_LOG2E)), math.inf),
            (delta, 0.0),
        ):
            rows = self.memory.empty(lengths)[..., : lse.shape[-1]]
            rest = domain.constant(otherwise)
            chosen = domain.each(lambda x, y: np.where(some, x, y), numbers, rest)
            self.memory.write(rows, chosen)
            found.append(rows)
        return found[0], found[1]

    def _size(self, q: Tensor, v: Tensor) -> int:
        """The least size of heads that the kernels take and that holds these; the larger of both
        where there is none."""
        largest = max(q.shape[-1], v.shape[-1], self.head_dim)
        return next((size for size in choice.HEAD_DIMS if size >= largest), largest)

    def _pad(self, size: int, *tensors: Tensor) -> list[Tensor]:
        """The same vectors with zeros added behind."""
        domain = self.memory.domain

        def pad(numbers: Array, zero: Array) -> Array:
            more = (*numbers.shape[:-1], size - numbers.shape[-1])
            return np.concatenate([numbers, np.broadcast_to(zero, more)], axis=-1)

        zero = domain.constant(0.0)
        return [self.tensor(domain.each(pad, self.memory.read(x), zero)) for x in tensors]


def _check(why_not: Callable[..., str | None], *given: Any) -> None:
    """Raise ValueError if `why_not` refuses these arguments for another reason than the device or
    Triton's version."""
    with mock.patch.object(choice, "_why_not_on", return_value=None):
        refusal = why_not(*given)
    if refusal is not None:
        raise ValueError(refusal)
