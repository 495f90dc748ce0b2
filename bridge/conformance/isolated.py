"""Functions that may do anything, run in a process of their own with a limit for each call.

The process (`judged`) says as it goes which vectors it is about to run and what came out of them;
that is read as data (`wire`), nothing of it is run, and it is judged here. When the process passes
a limit it is killed, and when it has ended by itself another goes on with what is left.
"""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.forkserver
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Any, Literal

from bridge import limits
from bridge.conformance import callables, judged, wire
from bridge.conformance.abilities import CallableError
from bridge.conformance.declared import Description, description_of
from bridge.conformance.hearing import Heard, SpoiledError
from bridge.conformance.judge import VectorResult, result_of
from bridge.conformance.profile import CHOICES, Profile
from bridge.conformance.run import Result, gathered
from bridge.conformance.subject import Subject, adapter_of
from bridge.conformance.wire import Frame, WireError
from bridge.interrupt import unseen_by_children
from bridge.limits import Limit, LimitPassed, Watch
from bridge.vectors.model import Family

# Importing a function's module can mean to import a whole framework.
_IMPORT_SECONDS = 180.0
# A process that has said its last word and does not end.
_END = Limit(30.0, 30.0)
# The small calls by which abilities are found: about 30 for each dtype and head size.
_MOST_CALLS = 10_000

How = Literal["did not return", "ended the process", "sent what is no answer"]
# After so many calls of that kind the rest is not run.
_MOST: dict[How, int] = {
    "did not return": 5,
    "ended the process": 20,
    "sent what is no answer": 5,
}


@dataclass(frozen=True)
class Outcome:
    """One implementation in one dtype, with what is known of it."""

    subject: Subject
    description: Description
    result: Result

    def to_json(self) -> dict[str, Any]:
        """`Result.to_json`, with the abilities of a function."""
        able = self.description.abilities
        found = self.result.to_json()
        if able is None:
            return found
        judged = {"judged_alignment": self.subject.causal_alignment}
        return {**found, "abilities": {**able.to_json(), **judged}}


@dataclass(frozen=True)
class _Ended:
    """How a process ended before it had said all: a sentence without its subject."""

    sentence: str
    how: How = "ended the process"


def _converse(
    work: str,
    arguments: tuple[Any, ...],
    limit: float,
    heard: Callable[[Frame], bool],
) -> _Ended | None:
    """Have a process do this work. heard: is given all that it says, and returns whether that was
    all; it may raise WireError for what should not come. Returns how the process ended before
    that."""
    methods = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in methods else "spawn"
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=judged.main, args=(theirs, work, arguments))
    if method == "forkserver":
        # The server has imported PyTorch and has run nothing: a copy of it starts at once.
        context.set_forkserver_preload([judged.__name__])
        with unseen_by_children():
            multiprocessing.forkserver.ensure_running()
        # Ctrl-C does not wait for what the server imports; copies of it do not see it either.
        process.start()
    else:
        with unseen_by_children():
            process.start()
    theirs.close()
    first = max(limit, _IMPORT_SECONDS)
    watch = Watch(process.pid, Limit(first, first))
    parser = wire.Parser()
    try:
        while True:
            frame = parser.next()
            if frame is not None:
                watch.restart(Limit(limit, limit))
                if frame.kind == "end" or heard(frame):
                    return None
                continue
            if wait([ours], min(watch.pause, 0.1)):
                piece = os.read(ours.fileno(), 1 << 16)
                if not piece:
                    return _Ended(_how(process, parser.inside))
                parser.add(piece)
            if (passed := watch.look()) is not None:
                return _Ended(f"did not return: {passed}", "did not return")
    except WireError as error:
        return _Ended(f"sent what is no answer: {error}", "sent what is no answer")
    finally:
        ours.close()
        watch.end()
        process.kill()
        process.join()


def _how(process: Any, inside: bool) -> str:
    """How a process ended that has closed its side."""
    try:
        limits.until(lambda: process.exitcode is not None, Watch(process.pid, _END), "its end")
    except LimitPassed:
        return "closed its side of the connection"
    code = process.exitcode
    within = " within an answer" if inside else ""
    if code < 0:
        try:
            return f"ended the process{within}: {signal.Signals(-code).name}"
        except ValueError:
            return f"ended the process{within}: signal {-code}"
    return f"ended the process{within} with status {code}"


def describe(subject: Subject, device: str, asked: tuple[str, ...], limit: float) -> Description:
    """What the subject takes, of the dtypes asked for. limit: as of `run_isolated`. Raises
    CallableError for a function that is not there or cannot be called as SDPA is. One that hangs,
    or ends the process, when it is tried counts as taking all that its signature has: the vectors
    will show what it does."""
    why = None
    for try_it in (True, False):
        found: list[Description] = []
        calls = 0

        def heard(frame: Frame, found: list[Description] = found) -> bool:
            nonlocal calls
            if frame.kind == "refused":
                raise CallableError(wire.text(frame.field("sentence"), "a sentence"))
            if frame.kind == "imported":
                calls += 1
                if calls > _MOST_CALLS:
                    raise WireError(f"word of more than {_MOST_CALLS} small calls")
                return False
            if frame.kind != "described":
                raise WireError(f"{wire.shown(frame.kind)} where a description was to come")
            function = wire.flag(frame.field("function"), "function")
            if function and not callables.is_callable_name(subject.name):
                raise WireError("a function for a built-in adapter")
            description = description_of(frame.field("description"), function)
            found.append(description)
            return True

        ended = _converse("describe", (subject, device, asked, try_it), limit, heard)
        if found:
            (description,) = found
            if why is not None and description.abilities is not None:
                able = replace(description.abilities, presumed=f"a small call {why}")
                description = replace(description, abilities=able)
            return description
        why = "ended without a description" if ended is None else ended.sentence
        if not calls:
            raise CallableError(f"importing it {why}")
    raise CallableError(str(why))


def _profile(subject: Subject, dtype: str, device: str) -> Profile | None:
    """By which it is judged; None: somebody's adapter object, which says that itself."""
    if subject.profile is not None:
        return CHOICES[subject.profile](dtype)
    if not callables.is_callable_name(subject.name):
        return adapter_of(subject).profile(dtype, device)
    return None if subject.abilities is None else CHOICES["generous"](dtype)


def run_isolated(
    subject: Subject, families: Iterable[Family], dtype: str, device: str, limit: float
) -> Result:
    """`run`, in a process of its own. limit: seconds of processor time that a call may take, and
    seconds in which it may use none. Raises CallableError where the adapter itself fails."""
    vectors = [vector for family in families for vector in family.vectors]
    results: dict[str, VectorResult] = {}
    alone: set[str] = set()
    profile = _profile(subject, dtype, device)
    counts = dict.fromkeys(_MOST, 0)
    while left := [vector for vector in vectors if vector.id not in results]:
        heard = Heard(left, dtype, frozenset(alone), profile)
        arguments = (subject, left, dtype, device, frozenset(alone))
        try:
            ended = _converse("run", arguments, limit, heard)
        except SpoiledError:
            ended = _Ended("left the GPU unusable")
        results |= heard.results
        profile = heard.profile
        if ended is None:
            if heard.results.keys() >= {vector.id for vector in left}:
                break
            ended = _Ended("ended before all vectors were run", "sent what is no answer")
        running = [vector.id for vector in heard.running]
        if not running:
            raise CallableError(f"{ended.sentence} outside of a call")
        counts[ended.how] += 1
        if len(running) > 1 and ended.how != "did not return":
            # Which of them was it?
            alone.update(running)
            running = []
        sentence = ended.sentence
        if len(running) > 1:
            sentence += f", for one of {len(running)} vectors that were given at once"
        blamed = dict.fromkeys(running, sentence)
        if counts[ended.how] >= _MOST[ended.how]:
            rest = f"was not run: {counts[ended.how]} calls before it {ended.how}"
            blamed = {v.id: blamed.get(v.id, rest) for v in left if v.id not in results}
        results |= {
            vector.id: result_of(vector, "failed", reason=blamed[vector.id], ratio=math.inf)
            for vector in left
            if vector.id in blamed
        }
    name = profile.name if profile is not None else ""
    return gathered(subject.name, dtype, device, name, vectors, results.values())
