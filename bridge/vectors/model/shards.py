"""Vectors of a sequence whose queries and keys lie on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from bridge.vectors.model.attention import AttentionVector, Mask, Matrix, Row
from bridge.vectors.model.operations import LaidOutVector

Layout = Literal["contiguous", "zigzag", "striped", "places"]


@dataclass(frozen=True)
class Device:
    """queries, keys: the places of the sequence that it holds, in the order in which it has them.
    arrivals: the devices whose keys it computes with, in order of their arrival, itself first."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    arrivals: tuple[int, ...]


@dataclass(frozen=True)
class DeviceRows:
    """The results of a device's queries. partials: for each arrival those over these keys alone;
    merged: those over all keys."""

    partials: tuple[tuple[Row, ...], ...]
    merged: tuple[Row, ...]


@dataclass(frozen=True)
class ShardsVector(LaidOutVector):
    """Attention of one sequence whose queries and keys lie on several devices, each of which
    takes in the keys of the others as they arrive.

    q: [q_len][head_dim]; k: [kv_len][head_dim]; v: [kv_len][value_dim], in the order of the
    sequence. mask: of kind "none" or a window, by places of the sequence. layout: contiguous: a
    stretch for each device; zigzag: of twice as many stretches, device i has those with the numbers
    i and 2 · devices − 1 − i; striped: device i has the places i, i + devices, …; lengths of
    stretches differ by at most 1, the longer ones first; places: those of `devices`, which has them
    of every layout.
    """

    operation: ClassVar[str] = "shards"
    q_len: int
    kv_len: int
    q: Matrix
    k: Matrix
    v: Matrix
    mask: Mask
    layout: Layout
    devices: tuple[Device, ...]
    expected: tuple[DeviceRows, ...]

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: for each device one for each arrival, and one over all keys of the
        sequence."""
        every = range(self.kv_len)
        found: list[AttentionVector] = []
        for device, rows in zip(self.devices, self.expected, strict=True):
            shards = [self.devices[source].keys for source in device.arrivals]
            for keys, expected in zip((*shards, every), (*rows.partials, rows.merged), strict=True):
                found.append(self._part(len(found), device.queries, keys, expected))
        return tuple(found)

    def problems(self) -> tuple[AttentionVector, ...]:
        """The whole, as if one device had it."""
        pairs = zip(self.devices, self.expected, strict=True)
        rows = {
            place: row
            for device, found in pairs
            for place, row in zip(device.queries, found.merged, strict=True)
        }
        expected = [rows[i] for i in range(self.q_len)]
        return (self._attention(0, self.q, self.k, self.v, self.mask, expected),)

    def _part(
        self, number: int, queries: Sequence[int], keys: Sequence[int], expected: Sequence[Row]
    ) -> AttentionVector:
        """Queries and keys at these places, masked as in the whole."""
        seen = tuple(tuple(self.mask.visible(i, j) for j in keys) for i in queries)
        q, k, v = (
            tuple(rows[n] for n in places)
            for rows, places in ((self.q, queries), (self.k, keys), (self.v, keys))
        )
        return self._attention(number, q, k, v, Mask("boolean", seen), expected)
