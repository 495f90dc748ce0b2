"""Recorded launches, run by the machine on numbers of a level, against attention by definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bridge.proving.recorded import Computed, Launched, Recorded, Step, View
from bridge.ttir.compare import Case, Compared, Level, Shape
from bridge.ttir.domain import Numbers
from bridge.ttir.launched import kernel_of
from bridge.ttir.machine import Machine
from bridge.ttir.source import Source

_ROUNDED = {torch.float16: "f16", torch.bfloat16: "bf16"}


class NotKnown(Exception):
    """The arguments of a launch are not known. The message is a sentence."""


def compare_launches(
    recorded: Recorded,
    shape: Shape,
    level: Level,
    seed: int,
    *,
    scale: float,
    layout: str = "bhnd",
    minus_infinity: Sequence[float] = (),
    masked_loads: float | None = None,
    found: Compared | None = None,
) -> Compared:
    """The launches of a launcher that was called with this shape and scale, and its outputs against
    attention; with gradients, if it was asked for them, against attention's.

    layout: "bhnd" or "bnhd", of all tensors `[batch, heads, length, dim]`. minus_infinity: literals
    of the kernels' text that stand for −∞. masked_loads: the number that a masked load gives where
    the kernel does not say; None: nobody knows. Raises NotKnown, and as `machine.Machine.run` does.
    """
    case = Case(shape, level, seed, scale)
    for x in minus_infinity:
        case.domain.literals[float(np.float32(x))] = case.domain.constant(-math.inf)
    if masked_loads is not None:
        case.domain.left_open = case.domain.constant(masked_loads)
    replay = _Replay(case, recorded, layout)
    found = found or Compared()
    if not recorded.launches:
        raise NotKnown("the launcher launches no Triton kernel")
    for step in recorded.steps[: recorded.forward_steps]:
        found.roundings |= replay.run(step)
    tensors = [replay.output(view) for view in recorded.outputs]
    case.compare_attention(found, tensors[0], tensors[1] if len(tensors) > 1 else None)
    if recorded.gradients:
        case.name_log_sum_exps()
        for step in recorded.steps[recorded.forward_steps :]:
            found.roundings |= replay.run(step)
        case.compare_gradients(
            found,
            replay.grad_out,
            [
                replay.gradient(view, name)
                for view, name in zip(recorded.gradients, ("query", "key", "value"), strict=True)
            ],
        )
    return case.finish(found)


class _Replay:
    def __init__(self, case: Case, recorded: Recorded, layout: str) -> None:
        self.case, self.recorded, self.layout = case, recorded, layout
        self.given = {"query": case.q, "key": case.k, "value": case.v}
        shape = case.shape
        if recorded.gradients:
            self.grad_out = case.draw("dO", shape.batch, shape.heads, shape.q_len, shape.value_dim)
            self.given["grad_output"] = self.grad_out
        self.whole: dict[int, Tensor] = {}

    def run(self, step: Step) -> set[str]:
        """Do a step; the roundings that it has."""
        return self.launch(step) if isinstance(step, Launched) else self.compute(step)

    def launch(self, launched: Launched) -> set[str]:
        arguments = [
            self.tensor(given, f"argument {name} of {launched.kernel}")
            if isinstance(given, View)
            else given
            for name, given in launched.arguments
        ]
        kernel = kernel_of(Source(launched.text, {}))
        # Published kernels mask a weight after its exponential, too; no wrong weight is used then.
        machine = Machine(kernel, self.case.memory, arguments, masked_after=True)
        machine.run(launched.grid)
        return machine.roundings

    def compute(self, step: Computed) -> set[str]:
        """Repeat a computation of PyTorch's between launches."""
        domain, memory = self.case.domain, self.case.memory
        name = f"an operand of PyTorch's {step.operation}"
        operands = [
            memory.read(self.tensor(x, name)) if isinstance(x, View) else domain.scalar(x)
            for x in step.operands
        ]
        sizes = step.to.sizes
        if step.operation == "sum":
            (found,) = operands
            for dim in sorted(step.dims, reverse=True):
                found = domain.sum(found, dim)
            found = domain.each(lambda x: x.reshape(sizes), found)
        elif step.operation in ("copy", "fill"):
            (found,) = operands
        else:
            found = getattr(domain, step.operation)(*operands)
        to = self.tensor(step.to, "a result of PyTorch's")
        memory.write(to, domain.each(lambda x: np.broadcast_to(x, sizes), found))
        return {_ROUNDED[step.to.dtype]} if step.to.dtype in _ROUNDED else set()

    def gradient(self, view: View, name: str) -> Tensor:
        """The gradient by an input as `[batch, heads, length, dim]`."""
        tensor = self.tensor(view, f"the gradient by {name}")
        found = tensor.transpose(1, 2) if self.layout == "bnhd" else tensor
        tile = self.given[name]
        wanted = np.shape(tile if isinstance(tile, np.ndarray) else tile[0])
        if tuple(found.shape) != wanted:
            raise NotKnown(f"the gradient by {name} is {list(tensor.shape)}")
        return found

    def output(self, view: View) -> Tensor:
        """An output as `[batch, heads, q_len, …]`."""
        tensor = self.tensor(view, "an output")
        shape = self.case.shape
        rows = (shape.batch, shape.heads, shape.q_len)
        accepted = [rows, (*rows, shape.value_dim)]
        found = tensor.transpose(1, 2) if self.layout == "bnhd" and tensor.dim() == 4 else tensor
        if tuple(found.shape) not in accepted:
            raise NotKnown(
                f"the launcher returned {list(tensor.shape)}, and an output or log-sum-exp for "
                f"[batch, heads, length, dim] = {list(accepted[1])} is accepted"
            )
        return found

    def tensor(self, view: View, name: str) -> Tensor:
        return self._storage(view.storage, name).as_strided(view.sizes, view.strides, view.offset)

    def _storage(self, number: int, name: str) -> Tensor:
        """A storage as a tensor of one dimension."""
        if number in self.whole:
            return self.whole[number]
        storage, memory = self.recorded.storages[number], self.case.memory
        domain = self.case.domain
        if storage.origin == "computed":
            raise NotKnown(f"{name} was computed by PyTorch ({storage.detail}), outside of kernels")
        if storage.origin == "given":
            found = memory.tensor(self._flat(self.given[str(storage.detail)]), storage.dtype)
        elif isinstance(storage.detail, tuple):
            found = torch.tensor(storage.detail, dtype=storage.dtype)
        elif not storage.dtype.is_floating_point:
            filled = storage.detail if isinstance(storage.detail, float) else 0
            found = torch.full((storage.size,), int(filled), dtype=storage.dtype)
        elif isinstance(storage.detail, float):
            one = domain.constant(storage.detail)
            filled_with = domain.each(lambda x: np.broadcast_to(x, (storage.size,)), one)
            found = memory.tensor(filled_with, storage.dtype)
        else:
            found = memory.empty((storage.size,), storage.dtype)
        self.whole[number] = found
        return found

    def _flat(self, tile: Numbers) -> Numbers:
        """`[batch, heads, length, dim]` in the order of the layout's storage."""
        order = (0, 2, 1, 3) if self.layout == "bnhd" else (0, 1, 2, 3)
        return self.case.domain.each(lambda x: x.transpose(order).reshape(-1), tile)


def place_of(launched: Launched, number: int) -> tuple[int, ...]:
    """The place in its grid of a program that is counted as `Machine.run` does."""
    grid = (*launched.grid, 1, 1)[:3]
    places = itertools.product(*(range(size) for size in reversed(grid)))
    return next(itertools.islice(places, number, None))[::-1][: len(launched.grid)]
