"""Shared memory of one program: its bytes, and which warps accessed them since the last barrier.

Two accesses of one byte by different warps, one of them a write, are a race unless a barrier lies
between them (PTX ISA, "Memory Consistency Model"). Writes of the number that is there already are
left out: Triton has several warps write the same where a layout repeats a tile. Accesses of one
warp count as ordered: all its threads execute an instruction at once here. Bytes that `cp.async`
writes are there once the thread that copied them has waited for its group
("cp.async.wait_group"); before, no thread may access them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.gluon.faults import Kind
from bridge.ptx.kinds import Array

# Instead of a warp's number.
_NOBODY, _SEVERAL = -1, -2


class Misuse(Exception):
    """Raised with the fault's sentence and the position, in the access, of the first such place."""

    def __init__(self, kind: Kind, what: str, position: int) -> None:
        self.kind: Kind = kind
        self.what, self.position = what, position
        super().__init__(what)


@dataclass(frozen=True, eq=False)
class _Copy:
    """Bytes under way. threads: who copies them; group: which of its groups they are of; places:
    `[n, size]`."""

    threads: Array
    groups: Array
    places: Array


class Shared:
    """`size` bytes, none of which has been written, of a program of so many threads."""

    def __init__(self, size: int, threads: int) -> None:
        self._content = np.zeros(size, np.uint8)
        self._written = np.zeros(size, bool)
        self._under_way = np.zeros(size, bool)
        self._writer = np.full(size, _NOBODY, np.int16)
        self._reader = np.full(size, _NOBODY, np.int16)
        self._copies: list[_Copy] = []
        # How many groups of copies each thread has committed.
        self._groups = np.zeros(threads, np.int64)

    def barrier(self) -> None:
        """Order the accesses before the barrier before those after it."""
        self._writer[:] = _NOBODY
        self._reader[:] = _NOBODY

    def read(self, threads: Array, addresses: Array, size: int) -> Array:
        """`size` bytes from each address on, `[n, size]`. Raises Misuse."""
        places = self._places(addresses, size)
        self._refuse(~self._written[places], "never written", "reads memory that was never written")
        copied = self._under_way[places]
        self._refuse(
            copied, "read before it has landed", "reads memory that cp.async may be copying"
        )
        warps = self._warps(threads, places)
        writer, reader = self._writer[places], self._reader[places]
        other = (writer != _NOBODY) & (writer != warps)
        self._refuse(other, "race", "reads where another warp wrote, and no barrier is between")
        alone = (reader == _NOBODY) | (reader == warps)
        # Warps that read the same bytes at once count one after the other.
        self._mark(self._reader, places, warps, alone)
        return self._content[places]

    def write(self, threads: Array, addresses: Array, data: Array) -> None:
        """Put the bytes `[n, size]` from each address on. Raises Misuse."""
        places = self._places(addresses, data.shape[1])
        self._claim(threads, places, data)
        self._content[places] = data
        self._written[places] = True
        lost = self._content[places] != data
        self._refuse(lost, "race", "writes another number where a thread writes one at once")

    def copy(self, threads: Array, addresses: Array, data: Array) -> None:
        """Begin to put these bytes there. Raises Misuse."""
        self.write(threads, addresses, data)
        places = self._places(addresses, data.shape[1])
        self._under_way[places] = True
        self._copies.append(_Copy(threads, self._groups[threads], places))

    def commit(self, threads: Array) -> None:
        """The copies that these threads began since the last time are a group."""
        self._groups[threads] += 1

    def wait(self, threads: Array, pending: int) -> None:
        """Wait until at most the last `pending` groups of each thread are under way."""
        done = np.full(len(self._groups), -1, np.int64)
        done[threads] = self._groups[threads] - pending
        left = []
        for copy in self._copies:
            landed = copy.groups < done[copy.threads]
            places = copy.places[landed]
            self._under_way[places] = False
            # Landing is a write, which a barrier has to order before other warps' accesses.
            self._mark(
                self._writer,
                places,
                self._warps(copy.threads[landed], places),
                np.ones(places.shape, bool),
            )
            if not landed.all():
                kept = ~landed
                left.append(_Copy(copy.threads[kept], copy.groups[kept], copy.places[kept]))
        self._copies = left

    def _places(self, addresses: Array, size: int) -> Array:
        places: Array = addresses.astype(np.int64)[:, None] + np.arange(size)
        outside = (places < 0) | (places >= len(self._content))
        what = f"accesses shared memory, {len(self._content)} bytes, outside of it"
        self._refuse(outside, "outside its tensor", what)
        return places

    def _claim(self, threads: Array, places: Array, data: Array) -> None:
        copied = self._under_way[places]
        what = "writes where cp.async may be copying to"
        self._refuse(copied, "overwritten while in use", what)
        warps = self._warps(threads, places)
        changed = self._content[places] != data
        for marks, did in ((self._writer, "wrote"), (self._reader, "read")):
            mark = marks[places]
            other = (mark != _NOBODY) & (mark != warps) & changed
            what = f"writes where another warp {did}, and no barrier is between"
            self._refuse(other, "race", what)
        writer = self._writer[places]
        self._mark(self._writer, places, warps, (writer == _NOBODY) | (writer == warps))

    @staticmethod
    def _warps(threads: Array, places: Array) -> Array:
        return np.broadcast_to((threads // 32).astype(np.int16)[:, None], places.shape)

    @staticmethod
    def _mark(marks: Array, places: Array, warps: Array, alone: Array) -> None:
        marks[places] = np.where(alone, warps, np.int16(_SEVERAL))
        # Where several warps of this access meet, the last one is there now.
        meet = alone & (marks[places] != warps)
        marks[places[meet]] = _SEVERAL

    @staticmethod
    def _refuse(wrong: Array, kind: Kind, what: str) -> None:
        if wrong.any():
            raise Misuse(kind, what, int(np.argmax(wrong.any(1))))
