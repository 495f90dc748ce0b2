"""The order of events that the barriers enforce, whatever the schedule: vector clocks.

A clock counts, for each partition and each barrier, the events of it that come before. After a
partition has waited for a phase of a barrier, its operations come after all that was done before
the arrivals of that phase, and after the copies whose bytes it counted; nothing else orders
partitions. Two accesses that are not ordered so are a fault, met in this schedule or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Stamp(NamedTuple):
    """Event `number` of an actor: a partition or a barrier."""

    actor: object
    number: int


@dataclass
class Clock:
    """counts: of each actor how many of its events come before."""

    counts: dict[object, int] = field(default_factory=dict)

    def join(self, other: Clock) -> None:
        """Let everything that comes before `other` come before this too."""
        for actor, count in other.counts.items():
            self.counts[actor] = max(count, self.counts.get(actor, 0))

    def advance(self, actor: object) -> None:
        """Count one more event of `actor`."""
        self.counts[actor] = self.counts.get(actor, 0) + 1

    def now(self, actor: object) -> Stamp:
        """The latest event of `actor`."""
        return Stamp(actor, self.counts.get(actor, 0))

    def has(self, stamp: Stamp | None) -> bool:
        """Whether an event comes before; None: one that has no end yet does not."""
        return stamp is not None and self.counts.get(stamp.actor, 0) >= stamp.number

    def copy(self) -> Clock:
        return Clock(dict(self.counts))
