"""Quotients and logarithms of formal sums of exponentials, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.ttir.faults import Undecided
from bridge.ttir.polynomials import (
    LN2_ATOM,
    LOG2E_ATOM,
    Exponent,
    Exponentials,
    Polynomial,
    together,
)

LN2_NUMBER = Polynomial.atom(LN2_ATOM)
LOG2E_NUMBER = Polynomial.atom(LOG2E_ATOM)


@dataclass(frozen=True, eq=False)
class Quotient:
    top: Exponentials
    bottom: Exponentials


@dataclass(frozen=True, eq=False)
class Log:
    """shift + unit · log₂ of a sum of exponentials that is positive; unit: ln 2 or 1."""

    shift: Polynomial
    of: Exponentials
    natural: bool


def plain(x: Exponentials) -> Any:
    """The polynomial that it is, or itself."""
    found = x.polynomial
    return x if found is None else found


def exponentials(x: Any) -> Exponentials:
    """A polynomial as the sum that it is. Raises Undecided for a quotient, logarithm, −∞ or NaN."""
    if type(x) is Polynomial:
        return Exponentials.of(x)
    if type(x) is Exponentials:
        return x
    raise Undecided("a sum of exponentials is wanted, not a quotient or logarithm")


def fraction(x: Any) -> tuple[Exponentials, Exponentials]:
    """Numerator and denominator."""
    if type(x) is Quotient:
        return x.top, x.bottom
    return exponentials(x), Exponentials.of(Polynomial.constant(1))


def quotients_plus(x: Any, y: Any) -> Any:
    """x + y, of which one at least is a quotient."""
    (a, b), (c, d) = fraction(x), fraction(y)
    if not a:
        return y
    if not c:
        return x
    if b is d or b == d:
        return Quotient(a.plus(c), b)
    return Quotient(a.times(d).plus(c.times(b)), b.times(d))


def log_plus(x: Any, y: Any) -> Any:
    """x + y, of which one at least is a logarithm."""
    if type(x) is not Log:
        x, y = y, x
    if type(y) is Log:
        if x.natural != y.natural:
            raise Undecided("the sum of logarithms to two bases")
        return Log(x.shift.plus(y.shift), x.of.times(y.of), x.natural)
    if type(y) is not Polynomial:
        raise Undecided("the sum of a logarithm and an exponential")
    return Log(x.shift.plus(y), x.of, x.natural)


def log_times(x: Any, y: Any) -> Any:
    """x · y, of which one at least is a logarithm; the other must be 1 or change its base."""
    if type(x) is not Log:
        x, y = y, x
    if type(y) is Polynomial:
        if y.number == 1:
            return x
        if y == (LOG2E_NUMBER if x.natural else LN2_NUMBER):
            return Log(x.shift.times(y), x.of, not x.natural)
    raise Undecided("the product of a logarithm and another number")


def only_exponent(x: Exponentials) -> Exponent | None:
    """The exponent of which it is 2 to the power, if it is."""
    if len(x.terms) != 1:
        return None
    (key, coefficient), *_ = x.terms.items()
    return key if coefficient.number == 1 else None


def shift_between(x: Exponentials, y: Exponentials) -> Exponent | None:
    """The t for which x = y · 2^t, if there is one; each has a term at least."""
    if len(x.terms) != len(y.terms) or not x:
        return None
    first = next(iter(y.terms))
    back = tuple((letter, -c) for letter, c in first)
    for key in x.terms:
        t = together(key, back)
        if y.shift(t) == x:
            return t
    return None


def is_positive(x: Exponentials) -> bool:
    """Whether every coefficient is a number above 0, and there is one."""
    numbers = [c.number for c in x.terms.values()]
    return bool(numbers) and all(c is not None and c > 0 for c in numbers)
