"""Run a kernel's TTIR over a domain of floats, and check on the way that it may do what it does.

Checked of every program:

- an address that is read or written lies within the tensor whose pointer it was computed from;
- no integer that is used as a number has overflowed;
- no two programs store to one address, nor one operation twice;
- no tensor and no address is both read and written;
- every argument of exp2 is ≤ 0, where the domain has an order: then no weight overflows. That a
  kernel is right in exact arithmetic does not say so.

The operations mean what MLIR's and Triton's documentation says (https://mlir.llvm.org/docs/Dialects,
https://triton-lang.org/main/dialects/TritonOps.html), without rounding: conversions between floats
do nothing, and `roundings` says which there were.

A tile is kept with length 1 along the dimensions in which its elements are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from bridge.ttir import integers
from bridge.ttir.domain import Array, Numbers
from bridge.ttir.faults import CannotTell, Kind, Program, Undecided, Violation
from bridge.ttir.memory import Memory, Region
from bridge.ttir.syntax import (
    Block,
    Function,
    Operation,
    Pointer,
    Scalar,
    TtirError,
    Type,
    Value,
    element_of,
    shape_of,
)


@dataclass(frozen=True, eq=False)
class Pointers:
    """A tile of pointers into one tensor: `offsets` from the beginning of its storage, in
    elements."""

    region: Region
    offsets: Array


@dataclass(frozen=True, eq=False)
class Mark:
    """Where an integer overflowed that was not used as a number so far."""

    operation: Operation
    program: Program
    element: tuple[int, ...]


class Machine:
    """One launch of a kernel.

    arguments: for each argument of `kernel` a tensor of `memory`, an integer, or a float
    (`Domain.scalar`). roundings: the types to which floats were converted, and the precisions of
    products; what they lose is not seen here.
    """

    def __init__(self, kernel: Function, memory: Memory, arguments: Sequence[Any]) -> None:
        self.kernel, self.memory, self.domain = kernel, memory, memory.domain
        self.roundings: set[str] = set()
        self.program: Program = ()
        self.number = -1
        self.grid: Program = ()
        self.values: list[Any] = [None] * kernel.values
        self.marks: dict[int, Mark] = {}
        self.regions: list[Region] = []
        if len(arguments) != len(kernel.arguments):
            raise ValueError(
                f"arguments must be {len(kernel.arguments)}, one for each of the kernel's, "
                f"not {len(arguments)}"
            )
        for value, given in zip(kernel.arguments, arguments, strict=True):
            self.values[value.number] = self._argument(value, given)

    def _argument(self, value: Value, given: Any) -> Any:
        if isinstance(given, Tensor):
            region = self.memory.region(value.name, given)
            self.regions.append(region)
            return Pointers(region, np.array(region.first, np.int64))
        if isinstance(value.type, Scalar) and value.type.is_float:
            return self.domain.scalar(float(given))
        if isinstance(value.type, Scalar) and not isinstance(given, float):
            if value.type.name == "i1":
                return np.array(bool(given))
            return np.array(int(given), np.int64)
        raise ValueError(f"argument {value.name} must be a {value.type}, not {given!r}")

    def run(self, grid: Sequence[int]) -> None:
        """Run all programs, the first dimension fastest.

        Raises:
            Violation: a program does what none may.
            CannotTell: an operation has no meaning here, or its result cannot be decided.
        """
        self.grid = (*grid, 1, 1)[:3]
        x, y, z = (range(size) for size in self.grid)
        for self.number, place in enumerate(itertools.product(z, y, x)):
            self.program = place[::-1]
            self._run(self.kernel.blocks)

    # ------------------------------------------------------------------------------ control

    def _run(self, blocks: list[Block]) -> Operation:
        """Run a region up to the operation that ends it, which is returned."""
        block = blocks[0]
        while True:
            last = self._block(block)
            if not last.successors:
                return last
            way = 0
            operands = last.operands
            if last.name == "cf.cond_br":
                way = 0 if bool(self._of(last.operands[0])) else 1
            successor = last.successors[way]
            del operands
            self._assign(successor.block.arguments, successor.operands)
            block = successor.block

    def _block(self, block: Block) -> Operation:
        for operation in block.operations:
            if operation.name in _TERMINATORS:
                return operation
            try:
                self._operation(operation)
            except Undecided as reason:
                raise self._cannot_tell(operation, str(reason)) from reason
        if block.operations:
            raise self._cannot_tell(block.operations[-1], "the block does not end")
        raise TtirError("a block of the kernel is empty")

    def _of(self, value: Value) -> Any:
        return self.values[value.number]

    def _assign(self, to: Sequence[Value], given: Sequence[Value]) -> None:
        """Assign values to others, all at once."""
        found = [(self._of(value), self.marks.get(value.number)) for value in given]
        for value, (what, mark) in zip(to, found, strict=True):
            self._set(value, what, mark)

    def _set(self, value: Value, what: Any, mark: Mark | None = None) -> None:
        self.values[value.number] = what
        if mark is not None:
            self.marks[value.number] = mark
        elif self.marks:
            self.marks.pop(value.number, None)

    def _operation(self, operation: Operation) -> None:
        name = operation.name
        handler = _CONTROL.get(name)
        if handler is not None:
            handler(self, operation)
            return
        compute = _COMPUTE.get(name)
        if compute is None:
            raise Undecided("the operation has no meaning here")
        mark = self._mark(operation) if self.marks else None
        found = compute(self, operation, *[self.values[v.number] for v in operation.operands])
        if isinstance(found, _Marked):
            found, mark = found.value, found.mark
        if not operation.results:
            return
        if len(operation.results) > 1:
            for value, part in zip(operation.results, found, strict=True):
                self._set(value, part, mark)
        else:
            self._set(operation.results[0], found, mark)

    def _mark(self, operation: Operation) -> Mark | None:
        """The mark of the results of an operation that takes bits; raises Violation for one that
        takes numbers, if an operand is marked."""
        for value in operation.operands:
            mark = self.marks.get(value.number)
            if mark is None:
                continue
            name = operation.name
            if name in integers.BITWISE:
                return mark
            equal = name == "arith.cmpi" and operation.word("predicate")[0] in "uen"
            if name not in integers.UNSIGNED and not equal:
                raise Violation(
                    "overflow",
                    f"its result is used as a number at {operation.location}",
                    mark.operation,
                    mark.program,
                    mark.element,
                )
        return None

    def _bound(self, value: Value, operation: Operation) -> int:
        """An integer that a loop or branch goes by."""
        mark = self.marks.get(value.number)
        if mark is not None:
            detail = f"its result is used as a number at {operation.location}"
            raise Violation("overflow", detail, mark.operation, mark.program, mark.element)
        return int(self._of(value))

    def _for(self, operation: Operation) -> None:
        first, stop, step = (self._bound(value, operation) for value in operation.operands[:3])
        if step <= 0:
            raise Undecided(f"the step of a loop is {step}")
        block = operation.regions[0][0]
        given: Sequence[Value] = operation.operands[3:]
        for i in range(first, stop, step):
            self._set(block.arguments[0], np.array(i, np.int64))
            self._assign(block.arguments[1:], given)
            given = self._run(operation.regions[0]).operands
        self._assign(operation.results, given)

    def _while(self, operation: Operation) -> None:
        before, after = operation.regions
        given: Sequence[Value] = operation.operands
        while True:
            self._assign(before[0].arguments, given)
            condition, *given = self._run(before).operands
            if not bool(self._of(condition)):
                break
            self._assign(after[0].arguments, given)
            given = self._run(after).operands
        self._assign(operation.results, given)

    def _if(self, operation: Operation) -> None:
        way = 0 if bool(self._of(operation.operands[0])) else 1
        if way < len(operation.regions):
            last = self._run(operation.regions[way])
            self._assign(operation.results, last.operands)

    # ------------------------------------------------------------------------------- errors

    def _cannot_tell(self, operation: Operation, reason: str) -> CannotTell:
        return CannotTell(reason, operation, self.program, None)

    def _violation(
        self, kind: Kind, detail: str, operation: Operation, where: Array | None
    ) -> Violation:
        """`where`: of the operation's elements those for which it is one; None: not about any."""
        element = None
        if where is not None:
            shape = shape_of(_tile_type(operation))
            full = np.broadcast_to(where, shape) if shape else where
            element = tuple(int(i) for i in np.argwhere(full)[0])
        return Violation(kind, detail, operation, self.program, element)

    # ------------------------------------------------------------------------------ integers

    def arithmetic(self, operation: Operation, f: Any, a: Array, b: Array) -> Any:
        """A sum, difference or product of integers."""
        if a.dtype == bool:
            return f(a.astype(np.int64), b.astype(np.int64)) & 1 != 0
        found, off = integers.fitted(f, a, b, _bits(operation.result.type))
        if off is None:
            return found
        element = tuple(int(i) for i in np.argwhere(off)[0])
        return _Marked(found, Mark(operation, self.program, element))

    def nonzero(self, operation: Operation, b: Array) -> None:
        if not b.all():
            raise self._violation("division by zero", "an integer's", operation, b == 0)

    # -------------------------------------------------------------------------------- memory

    def addresses(
        self, operation: Operation, pointers: Pointers, mask: Array | None
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
            raise self._violation(
                "outside its tensor",
                f"element {wrong} of {region.name}, which spans {size}",
                operation,
                off,
            )
        return used, mask

    def load(self, operation: Operation, pointers: Any, *rest: Any) -> Any:
        if not isinstance(pointers, Pointers):
            raise Undecided("a load from what is no pointer to numbers")
        if operation.attributes.get("boundaryCheck"):
            raise Undecided("a load with a boundary check")
        region = pointers.region
        buffer = region.buffer
        used, mask = self.addresses(operation, pointers, rest[0] if rest else None)
        if used.size:
            region.loaded = True
            buffer.loaded[used] = True
            self.unshared(operation, region, buffer.stored_by[used] >= 0, mask)
        shape = shape_of(operation.operands[0].type)
        other = rest[1] if len(rest) > 1 else None
        if mask is not None and other is None and not mask.all():
            other = (
                self.domain.constant(float("nan")) if buffer.is_float else np.zeros((), np.int64)
            )
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
            bits = 8 if is_bool else _bits(operation.result.type)
            found = integers.wrapped(gathered(buffer.values, other), bits)
            return found != 0 if is_bool else found
        fills = () if other is None or mask is None else (other,)
        return self.domain.each(gathered, buffer.values, *fills)

    def store(self, operation: Operation, pointers: Any, value: Any, *rest: Any) -> None:
        if not isinstance(pointers, Pointers):
            raise Undecided("a store to what is no pointer to numbers")
        if operation.attributes.get("boundaryCheck"):
            raise Undecided("a store with a boundary check")
        region = pointers.region
        buffer = region.buffer
        used, mask = self.addresses(operation, pointers, rest[0] if rest else None)
        if not used.size:
            return
        before = buffer.stored_by[used]
        order = np.arange(used.size)
        buffer.stored_by[used] = order
        twice = buffer.stored_by[used] != order
        if twice.any():
            raise self._stores(operation, "stored twice at once", region, used, twice, mask)
        others = (before >= 0) & (before != self.number)
        if others.any():
            raise self._stores(operation, "stored by two programs", region, used, others, mask)
        buffer.stored_by[used] = self.number
        region.stored = True
        self.unshared(operation, region, buffer.loaded[used], mask)
        shape = shape_of(operation.operands[0].type)

        def scattered(values: Array, given: Array) -> Array:
            full = np.broadcast_to(given, shape)
            values[used] = full[mask] if mask is not None else full.reshape(-1)
            return values

        if buffer.is_float:
            self.domain.each(scattered, buffer.values, value)
        else:
            scattered(buffer.values, value)

    def _stores(
        self,
        operation: Operation,
        kind: Kind,
        region: Region,
        used: Array,
        where: Array,
        mask: Array | None,
    ) -> Violation:
        detail = f"element {int(used[where][0]) - region.first} of {region.name}"
        return self._violation(kind, detail, operation, self._spread(operation, where, mask))

    def unshared(
        self, operation: Operation, region: Region, touched: Array, mask: Array | None
    ) -> None:
        """Raise Violation if what is read is written too: an address, or a tensor."""
        if touched.any():
            where = self._spread(operation, touched, mask)
            detail = f"an element of {region.name}"
            raise self._violation("read and written", detail, operation, where)
        if region.loaded and region.stored:
            raise self._violation("read and written", f"tensor {region.name}", operation, None)

    def _spread(self, operation: Operation, where: Array, mask: Array | None) -> Array:
        """Truth values of the addresses that are used as those of the tile."""
        shape = shape_of(operation.operands[0].type)
        if mask is None:
            return where.reshape(shape)
        full = np.zeros(shape, bool)
        full[mask] = where
        return full

    def atomic(self, operation: Operation, pointers: Any, value: Any, *rest: Any) -> Any:
        """`tt.atomic_rmw fadd`: many programs may add to one address, and none other may use it."""
        words = operation.attributes.get("words")
        kind = words[0] if isinstance(words, list) else operation.attributes.get("rmw")
        if kind != "fadd" or not isinstance(pointers, Pointers):
            raise Undecided(f"an atomic operation {kind}")
        region = pointers.region
        buffer = region.buffer
        used, mask = self.addresses(operation, pointers, rest[0] if rest else None)
        if len(np.unique(used)) != used.size:
            raise Undecided("one atomic operation adds twice to an address")
        buffer.stored_by[used] = self.number
        region.stored = True
        shape = shape_of(operation.operands[0].type)

        def given(tile: Array) -> Array:
            full = np.broadcast_to(tile, shape)
            return full[mask] if mask is not None else full.reshape(-1)

        def put(values: Array, sums: Array) -> Array:
            values[used] = sums
            return values

        old = self.domain.each(lambda values: values[used], buffer.values)
        new = self.domain.add(old, self.domain.each(given, value))
        self.domain.each(put, buffer.values, new)
        if operation.results:
            return None
        return None

    # -------------------------------------------------------------------------------- floats

    def exp2(self, operation: Operation, x: Numbers, exponent: Numbers | None = None) -> Numbers:
        """2^x; `exponent`: what has to be ≤ 0, if it is not x."""
        within = self.domain.at_most_zero(x if exponent is None else exponent)
        if within is not None and not within.all():
            off = ~within
            shape = off.shape
            place = tuple(int(i) for i in np.argwhere(off)[0]) if shape else ()
            text = self.domain.text(self.domain.each(lambda tile: tile[place], x))
            detail = text if len(text) < 300 else text[:300] + "…"
            raise self._violation("exp2 of a positive number", detail, operation, off)
        return self.domain.exp2(x)

    def reduce(self, operation: Operation, *tiles: Any) -> Any:
        block = operation.regions[0][0]
        inner = block.operations[0]
        plain = (
            len(tiles) == 1
            and len(block.operations) == 2
            and set(inner.operands) == set(block.arguments)
            and block.operations[1].operands == inner.results
        )
        kind = inner.name
        axis = operation.integer("axis")
        if not plain:
            raise Undecided(f"a reduction by {', '.join(o.name for o in block.operations)}")
        shape = shape_of(operation.operands[0].type)
        tile = self.move(tiles[0], lambda x: np.broadcast_to(x, shape))
        if kind == "arith.addf":
            return self.domain.sum(tile, axis)
        if kind in ("arith.maxnumf", "arith.maximumf"):
            return self.domain.largest(tile, axis)
        if kind in ("arith.minnumf", "arith.minimumf"):
            return self.domain.negate(self.domain.largest(self.domain.negate(tile), axis))
        f = _REDUCTIONS.get(kind)
        if f is None:
            raise Undecided(f"a reduction by {kind}")
        found = f(tile, axis=axis)
        if kind == "arith.addi":
            bits = _bits(operation.result.type)
            fitted = integers.wrapped(found, bits)
            if (fitted != found).any():
                where = tuple(int(i) for i in np.argwhere(fitted != found)[0])
                return _Marked(fitted, Mark(operation, self.program, where))
        return found

    def dot(self, operation: Operation, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        precision = operation.attributes.get("inputPrecision", "ieee")
        element = element_of(operation.operands[0].type)
        if precision != "ieee" and element == Scalar("f32"):
            self.roundings.add(str(precision))
        shapes = [shape_of(value.type) for value in operation.operands]
        if any(len(shape) != 2 for shape in shapes):
            raise Undecided("a product of a batch of matrices")
        full = [
            self.domain.each(lambda x, shape=shape: np.broadcast_to(x, shape), tile)
            for tile, shape in zip((a, b, c), shapes, strict=True)
        ]
        return self.domain.dot(*full)

    def converted(self, operation: Operation, x: Numbers) -> Numbers:
        self.roundings.add(str(element_of(operation.result.type)))
        return x

    def constant(self, operation: Operation) -> Any:
        value = operation.attributes["value"]
        type = operation.result.type
        element, shape = element_of(type), shape_of(type)
        is_float = isinstance(element, Scalar) and element.is_float
        one = (1,) * len(shape)
        if isinstance(value, list):
            if is_float:
                raise Undecided("a tile of several float constants")
            return np.array(value, bool if element == Scalar("i1") else np.int64).reshape(shape)
        if is_float:
            found = self.domain.constant(float(value))
            return self.domain.each(lambda x: x.reshape(one), found)
        kind = bool if element == Scalar("i1") else np.int64
        return np.full(one, value, kind)

    # ------------------------------------------------------------------------------- shapes

    def move(self, x: Any, f: Callable[[Array], Array]) -> Any:
        """What `f`, which moves elements, makes of a tile of any kind."""
        if isinstance(x, Pointers):
            return Pointers(x.region, f(x.offsets))
        if isinstance(x, np.ndarray) and x.dtype != object:
            return f(x)
        return self.domain.each(f, x)

    def full(self, operation: Operation, x: Any, of: int = 0) -> Any:
        """An operand's tile, its equal elements written out."""
        shape = shape_of(operation.operands[of].type)
        return self.move(x, lambda tile: np.broadcast_to(tile, shape))

    def reshape(self, operation: Operation, x: Any) -> Any:
        shape = shape_of(operation.result.type)
        return self.move(self.full(operation, x), lambda tile: tile.reshape(shape))

    def joined(self, operation: Operation, a: Any, b: Any) -> Any:
        a, b = self.full(operation, a), self.full(operation, b, 1)
        if isinstance(a, Pointers):
            raise Undecided("pointers joined")
        if isinstance(a, np.ndarray) and a.dtype != object:
            return np.stack([a, b], -1)
        return self.domain.each(lambda x, y: np.stack([x, y], -1), a, b)

    def split(self, operation: Operation, x: Any) -> Any:
        x = self.full(operation, x)
        return [self.move(x, lambda tile, i=i: tile[..., i]) for i in (0, 1)]

    def select(self, operation: Operation, condition: Array, a: Any, b: Any) -> Any:
        if condition.ndim == 0:
            return a if bool(condition) else b
        if isinstance(a, Pointers):
            if a.region is not b.region:
                raise Undecided("a choice between pointers into two tensors")
            return Pointers(a.region, np.where(condition, a.offsets, b.offsets))
        if isinstance(a, np.ndarray) and a.dtype != object:
            return np.where(condition, a, b)
        return self.domain.each(lambda x, y: np.where(condition, x, y), a, b)

    def bitcast(self, operation: Operation, x: Any) -> Any:
        before, after = element_of(operation.operands[0].type), element_of(operation.result.type)
        if isinstance(after, Pointer) and isinstance(before, Pointer):
            if _bytes(before.to) == _bytes(after.to):
                return x
        elif isinstance(after, Scalar) and isinstance(before, Scalar):
            if before == after:
                return x
        raise Undecided(f"the bits of {before} as {after}")


@dataclass(frozen=True, eq=False)
class _Marked:
    """A result of which an element overflowed."""

    value: Array
    mark: Mark


def _bits(type: Type) -> int:
    element = element_of(type)
    if not isinstance(element, Scalar):
        raise Undecided(f"an integer operation on {element}")
    return element.bits


def _bytes(type: Type) -> int:
    return (_bits(type) + 7) // 8


def _tile_type(operation: Operation) -> Type:
    """The type of the tile whose elements an operation's elements are."""
    of = operation.operands[0] if operation.name in ("tt.load", "tt.store") else None
    return (of or (operation.results or operation.operands)[0]).type


def _arithmetic(f: Any) -> Callable[..., Any]:
    return lambda m, o, a, b: m.arithmetic(o, f, a, b)


def _divided(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        machine.nonzero(operation, b)
        return f(a, b)

    return compute


def _unsigned(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """An operation on unsigned numbers."""

    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        bits = _bits(operation.operands[0].type)
        if f in (np.floor_divide, np.remainder):
            machine.nonzero(operation, b)
        found = np.asarray(f(integers.unsigned(a, bits), integers.unsigned(b, bits)))
        return integers.wrapped(found, bits)

    return compute


def _shifted(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """A shift, of which no more than all bits may go."""

    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        bits = _bits(operation.result.type)
        if (integers.unsigned(b, bits) >= bits).any():
            raise Undecided("a shift by more bits than there are")
        return integers.wrapped(np.asarray(f(a, b)), bits)

    return compute


def _logical_right(a: Array, b: Array) -> Array:
    return a >> b


def _shrui(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    bits = _bits(operation.result.type)
    return _shifted(lambda x, y: np.asarray(integers.unsigned(x, bits) >> y))(
        machine, operation, a, b
    )


def _mulhi(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    """The upper half of a product of unsigned numbers."""
    bits = _bits(operation.result.type)
    x, y = integers.unsigned(a, bits), integers.unsigned(b, bits)
    if bits < 64:
        product = (x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(bits)
        return integers.wrapped(product.astype(np.int64), bits)
    return integers.wrapped(np.asarray((x * y) >> bits, object), bits)


def _cmpi(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    predicate = operation.word("predicate")
    if predicate[0] in "us":
        if predicate[0] == "u" and a.dtype != bool:
            bits = _bits(operation.operands[0].type)
            a, b = integers.unsigned(a, bits), integers.unsigned(b, bits)
        predicate = predicate[1:]
    return np.asarray(integers.COMPARISONS[predicate](a, b), bool)


def _extsi(machine: Machine, operation: Operation, a: Array) -> Any:
    return -a.astype(np.int64) if a.dtype == bool else a


def _extui(machine: Machine, operation: Operation, a: Array) -> Any:
    if a.dtype == bool:
        return a.astype(np.int64)
    return integers.unsigned(a, _bits(operation.operands[0].type))


def _trunci(machine: Machine, operation: Operation, a: Array) -> Any:
    bits = _bits(operation.result.type)
    if bits == 1:
        return a & 1 != 0
    found = integers.wrapped(a, bits)
    if (found == a).all():
        return found
    place = tuple(int(i) for i in np.argwhere(found != a)[0])
    return _Marked(found, Mark(operation, machine.program, place))


def _sitofp(machine: Machine, operation: Operation, a: Array) -> Any:
    return machine.domain.integers(a)


def _uitofp(machine: Machine, operation: Operation, a: Array) -> Any:
    return machine.domain.integers(_extui(machine, operation, a))


def _addptr(machine: Machine, operation: Operation, a: Any, b: Array) -> Any:
    if not isinstance(a, Pointers):
        raise Undecided("an offset to what is no pointer")
    return Pointers(a.region, a.offsets + b)


def _splat(machine: Machine, operation: Operation, a: Any) -> Any:
    one = (1,) * len(shape_of(operation.result.type))
    return machine.move(a, lambda x: x.reshape(one))


def _float(name: str) -> Callable[..., Any]:
    return lambda m, o, *tiles: getattr(m.domain, name)(*tiles)


def _bool(f: Any, g: Any) -> Callable[..., Any]:
    """f of truth values, g of bits."""
    return lambda m, o, a, b: f(a, b) if a.dtype == bool else g(a, b)


def _exp(m: Machine, o: Operation, x: Numbers) -> Numbers:
    from bridge.ttir.domain import LOG2E

    return m.exp2(o, m.domain.multiply(x, m.domain.constant(LOG2E)))


_TERMINATORS = frozenset({
    "tt.return", "scf.yield", "scf.condition", "cf.br", "cf.cond_br", "tt.reduce.return",
})  # fmt: skip
_CONTROL: dict[str, Callable[[Machine, Operation], None]] = {
    "scf.for": Machine._for,
    "scf.while": Machine._while,
    "scf.if": Machine._if,
}
_REDUCTIONS: dict[str, Any] = {
    "arith.addi": np.sum, "arith.maxsi": np.max, "arith.minsi": np.min, "arith.ori": np.any,
    "arith.andi": np.all,
}  # fmt: skip
_AXES = "xyz"
_COMPUTE: dict[str, Callable[..., Any]] = {
    "arith.constant": Machine.constant,
    "tt.get_program_id": lambda m, o: np.array(m.program[_AXES.index(o.word("axis"))], np.int64),
    "tt.get_num_programs": lambda m, o: np.array(m.grid[_AXES.index(o.word("axis"))], np.int64),
    "tt.make_range": lambda m, o: np.arange(o.integer("start"), o.integer("end"), dtype=np.int64),
    "tt.splat": _splat,
    "tt.unsplat": lambda m, o, x: m.move(x, lambda tile: tile.reshape(())),
    "tt.broadcast": lambda m, o, x: x,
    "tt.expand_dims": lambda m, o, x: m.move(
        x, lambda tile: np.expand_dims(tile, o.integer("axis"))
    ),
    "tt.reshape": Machine.reshape,
    "tt.trans": lambda m, o, x: m.move(x, lambda tile: tile.transpose(o.integers("order"))),
    "tt.join": Machine.joined,
    "tt.split": Machine.split,
    "tt.addptr": _addptr,
    "tt.load": Machine.load,
    "tt.store": Machine.store,
    "tt.atomic_rmw": Machine.atomic,
    "tt.dot": Machine.dot,
    "tt.reduce": Machine.reduce,
    "tt.bitcast": Machine.bitcast,
    "arith.bitcast": Machine.bitcast,
    "arith.select": Machine.select,
    "arith.addi": _arithmetic(np.add),
    "arith.subi": _arithmetic(np.subtract),
    "arith.muli": _arithmetic(np.multiply),
    "arith.divsi": _divided(integers.quotient),
    "arith.remsi": _divided(integers.remainder),
    "arith.divui": _unsigned(np.floor_divide),
    "arith.remui": _unsigned(np.remainder),
    "arith.minui": _unsigned(np.minimum),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minsi": lambda m, o, a, b: np.minimum(a, b),
    "arith.maxsi": lambda m, o, a, b: np.maximum(a, b),
    "arith.andi": _bool(np.logical_and, np.bitwise_and),
    "arith.ori": _bool(np.logical_or, np.bitwise_or),
    "arith.xori": _bool(np.logical_xor, np.bitwise_xor),
    "arith.shli": _shifted(lambda a, b: a.astype(object) << b),
    "arith.shrsi": _shifted(_logical_right),
    "arith.shrui": _shrui,
    "tt.mulhiui": _mulhi,
    "math.absi": lambda m, o, a: np.abs(a),
    "arith.cmpi": _cmpi,
    "arith.extsi": _extsi,
    "arith.extui": _extui,
    "arith.trunci": _trunci,
    "arith.sitofp": _sitofp,
    "arith.uitofp": _uitofp,
    "arith.extf": lambda m, o, x: x,
    "arith.truncf": Machine.converted,
    "tt.fp_to_fp": Machine.converted,
    "arith.addf": _float("add"),
    "arith.subf": _float("subtract"),
    "arith.mulf": _float("multiply"),
    "arith.divf": _float("divide"),
    "tt.precise_divf": _float("divide"),
    "arith.negf": _float("negate"),
    "arith.maxnumf": _float("maximum"),
    "arith.maximumf": _float("maximum"),
    "arith.minnumf": _float("minimum"),
    "arith.minimumf": _float("minimum"),
    "math.absf": _float("absolute"),
    "math.exp2": Machine.exp2,
    "math.exp": _exp,
    "math.log": _float("log"),
    "math.log2": _float("log2"),
    "math.fma": lambda m, o, a, b, c: m.domain.add(m.domain.multiply(a, b), c),
    "arith.cmpf": lambda m, o, a, b: m.domain.compare(o.word("predicate"), a, b),
}
