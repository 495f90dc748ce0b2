"""Loads, stores and atomic additions of the machine, and the checks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.ttir import integers
from bridge.ttir.domain import Array
from bridge.ttir.faults import Kind, Undecided, Violation
from bridge.ttir.integers import bits_of
from bridge.ttir.memory import Pointers, Region
from bridge.ttir.syntax import Operation, Scalar, element_of, shape_of

if TYPE_CHECKING:
    from bridge.ttir.machine import Machine


def addresses(
    machine: Machine, operation: Operation, pointers: Pointers, mask: Array | None
) -> tuple[Array, Array | None]:
    """The offsets that are used, flat, and the mask of the tile's shape, None: all of it."""
    region = pointers.region
    shape = shape_of(operation.operands[0].type)
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
        raise Undecided("a load from what is no pointer to numbers")
    if operation.attributes.get("boundaryCheck"):
        raise Undecided("a load with a boundary check")
    region = pointers.region
    buffer = region.buffer
    used, mask = addresses(machine, operation, pointers, rest[0] if rest else None)
    if used.size:
        region.loaded = True
        buffer.loaded[used] = True
        unshared(machine, operation, region, buffer.stored_by[used] >= 0, mask)
    shape = shape_of(operation.operands[0].type)
    other = rest[1] if len(rest) > 1 else None
    if mask is not None and other is None and not mask.all():
        raise Undecided("a masked load that does not say what the others are")
    is_bool = element_of(operation.result.type) == Scalar("i1")

    def gathered(values: Array, fill: Array | None = None) -> Array:
        found = values[used]
        if mask is not None:
            tile = np.empty(shape, values.dtype)
            if fill is not None:
                tile[...] = fill
            tile[mask] = found
            found = tile
        return found.reshape(shape)

    if not buffer.is_float:
        bits = 8 if is_bool else bits_of(operation.result.type)
        found = integers.wrapped(gathered(buffer.values, other), bits)
        return found != 0 if is_bool else found
    fills = () if other is None or mask is None else (other,)
    return machine.domain.each(gathered, buffer.values, *fills)


def store(machine: Machine, operation: Operation, pointers: Any, value: Any, *rest: Any) -> None:
    if not isinstance(pointers, Pointers):
        raise Undecided("a store to what is no pointer to numbers")
    if operation.attributes.get("boundaryCheck"):
        raise Undecided("a store with a boundary check")
    region = pointers.region
    buffer = region.buffer
    used, mask = addresses(machine, operation, pointers, rest[0] if rest else None)
    if not used.size:
        return
    before = buffer.stored_by[used]
    order = np.arange(used.size)
    buffer.stored_by[used] = order
    twice = buffer.stored_by[used] != order
    if twice.any():
        raise stores(machine, operation, "stored twice at once", region, used, twice, mask)
    others = (before >= 0) & (before != machine.number)
    if others.any():
        raise stores(machine, operation, "stored by two programs", region, used, others, mask)
    buffer.stored_by[used] = machine.number
    region.stored = True
    unshared(machine, operation, region, buffer.loaded[used], mask)
    shape = shape_of(operation.operands[0].type)

    def scattered(values: Array, given: Array) -> Array:
        full = np.broadcast_to(given, shape)
        values[used] = full[mask] if mask is not None else full.reshape(-1)
        return values

    if buffer.is_float:
        buffer.values = machine.domain.each(scattered, buffer.values, value)
    else:
        scattered(buffer.values, value)


def stores(
    machine: Machine,
    operation: Operation,
    kind: Kind,
    region: Region,
    used: Array,
    where: Array,
    mask: Array | None,
) -> Violation:
    detail = f"element {int(used[where][0]) - region.first} of {region.name}"
    return machine.violation(kind, detail, operation, spread(machine, operation, where, mask))


def unshared(
    machine: Machine, operation: Operation, region: Region, touched: Array, mask: Array | None
) -> None:
    """Raise Violation if what is read is written too: an address, or a tensor."""
    if touched.any():
        where = spread(machine, operation, touched, mask)
        detail = f"an element of {region.name}"
        raise machine.violation("read and written", detail, operation, where)
    if region.loaded + region.stored + region.added > 1:
        raise machine.violation("read and written", f"tensor {region.name}", operation, None)


def spread(machine: Machine, operation: Operation, where: Array, mask: Array | None) -> Array:
    """Truth values of the addresses that are used as those of the tile."""
    shape = shape_of(operation.operands[0].type)
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
        raise Undecided("what an atomic operation found, which depends on the programs' order")
    region = pointers.region
    buffer = region.buffer
    used, mask = addresses(machine, operation, pointers, rest[0] if rest else None)
    if len(np.unique(used)) != used.size:
        raise Undecided("one atomic operation adds twice to an address")
    if not used.size:
        return
    buffer.stored_by[used] = machine.number
    region.added = True
    unshared(machine, operation, region, buffer.loaded[used], mask)
    shape = shape_of(operation.operands[0].type)

    def given(tile: Array) -> Array:
        full = np.broadcast_to(tile, shape)
        return full[mask] if mask is not None else full.reshape(-1)

    def put(values: Array, sums: Array) -> Array:
        values[used] = sums
        return values

    old = machine.domain.each(lambda values: values[used], buffer.values)
    new = machine.domain.add(old, machine.domain.each(given, value))
    buffer.values = machine.domain.each(put, buffer.values, new)
