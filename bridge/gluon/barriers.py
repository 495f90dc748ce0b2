"""Memory barriers: arrivals and bytes of copies are counted, phase after phase."""

from __future__ import annotations

from typing import Any

from bridge.gluon.clocks import Clock, Stamp
from bridge.gluon.faults import Fault, assigned_name, line
from bridge.gluon.program import here, partition


class Barrier:
    """An mbarrier. done: how many phases are complete; clock: the events before their ends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self.clock = Clock()
        self._count: int | None = None
        self._left = self._bytes = 0
        self._pending = Clock()

    def init(self, count: int) -> None:
        if self._count is not None:
            raise Fault("barrier", f"{self.name} is initialised a second time at {line()}")
        if count < 1:
            raise Fault(
                "barrier", f"{self.name} counts {count} arrivals at {line()}, not 1 or more"
            )
        self._count = self._left = count

    def check_initialised(self) -> None:
        """Raise Fault unless it is."""
        if self._count is None:
            raise Fault("barrier", f"{self.name} is used at {line()} before it is initialised")

    def arrive(self, count: int, expected_bytes: int = 0) -> None:
        self.check_initialised()
        who = partition()
        if count > self._left:
            raise Fault(
                "too many arrivals",
                f"{who.name} arrives {count} times at {self.name} at {line()}, in whose phase "
                f"{self.done} {self._left} of {self._count} arrivals are left",
            )
        self._bytes += expected_bytes
        self._left -= count
        self._pending.join(who.clock)
        who.clock.advance(who)
        self._look()

    def land(self, size: int) -> Stamp:
        """A copy of so many bytes is complete; when that is."""
        self._bytes -= size
        stamp = Stamp(self, self.done + 1)
        self._look()
        return stamp

    def _look(self) -> None:
        if self._left == 0 and self._bytes == 0:
            self.done += 1
            self.clock.join(self._pending)
            self.clock.counts[self] = self.done
            assert self._count is not None
            self._left = self._count

    def progress(self) -> str:
        """The state of its phase, in words."""
        return (
            f"in phase {self.done}, {self._left} of {self._count} arrivals and {self._bytes} bytes "
            "missing"
        )

    def passes(self, parity: int) -> bool:
        """Whether a wait for a phase of this parity is over: the phase under way has the other."""
        return self.done % 2 != parity


class Barriers:
    """Memory for barriers, `[n, 1]` or `[1]`."""

    def __init__(self, barriers: list[Barrier]) -> None:
        self._barriers = barriers

    @classmethod
    def allocate(cls, shape: list[int]) -> Barriers:
        name = assigned_name("a barrier")
        if len(shape) == 1:
            return cls([Barrier(name)])
        return cls([Barrier(f"{name}[{i}]") for i in range(shape[0])])

    def index(self, i: int) -> Barriers:
        if not 0 <= i < len(self._barriers):
            raise Fault("barrier", f"there is no barrier {i} of {len(self._barriers)} for {line()}")
        return Barriers([self._barriers[i]])

    @property
    def one(self) -> Barrier:
        if len(self._barriers) != 1:
            raise Fault("barrier", f"{line()} needs one barrier, not {len(self._barriers)}")
        return self._barriers[0]


def init(mbarrier: Barriers, count: int) -> None:
    """The barrier's phases end after `count` arrivals."""
    mbarrier.one.init(int(count))


def expect(mbarrier: Barriers, bytes: int = 0, pred: Any = True, *, bytes_per_cta: int = 0) -> None:
    """An arrival, after which the phase also needs so many bytes more of copies. The number of
    bytes has its name from Triton 3.6 or 3.7."""
    if pred:
        mbarrier.one.arrive(1, int(bytes or bytes_per_cta))
        here().scheduler.point(partition())


def arrive(mbarrier: Barriers, *, count: int = 1, pred: Any = True) -> None:
    """Count so many arrivals at a barrier."""
    if pred:
        mbarrier.one.arrive(int(count))
        here().scheduler.point(partition())


def wait(mbarrier: Barriers, phase: int, pred: Any = True, deps: Any = ()) -> None:
    """Wait for the end of the phase of this parity."""
    if not pred:
        return
    barrier, who, parity = mbarrier.one, partition(), int(phase)
    barrier.check_initialised()
    if parity not in (0, 1):
        raise Fault("barrier", f"{line()} waits for phase {parity} of {barrier.name}, not 0 or 1")
    at = line()
    here().scheduler.point(
        who,
        lambda: barrier.passes(parity),
        lambda: f"parity {parity} of {barrier.name} at {at}, {barrier.progress()}",
    )
    who.clock.join(barrier.clock)
    unawaited = here().unawaited
    for copy in [copy for copy in unawaited if copy.end is not None and who.clock.has(copy.end)]:
        del unawaited[copy]


def invalidate(mbarrier: Barriers) -> None:
    """Nothing: the memory of a barrier is not used for anything else here."""
