"""A process that has imported PyTorch, and forks for each session with a function.

    python -I -c "…" SOCKET      (`bridge.conformance.sandbox.zygote`)

A message on the socket is JSON: the paths that modules are found in, the view (`walls.View`),
whether walls are asked for, and for a function of shards these (`shards.Shards`); with it come four
pipes: requests, answers, the end's status (4 bytes) and the function's output. The answer is the
number of the process to watch. When the socket is closed it ends its sessions, and itself once it
has waited for them: their processor time is then its own, and its parent's.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

import torch

from . import (
    frames,
    # Imported for sessions, from which its file is hidden; unused here (F401).
    known,  # noqa: F401
    ranks,
    served,
    shards,
    walls,
)

MESSAGE = 1 << 20
# Seconds by the clock in which sessions that were killed are gone, or are left.
_ENDING = 1.0


def main(number: int) -> NoReturn:
    """Serve the socket with this number until it is closed."""
    # The judge ends it; Ctrl-C is for the judge.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    walls.adopts()
    keepers: list[int] = []
    with socket.socket(fileno=number) as to_judge:
        while True:
            message, descriptors, _, _ = socket.recv_fds(to_judge, MESSAGE, 4)
            if not message:
                _end(keepers)
            pid = os.fork()
            if pid == 0:
                to_judge.close()
                _keep(json.loads(message), descriptors)
            for one in descriptors:
                os.close(one)
            to_judge.send(struct.pack("=i", pid))
            keepers.append(pid)
            _reap(keepers)


def _reap(keepers: list[int]) -> bool:
    """Sessions that have ended; whether that was all."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid in keepers:
            keepers.remove(pid)


def _end(keepers: list[int]) -> NoReturn:
    """End the sessions, and this process."""
    for pid in keepers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    last = time.monotonic() + _ENDING
    while not _reap(keepers) and time.monotonic() < last:
        time.sleep(0.01)
    os._exit(0)


def _keep(given: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the keeper of a session."""
    walls.dies_with_parent()
    os.setsid()
    requests, answers, status, printed = descriptors
    view = walls.View.of(given["view"])

    def ready(why: str | None) -> None:
        frames.write(answers, "ready", {"without_walls": why})

    def call() -> None:
        os.close(status)
        _settle(requests, answers, printed, given["paths"])
        served.serve(3, 4, _session(given))

    def report_end(code: int) -> None:
        os.write(status, struct.pack("=i", code))

    work = walls.Work(ready, call, report_end)
    try:
        (walls.run_enclosed if given["walls"] else walls.alone)(view, work)
    finally:
        os._exit(0)


def _session(given: dict[str, Any]) -> served.Answering:
    if given["shards"] is None:
        return served.Session()
    return ranks.Ranks(shards.Shards(**given["shards"]))


def _settle(requests: int, answers: int, printed: int, paths: list[str]) -> None:
    """Streams, environment and paths of the function's process: requests are 3, answers 4."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = [os.dup(one) for one in (nothing, printed, printed, requests, answers)]
    # Higher than those that they go to.
    kept = [_above(one, len(kept)) for one in kept]
    for number, one in enumerate(kept):
        os.dup2(one, number)
    os.closerange(len(kept), 1 << 12)
    environment = {n: x for n, x in os.environ.items() if n.startswith(walls.KEPT)}
    os.environ.clear()
    os.environ.update(
        environment,
        PATH="/usr/local/bin:/usr/bin:/bin",
        HOME="/tmp",
        TMPDIR="/tmp",
        TORCHINDUCTOR_CACHE_DIR="/tmp/inductor",
        TRITON_CACHE_DIR="/tmp/triton",
        # PyTorch's profiler is to print nothing (`borrowed`).
        KINETO_LOG_LEVEL="99",
    )
    # Triton reads this when it is imported: without a GPU its kernels are interpreted.
    if "TRITON_INTERPRET" not in environment and not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"
    sys.path[:] = paths
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def _above(number: int, least: int) -> int:
    while number < least:
        number = os.dup(number)
    return number
