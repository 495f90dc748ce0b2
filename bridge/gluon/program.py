"""The program of which a thread runs a part: its state, for the operations that need it."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from typing import Protocol

from bridge.gluon.clocks import Stamp
from bridge.gluon.schedule import Partition, Scheduler
from bridge.ttir.domain import Domain


class Awaited(Protocol):
    """Something with an end that a wait can be sure of; None: it is not there yet."""

    end: Stamp | None


@dataclass(eq=False)
class Program:
    """One program of a launch.

    number: its place in the grid of `programs`. in_order: accesses that no barrier orders
    are faults; else only their consequences in this schedule show.
    """

    domain: Domain
    number: int
    programs: int
    rng: random.Random
    in_order: bool = True
    scheduler: Scheduler = field(init=False)
    # Copies that nothing has waited for yet.
    unawaited: dict[Awaited, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.rng)


class _Here(threading.local):
    program: Program | None = None
    partition: Partition | None = None


_here = _Here()


def here() -> Program:
    """The program under way."""
    if _here.program is None:
        raise RuntimeError("an operation of a simulated kernel must be called by one that runs")
    return _here.program


def partition() -> Partition:
    """The partition that runs."""
    assert _here.partition is not None
    return _here.partition


def enter(program: Program | None, partition: Partition | None) -> None:
    """This thread runs that partition from now on; None: none any more."""
    _here.program, _here.partition = program, partition
