"""PTX's types, and numbers of 16 bits (PTX ISA, "Types", "Alternate Floating-Point Data Formats").

Registers hold bits: unsigned integers of 8 to 64 bits, or truth values. The functions here see them
as numbers, and back.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
UNSIGNED: dict[int, type[np.unsignedinteger[Any]]] = {
    8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64,
}  # fmt: skip
_SIGNED: dict[int, type[np.signedinteger[Any]]] = {
    8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64,
}  # fmt: skip
_FLOATS: dict[str, type[np.floating[Any]]] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
# Two numbers of 16 bits in one register, by the type of each.
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
BITS = {
    **{f"{letter}{bits}": bits for letter in "bus" for bits in UNSIGNED},
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32,
}  # fmt: skip


def is_float(kind: str) -> bool:
    """Whether it is one floating number."""
    return kind in _FLOATS or kind == "bf16"


def numbers(bits: Array, kind: str) -> Array:
    """The numbers that these bits mean; of bfloat16, which numpy lacks, in float32."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.view(_dtype(kind))


def bits_of(values: Array, kind: str) -> Array:
    """The bits of these numbers, rounded to the nearest, ties to even, where floats do not fit;
    integers lose their upper bits."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if kind == "bf16":
            return _bfloat16(values.astype(np.float32))
        return values.astype(_dtype(kind), copy=False).view(UNSIGNED[BITS[kind]])


def _dtype(kind: str) -> Any:
    if kind in _FLOATS:
        return _FLOATS[kind]
    return (_SIGNED if kind[0] == "s" else UNSIGNED)[BITS[kind]]


def _bfloat16(values: Array) -> Array:
    """Float32 rounded to bfloat16; NaN becomes the canonical one, 0x7fff."""
    wide = values.view(np.uint32).astype(np.uint64)
    even = (wide >> np.uint64(16)) & np.uint64(1)
    rounded = ((wide + np.uint64(0x7FFF) + even) >> np.uint64(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


def halves(bits: Array) -> tuple[Array, Array]:
    """The lower and the upper 16 bits of 32."""
    return bits.astype(np.uint16), (bits >> np.uint32(16)).astype(np.uint16)


def join_halves(low: Array, high: Array) -> Array:
    """32 bits out of two times 16."""
    return low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))


def flush_subnormals(values: Array) -> Array:
    """`.ftz`: float32 below the normal numbers become zeros of their sign."""
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), values), values)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a·b + c of float32, rounded once (`fma.rn`).

    The product of two is exact in float64. The sum is rounded there to odd: an inexact one gets
    the last bit 1, so that no tie appears which is none, and is then rounded to float32 (Boldo and
    Melquiond, "When double rounding is odd").
    """
    with np.errstate(all="ignore"):
        product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
        total = product + addend
        part = total - product
        lost = (product - (total - part)) + (addend - part)
        bits = total.view(np.int64)
        inexact = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
        # Toward the lost part: away from zero where both have one sign.
        step = np.where((lost > 0) == (total > 0), 1, -1)
        odd: Array = np.where(inexact, bits + step, bits).view(np.float64)
        return odd.astype(np.float32)
