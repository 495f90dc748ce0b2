"""Floating-point formats.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Format.lean`.
`Attention.Spec.Format.IsNumber` is not here: it is a statement about all there is of a kind, which
nothing decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value, int_div, log2
from bridge.spec.tolerance import absolute


@dataclass(frozen=True)
class Format:
    """A binary format. Its numbers are n · 2^e with |n| < 2^precision and least ≤ e, smaller in
    size than 2^top.

    precision: how many bits a significand has, that which is not stored included.

    least: the exponent of the smallest positive number.

    top: the exponent of the first power of 2 that is too large.

    Lean: `Attention.Spec.Format`.
    """

    precision: int
    least: int
    top: int


def binary64() -> Format:
    """Double precision: 53 bits.

    Lean: `Attention.Spec.binary64`.
    """
    return Format(precision=53, least=-1074, top=1024)


def binary32() -> Format:
    """Single precision: 24 bits.

    Lean: `Attention.Spec.binary32`.
    """
    return Format(precision=24, least=-149, top=128)


def binary16() -> Format:
    """Half precision: 11 bits.

    Lean: `Attention.Spec.binary16`.
    """
    return Format(precision=11, least=-24, top=16)


def bfloat16() -> Format:
    """The upper half of a number of single precision: 8 bits.

    Lean: `Attention.Spec.bfloat16`.
    """
    return Format(precision=8, least=-133, top=128)


def nearest(floor: Callable[[Value], int], x: Value, *, num: Arithmetic) -> int:
    """The integer that is nearest to `x`; halfway between two the even one.

    Lean: `Attention.Spec.nearest`.
    """
    n = floor(x)
    twice = x - num.value(n) + (x - num.value(n))
    if twice <= num.value(1):
        return n + (n - 2 * int_div(n, 2)) if num.value(1) <= twice else n
    return n + 1


def exponent(floor: Callable[[Value], int], x: Value, *, num: Arithmetic) -> int:
    """The whole part of the logarithm of `x` in base 2, for x > 0: the e with 2^e ≤ x < 2^(e + 1).

    Lean: `Attention.Spec.exponent`.
    """
    if num.value(1) <= x:
        return log2(max(floor(x), 0))
    below = 0 - floor(num.value(0) - num.value(1) / x) - 1
    return 0 - (log2(max(below, 0)) + 1)


def round_at(floor: Callable[[Value], int], e: int, x: Value, *, num: Arithmetic) -> Value:
    """The multiple of 2^e that is nearest to `x`.

    Lean: `Attention.Spec.roundAt`.
    """
    return num.value(nearest(floor, x / num.value(2) ** e, num=num)) * num.value(2) ** e


def round_bits(
    floor: Callable[[Value], int], precision: int, x: Value, *, num: Arithmetic
) -> Value:
    """`x` rounded to `precision` bits, whatever its size: no number is too small or too large.

    Lean: `Attention.Spec.roundBits`.
    """
    if absolute(x, num=num) <= num.value(0):
        return num.value(0)
    return round_at(
        floor, exponent(floor, absolute(x, num=num), num=num) - precision + 1, x, num=num
    )


def format_last_place(
    floor: Callable[[Value], int], f: Format, x: Value, *, num: Arithmetic
) -> int:
    """The exponent of the last place of `x` in the format, for x ≠ 0.

    Lean: `Attention.Spec.Format.lastPlace`.
    """
    return max(exponent(floor, absolute(x, num=num), num=num) - f.precision + 1, f.least)


def format_round(floor: Callable[[Value], int], f: Format, x: Value, *, num: Arithmetic) -> Value:
    """`x` rounded to a number of the format.

    Lean: `Attention.Spec.Format.round`.
    """
    if absolute(x, num=num) <= num.value(0):
        return num.value(0)
    return round_at(floor, format_last_place(floor, f, x, num=num), x, num=num)


def format_largest(f: Format, *, num: Arithmetic) -> Value:
    """The largest number of the format.

    Lean: `Attention.Spec.Format.largest`.
    """
    return num.value(2) ** f.top - num.value(2) ** (f.top - f.precision)


def format_smallest_normal(f: Format, *, num: Arithmetic) -> Value:
    """The smallest normal number: from here on a number has all bits.

    Lean: `Attention.Spec.Format.smallestNormal`.
    """
    return num.value(2) ** (f.least + f.precision - 1)


def format_overflows(
    floor: Callable[[Value], int], f: Format, x: Value, *, num: Arithmetic
) -> bool:
    """Whether `x` is rounded to infinity.

    Lean: `Attention.Spec.Format.Overflows`.
    """
    return num.value(2) ** f.top <= absolute(format_round(floor, f, x, num=num), num=num)
