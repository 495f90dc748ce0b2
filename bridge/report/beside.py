"""Work that goes on in a thread beside the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from bridge.interrupt import unseen_by_children

T = TypeVar("T")


class Beside(Generic[T]):
    """A call in a thread of its own, which does not keep the process from ending, as one of a
    `ThreadPoolExecutor` would."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        # Processes that it starts end when this process says so, not with an error of its own
        # before.
        with unseen_by_children():
            self._thread.start()

    def _run(self) -> None:
        try:
            found = self._work()
        except BaseException as error:
            self._found.set_exception(error)
        else:
            self._found.set_result(found)

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer."""
        self._thread.join(seconds)

    def result(self) -> T:
        """The call's result, once it has ended; raises the call's error."""
        return self._found.result()
