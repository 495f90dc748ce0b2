"""Ctrl-C: children do not see it, so that none prints a traceback; their parent ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker

# The status of a process that Ctrl-C ended, as shells have it.
STATUS = 130


@contextmanager
def unseen_by_children() -> Iterator[None]:
    """A block in which threads or child processes are started: SIGINT never reaches them, nor
    processes that they start, also while they import. For this process it waits until the block
    ends."""
    # It lets SIGINT through again once it has started.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_children() -> None:
    """Kill the processes below this one. The tracker of multiprocessing stays: it clears away."""
    # Only commands that start processes need it.
    import psutil

    # Private, and so perhaps gone one day; without it semaphores stay until the next start.
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    for process in psutil.Process().children(recursive=True):
        if process.pid != tracker:
            with suppress(psutil.Error):
                process.kill()
