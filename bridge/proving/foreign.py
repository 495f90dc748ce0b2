"""Somebody else's kernel, in a process of its own: what it launches, as data.

The process (`worker`) imports the file and compiles to TTIR. What it sends is looked at before it
is used (`bridge.conformance.wire`), and nothing of it is run but the TTIR, by the machine.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import torch

from bridge.conformance import wire
from bridge.conformance.wire import Frame, WireError
from bridge.interrupt import unseen_by_children
from bridge.limits import Limit, Watch
from bridge.proving.worker import Request

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip
_ORIGINS = ("given", "empty", "constant", "integers", "computed")
_OPERATIONS = ("copy", "fill", "add", "subtract", "multiply", "divide", "negate", "sum")
_LARGEST = 1 << 40
_LONGEST_TTIR = 1 << 22
_MOST_STEPS, _MOST_ARGUMENTS, _MOST_PROGRAMS = 1000, 1000, 1 << 31
_MOST_INTEGERS = 1 << 16


class ForeignError(Exception):
    """A file, function or process that cannot be used. The message is a sentence."""


class Refused(Exception):
    """The launcher does not take this request. The message is what it raised."""


@dataclass(frozen=True)
class Storage:
    """As `recording.Storage`. detail: the name of a given tensor, a constant, or an operation."""

    dtype: torch.dtype
    size: int
    origin: str
    detail: str | float | tuple[int, ...] | None


@dataclass(frozen=True)
class View:
    """As `recording.View`; padding: None, or "zero" or "nan" of a descriptor."""

    storage: int
    dtype: torch.dtype
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str | None = None


@dataclass(frozen=True)
class Launched:
    """As `recording.Launched`."""

    kernel: str
    text: str
    arguments: tuple[tuple[str, View | int | float | bool], ...]
    grid: tuple[int, ...]
    configuration: tuple[int, int] | None


@dataclass(frozen=True)
class Computed:
    """As `recording.Computed`."""

    operation: str
    to: View
    operands: tuple[View | float, ...]
    dims: tuple[int, ...]


Step = Launched | Computed


@dataclass(frozen=True)
class Recorded:
    """What a launcher did: outputs are its output and, if it returned one, its log-sum-exp, which
    are there after `forward_steps` steps; gradients: those by query, key and value after all."""

    steps: tuple[Step, ...]
    storages: tuple[Storage, ...]
    outputs: tuple[View, ...]
    forward_steps: int = 0
    gradients: tuple[View, ...] = ()

    @property
    def launches(self) -> tuple[Launched, ...]:
        return tuple(step for step in self.steps if isinstance(step, Launched))

    def last_store(self, output: str) -> Launched | None:
        """The last launch that can have stored to an output, or a gradient, of the names of
        `Compared`; None: PyTorch did."""
        outputs = dict(zip(("output", "log-sum-exp"), self.outputs, strict=False))
        gradients = dict(zip(("dQ", "dK", "dV"), self.gradients, strict=False))
        storage = (outputs | gradients)[output].storage
        steps = self.steps[: self.forward_steps] if output in outputs else self.steps
        found = [
            step
            for step in steps
            if isinstance(step, Launched)
            and any(isinstance(x, View) and x.storage == storage for _, x in step.arguments)
        ]
        return found[-1] if found else None


class Foreign:
    """The process, as a context manager. name: `file.py:kernel`; limit: seconds of processor time
    for each request. takes: which of "causal" and "scale" the launcher has a parameter for."""

    def __init__(self, name: str, limit: float = 120.0) -> None:
        self.name, self.limit = name, Limit(limit, limit)
        self.takes: Mapping[str, bool] = {}
        self._parser = wire.Parser()
        self._compiled: dict[str, str] = {}

    def __enter__(self) -> Foreign:
        requests, self._to = os.pipe()
        self._from, answers = os.pipe()
        command = [sys.executable, "-m", "bridge.proving.worker", str(requests), str(answers)]
        with unseen_by_children():
            self._process = subprocess.Popen(
                [*command, self.name], pass_fds=(requests, answers), stdin=subprocess.DEVNULL
            )
        os.close(requests)
        os.close(answers)
        self._watch = Watch(self._process.pid, self.limit)
        frame = self._hear()
        if frame.kind != "ready":
            self.__exit__(None, None, None)
            raise ForeignError(_sentence(frame))
        given = frame.field("takes")
        if not isinstance(given, dict):
            raise ForeignError("sent an invalid answer: takes is no object")
        self.takes = {name: wire.flag(given.get(name), name) for name in ("causal", "scale")}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._to)
        os.close(self._from)
        self._watch.end()
        self._process.kill()
        self._process.wait()

    def record(self, request: Request) -> Recorded:
        """What the launcher launches for this request. Raises Refused and ForeignError."""
        self._watch.restart(self.limit)
        try:
            os.write(self._to, json.dumps(asdict(request)).encode() + b"\n")
        except BrokenPipeError:
            raise ForeignError("ended the process") from None
        steps: list[Step] = []
        try:
            while (frame := self._hear()).kind in ("launch", "computed"):
                if len(steps) >= _MOST_STEPS:
                    raise WireError(f"more than {_MOST_STEPS} launches and operations")
                steps.append(
                    _read_launch(frame) if frame.kind == "launch" else _read_computation(frame)
                )
            if frame.kind == "refused":
                raise Refused(_sentence(frame))
            return _read_recording(frame, tuple(steps))
        except WireError as error:
            raise ForeignError(f"sent an invalid answer: {error}") from error

    def _hear(self) -> Frame:
        """The next frame. Raises ForeignError."""
        while True:
            try:
                frame = self._parser.next()
            except WireError as error:
                raise ForeignError(f"sent an invalid answer: {error}") from error
            if frame is not None:
                return frame
            if select.select([self._from], [], [], min(self._watch.pause, 0.1))[0]:
                piece = os.read(self._from, 1 << 16)
                if not piece:
                    code = self._process.wait()
                    raise ForeignError(f"ended the process with status {code}")
                self._parser.add(piece)
            elif (passed := self._watch.look()) is not None:
                raise ForeignError(f"did not return: {passed}")


def _sentence(frame: Frame) -> str:
    return wire.text(frame.fields.get("sentence"), "a sentence")


def _read_launch(frame: Frame) -> Launched:
    text = frame.field("text")
    if not isinstance(text, str) or len(text) > _LONGEST_TTIR:
        raise WireError("TTIR that is no text")
    given = _list(frame.field("arguments"), "arguments", _MOST_ARGUMENTS)
    arguments = []
    for pair in given:
        name, value = _list(pair, "an argument", 2, exactly=True)
        arguments.append((wire.text(name, "an argument's name"), _argument(value)))
    sizes = _list(frame.field("grid"), "a grid", 3)
    grid = tuple(wire.whole(n, "a size of a grid", 0, _MOST_PROGRAMS) for n in sizes)
    configuration = frame.field("configuration")
    if configuration is not None:
        which, of = _list(configuration, "a configuration", 2, exactly=True)
        of = wire.whole(of, "configurations", 1, 10**6)
        configuration = (wire.whole(which, "a configuration", 0, of - 1), of)
    name = wire.text(frame.field("kernel"), "a kernel's name")
    return Launched(name, text, tuple(arguments), grid, configuration)


def _read_computation(frame: Frame) -> Computed:
    given = _list(frame.field("operands"), "operands", 2)
    operands = [x if isinstance(x, float) else _view(x) for x in given]
    dims = [wire.whole(n, "a dimension", 0, 15) for n in _list(frame.field("dims"), "dims", 16)]
    operation = wire.one_of(frame.field("operation"), "an operation", _OPERATIONS)
    wanted = 1 if operation in ("copy", "fill", "negate", "sum") else 2
    if len(operands) != wanted:
        raise WireError(f"{operation} of {len(operands)} operands")
    return Computed(operation, _view(frame.field("to")), tuple(operands), tuple(dims))


def _argument(value: Any) -> View | int | float | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return wire.whole(value, "an integer argument", -(2**63), 2**63 - 1)
    if isinstance(value, float):
        return value
    return _view(value)


def _view(value: Any) -> View:
    if not isinstance(value, dict):
        raise WireError("a tensor that is not described by its storage and strides")
    sizes = _list(value.get("sizes"), "sizes", 16)
    strides = _list(value.get("strides"), "strides", len(sizes), exactly=True)
    padding = value.get("padding")
    return View(
        wire.whole(value.get("storage"), "a storage", 0, _LARGEST),
        _DTYPES[wire.one_of(value.get("dtype"), "a dtype", tuple(_DTYPES))],
        wire.whole(value.get("offset"), "an offset", 0, _LARGEST),
        tuple(wire.whole(n, "a size", 0, _LARGEST) for n in sizes),
        tuple(wire.whole(n, "a stride", 0, _LARGEST) for n in strides),
        None if padding is None else wire.one_of(padding, "padding", ("zero", "nan")),
    )


def _read_recording(frame: Frame, steps: tuple[Step, ...]) -> Recorded:
    if frame.kind != "recorded":
        raise WireError(f"a frame {wire.show(frame.kind)} where launches end")
    given = _list(frame.field("storages"), "storages", 100_000)
    storages = [_storage(number, one) for number, one in enumerate(given)]
    outputs = tuple(_view(one) for one in _list(frame.field("outputs"), "outputs", 2))
    gradients = tuple(_view(one) for one in _list(frame.field("gradients"), "gradients", 3))
    if not outputs or len(gradients) not in (0, 3):
        raise WireError(f"{len(outputs)} outputs and {len(gradients)} gradients")
    views = [*outputs, *gradients]
    for step in steps:
        if isinstance(step, Launched):
            views += [x for _, x in step.arguments if isinstance(x, View)]
        else:
            views += [x for x in (step.to, *step.operands) if isinstance(x, View)]
    for view in views:
        if view.storage >= len(storages):
            raise WireError(f"a tensor of storage {view.storage}, of which there are less")
        at = zip(view.sizes, view.strides, strict=True)
        last = view.offset + sum((size - 1) * stride for size, stride in at)
        if 0 not in view.sizes and last >= storages[view.storage].size:
            raise WireError("a tensor that is larger than its storage")
    count = wire.whole(frame.field("forward_steps"), "steps of the forward pass", 0, len(steps))
    return Recorded(steps, tuple(storages), outputs, count, gradients)


def _storage(number: int, one: Any) -> Storage:
    own, dtype, size, origin, detail = _list(one, "a storage", 5, exactly=True)
    wire.whole(own, "a storage's number", number, number)
    origin = wire.one_of(origin, "an origin", _ORIGINS)
    size = wire.whole(size, "a storage's size", 0, _LARGEST)
    if origin == "constant":
        if not isinstance(detail, float):
            raise WireError("a constant that is no number")
    elif origin == "integers":
        numbers = _list(detail, "integers", _MOST_INTEGERS)
        if len(numbers) != size:
            raise WireError(f"{len(numbers)} integers for a storage of {size}")
        detail = tuple(wire.whole(n, "an integer", -(2**63), 2**63 - 1) for n in numbers)
    elif origin != "empty":
        detail = wire.text(detail, "a storage's origin")
    kind = _DTYPES.get(dtype) if isinstance(dtype, str) else None
    return Storage(torch.uint8 if kind is None else kind, size, origin, detail)


def _list(value: Any, what: str, most: int, *, exactly: bool = False) -> list[Any]:
    if not isinstance(value, list) or len(value) > most or (exactly and len(value) != most):
        raise WireError(f"{what} that is no list of {'' if exactly else 'up to '}{most}")
    return value
