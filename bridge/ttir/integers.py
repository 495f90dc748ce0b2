"""Integer operations of TTIR on int64 arrays.

A value of type iN is kept as the signed integer of its bits. TTIR's integers have no sign: an
operation whose signed result does not fit into N bits is right where the bits are meant, as in a
random generator, and wrong where a number is. So such a result is kept with a mark (`machine`), and
only a use of it as a signed number counts as an overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bridge.ttir.domain import Array
from bridge.ttir.faults import Program, Undecided
from bridge.ttir.syntax import Operation, Scalar, Type, element_of


@dataclass(frozen=True, eq=False)
class Mark:
    """The place where an integer overflowed, or was loaded from nowhere, if it was not used as a
    number so far."""

    operation: Operation
    program: Program
    element: tuple[int, ...]
    overflowed: bool = True


@dataclass(frozen=True, eq=False)
class Marked:
    """A result of which an element has a mark."""

    value: Array
    mark: Mark


def bits_of(type: Type) -> int:
    element = element_of(type)
    if not isinstance(element, Scalar):
        raise Undecided(f"an integer operation on {element}")
    return element.bits


def bytes_of(type: Type) -> int:
    return (bits_of(type) + 7) // 8


# Operations that take bits, whose results are marked if an operand is; all that are not here take
# numbers.
BITWISE = frozenset({
    "arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori",
    "arith.shli", "arith.shrui", "arith.trunci", "arith.select", "tt.mulhiui", "tt.bitcast",
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.join", "tt.split",
    "tt.cat", "tt.unsplat", "scf.yield", "cf.br", "cf.cond_br", "arith.bitcast",
})  # fmt: skip
# Operations that take unsigned numbers, whose results fit.
UNSIGNED = frozenset({
    "arith.extui", "arith.divui", "arith.remui", "arith.minui", "arith.maxui", "arith.uitofp",
    "tt.store",
})  # fmt: skip


def to_unsigned(x: Array, bits: int) -> Array:
    """The unsigned numbers of the same bits: of 64, as Python's integers."""
    if bits == 64:
        return np.asarray(x.astype(object) & ((1 << 64) - 1), object)
    return x & ((1 << bits) - 1)


def wrap(x: Array, bits: int) -> Array:
    """The signed integers of the low bits of `x`, an array of int64 or of Python's integers."""
    if x.dtype == object:
        x = np.asarray(x & ((1 << 64) - 1), object)
        x = np.where(np.asarray(x >= 1 << 63, bool), x - (1 << 64), x).astype(np.int64)
    if bits == 64:
        return x
    half = 1 << (bits - 1)
    return ((x + half) & ((1 << bits) - 1)) - half


def compute_fitting(
    f: Callable[[Array, Array], Array], a: Array, b: Array, bits: int
) -> tuple[Array, Array | None]:
    """f(a, b) of a sum, difference or product in so many bits, and which elements did not fit;
    None: all did."""
    if bits == 64:
        largest = max(_magnitude(a), _magnitude(b))
        bound = largest * largest if f is np.multiply else 2 * largest
        if bound < 1 << 63:
            return f(a, b), None
        exact = f(a.astype(object), b.astype(object))
        exact = exact if isinstance(exact, np.ndarray) else np.array(exact, object)
        found = wrap(exact, 64)
        off = np.asarray(found.astype(object) != exact, bool)
    else:
        exact = f(a, b)
        half = 1 << (bits - 1)
        if not exact.size or (-half <= exact.min() and exact.max() < half):
            return exact, None
        found = wrap(exact, bits)
        off = found != exact
    return found, off if off.any() else None


def _magnitude(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0


def quotient(a: Array, b: Array) -> Array:
    """`arith.divsi`: rounded towards zero."""
    found = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) != (b < 0), -found, found))


def remainder(a: Array, b: Array) -> Array:
    """`arith.remsi`: of the sign of `a`."""
    return np.asarray(a - b * quotient(a, b))


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
