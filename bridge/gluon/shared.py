"""Shared memory: elements never written are NaN; accesses that no barrier orders are faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.gluon.clocks import Clock, Stamp
from bridge.gluon.faults import Fault, assigned_name, line
from bridge.gluon.program import here, partition
from bridge.gluon.rounded import DType, round_to
from bridge.gluon.tiles import Tile
from bridge.ttir.domain import Array, Numbers


@dataclass(eq=False)
class Access:
    """A part of an allocation that is read or written for some time.

    who: to be read. end: when it is over; None: not yet, as far as anybody can know.
    """

    first: int
    last: int
    writes: bool
    who: str
    end: Stamp | None = None


class Allocation:
    """Elements of one type. values: as they are now; written: which elements ever were."""

    def __init__(self, name: str, dtype: DType, size: int) -> None:
        self.name, self.dtype = name, dtype
        self.values: Numbers = no_numbers((size,))
        self.written = np.zeros(size, bool)
        self.accesses: list[Access] = []


@dataclass(frozen=True, eq=False)
class Shared:
    """A view of an allocation: `places` of its elements, in the view's shape. name: to be read."""

    allocation: Allocation
    places: Array
    name: str

    @classmethod
    def allocate(cls, dtype: DType, shape: Sequence[int], value: Tile | None = None) -> Shared:
        name = assigned_name("shared memory")
        places = np.arange(int(np.prod(shape))).reshape([int(size) for size in shape])
        made = cls(Allocation(name, dtype, places.size), places, name)
        if value is not None:
            made.store(value)
        return made

    @property
    def dtype(self) -> DType:
        return self.allocation.dtype

    @property
    def shape(self) -> list[int]:
        return list(self.places.shape)

    @property
    def rank(self) -> int:
        return self.places.ndim

    @property
    def layout(self) -> None:
        """Layouts are not simulated."""

    def index(self, i: int) -> Shared:
        if not 0 <= i < len(self.places):
            raise Fault("shape", f"there is no {self.name}[{i}] of {len(self.places)} at {line()}")
        return Shared(self.allocation, self.places[int(i)], f"{self.name}[{int(i)}]")

    def slice(self, start: int, length: int, dim: int = 0) -> Shared:
        at = (slice(None),) * dim + (slice(int(start), int(start) + int(length)),)
        if not 0 <= start <= start + length <= self.places.shape[dim]:
            raise Fault("shape", f"{self.name} has no part from {start} of {length} at {line()}")
        return Shared(self.allocation, self.places[at], self.name)

    def permute(self, order: Sequence[int]) -> Shared:
        return Shared(self.allocation, self.places.transpose(order), self.name)

    def reshape(self, shape: Sequence[int]) -> Shared:
        sizes = [int(size) for size in shape]
        if np.prod(sizes) != self.places.size:
            raise Fault("shape", f"{self.name} of {self.shape} is no {sizes} at {line()}")
        return Shared(self.allocation, self.places.reshape(sizes), self.name)

    def _reinterpret(self, dtype: DType, shape: Sequence[int], layout: Any = None) -> Shared:
        if dtype is not self.dtype:
            raise NotImplementedError("shared memory is simulated under its own dtype alone")
        return self.reshape(shape)

    def _keep_alive(self) -> None:
        """Nothing: memory is not used twice here."""

    def load(self, layout: Any = None) -> Tile:
        access = self.begin(False, partition().clock, f"{partition().name} at {line()}")
        access.end = partition().clock.now(partition())
        here().scheduler.point(partition())
        return Tile(self.dtype, self.read())

    def store(self, value: Tile) -> None:
        if list(value.shape) != self.shape:
            raise Fault("shape", f"{line()} stores {list(value.shape)} to {self.shape}")
        access = self.begin(True, partition().clock, f"{partition().name} at {line()}")
        access.end = partition().clock.now(partition())
        self.write(round_to(here().domain, value.numbers, self.dtype))
        here().scheduler.point(partition())

    def read(self) -> Numbers:
        """The numbers that it holds now."""
        return here().domain.each(lambda values: values[self.places], self.allocation.values)

    def write(self, numbers: Numbers) -> None:
        """They become these."""

        def put(values: Array, given: Array) -> Array:
            values[self.places] = given
            return values

        self.allocation.values = here().domain.each(put, self.allocation.values, numbers)

    def begin(self, writes: bool, clock: Clock, who: str) -> Access:
        """Begin an access, after the events that `clock` has.

        Raises:
            Fault: it reads an element that was never written, or another access, one of both
                writing, is not over for certain.
        """
        memory = self.allocation
        access = Access(int(self.places.min()), int(self.places.max()), writes, who)
        if here().in_order:
            if not writes and not memory.written[self.places].all():
                raise Fault("never written", f"{who} reads {self.name}, which nothing wrote to")
            for other in memory.accesses:
                apart = other.last < access.first or access.last < other.first
                if not apart and (writes or other.writes) and not clock.has(other.end):
                    raise self._fault(access, other)
        if writes:
            memory.written[self.places] = True
            # Whatever comes after this access comes after those that it has waited for.
            memory.accesses = [x for x in memory.accesses if not _within(x, access)]
        memory.accesses.append(access)
        return access

    def _fault(self, access: Access, other: Access) -> Fault:
        if access.writes:
            return Fault(
                "overwritten while in use",
                f"{access.who} may write to {self.name} while {other.who} "
                f"still {'writes' if other.writes else 'reads'} it: it was released too early or "
                "not waited for",
            )
        return Fault(
            "read before it has landed",
            f"{access.who} may read {self.name} while {other.who} still writes it: no barrier that "
            "was waited for says that it has landed",
        )


def _within(inner: Access, outer: Access) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def no_numbers(shape: tuple[int, ...]) -> Numbers:
    """NaN in each place."""
    domain = here().domain
    nan = domain.constant(math.nan)
    return domain.each(lambda x: np.array(np.broadcast_to(x, shape)), nan)
