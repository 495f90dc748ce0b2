"""Functions that may do anything, run in a process of their own with a time limit for each call.

The process sends what it finds as it goes, and which vectors it is about to run. When it is silent
for too long it is killed, and when it has ended by itself another goes on with what is left.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, cast

import torch

from bridge.conformance import abilities, callables, libraries
from bridge.conformance.abilities import Abilities, CallableError
from bridge.conformance.adapter import ALL_DTYPES, Adapter
from bridge.conformance.batch import said
from bridge.conformance.judge import VectorResult, result_of
from bridge.conformance.profile import CHOICES
from bridge.conformance.run import Result, gathered, plan, run_job
from bridge.vectors.model import Family, Vector

# Importing a function's module can mean to import a whole framework.
_IMPORT_SECONDS = 180.0
# After so many calls that did not return, or ended the process, the rest is not run.
_MOST_HANGS, _MOST_DEATHS = 5, 20


@dataclass(frozen=True)
class Subject:
    """What is run: a built-in adapter's name, or that of a function or adapter object
    (`callables.find`). profile: of `CHOICES`, None: its own; without: abilities that it is declared
    to lack; abilities: what was found of a function; undeclared: known wrong answers and refusals
    are not declared, but fail."""

    name: str
    profile: str | None = None
    without: tuple[str, ...] = ()
    abilities: Abilities | None = None
    undeclared: bool = False


@dataclass(frozen=True)
class Description:
    """What a subject says of itself: dtypes that it takes; abilities, of a function alone."""

    dtypes: tuple[str, ...]
    abilities: Abilities | None = None


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
        return found if able is None else {**found, "abilities": able.to_json()}


def adapter_of(subject: Subject) -> Adapter:
    """The adapter of a subject whose abilities, if it is a function, are known. Raises
    CallableError where there is none."""
    found: Any
    if not callables.is_callable_name(subject.name):
        found = libraries.find(subject.name)
    else:
        found = callables.find(subject.name)
        if subject.abilities is not None:
            able = subject.abilities.without(subject.without)
            make = CHOICES[subject.profile or "generous"]
            function = callables.CallableAdapter(subject.name, found, able, make)
            function.declared = not subject.undeclared
            return function
    if subject.undeclared and hasattr(found, "declared"):
        found.declared = False
    adapter: Adapter = found
    return adapter if subject.profile is None else _with_profile(adapter, subject.profile)


def _with_profile(adapter: Adapter, profile: str) -> Adapter:
    """The adapter, judged by another profile."""
    other: Any = copy.copy(adapter)
    other.profile = lambda dtype, device: CHOICES[profile](dtype)
    adapted: Adapter = other
    return adapted


# --- in the process -------------------------------------------------------------------------------


def _child(connection: Connection, work: str, arguments: tuple[Any, ...]) -> None:
    # What the function prints must not end up in what is printed for the user.
    os.dup2(2, 1)

    def send(*message: Any) -> None:
        connection.send_bytes(pickle.dumps(message))

    try:
        (_describe if work == "describe" else _run)(send, *arguments)
    except CallableError as error:
        send("refused", str(error))
    except KeyboardInterrupt:
        # Of the user, who sees that the command ends, or raised by the function itself.
        os._exit(130)
    except (Exception, SystemExit) as error:
        send("refused", f"its adapter raised {type(error).__name__}: {said(error)}")
    send("end")


def _describe(
    send: Any, subject: Subject, device: str, asked: tuple[str, ...], try_it: bool
) -> None:
    if not callables.is_callable_name(subject.name):
        send("described", Description(libraries.find(subject.name).dtypes))
        return
    found = callables.find(subject.name)
    if callables.is_adapter(found):
        if subject.without:
            raise CallableError(
                "is an adapter, which says itself what it lacks; --without is for functions"
            )
        unknown = [d for d in found.dtypes if d not in ALL_DTYPES]
        if unknown:
            known = ", ".join(ALL_DTYPES)
            raise CallableError(f"its dtypes have {unknown[0]!r}; {known} are accepted")
        send("described", Description(tuple(found.dtypes)))
        return
    send("imported")
    function = cast(abilities.Function, found)
    if try_it:
        able = abilities.probe(function, device, asked, lambda: send("imported"))
    else:
        able = abilities.presume(function, asked, "it could not be tried")
    send("described", Description(able.dtypes, able))


def _run(
    send: Any,
    subject: Subject,
    vectors: Sequence[Vector],
    dtype: str,
    device: str,
    alone: frozenset[str],
) -> None:
    adapter = adapter_of(subject)
    found, jobs = plan(adapter, vectors, dtype, device, alone=alone)
    send("planned", found, adapter.profile(dtype, device).name)
    for job in jobs:
        send("start", [vector.id for vector in job])
        results = run_job(adapter, job, dtype, device, details=True)
        if not _usable(device):
            send("spoiled")
            os._exit(0)
        send("done", results)


def _usable(device: str) -> bool:
    """Whether a GPU can go on: after an access to memory that is not there, it cannot."""
    if not device.startswith("cuda"):
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


# --- around it ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ended:
    """How a process ended before it had said all: a sentence; hung: it was killed."""

    sentence: str
    hung: bool = False


def _messages(
    work: str, arguments: tuple[Any, ...], limit: float
) -> Iterator[tuple[Any, ...] | _Ended]:
    """What a process for this work sends, or how it ended."""
    methods = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in methods else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        # The server has imported PyTorch and has run nothing: a copy of it starts at once.
        context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    allowed = max(limit, _IMPORT_SECONDS)
    try:
        while True:
            if not ours.poll(allowed):
                yield _Ended(f"did not return within {allowed:g} s", hung=True)
                return
            message = pickle.loads(ours.recv_bytes())
            if message[0] == "end":
                return
            allowed = limit
            yield message
    except (EOFError, OSError):
        process.join(10)
        yield _Ended(_how(process.exitcode))
    finally:
        ours.close()
        process.kill()
        process.join()


def _how(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            return f"ended the process: {signal.Signals(-exitcode).name}"
        except ValueError:
            return f"ended the process: signal {-exitcode}"
    return f"ended the process with status {exitcode}"


def describe(subject: Subject, device: str, asked: tuple[str, ...], limit: float) -> Description:
    """What the subject takes, of the dtypes asked for. Raises CallableError for a function that is
    not there or cannot be called as SDPA is. One that hangs, or ends the process, when it is tried
    counts as taking all that its signature has: the vectors will show what it does."""
    why = None
    for try_it in (True, False):
        imported = False
        for message in _messages("describe", (subject, device, asked, try_it), limit):
            if isinstance(message, _Ended):
                why = message.sentence
                if not imported:
                    raise CallableError(f"importing it {why}")
            elif message[0] == "refused":
                raise CallableError(message[1])
            elif message[0] == "described":
                found: Description = message[1]
                if why is not None and found.abilities is not None:
                    able = replace(found.abilities, presumed=f"a small call {why}")
                    found = replace(found, abilities=able)
                return found
            imported = True
    raise CallableError(str(why))


def run_isolated(
    subject: Subject, families: Iterable[Family], dtype: str, device: str, limit: float
) -> Result:
    """`run`, in a process of its own. limit: seconds that a call, judging included, may take.
    Raises CallableError where the adapter itself fails."""
    vectors = [vector for family in families for vector in family.vectors]
    results: dict[str, VectorResult] = {}
    alone: set[str] = set()
    profile = ""
    hangs = deaths = 0
    while left := [vector for vector in vectors if vector.id not in results]:
        running: list[str] = []
        ended: _Ended | None = None
        arguments = (subject, left, dtype, device, frozenset(alone))
        for message in _messages("run", arguments, limit):
            if isinstance(message, _Ended):
                ended = message
            elif message[0] == "refused":
                raise CallableError(message[1])
            elif message[0] == "planned":
                results |= {result.id: result for result in message[1]}
                profile = message[2]
            elif message[0] == "start":
                running = message[1]
            elif message[0] == "spoiled":
                ended = _Ended("left the GPU unusable")
                break
            elif message[0] == "done":
                results |= {result.id: result for result in message[1]}
                running = []
        if ended is None:
            break
        if not running:
            raise CallableError(f"{ended.sentence} outside of a call")
        hangs, deaths = hangs + ended.hung, deaths + (not ended.hung)
        if len(running) > 1 and not ended.hung:
            # Which of them was it?
            alone.update(running)
            running = []
        sentence = ended.sentence
        if len(running) > 1:
            sentence += f", for one of {len(running)} vectors that were given at once"
        blamed = dict.fromkeys(running, sentence)
        if hangs >= _MOST_HANGS or deaths >= _MOST_DEATHS:
            kind = "did not return" if hangs >= _MOST_HANGS else "ended the process"
            count = hangs if hangs >= _MOST_HANGS else deaths
            rest = f"was not run: {count} calls before it {kind}"
            blamed = {v.id: blamed.get(v.id, rest) for v in left if v.id not in results}
        results |= {
            vector.id: result_of(vector, "failed", reason=blamed[vector.id], ratio=float("inf"))
            for vector in left
            if vector.id in blamed
        }
    return gathered(subject.name, dtype, device, profile, vectors, results.values())
