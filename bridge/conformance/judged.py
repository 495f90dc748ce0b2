"""What runs in the process of a function that may do anything: it is called there, and judged by
the process that reads its answers (`isolated`).

What it says, in frames of `wire`: of its subject, `imported` whenever a small call begins, and
`described`; of a run, `planned`, with what it does not cover, then of each job `start`, an `answer`
for some or all of its vectors, and `done`, or `spoiled` where the GPU cannot go on. `refused` is
for a subject that cannot be run; `end` comes last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, cast

import torch
from torch import Tensor

from bridge import interpreting
from bridge.conformance import abilities, callables, libraries, wire
from bridge.conformance.abilities import CallableError
from bridge.conformance.adapter import ALL_DTYPES
from bridge.conformance.answers import Answer, answers, jobs_of, not_covered
from bridge.conformance.batch import DTYPES, said
from bridge.conformance.declared import Description, description_as_data, profile_as_data
from bridge.conformance.subject import Subject, adapter_of
from bridge.interrupt import STATUS
from bridge.vectors.model import Vector

Send = Callable[..., None]


def main(connection: Connection, work: str, arguments: tuple[Any, ...]) -> None:
    """Do it, `describe` or `run`, and say on the connection what comes of it."""
    # What the function prints must not end up in what is printed for the user.
    os.dup2(2, 1)
    interpreting.settle()

    def send(kind: str, tensors: dict[str, Tensor] | None = None, **fields: Any) -> None:
        try:
            wire.write(connection.fileno(), kind, fields, tensors)
        except BrokenPipeError:
            # Nobody listens any more.
            os._exit(1)

    try:
        (_describe if work == "describe" else _run)(send, *arguments)
    except CallableError as error:
        send("refused", sentence=wire.cut(str(error)))
    except KeyboardInterrupt:
        # Raised by the function itself: that of the user does not reach this process.
        os._exit(STATUS)
    except (Exception, SystemExit) as error:
        sentence = f"its adapter raised {type(error).__name__}: {said(error)}"
        send("refused", sentence=wire.cut(sentence))
    send("end")


def _describe(
    send: Send, subject: Subject, device: str, asked: tuple[str, ...], try_it: bool
) -> None:
    if not callables.is_callable_name(subject.name):
        found = Description(libraries.find(subject.name).dtypes)
        send("described", description=description_as_data(found), function=False)
        return
    given = callables.find(subject.name)
    if callables.is_adapter(given):
        if subject.without:
            raise CallableError(
                "is an adapter, which says itself what it lacks; --without is for functions"
            )
        unknown = [d for d in given.dtypes if d not in ALL_DTYPES]
        if unknown:
            known = ", ".join(ALL_DTYPES)
            raise CallableError(f"its dtypes have {unknown[0]!r}; {known} are accepted")
        found = Description(tuple(given.dtypes))
        send("described", description=description_as_data(found), function=False)
        return
    send("imported")
    function = cast(abilities.Function, given)
    if try_it:
        able = abilities.probe(function, device, asked, lambda: send("imported"))
    else:
        able = abilities.presume(function, asked, "it could not be tried")
    described = description_as_data(Description(able.dtypes, able))
    send("described", description=described, function=True)


def _run(
    send: Send,
    subject: Subject,
    vectors: Sequence[Vector],
    dtype: str,
    device: str,
    alone: frozenset[str],
) -> None:
    adapter = adapter_of(subject)
    reasons = not_covered(adapter, vectors, dtype, device)
    send(
        "planned",
        not_covered={id: wire.cut(reason) for id, reason in reasons.items()},
        profile=profile_as_data(adapter.profile(dtype, device)),
    )
    covered = [vector for vector in vectors if vector.id not in reasons]
    for number, job in enumerate(jobs_of(covered, alone)):
        send("start", job=number)
        found = answers(adapter, job, dtype, device)
        if not _usable(device):
            send("spoiled")
            os._exit(0)
        for answer in found:
            _send_answer(send, answer)
        send("done", job=number)


def _send_answer(send: Send, answer: Answer) -> None:
    """Numbers of an output and of gradients as they are, a log-sum-exp of another dtype widened."""
    tensors: dict[str, Tensor] = {}
    for n, outputs in enumerate(answer.outputs):
        tensors[f"{n} output"] = outputs.out
        if outputs.lse is not None:
            known = outputs.lse.dtype in DTYPES.values()
            tensors[f"{n} lse"] = outputs.lse if known else outputs.lse.double()
    for n, call in enumerate(answer.gradients):
        tensors |= {f"{n} {name}": torch.from_numpy(x) for name, x in call.items()}
    problem = None if answer.problem is None else wire.cut(answer.problem)
    reasons = [[x and wire.cut(x) for x in each] for each in answer.lse_reasons]
    send("answer", tensors, count=len(answer.vectors), problem=problem, lse_reasons=reasons)


def _usable(device: str) -> bool:
    """Whether a GPU can go on: after an access to memory that is not there, it cannot."""
    if not device.startswith("cuda"):
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True
