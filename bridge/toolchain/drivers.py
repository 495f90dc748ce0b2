"""The running Leans that build modules; each serves request after request (`Bridge.Build`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.process import LeanProcess

# The embedded Lean has 2 GiB at most; a driver near that is replaced by a fresh one.
MEMORY_LIMIT = 1_700_000_000


class Drivers:
    """As many drivers as requests at the same time, each kept for later requests.

    Requests may come from several threads. `start` starts a driver. stops: how often they have all
    been ended.
    """

    def __init__(self, start: Callable[[], LeanProcess]) -> None:
        self._start = start
        self._idle: list[LeanProcess] = []
        self._busy: set[LeanProcess] = set()
        self._lock = threading.Lock()
        self.stops = 0

    def warm(self) -> None:
        """See to it that a driver waits for the next request."""
        with self._lock:
            if not self._idle:
                self._idle.append(self._start())

    def ask(self, request: str, stops: int | None = None) -> list[dict[str, Any]]:
        """The answers to a request, up to the one that is "done".

        stops: the value of `self.stops` when the work began that this is a part of; None: do not
        compare it. Raises ToolchainError if the driver ends before that, by `stop` too, and without
        asking one if all have been ended since the work began.
        """
        with self._lock:
            if stops is not None and stops != self.stops:
                raise ToolchainError("Lean was ended before it was asked")
            driver = self._idle.pop() if self._idle else None
            if driver is not None and driver.process.poll() is not None:
                driver.__exit__(None, None, None)
                driver = None
            driver = driver or self._start()
            self._busy.add(driver)
        kept = False
        try:
            driver.send(request)
            answers = driver.answers_until("done")
            kept = driver.memory() <= MEMORY_LIMIT
            return answers
        finally:
            with self._lock:
                self._busy.remove(driver)
                if kept:
                    self._idle.append(driver)
            if not kept:
                driver.__exit__(None, None, None)

    def stop(self) -> None:
        """End them all. Those that are at work are cleared away by the threads that asked them."""
        with self._lock:
            self.stops += 1
            for driver in self._busy:
                driver.process.kill()
            idle, self._idle = self._idle, []
        for driver in idle:
            driver.__exit__(None, None, None)

    def memory(self) -> int:
        """Resident memory of all in bytes."""
        with self._lock:
            return sum(driver.memory() for driver in (*self._idle, *self._busy))
