"""Processes of one group of gloo on this machine, which all tests of a session share: starting one
takes seconds, a job milliseconds.

They meet by a file and talk over the loopback interface. Nothing here ends by a clock but the wait
for a process that hangs, by the group's timeout.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

# Long enough for a machine that does much else.
TIMEOUT = timedelta(minutes=10)
_context = multiprocessing.get_context("forkserver")
# Imported once; the processes are forked from the one that has imported them.
_context.set_forkserver_preload(["torch", "pyimpl.distributed"])


class ProcessEnded(RuntimeError):
    """A process of the pool is no longer there."""


class Failed(RuntimeError):
    """A job ended by an exception in a process; the message has its traceback."""


class Pool:
    """`count` processes with a group of the first n of them for each n up to `count`."""

    def __init__(self, count: int, timeout: timedelta = TIMEOUT) -> None:
        self.count = count
        self.folder = Path(tempfile.mkdtemp(prefix="processes-"))
        self.connections: list[Connection] = []
        self.processes = []
        for rank in range(count):
            ours, theirs = _context.Pipe()
            process = _context.Process(
                target=_serve, args=(rank, count, str(self.folder / "store"), timeout, theirs),
                daemon=True,
            )  # fmt: skip
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)
        atexit.register(self.close)

    def start(self, processes: int, job: Callable[..., Any], *args: Any) -> None:
        """Have `job(rank, group, *args)` run in the first `processes` processes. It must be a
        function of a module."""
        for connection in self.connections[:processes]:
            connection.send_bytes(pickle.dumps((processes, job, args)))

    def result(self, rank: int) -> Any:
        """The job's result in a process.

        Raises:
            Failed: it raised an exception there. ProcessEnded: the process did end.
        """
        try:
            answer, failure = pickle.loads(self.connections[rank].recv_bytes())
        except (EOFError, ConnectionResetError) as error:
            raise ProcessEnded(f"process {rank} of the pool ended") from error
        if failure is not None:
            raise Failed(f"in process {rank}: {failure}")
        return answer

    def run(self, processes: int, job: Callable[..., Any], *args: Any) -> list[Any]:
        """The results of `job(rank, group, *args)` in each of the first `processes` processes."""
        self.start(processes, job, *args)
        found, failures = [], []
        for rank in range(processes):
            try:
                found.append(self.result(rank))
            except Failed as failure:
                failures.append(str(failure))
        if failures:
            raise Failed("\n".join(failures))
        return found

    def close(self) -> None:
        """End the processes."""
        for connection in self.connections:
            connection.close()
        for process in self.processes:
            process.join(1.0)
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)


def _serve(rank: int, count: int, store: str, timeout: timedelta, jobs: Connection) -> None:
    """The work of a process: jobs, until there is nobody to send any."""
    torch.set_num_threads(1)
    # Otherwise gloo asks for the address of the machine's name, which need not have one.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, count), rank=rank, world_size=count, timeout=timeout
    )
    groups = [dist.new_group(list(range(n + 1)), timeout=timeout) for n in range(count)]
    while True:
        try:
            processes, job, args = pickle.loads(jobs.recv_bytes())
        except (EOFError, ConnectionResetError):
            return
        answer, failure = None, None
        try:
            answer = job(rank, groups[processes - 1], *args)
        except Exception:
            failure = traceback.format_exc()
        jobs.send_bytes(pickle.dumps((answer, failure)))


_pools: dict[int, Pool] = {}


def shared_pool(count: int = 4) -> Pool:
    """The pool of this session, made where there is none or one of its processes has ended."""
    pool = _pools.get(count)
    if pool is None or not all(process.is_alive() for process in pool.processes):
        if pool is not None:
            pool.close()
        pool = _pools[count] = Pool(count)
    return pool
