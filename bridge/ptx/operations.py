"""Arithmetic, logic, comparisons and conversions (PTX ISA, "Integer Arithmetic Instructions",
"Floating Point Instructions", "Comparison and Selection Instructions", "Logic and Shift
Instructions", "cvt").

Approximate functions (`ex2.approx`, `lg2.approx`, `tanh.approx`, `div.full`) give the nearest
float32 here; the hardware's may be off by the bounds that the sections of these instructions name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bridge.ptx import kinds
from bridge.ptx.kinds import BITS, PACKED, UNSIGNED, Array
from bridge.ptx.machine import NotSimulated, Program
from bridge.ptx.syntax import Instruction, Pair

Run = Callable[[Program, Instruction], None]

_APPROXIMATE: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
_SIMPLE: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
}
_FLOATS: dict[str, Callable[..., Array]] = {
    **_SIMPLE,
    "div": np.divide,
    "min": np.fmin,
    "max": np.fmax,
}
_LOGIC: dict[str, Callable[..., Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
}
_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
# Relations of unsigned numbers: lower, lower or same, higher, higher or same.
_UNSIGNED_ORDER = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip
# Modifiers of arithmetic that change nothing here; all floats are rounded to the nearest.
_PLAIN = frozenset(("rn", "lo", "approx", "full", "ftz", "wide", "hi", "NaN"))


def _check_modifiers(instruction: Instruction) -> None:
    if not set(instruction.modifiers[:-1]) <= _PLAIN:
        raise NotSimulated(instruction)


def arithmetic(program: Program, instruction: Instruction) -> None:
    """add, sub, mul, mad, fma, div, rem, min, max, neg, abs of integers and floats."""
    _check_modifiers(instruction)
    kind = instruction.kind
    if kind in PACKED:
        _packed_arithmetic(program, instruction)
    elif kind in BITS and kinds.is_float(kind):
        result, *given = instruction.operands
        values = [program.numbers(one, kind) for one in given]
        program.put_numbers(result, _float_result(instruction, kind, values), kind)
    elif kind in BITS and kind[0] in "su":
        _integer(program, instruction)
    else:
        raise NotSimulated(instruction)


def _packed_arithmetic(program: Program, instruction: Instruction) -> None:
    """Compute with two numbers of 16 bits at once."""
    kind = PACKED[instruction.kind]
    result, *given = instruction.operands
    pairs = [kinds.halves(program.bits(one, "b32")) for one in given]
    low, high = (
        kinds.bits_of(
            _float_result(instruction, kind, [kinds.numbers(pair[i], kind) for pair in pairs]), kind
        )
        for i in range(2)
    )
    program.put(result, kinds.join_halves(low, high))


def _float_result(instruction: Instruction, kind: str, values: list[Array]) -> Array:
    operation, flush = instruction.operation, "ftz" in instruction.modifiers
    if flush:
        values = [kinds.flush_subnormals(x) for x in values]
    if operation in ("fma", "mad") and kind in ("f32", "f16"):
        found = kinds.multiply_add(*(x.astype(np.float32) for x in values))
        if kind == "f16":
            # Float64 holds the product and sum of such numbers exactly, or nearly: 22 + 29 bits.
            a, b, c = (x.astype(np.float64) for x in values)
            found = (a * b + c).astype(np.float16)
    elif operation in _FLOATS:
        found = _FLOATS[operation](*values)
        if "NaN" in instruction.modifiers:
            found = np.where(np.isnan(values[0]) | np.isnan(values[1]), np.float32(np.nan), found)
    else:
        raise NotSimulated(instruction)
    return kinds.flush_subnormals(found) if flush else found


def _integer(program: Program, instruction: Instruction) -> None:
    operation, kind = instruction.operation, instruction.kind
    result, *given = instruction.operands
    bits = BITS[kind]
    if "wide" in instruction.modifiers or "hi" in instruction.modifiers:
        _wide(program, instruction)
        return
    values = [program.numbers(one, kind) for one in given]
    if operation in ("div", "rem"):
        found = _divide(operation, *values)
    elif operation in ("min", "max"):
        found = (np.minimum if operation == "min" else np.maximum)(*values)
    elif operation == "mad":
        found = values[0] * values[1] + values[2]
    elif operation in _SIMPLE:
        found = _SIMPLE[operation](*values)
    else:
        raise NotSimulated(instruction)
    program.put(result, found.view(UNSIGNED[bits]))


def _wide(program: Program, instruction: Instruction) -> None:
    """mul and mad whose result is the whole product, or its upper half."""
    kind = instruction.kind
    result, a, b, *addend = instruction.operands
    if instruction.operation not in ("mul", "mad") or BITS[kind] > 32:
        raise NotSimulated(instruction)
    twice = f"{kind[0]}{2 * BITS[kind]}"
    wide = np.int64 if kind[0] == "s" else np.uint64
    product = program.numbers(a, kind).astype(wide) * program.numbers(b, kind).astype(wide)
    if "wide" in instruction.modifiers:
        if addend:
            product = product + program.numbers(addend[0], twice).astype(wide)
        program.put_numbers(result, product, twice)
        return
    upper = product >> wide(BITS[kind])
    if addend:
        upper = upper + program.numbers(addend[0], kind).astype(wide)
    program.put_numbers(result, upper, kind)


def _divide(operation: str, a: Array, b: Array) -> Array:
    """Toward zero; the remainder has the dividend's sign. By zero the ISA says nothing."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    quotient = a // divisor
    rest = a - quotient * divisor
    if np.issubdtype(a.dtype, np.signedinteger):
        quotient = quotient + ((rest != 0) & ((a < 0) != (b < 0)))
        rest = a - quotient * divisor
    return (quotient if operation == "div" else rest).astype(a.dtype)


def logic(program: Program, instruction: Instruction) -> None:
    """and, or, xor, not of bits and of predicates."""
    result, *given = instruction.operands
    values = [program.bits(one, instruction.kind) for one in given]
    program.put(result, _LOGIC[instruction.operation](*values))


def shift(program: Program, instruction: Instruction) -> None:
    """shl and shr; a distance of the width or more leaves zeros, or the sign."""
    result, a, by = instruction.operands
    kind = instruction.kind
    width = BITS[kind]
    values = program.numbers(a, kind)
    distance = program.bits(by, "u32").astype(np.int64)
    least = np.minimum(distance, width - 1).astype(values.dtype)
    if instruction.operation == "shl":
        found = np.where(distance < width, values << least, 0).astype(values.dtype)
    else:
        found = values >> least
        if kind[0] != "s":
            found = np.where(distance < width, found, 0).astype(values.dtype)
    program.put(result, found.view(UNSIGNED[width]))


def extract(program: Program, instruction: Instruction) -> None:
    """bfe: `length` bits from a position on, with sign or without."""
    result, a, position, length = instruction.operands
    kind = instruction.kind
    if BITS[kind] != 32:
        raise NotSimulated(instruction)
    values = program.numbers(a, kind).astype(np.int64)
    at = program.bits(position, "u32").astype(np.int64) & 255
    count = np.minimum(program.bits(length, "u32").astype(np.int64) & 255, 32)
    # Above the value's bits are its sign's: int64 has them.
    field = (values >> np.minimum(at, 63)) & ((np.int64(1) << count) - 1)
    if kind[0] == "s":
        top = (field >> np.maximum(count - 1, 0)) & 1
        field = np.where((count > 0) & (top == 1), field - (np.int64(1) << count), field)
    program.put(result, field.astype(np.uint64).astype(np.uint32))


def permute(program: Program, instruction: Instruction) -> None:
    """prmt: four bytes chosen among eight, or their signs."""
    result, a, b, selector = instruction.operands
    if instruction.modifiers != ("b32",):
        raise NotSimulated(instruction)
    low, high, which = (program.bits(x, "b32").astype(np.uint64) for x in (a, b, selector))
    eight = low | (high << np.uint64(32))
    found = np.zeros_like(low)
    for i in range(4):
        choice = (which >> np.uint64(4 * i)) & np.uint64(15)
        byte = (eight >> (np.uint64(8) * (choice & np.uint64(7)))) & np.uint64(255)
        sign = np.where(byte >= 128, np.uint64(255), np.uint64(0))
        found |= np.where(choice >= 8, sign, byte) << np.uint64(8 * i)
    program.put(result, found.astype(np.uint32))


def select(program: Program, instruction: Instruction) -> None:
    """selp: the first where the predicate holds, else the second."""
    result, a, b, condition = instruction.operands
    kind = instruction.kind
    chosen = program.bits(condition, "pred")
    both = program.bits(a, kind), program.bits(b, kind)
    # The operand that is not chosen may be unknown.
    none = np.zeros(len(chosen), bool)
    first, second = (none if x is None else x for x in map(program.without, (a, b)))
    undecided = program.without(condition)
    unknown = np.where(chosen, first, second) | (none if undecided is None else undecided)
    program.result_unknown(unknown if unknown.any() else None)
    program.put(result, np.where(chosen, *both))


def compare(program: Program, instruction: Instruction) -> None:
    """setp: a predicate, or that and another combined; two of packed numbers."""
    result, a, b, *more = instruction.operands
    modifiers = [x for x in instruction.modifiers if x != "ftz"]
    relation, *combined, kind = modifiers
    if kind in PACKED and isinstance(result, Pair) and not more:
        pairs = [kinds.halves(program.bits(x, "b32")) for x in (a, b)]
        for i, place in enumerate((result.first, result.second)):
            x, y = (kinds.numbers(pair[i], PACKED[kind]) for pair in pairs)
            program.put(place, _relate(instruction, relation, kind, x, y))
        return
    if kind not in BITS or isinstance(result, Pair):
        raise NotSimulated(instruction)
    x, y = program.numbers(a, kind), program.numbers(b, kind)
    if "ftz" in instruction.modifiers:
        x, y = kinds.flush_subnormals(x), kinds.flush_subnormals(y)
    found = _relate(instruction, relation, kind, x, y)
    if combined:
        (how,) = combined
        found = _LOGIC[how](found, program.bits(more[0], "pred"))
    program.put(result, found)


def _relate(instruction: Instruction, relation: str, kind: str, x: Array, y: Array) -> Array:
    """Compare numbers. For floats `lt` and its like do not hold of NaN, `ltu` and its like do."""
    if relation in _UNSIGNED_ORDER:
        return _ORDERED[_UNSIGNED_ORDER[relation]](x, y)
    if not (kind in PACKED or kinds.is_float(kind)):
        return _ORDERED[relation](x, y)
    unordered = np.isnan(x) | np.isnan(y)
    if relation in ("num", "nan"):
        return unordered if relation == "nan" else ~unordered
    if relation in _ORDERED:
        return _ORDERED[relation](x, y) & ~unordered
    if relation.endswith("u") and relation[:-1] in _ORDERED:
        return _ORDERED[relation[:-1]](x, y) | unordered
    raise NotSimulated(instruction)


def approximate(program: Program, instruction: Instruction) -> None:
    """ex2, lg2, tanh, rcp, sqrt, rsqrt of float32, the nearest."""
    result, a = instruction.operands
    if instruction.kind != "f32":
        raise NotSimulated(instruction)
    values, flush = program.numbers(a, "f32"), "ftz" in instruction.modifiers
    values = kinds.flush_subnormals(values) if flush else values
    found = _APPROXIMATE[instruction.operation](values.astype(np.float64)).astype(np.float32)
    program.put_numbers(result, kinds.flush_subnormals(found) if flush else found, "f32")


def convert(program: Program, instruction: Instruction) -> None:
    """cvt between integers and floats, and of two float32 to a packed pair."""
    types = [x for x in instruction.modifiers if x in BITS]
    rules = [x for x in instruction.modifiers if x not in BITS]
    if len(types) != 2 or not set(rules) <= {"rn", *_ROUNDED}:
        raise NotSimulated(instruction)
    (to, of), (result, *given) = types, instruction.operands
    if to in PACKED:
        # The first is the upper half.
        high, low = (kinds.bits_of(program.numbers(x, of), PACKED[to]) for x in given)
        program.put(result, kinds.join_halves(low, high))
        return
    values = program.numbers(given[0], of)
    if kinds.is_float(of) and not kinds.is_float(to):
        # Numbers that do not fit become the nearest that does, NaN 0.
        whole = next((_ROUNDED[x] for x in rules if x in _ROUNDED), None)
        if whole is None or BITS[to] > 32:
            raise NotSimulated(instruction)
        limits = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{BITS[to] // 8}")
        rounded = np.nan_to_num(whole(values.astype(np.float64)), nan=0.0)
        values = np.clip(rounded, limits.min, limits.max).astype(np.int64)
    program.put_numbers(result, values, to)


OPERATIONS: dict[str, Run] = {
    **dict.fromkeys(
        ("add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "neg", "abs"), arithmetic
    ),
    **dict.fromkeys(_LOGIC, logic),
    **dict.fromkeys(("shl", "shr"), shift),
    **dict.fromkeys(_APPROXIMATE, approximate),
    "bfe": extract,
    "prmt": permute,
    "selp": select,
    "setp": compare,
    "cvt": convert,
}
