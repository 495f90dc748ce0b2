"""Loads, stores and atomic additions of the machine, and the checks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.ttir import integers
from bridge.ttir.domain import Array
from bridge.ttir.faults import Kind, Undecided, Violation
from bridge.ttir.integers import Mark, Marked, bits_of
from bridge.ttir.memory import Pointers, Region
from bridge.ttir.syntax import Operation, Scalar, Type, element_of, shape_of

if TYPE_CHECKING:
    from bridge.ttir.machine import Machine


def addresses(
    machine: Machine,
    operation: Operation,
    pointers: Pointers,
    mask: Array | None,
    shape: tuple[int, ...],
) -> tuple[Array, Array | None]:
    """The offsets that are used, flat, and the mask of the tile's shape, None: all of it."""
    region = pointers.region
    offsets = np.broadcast_to(pointers.offsets, shape)
    if mask is not None:
        mask = np.broadcast_to(mask, shape)
        used = offsets[mask]
    else:
        used = offsets.reshape(-1)
    if used.size and (used.min() < region.first or used.max() > region.last):
        off = (offsets < region.first) | (offsets > region.last)
        off = off if mask is None else off & mask
        wrong = int(offsets[off].flat[0]) - region.first
        size = region.last - region.first + 1
        raise machine.violation(
            "outside its tensor",
            f"element {wrong} of {region.name}, which spans {size}",
            operation,
            off,
        )
    return used, mask


def load(machine: Machine, operation: Operation, pointers: Any, *rest: Any) -> Any:
    if not isinstance(pointers, Pointers):
        raise Undecided("a load from something other than a pointer to numbers")
    if operation.attributes.get("boundaryCheck"):
        raise Undecided("a load with a boundary check")
    mask, other = (*rest, None, None)[:2]
    return load_tile(machine, operation, pointers, mask, other, operation.result.type)


def load_tile(
    machine: Machine, operation: Operation, pointers: Pointers, mask: Any, other: Any, type: Type
) -> Any:
    """The tile of this type loaded from these addresses, with `other` where it is masked."""
    shape = shape_of(type)
    region = pointers.region
    buffer = region.buffer
    used, mask = addresses(machine, operation, pointers, mask, shape)
    if used.size:
        region.loaded = True
        buffer.loaded[used] = True
        touched = buffer.stored_by[used] >= 0
        check_unshared(machine, operation, region, touched, mask, shape)
    left_open = mask is not None and other is None and not mask.all()
    if left_open and buffer.is_float:
        other = machine.domain.left_open
        if other is None:
            raise Undecided("a masked load without a value for the other elements")
    is_bool = element_of(type) == Scalar("i1")

    def gather(values: Array, fill: Array | None = None) -> Array:
        found = values[used]
        if mask is not None:
            tile = np.empty(shape, values.dtype)
            if fill is not None:
                tile[...] = fill
            elif not mask.all():
                tile[...] = 0
            tile[mask] = found
            found = tile
        return found.reshape(shape)

    if not buffer.is_float:
        bits = 8 if is_bool else bits_of(type)
        found = integers.wrap(gather(buffer.values, other), bits)
        found = found != 0 if is_bool else found
        if left_open and mask is not None:
            element = tuple(int(i) for i in np.argwhere(~mask)[0])
            return Marked(found, Mark(operation, machine.program, element, overflowed=False))
        return found
    fills = () if other is None or mask is None else (other,)
    return machine.domain.each(gather, buffer.values, *fills)


def store(machine: Machine, operation: Operation, pointers: Any, value: Any, *rest: Any) -> None:
    if not isinstance(pointers, Pointers):
        raise Undecided("a store to something other than a pointer to numbers")
    if operation.attributes.get("boundaryCheck"):
        raise Undecided("a store with a boundary check")
    type = operation.operands[1].type
    store_tile(machine, operation, pointers, rest[0] if rest else None, value, type)


def store_tile(
    machine: Machine, operation: Operation, pointers: Pointers, mask: Any, value: Any, type: Type
) -> None:
    """Store a tile of this type to these addresses, but where it is masked."""
    shape = shape_of(type)
    region = pointers.region
    buffer = region.buffer
    used, mask = addresses(machine, operation, pointers, mask, shape)
    if not used.size:
        return
    before = buffer.stored_by[used]
    order = np.arange(used.size)
    buffer.stored_by[used] = order
    twice = buffer.stored_by[used] != order
    if twice.any():
        kind: Kind = "stored twice at once"
        raise stores(machine, operation, kind, region, used, twice, mask, shape)
    others = (before >= 0) & (before != machine.number)
    if others.any():
        kind = "stored by two programs"
        raise stores(machine, operation, kind, region, used, others, mask, shape)
    buffer.stored_by[used] = machine.number
    region.stored = True
    check_unshared(machine, operation, region, buffer.loaded[used], mask, shape)

    def scatter(values: Array, given: Array) -> Array:
        full = np.broadcast_to(given, shape)
        values[used] = full[mask] if mask is not None else full.reshape(-1)
        return values

    if buffer.is_float:
        buffer.values = machine.domain.each(scatter, buffer.values, value)
    else:
        scatter(buffer.values, value)


def stores(
    machine: Machine,
    operation: Operation,
    kind: Kind,
    region: Region,
    used: Array,
    where: Array,
    mask: Array | None,
    shape: tuple[int, ...],
) -> Violation:
    detail = f"element {int(used[where][0]) - region.first} of {region.name}"
    return machine.violation(kind, detail, operation, spread(where, mask, shape))


def check_unshared(
    machine: Machine,
    operation: Operation,
    region: Region,
    touched: Array,
    mask: Array | None,
    shape: tuple[int, ...],
) -> None:
    """Raise Violation if an address or a tensor is both read and written."""
    if touched.any():
        where = spread(touched, mask, shape)
        detail = f"an element of {region.name}"
        raise machine.violation("read and written", detail, operation, where)
    if region.loaded + region.stored + region.added > 1:
        raise machine.violation("read and written", f"tensor {region.name}", operation, None)


def spread(where: Array, mask: Array | None, shape: tuple[int, ...]) -> Array:
    """Truth values of the addresses that are used as those of the tile."""
    if mask is None:
        return where.reshape(shape)
    full = np.zeros(shape, bool)
    full[mask] = where
    return full


def atomic(machine: Machine, operation: Operation, pointers: Any, value: Any, *rest: Any) -> None:
    """`tt.atomic_rmw fadd`: many programs may add to one address, and none other may use it."""
    words = operation.attributes.get("words")
    kind = words[0] if isinstance(words, list) else operation.attributes.get("rmw")
    if kind != "fadd" or not isinstance(pointers, Pointers):
        raise Undecided(f"an atomic operation {kind}")
    if any(value.number in machine.used for value in operation.results):
        raise Undecided(
            "the value that an atomic operation returned, which depends on the programs' order"
        )
    region = pointers.region
    buffer = region.buffer
    shape = shape_of(operation.operands[0].type)
    used, mask = addresses(machine, operation, pointers, rest[0] if rest else None, shape)
    if len(np.unique(used)) != used.size:
        raise Undecided("one atomic operation adds twice to an address")
    if not used.size:
        return
    buffer.stored_by[used] = machine.number
    region.added = True
    check_unshared(machine, operation, region, buffer.loaded[used], mask, shape)

    def masked_tile(tile: Array) -> Array:
        full = np.broadcast_to(tile, shape)
        return full[mask] if mask is not None else full.reshape(-1)

    def put(values: Array, sums: Array) -> Array:
        values[used] = sums
        return values

    old = machine.domain.each(lambda values: values[used], buffer.values)
    new = machine.domain.add(old, machine.domain.each(masked_tile, value))
    buffer.values = machine.domain.each(put, buffer.values, new)
