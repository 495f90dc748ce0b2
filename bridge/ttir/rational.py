"""Rational numbers without rounding, where exp2 k = 2^k for integers k: the exact model of the
vectors (`Attention/Model/Exact.lean`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from bridge.ttir.domain import LN2, LOG2E, UNITS, Array, ObjectDomain, answer_of, single
from bridge.ttir.faults import Undecided

Rational = int | Fraction
_SHORT = 4096
# Two computations of one number in float64 differ by less, relatively.
_CLOSE = 2.0**-44


@dataclass(frozen=True)
class Logarithm:
    """(whole + log₂ ratio) · (ln 2)^power, ratio > 0: the exact model's form of a log-sum-exp."""

    whole: Rational
    ratio: Rational
    power: int

    def __str__(self) -> str:
        unit = {0: "", 1: "·ln 2", -1: "·log₂e"}.get(self.power, f"·(ln 2)^{self.power}")
        log = "" if self.ratio == 1 else f" + log₂ {self.ratio}"
        return f"({self.whole}{log}){unit}"


def logarithm(whole: Rational, ratio: Rational, power: int) -> Any:
    """(whole + log₂ ratio) · (ln 2)^power, as a rational number if it is one."""
    top, bottom = ratio.as_integer_ratio()
    if top & (top - 1) == 0 and bottom & (bottom - 1) == 0:
        whole, ratio = whole + top.bit_length() - bottom.bit_length(), 1
    if whole == 0 and ratio == 1:
        return 0
    if power == 0 and ratio == 1:
        return whole
    return Logarithm(whole, ratio, power)


class RationalDomain(ObjectDomain):
    """Elements: int and Fraction; Logarithm; the floats −∞, ∞ and NaN. Their order is decided."""

    def unknown_scalar(self, x: float) -> Array:
        """A short fraction times one of `UNITS`, if the launcher can have computed `x` from it;
        else float32, as Triton passes it."""
        for unit, power in zip(UNITS, (0, 1, -1), strict=True):
            if not math.isfinite(x):
                break
            short = Fraction(x / unit).limit_denominator(_SHORT)
            if math.isclose(x, short * unit, rel_tol=_CLOSE):
                return single(logarithm(short if short.denominator > 1 else int(short), 1, power))
        return self.constant(float(np.float32(x)))

    def constant_one(self, x: float) -> Any:
        if x == LN2:
            return Logarithm(1, 1, 1)
        if x == LOG2E:
            return Logarithm(1, 1, -1)
        if not math.isfinite(x):
            return x
        return int(x) if x.is_integer() else Fraction(x)

    def integer_one(self, x: int) -> Any:
        return int(x)

    def add_one(self, x: Any, y: Any) -> Any:
        if type(x) is float or type(y) is float:
            return _special(x) + _special(y)
        if type(x) is Logarithm or type(y) is Logarithm:
            return _sum(x, y)
        return x + y

    def subtract_one(self, x: Any, y: Any) -> Any:
        if type(y) is float or type(y) is Logarithm:
            return self.add_one(x, self.multiply_one(-1, y))
        return self.add_one(x, -y)

    def multiply_one(self, x: Any, y: Any) -> Any:
        if type(x) is float or type(y) is float:
            return _sign(x) * _sign(y)
        if type(x) is Logarithm or type(y) is Logarithm:
            return _product(x, y)
        return x * y

    def divide_one(self, x: Any, y: Any) -> Any:
        if type(y) is float:
            return math.nan if type(x) is float or y != y else 0
        if y == 0:
            sign = _sign(x)
            return math.nan if sign == 0 or sign != sign else sign * math.inf
        if type(y) is Logarithm:
            if y.ratio != 1:
                raise Undecided(f"the quotient by {y}")
            return self.multiply_one(x, Logarithm(1 / Fraction(y.whole), 1, -y.power))
        return self.multiply_one(x, 1 / Fraction(y)) if type(x) is float else _over(x, y)

    def max_one(self, x: Any, y: Any) -> Any:
        if x != x:
            return y
        if y != y:
            return x
        return x if _order(x, y) >= 0 else y

    def absolute_one(self, x: Any) -> Any:
        if x != x:
            return x
        return self.multiply_one(-1, x) if _order(x, 0) < 0 else x

    def exp2_one(self, x: Any) -> Any:
        if type(x) is float:
            return {-math.inf: 0, math.inf: math.inf}.get(x, math.nan)
        ratio: Rational = 1
        if type(x) is Logarithm and x.power == 0:
            x, ratio = x.whole, x.ratio
        if type(x) is Logarithm or x.denominator != 1:
            raise Undecided(f"2^({x}) is irrational")
        return ratio * (1 << int(x) if x >= 0 else Fraction(1, 1 << -int(x)))

    def log2_one(self, x: Any) -> Any:
        if type(x) is float:
            return x if x != -math.inf else math.nan
        if type(x) is Logarithm:
            raise Undecided(f"the logarithm of {x}")
        if x <= 0:
            return -math.inf if x == 0 else math.nan
        return logarithm(0, x, 0)

    def compare_one(self, predicate: str, x: Any, y: Any) -> bool:
        return answer_of(predicate, None if x != x or y != y else _order(x, y))

    def at_most_zero_one(self, x: Any) -> bool:
        return x != x or _order(x, 0) <= 0

    def equal_one(self, x: Any, y: Any) -> bool:
        if x is None or y is None or x != x or y != y:
            return False
        return x == y or (type(x) is Logarithm and type(y) is Logarithm and _order(x, y) == 0)

    def dot(self, a: Array, b: Array, c: Array) -> Array:
        left, right = _over_one_denominator(a), _over_one_denominator(b)
        if left is None or right is None:
            return super().dot(a, b, c)
        (top_a, bottom_a), (top_b, bottom_b) = left, right
        product = np.asarray(top_a @ top_b, object)
        bottom = bottom_a * bottom_b
        if bottom != 1:
            product = np.frompyfunc(lambda x: Fraction(x, bottom) if x else 0, 1, 1)(product)
        return self.add(c, product)


def _special(x: Any) -> float:
    """−∞, ∞ or NaN as it is, and 0 for any other number, whose value does not matter to these."""
    return x if type(x) is float else 0.0


def _sign(x: Any) -> float:
    """−∞, ∞ or NaN as it is, and the sign of any other number."""
    return x if type(x) is float else float(_order(x, 0))


def _over(x: Any, y: Rational) -> Any:
    if type(x) is Logarithm:
        return _product(x, 1 / Fraction(y))
    found = Fraction(x) / y
    return found if found.denominator > 1 else int(found)


def _sum(x: Any, y: Any) -> Any:
    if type(x) is not Logarithm:
        x, y = y, x
    if type(y) is not Logarithm:
        if y == 0:
            return x
        y = Logarithm(y, 1, 0)
    if x.power != y.power:
        raise Undecided(f"the sum of {x} and {y}")
    return logarithm(x.whole + y.whole, x.ratio * y.ratio, x.power)


def _product(x: Any, y: Any) -> Any:
    if type(x) is not Logarithm or (type(y) is Logarithm and y.ratio != 1):
        x, y = y, x
    power, factor = x.power, y
    if type(y) is Logarithm:
        if y.ratio != 1:
            raise Undecided(f"the product of {x} and {y}")
        power, factor = x.power + y.power, y.whole
    if factor == 0:
        return 0
    if x.ratio == 1:
        return logarithm(x.whole * factor, 1, power)
    if Fraction(factor).denominator != 1:
        raise Undecided(f"the product of {x} and {factor}")
    return logarithm(x.whole * factor, Fraction(x.ratio) ** int(factor), power)


def _order(x: Any, y: Any) -> int:
    """−1, 0 or 1 as x is smaller than y, equal or larger; neither is NaN."""
    if type(x) is Logarithm or type(y) is Logarithm:
        if type(y) is float:
            return 1 if y < 0 else -1
        if type(x) is float:
            return 1 if x > 0 else -1
        difference = _sum(x, _product(y, -1) if type(y) is Logarithm else -y)
        if type(difference) is Logarithm and difference.ratio == 1:
            # The power of ln 2 is positive, and 2^whole can be too large for any memory.
            difference = difference.whole
        if type(difference) is Logarithm:
            # 2^whole · ratio against 1, to the power of whole's denominator.
            whole = Fraction(difference.whole)
            bottom = Fraction(2) ** whole.numerator * Fraction(difference.ratio) ** (
                whole.denominator
            )
            return int(bottom > 1) - int(bottom < 1)
        x, y = difference, 0
    return int(x > y) - int(x < y)


def _over_one_denominator(x: Array) -> tuple[Array, int] | None:
    """A matrix of rationals as integers over one denominator; None: it has others."""
    bottom = 1
    for value in x.flat:
        if type(value) is Fraction:
            bottom = math.lcm(bottom, value.denominator)
        elif type(value) is not int:
            return None
    if bottom == 1:
        return x, 1
    whole = np.frompyfunc(lambda v: v.numerator * (bottom // v.denominator), 1, 1)
    return np.asarray(whole(x), object), bottom
