"""A conversation with a function under test: requests go to its process, checked answers come back.

A process that passes a limit is killed; where one has ended, or has sent an invalid answer, the
next request starts another. Such a call ends in `Lost`.
"""

from __future__ import annotations

import contextlib
import itertools
import keyword
import os
import select
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import psutil
from msgspec import Meta
from torch import Tensor

from bridge import limits
from bridge.conformance.functions.features import CallableError
from bridge.conformance.inside.frames import pack
from bridge.conformance.inside.shards import Shards
from bridge.conformance.sandbox import wire
from bridge.conformance.sandbox.view import Sight, sight_of
from bridge.conformance.sandbox.wire import Frame, Text, WireError
from bridge.conformance.sandbox.zygote import zygote
from bridge.conformance.tensors.batch import Misbehaviour
from bridge.limits import Limit, LimitPassed, Watch

# Importing a function's module can mean to import a whole framework.
_IMPORT_SECONDS = 180.0
# A process that has closed its side and does not end.
_END = Limit(30.0, 30.0)
# By the clock, in which the processes around a function that was killed have ended, or are killed.
_REAPED_SECONDS = 1.0
# Seconds between two looks at how much memory and how many processes there are.
_COUNTED_EVERY = 0.1
# The most of a function's output that is shown, in characters.
_MOST_PRINTED = 1 << 16

How = Literal["did not return", "ended the process", "sent an invalid answer", "used too much"]
# After so many calls of that kind the rest is not run.
MOST: Mapping[How, int] = {
    "did not return": 5,
    "ended the process": 20,
    "sent an invalid answer": 5,
    "used too much": 5,
}


class Lost(Misbehaviour):
    """A call without an answer. The message says why, without its subject; how: in short."""

    def __init__(self, sentence: str, how: How) -> None:
        super().__init__(sentence)
        self.how = how
        self.for_all = how in ("did not return", "used too much")


class NoSandboxError(RuntimeError):
    """The system has no walls for a function. The message says why."""


@dataclass
class _Running:
    """One process: of its keeper the number, and the pipes. outer: how many processes are around
    it: its keeper, and within walls the first one there."""

    watch: Watch
    outer: int
    requests: int
    answers: int
    status: int
    printed: int
    parser: wire.Parser = field(default_factory=wire.Parser)

    def close(self) -> None:
        """End them: first the function's, which those around it wait for. Where all end at once,
        nobody has its processor time."""
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(self.watch.pid).children(recursive=True)
            for process in below[self.outer - 1 :]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            last = time.monotonic() + _REAPED_SECONDS
            while (left := last - time.monotonic()) > 0:
                ended, _, _ = select.select([self.status], [], [], left)
                if ended and not os.read(self.status, 4):
                    break
            # And then those that it has left behind.
            psutil.Process(self.watch.pid).wait(max(0.0, last - time.monotonic()))
        self.watch.end()
        for one in (self.requests, self.answers, self.status, self.printed):
            os.close(one)


class Session:
    """A function and its process, as a context manager.

    name: `module:function` or `file.py:function`; device: as PyTorch names it; limit: seconds of
    processor time that a call may take, and seconds in which it may use none; also: files and
    folders that it may see besides; required: no walls are an error; problem: the file of one, for
    which the name is that of a class of models; shards: so many processes call it, each with its
    shards.

    without_walls: None while the process is within walls, or else why it is not. multiple: of a
    function of shards, the number that divides every length that it takes, as its signature says.
    """

    # Within walls first, and if there are none, without.
    ways: ClassVar[tuple[bool, ...]] = (True, False)

    def __init__(
        self,
        name: str,
        device: str = "cpu",
        limit: float = 60.0,
        *,
        also: tuple[Path, ...] = (),
        required: bool = False,
        problem: Path | None = None,
        shards: Shards | None = None,
    ) -> None:
        self.name, self.device, self.limit, self.required = name, device, limit, required
        self.sight: Sight = sight_of(name, device, also, problem, loopback=shards is not None)
        self.shards, self.multiple = shards, 1
        self.problem = None if problem is None else str(problem.resolve())
        self.without_walls: str | None = None
        self.parameters: list[tuple[str, str, bool]] | None = None
        # Calls without an answer, by kind, since the last `renew`, and the last one's message.
        self.lost: Counter[How] = Counter()
        self.last_loss: str | None = None
        self._running: _Running | None = None
        self._numbers = itertools.count(1)
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.renew()

    def renew(self) -> None:
        """End the process; the next request gets a new one, and counts losses from none."""
        self.end()
        self.lost, self.last_loss = Counter(), None

    def check_loss(self) -> None:
        """Raises Lost where a call since the last `renew` had no answer."""
        if self.last_loss is not None:
            raise Lost(self.last_loss, "did not return")

    def end(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def open(self) -> None:
        """Import the function, if it is not. Raises CallableError where it cannot be used, and
        NoSandboxError."""
        if self._running is not None:
            return
        try:
            self._start()
            first = max(self.limit, _IMPORT_SECONDS)
            what = {"name": self.sight.name, "problem": self.problem, "device": self.device}
            frame = self._ask("open", what, {}, Limit(first, first))
            if frame.kind == "refused":
                raise CallableError(frame.field("sentence", Text))
            if frame.kind == "lost":
                raise Lost(frame.field("sentence", Text), "ended the process")
            if frame.kind != "opened":
                raise WireError(f"{wire.show(frame.kind)} where the function was to come")
            self.parameters = _parameters(frame)
            if self.shards is not None:
                accepted = Meta(ge=1, le=self.shards.multiple)
                self.multiple = frame.field("multiple", Annotated[int, accepted])
        except Lost as lost:
            self.end()
            raise CallableError(f"importing it {lost}") from lost
        except WireError as error:
            self.end()
            raise CallableError(f"importing it sent an invalid answer: {error}") from error
        except BaseException:
            self.end()
            raise

    def ask(self, kind: str, fields: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Frame:
        """The answer to a request. Raises Lost where there is none, and CallableError where a new
        process cannot import the function."""
        for how, times in self.lost.items():
            if times >= MOST[how]:
                raise Lost(f"was not run: {times} calls before it {how}", how)
        try:
            self.open()
            return self._ask(kind, fields, tensors, Limit(self.limit, self.limit))
        except WireError as error:
            self.end()
            raise self._note_loss(
                f"sent an invalid answer: {error}", "sent an invalid answer"
            ) from error
        except Lost as lost:
            raise self._note_loss(str(lost), lost.how) from lost
        except CallableError as error:
            again = f"ended its process, and {error} the next time"
            raise self._note_loss(again, "ended the process") from error

    def spoil(self, sentence: str) -> Lost:
        """The answer of this process was none, as who reads it has seen."""
        self.end()
        return self._note_loss(f"sent an invalid answer: {sentence}", "sent an invalid answer")

    def lose(self, sentence: str) -> Lost:
        """This process says that one of several has ended: so do all."""
        self.end()
        return self._note_loss(sentence, "ended the process")

    def _note_loss(self, sentence: str, how: How) -> Lost:
        self.lost[how] += 1
        self.last_loss = sentence
        return Lost(sentence, how)

    def _start(self) -> None:
        """Start a process, within walls where the system has them."""
        first = None
        for walls in self.ways:
            self._running = self._fork(walls)
            frame = self._hear(Limit(_IMPORT_SECONDS, _IMPORT_SECONDS))
            why = frame.field("without_walls", Text | None)
            self.without_walls = first = first or why
            if why is None or (not walls and not self.required):
                return
            if self.required:
                raise NoSandboxError(why)
            self.end()

    def _fork(self, walls: bool) -> _Running:
        requests, to_it = os.pipe()
        from_it, answers = os.pipe()
        ended, status = os.pipe()
        said, printed = os.pipe()
        theirs = (requests, answers, status, printed)
        try:
            pid = zygote().fork(self.sight.view, self.sight.paths, walls, theirs, self.shards)
        finally:
            for one in theirs:
                os.close(one)
        os.set_blocking(to_it, False)
        watch = Watch(pid, Limit(self.limit, self.limit))
        return _Running(watch, 2 if walls else 1, to_it, from_it, ended, said)

    def _ask(
        self, kind: str, fields: Mapping[str, Any], tensors: Mapping[str, Tensor], limit: Limit
    ) -> Frame:
        number = next(self._numbers)
        request = pack(kind, {**fields, "number": number}, tensors)
        frame = self._hear(limit, request)
        if frame.field("number", int) != number:
            raise WireError("an answer to another request")
        return frame

    def _hear(self, limit: Limit, request: bytes = b"") -> Frame:
        """The next frame, after this request. Raises Lost and WireError."""
        running = self._running
        assert running is not None
        left = memoryview(request)
        running.watch.restart(limit)
        counted = time.monotonic()
        while True:
            frame = running.parser.next()
            if frame is not None:
                if left:
                    raise WireError("an answer before the request was read")
                return frame
            pause = min(running.watch.pause, 0.1)
            read = [running.answers, running.printed, running.status]
            ready, writable, _ = select.select(read, [running.requests] if left else [], [], pause)
            if writable:
                with contextlib.suppress(BrokenPipeError):
                    left = left[os.write(running.requests, left[: 1 << 16]) :]
            if running.printed in ready:
                self._show(os.read(running.printed, 1 << 16))
            if running.answers in ready and (piece := os.read(running.answers, 1 << 16)):
                running.parser.add(piece)
            elif running.answers in ready or running.status in ready:
                how = _how(running)
                self._show_rest(running)
                self.end()
                raise Lost(how, "ended the process")
            passed = running.watch.look()
            if passed is not None:
                self.end()
                raise Lost(f"did not return: {passed}", "did not return")
            if time.monotonic() - counted > _COUNTED_EVERY:
                self._check_bounds(running)
                counted = time.monotonic()

    def _check_bounds(self, running: _Running) -> None:
        """Raises Lost for processes that are too many or hold too much memory together."""
        view, processes = self.sight.view, running.watch.processes
        held = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                held += process.memory_info().rss
        why = None
        if len(processes) > view.processes:
            why = f"{len(processes)} processes; {view.processes} are allowed"
        elif held > view.memory:
            why = f"{held >> 20} MiB of memory; {view.memory >> 20} are allowed"
        if why is not None:
            self.end()
            raise Lost(f"used {why}", "used too much")

    def _show(self, piece: bytes) -> None:
        """Show the function's output, as text alone, on standard error."""
        room = _MOST_PRINTED - self._shown
        if not piece or room <= 0:
            return
        text = wire.printable(piece.decode("utf-8", "replace"))[:room]
        self._shown += len(text)
        sys.stderr.write(text)
        if self._shown >= _MOST_PRINTED:
            sys.stderr.write("\n… (it prints more, which is not shown)\n")
        sys.stderr.flush()

    def _show_rest(self, running: _Running) -> None:
        os.set_blocking(running.printed, False)
        with contextlib.suppress(OSError):
            while piece := os.read(running.printed, 1 << 16):
                self._show(piece)


def _how(running: _Running) -> str:
    """How a process ended that has closed its side, or whose end is told."""
    within = " within an answer" if running.parser.inside else ""
    watch = Watch(running.watch.pid, _END)
    try:
        limits.until(lambda: select.select([running.status], [], [], 0)[0], watch, "its end")
    except LimitPassed:
        return "closed its side of the connection"
    data = os.read(running.status, 4)
    if len(data) < 4:
        return f"ended the process{within}"
    (code,) = struct.unpack("=i", data)
    if code >= 0:
        return f"ended the process{within} with status {code}"
    try:
        return f"ended the process{within}: {signal.Signals(-code).name}"
    except ValueError:
        return f"ended the process{within}: signal {-code}"


_KIND = Literal[
    "POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD"
]  # fmt: skip
# Of a signature: name, kind, and whether there is a default; None: there is no signature.
_PARAMETERS = Annotated[list[tuple[Text, _KIND, bool]], Meta(max_length=1000)] | None


def _parameters(frame: Frame) -> list[tuple[str, str, bool]] | None:
    """Those of a signature. Raises WireError if it is none."""
    found: list[tuple[str, str, bool]] | None = frame.field("parameters", _PARAMETERS)
    for name, kind, default in found or ():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise WireError(f"a parameter named {wire.show(name)}")
        if default and kind.startswith("VAR"):
            raise WireError("a default of a parameter that takes any number")
    return found
