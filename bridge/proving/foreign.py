"""Run somebody else's kernel in a process of its own, and receive its launches as data.

The process (`worker`) imports the file and compiles to TTIR. Its messages are checked before they
are used (`bridge.conformance.sandbox.wire`, `recorded`), and nothing of it is run here but the
TTIR, by the machine.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypedDict

from bridge.conformance.sandbox import wire
from bridge.conformance.sandbox.wire import Frame, Text, WireError
from bridge.interrupt import unseen_by_children
from bridge.limits import Limit, Watch
from bridge.proving.recorded import MOST_STEPS, Recorded, decode
from bridge.proving.worker import Request


class ForeignError(Exception):
    """A file, function or process that cannot be used. The message is a sentence."""


class Refused(Exception):
    """The launcher does not take this request. The message is the one that it raised."""


class _Takes(TypedDict):
    causal: bool
    scale: bool


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
            self.__exit__()
            raise ForeignError(_sentence(frame))
        try:
            self.takes = frame.field("takes", _Takes)
        except WireError as error:
            raise ForeignError(f"sent an invalid answer: {error}") from error
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self._to)
        os.close(self._from)
        self._watch.end()
        self._process.kill()
        self._process.wait()

    def record(self, request: Request) -> Recorded:
        """Record the launches that the launcher makes for this request. Raises Refused and
        ForeignError."""
        self._watch.restart(self.limit)
        try:
            os.write(self._to, json.dumps(asdict(request)).encode() + b"\n")
        except BrokenPipeError:
            raise ForeignError("ended the process") from None
        steps: list[Mapping[str, Any]] = []
        try:
            while (frame := self._hear()).kind == "step":
                if len(steps) >= MOST_STEPS:
                    raise WireError(f"more than {MOST_STEPS} launches and operations")
                steps.append(frame.fields)
            if frame.kind == "refused":
                raise Refused(_sentence(frame))
            wire.read(frame.kind, Literal["recorded"], "an answer")
            return decode({**frame.fields, "steps": steps})
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
    found: str = frame.field("sentence", Text)
    return found
