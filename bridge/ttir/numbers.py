"""Floats as MLIR prints them: decimals of enough digits, or their bits in hexadecimal."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import numpy as np

from bridge.ttir.syntax import Scalar, TtirError

_NUMPY: dict[str, tuple[Any, Any]] = {
    "f16": (np.float16, np.uint16),
    "f32": (np.float32, np.uint32),
}


def float_of(text: str, type: Scalar, line: int) -> float:
    """The number that a literal means in a type, exactly: a Python float holds every one of them.

    Raises:
        TtirError: the type is none of f16, bf16, f32 and f64, or `text` is no number of it.
    """
    try:
        if text.startswith("0x"):
            return _of_bits(int(text, 16), type.name)
        return _round(text, type.name)
    except (KeyError, ValueError, OverflowError) as error:
        raise TtirError(f"line {line}: {text} is no {type.name}") from error


def _of_bits(bits: int, name: str) -> float:
    if name == "f64":
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if name == "bf16":
        if bits >= 1 << 16:
            raise ValueError(bits)
        bits, name = bits << 16, "f32"
    number, integer = _NUMPY[name]
    return float(integer(bits).view(number))


def _round(text: str, name: str) -> float:
    if name == "f64":
        return float(text)
    if name == "bf16":
        # bfloat16 has the exponents of float32 and 8 bits of significand: to nearest, ties to even.
        exact = float(np.float32(text))
        if not np.isfinite(exact) or exact == 0.0:
            return exact
        unit = Fraction(2) ** (np.frexp(exact)[1] - 8).item()
        return float(round(Fraction(text) / unit) * unit)
    return float(_NUMPY[name][0](text))
