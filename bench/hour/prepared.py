"""A kernel whose launch options are measured, and the parts of a case that several of them need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from bench.cases import DTYPES, Case, Inputs, Operation
from pyimpl import attention
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.parts.backward_launch import Given, row_buffers
from pyimpl.backends.kernels.parts.launch import Launch, processors
from pyimpl.backends.kernels.parts.numerics import LOG2E
from pyimpl.backends.kernels.parts.tuning import candidates
from pyimpl.internal.scores import ScoreOptions

Options = dict[str, int]
# The log-sum-exps and deltas of queries, kept as long as the queries are there.
_ROWS: Any = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class Prepared:
    """A kernel for the inputs of a case.

    launches: all that `run` starts, to be compiled beforehand. outputs: the results to judge: the
    output, or the gradients by query, key and value, None for one that it does not compute.
    scratch: the other tensors that it writes.
    """

    launches: tuple[Launch, ...]
    run: Callable[[], None]
    outputs: tuple[Tensor | None, ...]
    scratch: tuple[Tensor, ...] = ()

    def poison(self) -> None:
        """Write NaN to all of its results: so elements that it leaves out are seen."""
        for tensor in (*self.outputs, *self.scratch):
            if tensor is not None:
                tensor.fill_(float("nan"))


@dataclass(frozen=True)
class Kernel:
    """operation: of the cases that it is for. paged: with keys in pages. default: the options that
    `launch_options` gives a case on a device of a compute capability. prepare: of inputs, options
    and capability; also of inputs without memory. around: the options to be measured beside some.
    same_bits: whether the same inputs give the same bits. least_shared: bytes of shared memory
    below which it does not come with these options. share: of the operations that the case asks
    for: a kernel that computes some of the gradients does some of the five products. dtypes: of the
    cases that it takes, and head_dims. capabilities: of the devices that it is for, None: of all.
    interpreted: whether Triton's interpreter runs it."""

    operation: Operation
    default: Callable[[Case, int], Options]
    prepare: Callable[[Inputs, Options, int], Prepared]
    around: Callable[[Options], list[Options]] = candidates
    paged: bool = False
    same_bits: bool = True
    least_shared: Callable[[Case, Options], int] = lambda case, chosen: 0
    share: float = 1.0
    dtypes: tuple[str, ...] = tuple(DTYPES)
    head_dims: tuple[int, ...] = choice.HEAD_DIMS
    capabilities: tuple[int, ...] | None = None
    interpreted: bool = True

    def is_for(self, capability: int) -> bool:
        """Whether devices of this compute capability have it."""
        return self.capabilities is None or capability in self.capabilities


def score_options(case: Case) -> ScoreOptions:
    """The case's options of the scores. Raises ValueError for a Boolean mask, which no kernel is
    tuned for."""
    if case.mask.name == "boolean":
        raise ValueError("mask must be a window, not boolean")
    return ScoreOptions(1.0 / math.sqrt(case.head_dim), left=case.mask.left, right=case.mask.right)


def count_processors(tensor: Tensor) -> int:
    """How many the device has, or one that it is compiled for without it."""
    return processors(tensor.device) if tensor.device.type == "cuda" else 132


def inputs_of(inputs: Inputs) -> Given:
    """The inputs of the kernels of the backward pass, with the numbers of each query by plain
    PyTorch."""
    case, query, grad_out = inputs.case, inputs.query, inputs.grad_out
    assert grad_out is not None
    if query not in _ROWS:
        rows = row_buffers(query)
        if query.device.type != "meta":
            out, lse = attention(
                query, inputs.key, inputs.value, window=(case.mask.left, case.mask.right),
                enable_gqa=case.grouped, return_lse=True, backend="tiled",
            )  # fmt: skip
            rows[0].copy_(lse * LOG2E.value)
            rows[1].copy_((out.float() * grad_out.float()).sum(-1))
        _ROWS[query] = rows
    lse_rows, delta = _ROWS[query]
    return Given(query, inputs.key, inputs.value, grad_out, lse_rows, delta, score_options(case))


def with_sums(
    given: Given, launch: Launch, sums: Tensor, grad_k: Tensor, grad_v: Tensor
) -> Prepared:
    """The steps around a launch that adds dQ / scale to `sums`."""
    grad_q = torch.empty_like(given.query)

    def run() -> None:
        sums.zero_()
        launch.run(given.query.device)
        torch.mul(sums, given.options.scale, out=grad_q)

    return Prepared((launch,), run, (grad_q, grad_k, grad_v), (sums,))
