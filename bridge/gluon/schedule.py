"""Partitions as threads of which one at a time runs; a seed chooses which goes on, and when the
asynchronous events happen.

Each operation that another partition could notice is a point at which the scheduler takes over. It
draws one event after another among all that could happen next, a partition going on or an
asynchronous event, until a partition goes on. Nothing sleeps, so the same seed gives the same
schedule, and a state in which nothing can happen is a deadlock for certain.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.gluon.clocks import Clock
from bridge.gluon.faults import Fault

# How likely an event is, relative to others: a schedule draws one of these for each partition, for
# the copies and for the products, so that in many schedules something lags far behind.
_PACES = (0.01, 0.1, 1.0, 1.0)


class Asynchronous(Protocol):
    """A copy or a product that is under way."""

    def step(self) -> bool:
        """Run its next part. Returns whether it was the last."""


class Ended(BaseException):
    """Raised in the partitions of a kernel that another one ended with a fault."""


@dataclass(eq=False)
class Partition:
    """A warp group or warp of a program.

    clock: the events before its next operation. ready: None, or the condition on which it waits,
    and `waits_for` says which. products: its products under way, which end in their order.
    """

    name: str
    clock: Clock
    ready: Callable[[], bool] | None = None
    waits_for: Callable[[], str] = str
    products: deque[Any] = field(default_factory=deque)
    begun: list[Any] = field(default_factory=list)
    writes: deque[Any] = field(default_factory=deque)
    written: list[Any] = field(default_factory=list)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.clock.advance(self)

    def under_way(self) -> str | None:
        """One of its own operations that no wait has ended for certain; None: there is none."""
        left = [*self.begun, *self.written]
        return left[0].who if left else None


class Scheduler:
    """The partitions and the asynchronous events of one program."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._partitions: list[Partition] = []
        self._paces: list[float] = []
        self._copies: list[Asynchronous] = []
        self._copy_pace, self._product_pace = rng.choice(_PACES), rng.choice(_PACES)
        self._fault: BaseException | None = None

    def begin(self, copy: Asynchronous) -> None:
        """A copy that happens some time from now on."""
        self._copies.append(copy)

    def run(self, bodies: Sequence[tuple[Partition, Callable[[], None]]]) -> None:
        """Run partitions to their ends, each in a thread of its own; one that calls this goes on
        after them.

        Raises:
            Fault, or the first other exception that a body raised.
        """
        outside = self._partitions, self._paces
        self._partitions = [partition for partition, _ in bodies]
        self._paces = [self._rng.choice(_PACES) for _ in bodies]
        threads = [
            threading.Thread(target=self._thread, args=body, name=body[0].name, daemon=True)
            for body in bodies
        ]
        for thread in threads:
            thread.start()
        self._partition().go.release()
        for thread in threads:
            thread.join()
        self._partitions, self._paces = outside
        if self._fault is not None:
            raise self._fault

    def _thread(self, partition: Partition, body: Callable[[], None]) -> None:
        partition.go.acquire()
        try:
            if self._fault is None:
                body()
        except Ended:
            pass
        except BaseException as fault:
            self._fault = self._fault or fault
        place = self._partitions.index(partition)
        del self._partitions[place], self._paces[place]
        following: Partition | None = None
        if self._fault is None and self._partitions:
            try:
                following = self._partition()
            except BaseException as fault:
                self._fault = fault
        # After a fault they end one after another, too.
        if self._fault is not None and self._partitions:
            following = self._partitions[0]
        if following is not None:
            following.go.release()

    def point(
        self,
        partition: Partition,
        ready: Callable[[], bool] | None = None,
        waits_for: Callable[[], str] = str,
    ) -> None:
        """Other events happen before the partition that runs goes on, which it does not before
        `ready`. Raises Fault where it never can."""
        partition.ready, partition.waits_for = ready, waits_for
        following = self._partition()
        if following is not partition:
            following.go.release()
            partition.go.acquire()
            if self._fault is not None:
                raise Ended
        partition.ready = None

    def _partition(self) -> Partition:
        """The partition that goes on, after such asynchronous events as are drawn before it."""
        while True:
            paces: list[float] = []
            choices: list[tuple[Any, Any]] = []
            for partition, pace in zip(self._partitions, self._paces, strict=True):
                if partition.ready is None or partition.ready():
                    choices.append((partition, None))
                    paces.append(pace)
                if partition.products:
                    choices.append((partition.products[0], partition.products))
                    paces.append(self._product_pace)
                if partition.writes:
                    choices.append((partition.writes[0], partition.writes))
                    paces.append(self._copy_pace)
            for copy in self._copies:
                choices.append((copy, self._copies))
                paces.append(self._copy_pace)
            if not choices:
                waiting = "; ".join(f"{p.name} waits for {p.waits_for()}" for p in self._partitions)
                raise Fault("deadlock", f"deadlock: {waiting}; nothing is under way")
            ((chosen, queue),) = self._rng.choices(choices, paces)
            if queue is None:
                assert isinstance(chosen, Partition)
                return chosen
            self._happens(chosen, queue)

    @staticmethod
    def _happens(event: Asynchronous, queue: Any) -> None:
        if event.step():
            queue.remove(event)
