"""Tensors in global memory: pointers into them, and descriptors for copies of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from bridge.gluon.barriers import Barrier, Barriers
from bridge.gluon.clocks import Stamp
from bridge.gluon.faults import Fault, line
from bridge.gluon.program import here, partition
from bridge.gluon.rounded import DTYPES, DType, round_to
from bridge.gluon.shared import Access, Shared, no_numbers
from bridge.gluon.tiles import Value, flat_integers, tile_of
from bridge.ttir import descriptors
from bridge.ttir.domain import Array, Numbers
from bridge.ttir.memory import Region


@dataclass(frozen=True, eq=False)
class Pointer:
    """A pointer or a tile of pointers: `offsets` from the beginning of the storage, in elements."""

    region: Region
    offsets: Array

    @property
    def element(self) -> DType:
        """The type of the elements that it points to."""
        return DTYPES[self.region.buffer.tensor.dtype]

    @property
    def dtype(self) -> Any:
        """The type of a pointer in Triton's form, with an `element_ty`."""
        return SimpleNamespace(element_ty=self.element)

    def __add__(self, offset: Value) -> Pointer:
        return Pointer(self.region, self.offsets + flat_integers(offset))

    __radd__ = __add__

    def _inside(self, mask: Value, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """The offsets in this shape, and which of them are not masked. Raises Fault for one that
        is in no element of the tensor."""
        seen = np.broadcast_to(True if mask is None else tile_of(mask).numbers, shape)
        offsets = np.broadcast_to(self.offsets, shape)
        region = self.region
        wrong = seen & ((offsets < region.first) | (offsets > region.last))
        if wrong.any():
            raise Fault(
                "outside its tensor",
                f"{line()} is at element {int(offsets[wrong][0]) - region.first} of "
                f"{region.name}, which has {region.last - region.first + 1}",
            )
        return offsets, seen


def store(pointer: Pointer, value: Value, mask: Value = None) -> None:
    """Store where the mask holds. An element is stored once in a launch."""
    domain, buffer = here().domain, pointer.region.buffer
    tile = tile_of(value)
    mask_shape = () if mask is None else tile_of(mask).numbers.shape
    shape = np.broadcast_shapes(pointer.offsets.shape, tile.numbers.shape, mask_shape)
    offsets, seen = pointer._inside(mask, shape)
    places = offsets[seen]
    _store_once(pointer.region, places)
    numbers = round_to(domain, tile.numbers, pointer.element)

    def put(values: Array, given: Array) -> Array:
        values[places] = np.broadcast_to(given, shape)[seen]
        return values

    buffer.values = domain.each(put, buffer.values, numbers)


def _store_once(region: Region, places: Array) -> None:
    """Raise Fault if something was stored to one of these places before, or is twice now."""
    stored_by = region.buffer.stored_by
    if len(np.unique(places)) < len(places) or (stored_by[places] >= 0).any():
        raise Fault("stored twice", f"{line()} stores a second time to an element of {region.name}")
    stored_by[places] = here().number


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor that is copied in tiles of `block_shape`; elements beyond it read as 0."""

    region: Region
    sizes: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    layout: Any

    @property
    def dtype(self) -> DType:
        return DTYPES[self.region.buffer.tensor.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of a whole tile."""
        return int(np.prod(self.block_shape)) * self.dtype.primitive_bitwidth // 8

    nbytes_per_cta = nbytes

    @property
    def shape(self) -> list[int]:
        return list(self.sizes)

    @property
    def block_type(self) -> Any:
        """The type of a block in Triton's form: `nbytes`, `shape` and `element_ty`."""
        return SimpleNamespace(
            nbytes=self.nbytes, shape=list(self.block_shape), element_ty=self.dtype
        )

    def places(self, begin: Sequence[int]) -> tuple[Array, Array]:
        """The places in the storage of the elements of the tile that begins there, and the elements
        that are in the tensor."""
        offsets, inside = descriptors.places(self.sizes, self.strides, begin, self.block_shape)
        return self.region.first + np.where(inside, offsets, 0), inside

    def check(self, coord: Sequence[int], shared: Shared) -> None:
        """Raise Fault unless a tile that begins there is one of the size of `shared`."""
        if shared.shape != list(self.block_shape) or len(coord) != shared.rank:
            raise Fault(
                "shape",
                f"{line()} copies a tile of {list(self.block_shape)} at {list(map(int, coord))} "
                f"between {self.region.name} and {shared.name} of {shared.shape}",
            )
        if shared.dtype is not self.dtype:
            raise Fault(
                "shape",
                f"{line()} copies {self.dtype.name} between {self.region.name} and {shared.name} "
                f"of {shared.dtype.name}",
            )


class Copy:
    """A tile on its way into shared memory. First the memory holds no numbers, then those that the
    tensor has; then the barrier counts its bytes. end: when that was."""

    def __init__(self, numbers: Numbers, into: Shared, size: int, barrier: Barrier) -> None:
        self.end: Stamp | None = None
        self._numbers, self._into, self._size, self._barrier = numbers, into, size, barrier
        self._begun = False
        who = f"a copy that {partition().name} began at {line()}"
        self._access: Access = into.begin(True, partition().clock, who)
        here().unawaited[self] = f"{who} into {into.name}"
        self._empty = no_numbers(into.places.shape)

    def step(self) -> bool:
        if not self._begun:
            self._begun = True
            self._into.write(self._empty)
            return False
        self._into.write(self._numbers)
        self.end = self._access.end = self._barrier.land(self._size)
        return True


def async_copy_global_to_shared(
    tensor_desc: Descriptor,
    coord: Sequence[int],
    barrier: Barriers,
    result: Shared,
    pred: Any = True,
    multicast: bool = False,
) -> None:
    """Begin to copy a tile; the barrier counts the bytes of the whole tile, whatever part of it is
    in the tensor."""
    if not pred:
        return
    tensor_desc.check(coord, result)
    barrier.one.check_initialised()
    places, inside = tensor_desc.places(coord)
    domain, zero = here().domain, here().domain.constant(0.0)
    values = tensor_desc.region.buffer.values
    numbers = domain.each(lambda x, rest: np.where(inside, x[places], rest), values, zero)
    here().scheduler.begin(Copy(numbers, result, tensor_desc.nbytes, barrier.one))
    here().scheduler.point(partition())


class Write:
    """A tile of shared memory on its way into global memory, where it is stored or, if it `adds`,
    added. It reads the tile at some time before `store_wait` is sure of it."""

    def __init__(
        self, tensor_desc: Descriptor, coord: Sequence[int], src: Shared, adds: bool
    ) -> None:
        self.who = f"{'an addition' if adds else 'a store'} that {partition().name} began at "
        self.who += line()
        self.access = src.begin(False, partition().clock, self.who)
        self._places, self._inside = tensor_desc.places(coord)
        self._buffer, self._src, self._adds = tensor_desc.region.buffer, src, adds
        if not adds:
            _store_once(tensor_desc.region, self._places[self._inside])

    def step(self) -> bool:
        domain = here().domain
        places = self._places[self._inside]
        given = domain.each(lambda x: x[self._inside], self._src.read())
        if self._adds:
            given = domain.add(domain.each(lambda x: x[places], self._buffer.values), given)

        def put(values: Array, new: Array) -> Array:
            values[places] = new
            return values

        self._buffer.values = domain.each(put, self._buffer.values, given)
        return True


def add_shared_to_global(tensor_desc: Descriptor, coord: Sequence[int], src: Shared) -> None:
    """Begin to add a tile of shared memory to a tensor, each element by itself and in no order."""
    _write(tensor_desc, coord, src, adds=True)


def async_copy_shared_to_global(tensor_desc: Descriptor, coord: Sequence[int], src: Shared) -> None:
    """Begin to store a tile of shared memory, as much of it as is in the tensor. An element is
    stored once in a launch."""
    _write(tensor_desc, coord, src, adds=False)


def _write(tensor_desc: Descriptor, coord: Sequence[int], src: Shared, adds: bool) -> None:
    tensor_desc.check(coord, src)
    who, write = partition(), Write(tensor_desc, coord, src, adds)
    who.writes.append(write)
    who.written.append(write)
    here().scheduler.point(who)


def store_wait(pendings: int) -> None:
    """Wait until no more than `pendings` of the writes to global memory that this partition has
    begun still read shared memory."""
    who, most = partition(), int(pendings)
    here().scheduler.point(who, lambda: len(who.writes) <= most, lambda: "its writes")
    who.clock.advance(who)
    sure = who.written[: max(0, len(who.written) - most)]
    for write in sure:
        write.access.end = who.clock.now(who)
    del who.written[: len(sure)]
