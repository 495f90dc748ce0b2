"""Independent pieces of work on the CPU, one thread each.

PyTorch shares out every single operation among its threads and waits for all of them at its end.
A tile loop is thousands of operations: where another process takes a core for a moment, all wait,
each time. Here each thread takes whole pieces, and PyTorch computes each of them on one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0


def for_each(items: Sequence[T], work: Callable[[T], None], *, threads: bool) -> None:
    """`work(item)` for every item, started in this order, on as many threads as PyTorch has
    (`torch.get_num_threads()`), without autograd.

    Returns when all are done; an exception of one is raised here. Runs them in turn, on this
    thread, unless `threads`, and where there is one item or one thread.
    """
    count = min(torch.get_num_threads(), len(items))
    if not threads or count < 2:
        with torch.no_grad():
            for item in items:
                work(item)
        return
    inference = torch.is_inference_mode_enabled()
    waiting = iter(items)
    taking = threading.Lock()

    def take() -> None:
        # Both modes belong to a thread.
        with torch.inference_mode(inference), torch.no_grad():
            while True:
                with taking:
                    try:
                        item = next(waiting)
                    except StopIteration:
                        return
                work(item)

    working = []
    try:
        for _ in range(count):
            working.append(_workers(torch.get_num_threads()).submit(take))
    except RuntimeError:
        # Python is ending (an `atexit` function is running) and starts nothing any more.
        take()
    for done in working:
        done.result()


def _workers(size: int) -> ThreadPoolExecutor:
    """The threads, started when they are first asked for."""
    global _pool, _size
    with _lock:
        if _pool is None or _size != size:
            pool = ThreadPoolExecutor(size, "pyimpl", _compute_alone)
            started = threading.Barrier(size)
            try:
                waiting = [pool.submit(started.wait) for _ in range(size)]
                for done in waiting:
                    done.result()
            except RuntimeError:
                # The system gives no more threads: those that wait for them wait in vain.
                started.abort()
                pool.shutdown(cancel_futures=True)
                raise
            finally:
                # Each has set the number with which threads new to PyTorch will start.
                torch.set_num_threads(size)
            _pool, _size = pool, size
        return _pool


def _compute_alone() -> None:
    """Have PyTorch run the operations of this thread on this thread."""
    # PyTorch sets a thread up when it is first asked something; that would undo the next line.
    torch.get_num_threads()
    torch.set_num_threads(1)


def _forget() -> None:
    """The threads do not exist in a forked child."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # where there is fork
    os.register_at_fork(after_in_child=_forget)
