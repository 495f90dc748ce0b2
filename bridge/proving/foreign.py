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
_ORIGINS = ("given", "empty", "constant", "computed")
_LARGEST = 1 << 40
_LONGEST_TTIR = 1 << 22
_MOST_LAUNCHES, _MOST_ARGUMENTS, _MOST_PROGRAMS = 64, 1000, 1 << 31


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
    detail: str | float | None


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
class Recorded:
    """What a launcher did: outputs are its output and, if it returned one, its log-sum-exp."""

    launches: tuple[Launched, ...]
    storages: tuple[Storage, ...]
    outputs: tuple[View, ...]


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
            raise ForeignError("sent what is no answer: takes is no object")
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
        launches: list[Launched] = []
        try:
            while (frame := self._hear()).kind == "launch":
                if len(launches) >= _MOST_LAUNCHES:
                    raise WireError(f"more than {_MOST_LAUNCHES} launches")
                launches.append(_launched(frame))
            if frame.kind == "refused":
                raise Refused(_sentence(frame))
            return _recorded(frame, tuple(launches))
        except WireError as error:
            raise ForeignError(f"sent what is no answer: {error}") from error

    def _hear(self) -> Frame:
        """The next frame. Raises ForeignError."""
        while True:
            try:
                frame = self._parser.next()
            except WireError as error:
                raise ForeignError(f"sent what is no answer: {error}") from error
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


def _launched(frame: Frame) -> Launched:
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


def _recorded(frame: Frame, launches: tuple[Launched, ...]) -> Recorded:
    if frame.kind != "recorded":
        raise WireError(f"a frame {wire.shown(frame.kind)} where launches end")
    storages = []
    for number, one in enumerate(_list(frame.field("storages"), "storages", 100_000)):
        own, dtype, size, origin, detail = _list(one, "a storage", 5, exactly=True)
        wire.whole(own, "a storage's number", number, number)
        origin = wire.one_of(origin, "an origin", _ORIGINS)
        if origin == "constant":
            if not isinstance(detail, float):
                raise WireError("a constant that is no number")
        elif origin != "empty":
            detail = wire.text(detail, "a storage's origin")
        kind = _DTYPES.get(dtype) if isinstance(dtype, str) else None
        size = wire.whole(size, "a storage's size", 0, _LARGEST)
        storages.append(Storage(torch.uint8 if kind is None else kind, size, origin, detail))
    outputs = tuple(_view(one) for one in _list(frame.field("outputs"), "outputs", 2))
    views = [x for launch in launches for _, x in launch.arguments if isinstance(x, View)]
    for view in (*views, *outputs):
        if view.storage >= len(storages):
            raise WireError(f"a tensor of storage {view.storage}, of which there are less")
        steps = zip(view.sizes, view.strides, strict=True)
        last = view.offset + sum((size - 1) * stride for size, stride in steps)
        if 0 not in view.sizes and last >= storages[view.storage].size:
            raise WireError("a tensor that is larger than its storage")
    return Recorded(launches, tuple(storages), outputs)


def _list(value: Any, what: str, most: int, *, exactly: bool = False) -> list[Any]:
    if not isinstance(value, list) or len(value) > most or (exactly and len(value) != most):
        raise WireError(f"{what} that is no list of {'' if exactly else 'up to '}{most}")
    return value
