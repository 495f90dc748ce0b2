"""Calls with the vectors, spread over the processors."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Self, TypeVar

import torch

from bridge import garbage, interpreting, working_folder
from bridge.interrupt import unseen_by_children
from bridge.vectors.model.attention import Family

# Each process holds PyTorch and the vectors, about half a GB.
_MOST_WORKERS = 16
_MEMORY = 1 << 30

T = TypeVar("T")
R = TypeVar("R")


class WorkerError(RuntimeError):
    """A process that ended before it had done its job."""


class Workers:
    """Processes that call functions with these families. A context manager: they end with it, and
    at once if an exception leaves it."""

    def __init__(self, families: Iterable[Family], device: str, most: int = _MOST_WORKERS) -> None:
        self.number = min(most, _room()) if device == "cpu" else 1
        # Started afresh, not forked: a copy of a process with threads of PyTorch's can hang.
        context = multiprocessing.get_context("spawn")
        # To take the families over is ten times as fast as to load and check them again.
        given = (pickle.dumps(tuple(families)), max(1, _processors() // self.number))
        # multiprocessing starts a process that keeps account of the queue's locks.
        with working_folder.unknown_to_children():
            pool = concurrent.futures.ProcessPoolExecutor(self.number, context, _receive, given)
        self._pool = pool
        self._others = set(multiprocessing.active_children())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            for process in set(multiprocessing.active_children()) - self._others:
                process.kill()
        self._pool.shutdown(cancel_futures=True)

    def pids(self) -> set[int]:
        """The process ids of the workers that run."""
        mine = set(multiprocessing.active_children()) - self._others
        return {process.pid for process in mine if process.pid is not None}

    def each(
        self,
        function: Callable[[T, Sequence[Family]], R],
        arguments: Sequence[T],
        done: Callable[[R], None],
    ) -> None:
        """Call a function of a module with each of the arguments and the families, begun in their
        order; `done` is called with each result, as it is there.

        Raises WorkerError if a worker ends, and an error of a call, after the other calls.
        """
        with working_folder.unknown_to_children(), unseen_by_children():
            futures = {self._pool.submit(_call, function, one): one for one in arguments}
        problem: Exception | None = None
        for future in concurrent.futures.as_completed(list(futures)):
            try:
                result = future.result()
            except BrokenProcessPool as error:
                left = ", ".join(map(str, futures.values()))
                raise WorkerError(
                    f"a worker process ended before its job was done, one of these: {left}"
                ) from error
            except Exception as error:
                problem = problem or error
            else:
                done(result)
            del futures[future]
        if problem is not None:
            raise problem


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _room() -> int:
    """How many workers the processors and the memory of this machine have room for."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(_MOST_WORKERS, _processors(), memory // _MEMORY))


# --- in a worker ----------------------------------------------------------------------------------

# The families that it was given when it started.
_families: tuple[Family, ...] = ()


def _receive(families: bytes, threads: int) -> None:
    global _families
    interpreting.settle()
    # All processes together have a thread for each processor: more would wait for each other.
    torch.set_num_threads(threads)
    with garbage.no_search():
        _families = pickle.loads(families)


def _call(function: Callable[[T, Sequence[Family]], R], argument: T) -> R:
    return function(argument, _families)
