"""A function under test is called as the judge asks, in its own process.

Requests are frames of the judge's (`frames`), each with a number that its answer repeats:

- `open`: import the function, or make the model of a problem; `opened` with its parameters, or
  `refused` with a sentence.
- `inputs`: those of the problem: `inputs`, dtypes and shapes alone, or `raised`.
- `call`: `returned`, with all that came back described and its numbers, or `raised`. Misuse of
  memory that is not the function's own is said too: inputs that it changed, and outputs that
  are no new memory.
- `differentiate`: autograd's gradients of the call before: `differentiated` or `raised`.

Whatever the function does here, it can only spoil its own report: its numbers are judged
where it does not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from . import buffers, found, frames
from .borrowed import Borrowed

# The last outputs are kept, so many and of so many bytes together, to see whether their memory is
# used again; of so many of them it is looked at whether they change.
_KEPT, _KEPT_BYTES = 64, 1 << 26
_LOOKED_AT = 4
# A tuple of more things is not looked into.
_MOST_IN_TUPLE = 4
# How functions refuse arguments that they do not take. Others (IndexError, ZeroDivisionError, …)
# are mistakes of theirs, which the vectors are to show; so is PyTorch's RuntimeError, of which
# every mistake of shapes is one, over an argument that the function itself has.
REFUSALS = (TypeError, ValueError, NotImplementedError, AssertionError)
# The judge's reading of an error: the first of these that it is, so those that others are made of
# come last.
_KINDS = (*REFUSALS, RuntimeError, Exception)
Request = tuple[str, dict[str, Any], dict[str, Tensor]]


class Answering(Protocol):
    """An object that answers requests."""

    def answer(self, kind: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        """The answer to a request."""


def serve(requests: int, answers: int, session: Answering) -> None:
    """Answer requests from this file descriptor until they end."""
    while (request := frames.read(requests)) is not None:
        kind, fields, tensors = request
        said, told, numbers = session.answer(kind, fields, tensors)
        frames.write(answers, said, {**told, "number": fields["number"]}, numbers)


def text_of(error: BaseException) -> str:
    """The text of an exception; "" for one of whom even that raises."""
    try:
        return frames.cut(str(error))
    except BaseException:
        return ""


def _error_answer(error: BaseException) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    kind = next((one.__name__ for one in _KINDS if isinstance(error, one)), "BaseException")
    name = frames.cut(type(error).__name__)
    told = {"type": name, "kind": kind, "text": text_of(error), "spoiled": not _usable()}
    return "raised", told, {}


def _usable() -> bool:
    """Whether a GPU can go on: after an access to memory that is not there, it cannot."""
    # PyTorch writes no types for this function: hence `no-untyped-call`.
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
    return True


class Session:
    """One function, from request to request."""

    def __init__(self) -> None:
        self.function: Callable[..., Any] | None = None
        self.problem: found.Problem | None = None
        # Of the last call: inputs by name, their first contents, and outputs by place.
        self.inputs: dict[str, Tensor] = {}
        self.before: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.kept: list[_Kept] = []
        # Caches, by the judge's names for them.
        self.caches: dict[str, Any] = {}

    def answer(self, kind: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        if kind == "open":
            return self.open(fields["name"], fields["problem"], fields["device"])
        try:
            with np.errstate(all="ignore"):
                if kind == "inputs":
                    return self.describe_inputs()
                if kind == "keep":
                    return self.keep(fields["device"], tensors)
                return (self.call if kind == "call" else self.differentiate)(fields, tensors)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _error_answer(error)

    def open(self, name: str, problem: str | None, device: str) -> Request:
        try:
            if problem is None:
                self.function = found.function(name)
            else:
                self.function, self.problem = found.model(name, problem, device)
        except found.NotFound as error:
            return "refused", {"sentence": frames.cut(str(error))}, {}
        described = getattr(self.function, "forward", self.function)
        return "opened", {"parameters": found.parameters(described)}, {}

    def describe_inputs(self) -> Request:
        assert self.problem is not None
        # Shapes alone: a problem's own inputs can be gigabytes.
        with torch.device("meta"):
            given = list(self.problem.inputs())
        each = [
            [str(x.dtype).removeprefix("torch."), list(x.shape)]
            if isinstance(x, Tensor) and x.dtype in frames.FLOATS.values()
            else None
            for x in given
        ]
        return "inputs", {"inputs": each, "numbers": self.problem.numbers}, {}

    def keep(self, device: str, tensors: dict[str, Tensor]) -> Request:
        self.caches |= {name: x.to(device) for name, x in tensors.items()}
        return "kept", {}, {}

    def call(self, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        device, by = fields["device"], set(fields["differentiate"])
        given = {name: x.to(device) for name, x in tensors.items()}
        for name in fields["padded"]:
            given[name] = buffers.pad(given[name])
        if fields["same_memory"] and _alike(self.inputs, given):
            with torch.no_grad():
                for name, tensor in given.items():
                    given[name] = self.inputs[name].detach().copy_(tensor)
        self.inputs = {name: x.requires_grad_() if name in by else x for name, x in given.items()}
        self.before = {name: x.detach().clone() for name, x in self.inputs.items()}
        assert self.function is not None
        known: dict[Any, Any] = dict(self.inputs)
        known |= {("cache", name): x for name, x in self.caches.items()}
        arguments = [_value(one, known) for one in fields["arguments"]]
        options = {name: _value(one, known) for name, one in fields["options"].items()}
        with Borrowed(fields["record"]) as borrowed:
            result = self.function(*arguments, **options)
        several = isinstance(result, (tuple, list)) and len(result) == 2
        if fields["cache"] is not None and several:
            result, self.caches[fields["cache"]] = result
        self.outputs = {}
        numbers: dict[str, Tensor] = {}
        described = self._describe(result, "result", device, numbers)
        shown = {f"cache {name}": _take(self.caches[name]) for name in fields["show"]}
        told = {
            "result": described,
            "cached": several,
            "changed": self._changed_inputs(),
            "not_new": self._not_new(),
            "borrowed": borrowed.names(),
        }
        return "returned", told, {**numbers, **shown}

    def differentiate(self, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        by = {name: self.inputs[name] for name in fields["by"]}
        outputs = {place: self.outputs[place] for place in tensors}
        # By sums, whose gradients by the outputs are these: given as tensors of their own, PyTorch
        # imports its symbolic shapes, for seconds.
        sums = [(x * tensors[place].to(x.device)).sum() for place, x in outputs.items()]
        gradients = torch.autograd.grad(sums, list(by.values()), allow_unused=True)
        pairs = zip(by, gradients, strict=True)
        numbers = {name: _take(x.to_dense()) for name, x in pairs if x is not None}
        return "differentiated", {"changed": self._changed_inputs()}, numbers

    def _describe(self, value: Any, place: str, device: str, numbers: dict[str, Tensor]) -> Any:
        """The returned value, as JSON has it; the numbers of tensors that can be judged."""
        if isinstance(value, Tensor):
            kind = str(value.dtype).removeprefix("torch.")
            there = value.device.type == torch.device(device).type
            sent = kind in frames.FLOATS and value.layout == torch.strided and there
            if sent:
                self.outputs[place] = value
                numbers[place] = _take(value)
            about: dict[str, Any] = {"tensor": place if sent else None}
            about |= {"dtype": kind, "shape": list(value.shape), "device": value.device.type}
            about |= {"layout": str(value.layout), "graph": bool(value.requires_grad)}
            return about
        if isinstance(value, (tuple, list)) and len(value) <= _MOST_IN_TUPLE:
            each = enumerate(value)
            return {"tuple": [self._describe(x, f"{place} {n}", device, numbers) for n, x in each]}
        return {"type": None if value is None else frames.cut(type(value).__name__)}

    def _changed_inputs(self) -> list[str]:
        """The inputs that have changed."""
        return [name for name, x in self.inputs.items() if not _is_unchanged(x, self.before[name])]

    def _not_new(self) -> str | None:
        """Which memory an output has that it should not have; None if it is new."""
        for output in self.outputs.values():
            if output.numel() == 0:
                continue
            here = _Memory.of(output)
            for name, tensor in self.inputs.items():
                if here.meets(_Memory.of(tensor)):
                    return f"that of its input {name}"
            if any(
                isinstance(x, Tensor) and here.meets(_Memory.of(x)) for x in self.caches.values()
            ):
                return "that of its cache"
            if any(here.meets(one.memory) for one in self.kept):
                return "that of what it had returned before"
        if any(not _is_unchanged(one.tensor, one.before) for one in self.kept[-_LOOKED_AT:]):
            return "that it goes on to change"
        new = (x.detach() for x in self.outputs.values())
        self.kept += [_Kept(x, x.clone(), _Memory.of(x)) for x in new]
        del self.kept[:-_KEPT]
        while sum(one.memory.size for one in self.kept[:-_LOOKED_AT]) > _KEPT_BYTES:
            del self.kept[0]
        return None


class _Memory(NamedTuple):
    """Where a storage lies. One that was made from an address within another is one of its own to
    PyTorch, and has bytes in common with it."""

    device: torch.device
    start: int
    size: int

    @classmethod
    def of(cls, tensor: Tensor) -> _Memory:
        storage = tensor.untyped_storage()
        return cls(tensor.device, storage.data_ptr(), storage.nbytes())

    def meets(self, other: _Memory) -> bool:
        """Whether there is a byte that both have."""
        first, last = (self, other) if self.start < other.start else (other, self)
        overlap = last.start < first.start + first.size and last.size > 0
        return overlap and self.device == other.device


class _Kept(NamedTuple):
    """An output, its numbers when it was returned, and where it lies."""

    tensor: Tensor
    before: Tensor
    memory: _Memory


def _take(tensor: Tensor) -> Tensor:
    """The numbers as they are now, for the judge: of a call nothing is looked at before.

    The first launch of a kernel can wait for the whole device, and so for streams that the function
    has left running.
    """
    return tensor.detach().to("cpu", copy=True)


def _alike(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    """Whether tensors can stand in each other's memory."""
    return some.keys() == others.keys() and all(
        (x.shape, x.dtype) == (others[name].shape, others[name].dtype) for name, x in some.items()
    )


def _is_unchanged(tensor: Tensor, before: Tensor) -> bool:
    """Whether a tensor equals this copy of it bit by bit, its dtype included."""
    if tensor.dtype != before.dtype or tensor.shape != before.shape:
        return False
    return torch.equal(_bits(tensor), _bits(before))


def _bits(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def _value(value: Any, tensors: Mapping[Any, Any]) -> Any:
    """An argument, as `bridge.conformance.sandbox.values` has encoded it."""
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        if "cache" in value:
            return tensors["cache", value["cache"]]
        if "dtype" in value:
            return getattr(torch, value["dtype"])
        if "number" in value:
            return float(value["number"])
        return tuple(_value(one, tensors) for one in value["tuple"])
    return value
