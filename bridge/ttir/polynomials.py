"""Polynomials over atoms, and sums of exponentials of polynomials with such coefficients."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Set
from fractions import Fraction
from typing import Generic, TypeVar

Coefficient = int | Fraction
# A product of atoms by their numbers, sorted. 0 is ln 2 and 1 is log₂e, whose product is 1.
Monomial = tuple[int, ...]
LN2_ATOM, LOG2E_ATOM = 0, 1


@functools.lru_cache(maxsize=1 << 18)
def product(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials."""
    found = sorted(m + n)
    while LN2_ATOM in found and LOG2E_ATOM in found:
        found.remove(LN2_ATOM)
        found.remove(LOG2E_ATOM)
    return tuple(found)


Key = TypeVar("Key")
Value = TypeVar("Value")


class Sum(Generic[Key, Value]):
    """A sum of terms, each a coefficient times its key, without terms whose coefficient is 0;
    immutable."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[Key, Value]) -> None:
        some = all(terms.values())
        self.terms = terms if some else {key: x for key, x in terms.items() if x}
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.terms == other.terms

    def __bool__(self) -> bool:
        return bool(self.terms)


class Polynomial(Sum[Monomial, Coefficient]):
    """Σ coefficient · monomial."""

    __slots__ = ()

    @staticmethod
    def constant(x: Coefficient) -> Polynomial:
        return Polynomial({(): x})

    @staticmethod
    def atom(number: int) -> Polynomial:
        return Polynomial({(number,): 1})

    @property
    def number(self) -> Coefficient | None:
        """The number that it is, if it is one."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def plus(self, other: Polynomial, factor: Coefficient = 1) -> Polynomial:
        """self + factor · other."""
        if not self.terms and factor == 1:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor * coefficient
        return Polynomial(terms)

    def scale(self, factor: Coefficient) -> Polynomial:
        return Polynomial({m: c * factor for m, c in self.terms.items()})

    def times(self, other: Polynomial) -> Polynomial:
        for one, another in ((self, other), (other, self)):
            if one.number is not None:
                return another if one.number == 1 else another.scale(one.number)
        terms: dict[Monomial, Coefficient] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = product(m, n)
                terms[key] = terms.get(key, 0) + c * d
        return Polynomial(terms)


ZERO = Polynomial({})
# An exponent as a sum of polynomials, by their numbers among `_letters`, with coefficients.
Exponent = tuple[tuple[int, Coefficient], ...]
_letters: dict[Polynomial, int] = {}
_polynomials: list[Polynomial] = []


def exponent(x: Polynomial, apart: Set[int]) -> Exponent:
    """A polynomial as an exponent. Each of its monomials with an atom of `apart`, such as a
    maximum, is a summand, and the rest is one: sums of exponents then mostly have few summands."""
    if not x.terms:
        return ()
    rest: dict[Monomial, Coefficient] = {}
    found: dict[int, Coefficient] = {}
    for monomial, coefficient in x.terms.items():
        if apart.isdisjoint(monomial):
            rest[monomial] = coefficient
        else:
            found[_letter(Polynomial({monomial: 1}))] = coefficient
    if rest:
        found[_letter(Polynomial(rest))] = 1
    return tuple(sorted(found.items()))


def _letter(x: Polynomial) -> int:
    number = _letters.get(x)
    if number is None:
        number = _letters[x] = len(_polynomials)
        _polynomials.append(x)
    return number


def polynomial_of(x: Exponent) -> Polynomial:
    """The exponent as one polynomial."""
    found = ZERO
    for letter, coefficient in x:
        found = found.plus(_polynomials[letter], coefficient)
    return found


@functools.lru_cache(maxsize=1 << 18)
def together(x: Exponent, y: Exponent) -> Exponent:
    """The sum of two exponents."""
    if not x or not y:
        return x or y
    found = dict(x)
    for letter, coefficient in y:
        found[letter] = found.get(letter, 0) + coefficient
    return tuple(sorted((letter, c) for letter, c in found.items() if c))


class Exponentials(Sum[Exponent, Polynomial]):
    """Σ coefficient · 2^exponent with polynomials as coefficients."""

    __slots__ = ()

    @staticmethod
    def of(x: Polynomial) -> Exponentials:
        return Exponentials({(): x})

    @property
    def polynomial(self) -> Polynomial | None:
        """The polynomial that it is, if it is one."""
        if not self.terms:
            return ZERO
        return self.terms.get(()) if len(self.terms) == 1 else None

    def plus(self, other: Exponentials, factor: Coefficient = 1) -> Exponentials:
        """self + factor · other."""
        terms = dict(self.terms)
        for key, coefficient in other.terms.items():
            terms[key] = terms.get(key, ZERO).plus(coefficient, factor)
        return Exponentials(terms)

    def times(self, other: Exponentials) -> Exponentials:
        terms: dict[Exponent, Polynomial] = {}
        for key, c in self.terms.items():
            for another, d in other.terms.items():
                both = together(key, another)
                terms[both] = terms.get(both, ZERO).plus(c.times(d))
        return Exponentials(terms)

    def shift(self, by: Exponent) -> Exponentials:
        """self · 2^by."""
        return Exponentials({together(key, by): c for key, c in self.terms.items()})

    def canonical(self) -> Exponentials:
        """Itself with each exponent as a single polynomial: equal sums are then equal in terms."""
        terms: dict[Exponent, Polynomial] = {}
        for key, coefficient in self.terms.items():
            whole = exponent(polynomial_of(key), frozenset())
            terms[whole] = terms.get(whole, ZERO).plus(coefficient)
        return Exponentials(terms)


def total(parts: Iterable[tuple[Exponent, Polynomial]]) -> Exponentials:
    """Σ coefficient · 2^exponent of many."""
    terms: dict[Exponent, dict[Monomial, Coefficient]] = {}
    for key, coefficient in parts:
        found = terms.setdefault(key, {})
        for monomial, c in coefficient.terms.items():
            found[monomial] = found.get(monomial, 0) + c
    return Exponentials({key: Polynomial(found) for key, found in terms.items()})
