"""A function of shards is called by several processes, and answers as one of whole tensors.

For a session (`served`) this process, which imports nothing of the function's, forks one process
for each rank before it is asked for anything. Each is as `torchrun` starts it: RANK, WORLD_SIZE and
the like are in its environment, and `torch.distributed` is ready, on gloo. Then it imports the
function and answers the requests of a session itself. A request of the judge goes to all of them,
each with its shards; their answers, joined, are one answer. The output gradients go the same way.

The processes talk over the loopback interface of the sandbox, whose network has no other.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import frames, served, walls
from .served import Request
from .shards import Shards, Split, fits, join, take

# The arguments that a function may ask for by name, beside those that the judge gives.
GROUP, LENGTHS = "group", ("q_len", "kv_len")
# The names of an output that is returned alone or before others.
_OUTPUTS = ("result", "result 0")
# The kinds of errors by which a function refuses its arguments, before anything is sent.
_REFUSALS = {one.__name__ for one in served.REFUSALS}
# Seconds by the clock in which, after one process has raised, the others raise as well or are
# taken to wait for it. The verdict on an error does not depend on them.
_GRACE = 1.0
# In which a process whose pipe is closed has ended.
_ENDING = 1.0
# The judge's limits end a process that hangs, long before the group does.
_TIMEOUT = timedelta(days=1)
_PORT = "29500"


class Gone(Exception):
    """A process that is no longer there. The message says which, and how it ended."""


class Wrong(Exception):
    """Answers that are none of one function. The message is a sentence without its subject."""


@dataclass(frozen=True)
class _Rank:
    """The process of one rank: its number, and the pipes to and from it."""

    pid: int
    requests: int
    answers: int


class Ranks:
    """The processes of one function."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards
        # Of processes that are forked, threads of these are not.
        torch.set_num_threads(1)
        self.ranks: list[_Rank] = []
        self.spoiled = False
        self.opened: dict[str, Any] = {}
        self.lengths: tuple[str, ...] = ()
        self.split = Split((), ())

    def answer(self, kind: str, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        """The answer to a request, as `served` has them; "lost" where a process has ended, and
        "wrong" for answers of several processes that do not fit together."""
        try:
            if kind == "open":
                self.opened = fields
                return self._open()
            if kind == "call":
                return self._call(fields, tensors)
            return self._differentiate(fields, tensors)
        except Gone as error:
            return "lost", {"sentence": frames.cut(str(error))}, {}
        except Wrong as error:
            return "wrong", {"sentence": frames.cut(str(error))}, {}

    def _open(self) -> Request:
        """Start the processes, and import the function in each."""
        self.ranks, self.spoiled = [], False
        # This one has the whole tensors, which a process of the function has to ask others for.
        walls.dumpable(False)
        folder = tempfile.mkdtemp(prefix="ranks-")
        for rank in range(self.shards.processes):
            self.ranks.append(self._fork(rank, os.path.join(folder, "store")))
        found = self._ask("open", [self.opened] * len(self.ranks), [{}] * len(self.ranks))
        for answer in found:
            if answer is not None and answer[0] == "refused":
                return answer
        kind, told, _ = _present(found)[0]
        parameters = told["parameters"]
        named = {one[0] for one in parameters or ()}
        self.lengths = tuple(name for name in LENGTHS if name in named)
        if parameters is not None:
            parameters = [one for one in parameters if one[0] not in (GROUP, *LENGTHS)]
        any_length = self.lengths == LENGTHS
        multiple = 1 if any_length else self.shards.multiple
        return kind, {"parameters": parameters, "multiple": multiple}, {}

    def _call(self, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        query, key = tensors["0"], tensors["1"]
        lengths = dict(zip(LENGTHS, (query.shape[2], key.shape[2]), strict=True))
        self.split = Split(*(self.shards.places(length) for length in lengths.values()))
        options = {**fields["options"], **{name: lengths[name] for name in self.lengths}}
        asked = [{**fields, "options": options}] * len(self.ranks)
        given = [self.split.take(tensors, r) for r in range(len(self.ranks))]
        found = self._ask_and_agree("call", asked, given)
        if found[0][0] == "raised":
            return found[0]
        told = [one[1] for one in found]
        numbers: dict[str, Tensor] = {}
        results = [one["result"] for one in told]
        described = self._join(results, [one[2] for one in found], numbers)
        return (
            "returned",
            {
                "result": described,
                "cached": all(one["cached"] for one in told),
                "changed": _together(told, "changed"),
                "not_new": next((x["not_new"] for x in told if x["not_new"] is not None), None),
                "borrowed": _together(told, "borrowed"),
            },
            numbers,
        )

    def _differentiate(self, fields: dict[str, Any], tensors: dict[str, Tensor]) -> Request:
        given = [
            {place: take(x, self.split.queries, r) for place, x in tensors.items()}
            for r in range(len(self.ranks))
        ]
        found = self._ask_and_agree("differentiate", [fields] * len(self.ranks), given)
        if found[0][0] == "raised":
            return found[0]
        numbers = {}
        for name in fields["by"]:
            shards = [one[2].get(name) for one in found]
            if all(x is None for x in shards):
                continue
            there = [x for x in shards if x is not None]
            if len(there) < len(shards):
                raise Wrong(f"gave a gradient in some of its {len(shards)} processes alone")
            places = self.split.of(name)
            # Of a tensor that every process has whole each has a part of the gradient.
            numbers[name] = sum(there[1:], there[0]) if places is None else join(there, places)
        return "differentiated", {"changed": _together([x[1] for x in found], "changed")}, numbers

    def _join(
        self, parts: Sequence[Any], given: Sequence[dict[str, Tensor]], numbers: dict[str, Tensor]
    ) -> Any:
        """The results of all, described as one."""
        first = parts[0]
        if any(part.keys() != first.keys() for part in parts):
            raise Wrong("returned something of another kind in one process than in another")
        if "tuple" in first:
            each = [part["tuple"] for part in parts]
            if any(len(x) != len(each[0]) for x in each):
                raise Wrong("returned tuples of different lengths in its processes")
            return {"tuple": [self._join(x, given, numbers) for x in zip(*each, strict=True)]}
        place = first.get("tensor")
        if place is None:
            return next((part for part in parts if part != first), first)
        places, count = self.split.queries, len(parts)
        shards: list[Tensor] = []
        for r, (part, found) in enumerate(zip(parts, given, strict=True)):
            if part["tensor"] is None:
                # Such as one of another dtype, which the judge tells.
                return part
            shards.append(found[place])
            if not fits(found[place], places[r]):
                if place not in _OUTPUTS:
                    return {**part, "tensor": None}
                shape = tuple(part["shape"])
                raise Wrong(
                    f"returned an output of shape {shape} in process {r} of {count}, which has "
                    f"{len(places[r])} queries"
                )
        if len({(x.dtype, _without_rows(x)) for x in shards}) > 1:
            raise Wrong("returned tensors of different dtypes or sizes in its processes")
        numbers[place] = whole = join(shards, places)
        graph = all(part["graph"] for part in parts)
        return {**first, "shape": list(whole.shape), "graph": graph}

    # --- the processes ----------------------------------------------------------------------------

    def _ask_and_agree(
        self, kind: str, asked: Sequence[dict[str, Any]], tensors: Sequence[dict[str, Tensor]]
    ) -> list[Request]:
        """The answers of all; that of one which raised, alone. Where not all refused their
        arguments the next request gets new processes: messages that these had still to send and
        receive are lost. Raises Gone."""
        if self.spoiled:
            self._end()
            opened, told, _ = self._open()
            if opened != "opened":
                raise Gone(f"raised, and {told['sentence']} the next time that it was imported")
        found = self._ask(kind, asked, tensors)
        raised = [r for r, one in enumerate(found) if one is not None and one[0] == "raised"]
        if not raised:
            return _present(found)
        said, told, _ = next(one for one in found if one is not None and one[0] == "raised")
        if len(raised) < len(found):
            text = f"in process {raised[0]} of {len(found)}: {told['text']}"
            told = {**told, "text": frames.cut(text)}
        kinds = [one[1].get("kind") for one in _present(found)]
        self.spoiled = len(kinds) < len(found) or not set(kinds) <= _REFUSALS
        return [(said, told, {})]

    def _ask(
        self, kind: str, fields: Sequence[dict[str, Any]], tensors: Sequence[dict[str, Tensor]]
    ) -> list[Request | None]:
        """The answer of each process; None of one that goes on while another has raised. Raises
        Gone for one that ended."""
        for r, rank in enumerate(self.ranks):
            with suppress(BrokenPipeError):
                # It has ended, as its other pipe says.
                frames.write(rank.requests, kind, {**fields[r], "number": 0}, tensors[r])
        found: list[Request | None] = [None] * len(self.ranks)
        waiting = {rank.answers: r for r, rank in enumerate(self.ranks)}
        raised = False
        while waiting:
            ready, _, _ = select.select(list(waiting), [], [], _GRACE if raised else None)
            if not ready:
                break
            for one in ready:
                r = waiting.pop(one)
                answer = frames.read(one)
                if answer is None:
                    raise Gone(f"{_how(self.ranks[r].pid)} in process {r} of {len(self.ranks)}")
                found[r] = answer
                raised |= answer[0] == "raised"
        return found

    def _end(self) -> None:
        for rank in self.ranks:
            with suppress(ProcessLookupError):
                os.kill(rank.pid, signal.SIGKILL)
            os.close(rank.requests)
            os.close(rank.answers)
        for rank in self.ranks:
            with suppress(ChildProcessError):
                os.waitpid(rank.pid, 0)

    def _fork(self, rank: int, store: str) -> _Rank:
        theirs, requests = os.pipe()
        answers, to_here = os.pipe()
        pid = os.fork()
        if pid:
            os.close(theirs)
            os.close(to_here)
            return _Rank(pid, requests, answers)
        try:
            walls.dies_with_parent()
            walls.dumpable(True)
            # Those of the others too: the end of a pipe is seen once nobody has it.
            for one in self.ranks:
                os.close(one.requests)
                os.close(one.answers)
            for number in (requests, answers, 3, 4):
                os.close(number)
            self._be(rank, store)
            served.serve(theirs, to_here, _Member())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _be(self, rank: int, store: str) -> None:
        """Do the first steps of `torchrun` and of a script."""
        count = str(self.shards.processes)
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", WORLD_SIZE=count,
            LOCAL_WORLD_SIZE=count, MASTER_ADDR="127.0.0.1", MASTER_PORT=_PORT,
            # Otherwise gloo asks for the address of the machine's name, which need not have one.
            GLOO_SOCKET_IFNAME="lo",
        )  # fmt: skip
        dist.init_process_group(
            "gloo",
            f"file://{store}",
            rank=rank,
            world_size=self.shards.processes,
            timeout=_TIMEOUT,
        )


class _Member(served.Session):
    """One process of the function: it is given the group, if it asks for it."""

    def open(self, name: str, problem: str | None, device: str) -> Request:
        said, told, numbers = super().open(name, problem, device)
        named = {one[0] for one in told.get("parameters") or ()}
        if self.function is not None and GROUP in named:
            self.function = functools.partial(self.function, group=dist.group.WORLD)
        return said, told, numbers


def _present(found: Sequence[Request | None]) -> list[Request]:
    return [one for one in found if one is not None]


def _together(told: Sequence[dict[str, Any]], name: str) -> list[str]:
    return sorted({x for one in told for x in one[name]})


def _without_rows(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:2], *x.shape[3:])


def _how(pid: int) -> str:
    """How a process ended that has closed its side."""
    last = time.monotonic() + _ENDING
    while time.monotonic() < last:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return f"ended the process with status {code}"
            with suppress(ValueError):
                return f"ended the process: {signal.Signals(-code).name}"
            return f"ended the process: signal {-code}"
        time.sleep(0.01)
    return "closed its side of the connection"
