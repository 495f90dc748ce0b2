"""Ctrl-C: children do not see it, so that none prints a traceback; their parent ends them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path

# The status of a process that Ctrl-C ended, as shells have it.
STATUS = 130


@contextmanager
def unseen_by_children() -> Iterator[None]:
    """A block in which threads or child processes are started: SIGINT never reaches them, nor what
    they start, also while they import what they need. For this process it waits until the block
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
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    wanted = [os.getpid()]
    for pid in wanted:
        wanted += children.get(pid, [])
    # Private, and so perhaps gone one day; without it semaphores stay until the next start.
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    for pid in wanted[1:]:
        if pid != tracker:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _parents() -> Iterator[tuple[int, int]]:
    """Each process with its parent."""
    if Path("/proc/self/stat").exists():
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name of the program stands in brackets and may hold anything.
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                yield int(stat.parent.name), parent
        return
    listed = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        pid, parent = map(int, line.split())
        yield pid, parent
