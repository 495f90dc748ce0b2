"""The operations of TTIR that compute: functions of the machine, the operation and its operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.ttir import descriptors, integers
from bridge.ttir.access import atomic, load, store
from bridge.ttir.domain import LOG2E, Array, Numbers
from bridge.ttir.faults import Overflowed, Overflowing, Undecided
from bridge.ttir.integers import Mark, Marked, bits_of, bytes_of
from bridge.ttir.memory import Pointers
from bridge.ttir.syntax import Operation, Pointer, Scalar, element_of, shape_of

if TYPE_CHECKING:
    from bridge.ttir.machine import Machine


def arithmetic(machine: Machine, operation: Operation, f: Any, a: Array, b: Array) -> Any:
    """A sum, difference or product of integers."""
    if a.dtype == bool:
        return f(a.astype(np.int64), b.astype(np.int64)) & 1 != 0
    found, off = integers.compute_fitting(f, a, b, bits_of(operation.result.type))
    if off is None:
        return found
    element = tuple(int(i) for i in np.argwhere(off)[0])
    return Marked(found, Mark(operation, machine.program, element))


def nonzero(machine: Machine, operation: Operation, b: Array) -> None:
    if not b.all():
        raise machine.violation("division by zero", "an integer's", operation, b == 0)


def exp2(machine: Machine, operation: Operation, x: Numbers, unit: float | None = None) -> Any:
    """2^(unit·x), unit > 0, of which x has to be ≤ 0 or, with `Machine.masked_after`, nothing that
    comes of it to be stored."""
    domain = machine.domain
    found = domain.exp2(x if unit is None else domain.multiply(x, domain.constant(unit)))
    within = machine.domain.at_most_zero(x)
    if within is not None and not within.all():
        off = ~within
        place = tuple(int(i) for i in np.argwhere(off)[0])
        text = machine.domain.text(machine.domain.each(lambda tile: tile[(*place, ...)], x))
        detail = text if len(text) < 300 else text[:300] + "…"
        wrong = machine.violation("exp2 of a positive number", detail, operation, off)
        if not machine.masked_after:
            raise wrong
        return Overflowed(found, Overflowing(wrong, off))
    return found


def reduce(machine: Machine, operation: Operation, *tiles: Any) -> Any:
    kind = operation.combination if len(tiles) == 1 else None
    if kind is None:
        named = ", ".join(inner.name for inner in operation.regions[0][0].operations)
        raise Undecided(f"a reduction by {named}")
    axis = operation.integer("axis")
    shape = shape_of(operation.operands[0].type)
    tile = move(machine, tiles[0], lambda x: np.broadcast_to(x, shape))
    if kind == "arith.addf":
        return machine.domain.sum(tile, axis)
    if kind in _KEEP_NAN:
        no_nan(machine, tile)
    if kind in ("arith.maxnumf", "arith.maximumf"):
        return machine.domain.largest(tile, axis)
    if kind in ("arith.minnumf", "arith.minimumf"):
        return machine.domain.negate(machine.domain.largest(machine.domain.negate(tile), axis))
    f = _REDUCTIONS.get(kind)
    if f is None:
        raise Undecided(f"a reduction by {kind}")
    found = f(tile, axis=axis)
    if kind == "arith.addi":
        bits = bits_of(operation.result.type)
        fitted = integers.wrap(found, bits)
        if (fitted != found).any():
            where = tuple(int(i) for i in np.argwhere(fitted != found)[0])
            return Marked(fitted, Mark(operation, machine.program, where))
    return found


def dot(machine: Machine, operation: Operation, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    precision = operation.attributes.get("inputPrecision", "ieee")
    element = element_of(operation.operands[0].type)
    if precision != "ieee" and element == Scalar("f32"):
        machine.roundings.add(str(precision))
    shapes = [shape_of(value.type) for value in operation.operands]
    if any(len(shape) != 2 for shape in shapes):
        raise Undecided("a product of a batch of matrices")
    return machine.domain.dot(*(full(machine, operation, x, i) for i, x in enumerate((a, b, c))))


def convert(machine: Machine, operation: Operation, x: Numbers) -> Numbers:
    machine.roundings.add(str(element_of(operation.result.type)))
    return x


def constant(machine: Machine, operation: Operation) -> Any:
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
        found = machine.domain.literal(float(value))
        return machine.domain.each(lambda x: x.reshape(one), found)
    kind = bool if element == Scalar("i1") else np.int64
    return np.full(one, value, kind)


def move(machine: Machine, x: Any, f: Callable[[Array], Array]) -> Any:
    """Apply `f`, which moves elements, to a tile of any kind."""
    if isinstance(x, Pointers):
        return Pointers(x.region, f(x.offsets))
    if isinstance(x, np.ndarray) and x.dtype != object:
        return f(x)
    return machine.domain.each(f, x)


def full(machine: Machine, operation: Operation, x: Any, of: int = 0) -> Any:
    """An operand's tile, its equal elements written out."""
    shape = shape_of(operation.operands[of].type)
    return move(machine, x, lambda tile: np.broadcast_to(tile, shape))


def reshape(machine: Machine, operation: Operation, x: Any) -> Any:
    shape = shape_of(operation.result.type)
    return move(machine, full(machine, operation, x), lambda tile: tile.reshape(shape))


def join(machine: Machine, operation: Operation, a: Any, b: Any) -> Any:
    a, b = full(machine, operation, a), full(machine, operation, b, 1)
    if isinstance(a, Pointers):
        raise Undecided("pointers joined")
    if isinstance(a, np.ndarray) and a.dtype != object:
        return np.stack([a, b], -1)
    return machine.domain.each(lambda x, y: np.stack([x, y], -1), a, b)


def split(machine: Machine, operation: Operation, x: Any) -> Any:
    x = full(machine, operation, x)
    return [move(machine, x, functools.partial(_part, i)) for i in (0, 1)]


def _part(i: int, tile: Array) -> Array:
    return np.asarray(tile[..., i])


def select(machine: Machine, operation: Operation, condition: Array, a: Any, b: Any) -> Any:
    if condition.ndim == 0:
        return a if bool(condition) else b
    if isinstance(a, Pointers):
        if a.region is not b.region:
            raise Undecided("a choice between pointers into two tensors")
        return Pointers(a.region, np.where(condition, a.offsets, b.offsets))
    if isinstance(a, np.ndarray) and a.dtype != object:
        return np.where(condition, a, b)
    return machine.domain.each(lambda x, y: np.where(condition, x, y), a, b)


def bitcast(machine: Machine, operation: Operation, x: Any) -> Any:
    before, after = element_of(operation.operands[0].type), element_of(operation.result.type)
    if isinstance(after, Pointer) and isinstance(before, Pointer):
        if bytes_of(before.to) == bytes_of(after.to):
            return x
    elif before == after:
        return x
    raise Undecided(f"the bits of {before} as {after}")


def _arithmetic(f: Any) -> Callable[..., Any]:
    return lambda m, o, a, b: arithmetic(m, o, f, a, b)


def _divide(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        nonzero(machine, operation, b)
        return f(a, b)

    return compute


def _on_unsigned(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """An operation on unsigned numbers."""

    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        bits = bits_of(operation.operands[0].type)
        if f in (np.floor_divide, np.remainder):
            nonzero(machine, operation, b)
        found = np.asarray(f(integers.to_unsigned(a, bits), integers.to_unsigned(b, bits)))
        return integers.wrap(found, bits)

    return compute


def _shift(f: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """A shift, of which no more than all bits may go."""

    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
        bits = bits_of(operation.result.type)
        if (integers.to_unsigned(b, bits) >= bits).any():
            raise Undecided("a shift by more bits than there are")
        return integers.wrap(np.asarray(f(a, b)), bits)

    return compute


def _logical_right(a: Array, b: Array) -> Array:
    return a >> b


def _shrui(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    x = integers.to_unsigned(a, bits_of(operation.result.type))
    return _shift(lambda _, y: np.asarray(x >> y, x.dtype))(machine, operation, a, b)


def _mulhi(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    """The upper half of a product of unsigned numbers."""
    bits = bits_of(operation.result.type)
    x, y = integers.to_unsigned(a, bits), integers.to_unsigned(b, bits)
    if bits < 64:
        product = (x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(bits)
        return integers.wrap(product.astype(np.int64), bits)
    return integers.wrap(np.asarray((x * y) >> bits, object), bits)


def _cmpi(machine: Machine, operation: Operation, a: Array, b: Array) -> Any:
    predicate = operation.word("predicate")
    if predicate[0] in "us":
        if predicate[0] == "u" and a.dtype != bool:
            bits = bits_of(operation.operands[0].type)
            a, b = integers.to_unsigned(a, bits), integers.to_unsigned(b, bits)
        predicate = predicate[1:]
    return np.asarray(integers.COMPARISONS[predicate](a, b), bool)


def _extsi(machine: Machine, operation: Operation, a: Array) -> Any:
    return -a.astype(np.int64) if a.dtype == bool else a


def _extui(machine: Machine, operation: Operation, a: Array) -> Any:
    if a.dtype == bool:
        return a.astype(np.int64)
    return integers.to_unsigned(a, bits_of(operation.operands[0].type))


def _trunci(machine: Machine, operation: Operation, a: Array) -> Any:
    bits = bits_of(operation.result.type)
    if bits == 1:
        return a & 1 != 0
    found = integers.wrap(a, bits)
    if (found == a).all():
        return found
    place = tuple(int(i) for i in np.argwhere(found != a)[0])
    return Marked(found, Mark(operation, machine.program, place))


def _sitofp(machine: Machine, operation: Operation, a: Array) -> Any:
    return machine.domain.integers(a)


def _uitofp(machine: Machine, operation: Operation, a: Array) -> Any:
    return machine.domain.integers(_extui(machine, operation, a))


def _addptr(machine: Machine, operation: Operation, a: Any, b: Array) -> Any:
    if not isinstance(a, Pointers):
        raise Undecided("an offset to something other than a pointer")
    return Pointers(a.region, a.offsets + b)


def _splat(machine: Machine, operation: Operation, a: Any) -> Any:
    one = (1,) * len(shape_of(operation.result.type))
    return move(machine, a, lambda x: x.reshape(one))


def _float(name: str) -> Callable[..., Any]:
    return lambda m, o, *tiles: getattr(m.domain, name)(*tiles)


def no_nan(machine: Machine, *tiles: Numbers) -> None:
    """Raises Undecided where one is NaN: `maximumf` and `minimumf` keep it, the domains drop it."""
    if any(machine.domain.compare("une", tile, tile).any() for tile in tiles):
        raise Undecided("a maximum or minimum that keeps NaN, of a NaN")


def _keeping_nan(name: str) -> Callable[..., Any]:
    def compute(machine: Machine, operation: Operation, *tiles: Numbers) -> Numbers:
        no_nan(machine, *tiles)
        found: Numbers = getattr(machine.domain, name)(*tiles)
        return found

    return compute


def _bool(f: Any, g: Any) -> Callable[..., Any]:
    """f of truth values, g of bits."""

    def compute(machine: Machine, operation: Operation, a: Array, b: Array) -> Array:
        return np.asarray(f(a, b) if a.dtype == bool else g(a, b))

    return compute


def _exp(m: Machine, o: Operation, x: Numbers) -> Numbers:
    return exp2(m, o, x, LOG2E)


_KEEP_NAN = ("arith.maximumf", "arith.minimumf")
_REDUCTIONS: dict[str, Any] = {
    "arith.addi": np.sum, "arith.maxsi": np.max, "arith.minsi": np.min, "arith.ori": np.any,
    "arith.andi": np.all,
}  # fmt: skip
_AXES = "xyz"
COMPUTE: dict[str, Callable[..., Any]] = {
    "arith.constant": constant,
    "tt.get_program_id": lambda m, o: np.array(m.program[_AXES.index(o.word("axis"))], np.int64),
    "tt.get_num_programs": lambda m, o: np.array(m.grid[_AXES.index(o.word("axis"))], np.int64),
    "tt.make_range": lambda m, o: np.arange(o.integer("start"), o.integer("end"), dtype=np.int64),
    "tt.splat": _splat,
    "tt.unsplat": lambda m, o, x: move(m, x, lambda tile: tile.reshape(())),
    "tt.broadcast": lambda m, o, x: x,
    "tt.expand_dims": lambda m, o, x: move(
        m, x, lambda tile: np.expand_dims(tile, o.integer("axis"))
    ),
    "tt.reshape": reshape,
    "tt.trans": lambda m, o, x: move(m, x, lambda tile: tile.transpose(o.integers("order"))),
    "tt.join": join,
    "tt.split": split,
    "tt.addptr": _addptr,
    "tt.load": load,
    "tt.store": store,
    "tt.atomic_rmw": atomic,
    "tt.make_tensor_descriptor": descriptors.make,
    "tt.descriptor_load": descriptors.load,
    "tt.descriptor_store": descriptors.store,
    "tt.dot": dot,
    "tt.reduce": reduce,
    "tt.bitcast": bitcast,
    "arith.bitcast": bitcast,
    "arith.select": select,
    "arith.addi": _arithmetic(np.add),
    "arith.subi": _arithmetic(np.subtract),
    "arith.muli": _arithmetic(np.multiply),
    "arith.divsi": _divide(integers.quotient),
    "arith.remsi": _divide(integers.remainder),
    "arith.divui": _on_unsigned(np.floor_divide),
    "arith.remui": _on_unsigned(np.remainder),
    "arith.minui": _on_unsigned(np.minimum),
    "arith.maxui": _on_unsigned(np.maximum),
    "arith.minsi": lambda m, o, a, b: np.minimum(a, b),
    "arith.maxsi": lambda m, o, a, b: np.maximum(a, b),
    "arith.andi": _bool(np.logical_and, np.bitwise_and),
    "arith.ori": _bool(np.logical_or, np.bitwise_or),
    "arith.xori": _bool(np.logical_xor, np.bitwise_xor),
    "arith.shli": _shift(lambda a, b: np.asarray(a.astype(object) << b, object)),
    "arith.shrsi": _shift(_logical_right),
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
    "arith.truncf": convert,
    "tt.fp_to_fp": convert,
    "arith.addf": _float("add"),
    "arith.subf": _float("subtract"),
    "arith.mulf": _float("multiply"),
    "arith.divf": _float("divide"),
    "tt.precise_divf": _float("divide"),
    "arith.negf": _float("negate"),
    "arith.maxnumf": _float("maximum"),
    "arith.maximumf": _keeping_nan("maximum"),
    "arith.minnumf": _float("minimum"),
    "arith.minimumf": _keeping_nan("minimum"),
    "math.absf": _float("absolute"),
    "math.exp2": exp2,
    "math.exp": _exp,
    "math.log": _float("log"),
    "math.log2": _float("log2"),
    "math.fma": lambda m, o, a, b, c: m.domain.add(m.domain.multiply(a, b), c),
    "arith.cmpf": lambda m, o, a, b: m.domain.compare(o.word("predicate"), a, b),
}
