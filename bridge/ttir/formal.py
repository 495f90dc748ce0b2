"""All inputs of a shape at once: numbers are formal expressions Σ polynomial · 2^polynomial, their
quotients and their logarithms.

If two expressions are found equal, they are equal for all inputs over the reals (with −∞ where it
is said) and for every exponential: a proof by computation. A maximum is an atom, known by the set
of which it is the largest element: it must cancel, as it does in softmax. Numbers that were given a
sign, such as a scale ≥ 0, are in `assumed` when that was used.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from bridge.ttir.domain import LN2, LOG2E, Array, ObjectDomain
from bridge.ttir.elements import (
    LN2_NUMBER,
    LOG2E_NUMBER,
    Log,
    Quotient,
    exponentials,
    fraction,
    is_positive,
    log_plus,
    log_times,
    only_exponent,
    plain,
    quotients_plus,
    shift_between,
)
from bridge.ttir.faults import Undecided
from bridge.ttir.polynomials import (
    LN2_ATOM,
    LOG2E_ATOM,
    ZERO,
    Exponent,
    Exponentials,
    Monomial,
    Polynomial,
    exponent,
    polynomial_of,
    together,
    total,
)

Elements = frozenset[Polynomial]


class FormalDomain(ObjectDomain):
    """Elements: Polynomial; Exponentials that are none; Quotient; Log; −∞ and NaN.

    assumed: the facts about the atoms that were used, as sentences.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = ["ln2", "log2e"]
        self.assumed: set[str] = set()
        self._not_negative = {LN2_ATOM, LOG2E_ATOM}
        self._maxima: dict[Elements, int] = {}
        # Of maxima, and log-sum-exps times log₂e: numbers that they are at least as large as.
        self._above: dict[Monomial, Elements] = {}
        self._apart: set[int] = set()
        self._log_sum_exps: dict[Exponentials, Polynomial] = {}
        # Of sums that were settled, how each is another, 2^shift times it, that has a name.
        self._named: dict[Exponentials, tuple[Exponent, Polynomial] | None] = {}
        # The atoms that stand for logarithms among the elements of maxima.
        self._log_atoms: dict[tuple[Polynomial, Exponentials], Polynomial] = {}

    # ------------------------------------------------------------------------------- atoms

    def atom(self, name: str, *, not_negative: bool = False) -> Polynomial:
        """A new number of which nothing is known, or only that it is ≥ 0."""
        number = len(self.names)
        self.names.append(name)
        if not_negative:
            self._not_negative.add(number)
        return Polynomial.atom(number)

    def atoms(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tile of new numbers, named after their places."""
        tile = np.empty(shape, object)
        for place in np.ndindex(shape):
            tile[place] = self.atom(f"{name}{list(place)}")
        return tile

    def log_sum_exp(self, name: str, of: Array) -> Array:
        """New numbers of which is known that they are the natural logarithms of `of`, sums of
        exponentials of scores: a quotient by such a sum is a product with e to the power of −its
        logarithm, which is at least as large as every score. Of an empty sum −∞."""
        found = np.empty(of.shape, object)
        for place in np.ndindex(of.shape):
            found[place] = self._log_sum_exp(f"{name}{list(place)}", of[place])
        return found

    def _log_sum_exp(self, name: str, of: Any) -> Any:
        if type(of) is Polynomial and not of:
            return -math.inf
        only = only_exponent(exponentials(of))
        if only is not None:
            # The logarithm of a single weight is its score.
            found = polynomial_of(only).times(LN2_NUMBER)
            self._log_sum_exps[exponentials(of)] = found
            return found
        found = self.atom(name)
        (number,) = next(iter(found.terms))
        self._apart |= {number}
        of = exponentials(of)
        self._log_sum_exps[of] = found
        self._above[LOG2E_ATOM, number] = frozenset(
            polynomial_of(key) for key, c in of.terms.items() if c.number == 1
        )
        return found

    def settle(self, a: Array) -> Array:
        # Sums are known by the logarithms that are kept, before quotients by them.
        logs = np.frompyfunc(lambda x: self._settled_log(x) if type(x) is Log else x, 1, 1)
        quotients = np.frompyfunc(
            lambda x: self._settled_quotient(x) if type(x) is Quotient else x, 1, 1
        )
        return np.asarray(quotients(logs(a)), object)

    def _name_of(self, of: Exponentials) -> tuple[Exponent, Polynomial] | None:
        """(t, L) for which of · 2^t is the sum whose logarithm is L."""
        if of not in self._named:
            only = only_exponent(of)
            if only is not None:
                self._named[of] = ((), polynomial_of(only).times(LN2_NUMBER))
                return self._named[of]
            whole = of.canonical()
            self._named[of] = next(
                (
                    (shift, name)
                    for known, name in self._log_sum_exps.items()
                    if (shift := shift_between(known, of)) is not None
                    or (shift := shift_between(known.canonical(), whole)) is not None
                ),
                None,
            )
        return self._named[of]

    def _settled_log(self, x: Log) -> Any:
        found = self._name_of(x.of)
        if found is None:
            return x
        shift, name = found
        # log₂ of = L·log₂e − t.
        log = name.times(LOG2E_NUMBER).plus(polynomial_of(shift), -1)
        return x.shift.plus(log.times(LN2_NUMBER) if x.natural else log)

    def _settled_quotient(self, x: Quotient) -> Any:
        found = self._name_of(x.bottom)
        if found is None:
            return x
        shift, name = found
        by = exponent(polynomial_of(shift).plus(name.times(LOG2E_NUMBER), -1), self._apart)
        return plain(x.top.shift(by))

    # ------------------------------------------------------------------------------ elements

    def constant_one(self, x: float) -> Any:
        if x == LN2:
            return LN2_NUMBER
        if x == LOG2E:
            return LOG2E_NUMBER
        if not math.isfinite(x):
            return x
        return Polynomial.constant(int(x) if x.is_integer() else Fraction(x))

    def integer_one(self, x: int) -> Polynomial:
        return Polynomial.constant(int(x))

    def add_one(self, x: Any, y: Any) -> Any:
        if type(x) is Polynomial and type(y) is Polynomial:
            return x.plus(y)
        if type(x) is float or type(y) is float:
            return sum(z for z in (x, y) if type(z) is float)
        if type(x) is Log or type(y) is Log:
            return log_plus(x, y)
        if type(x) is Quotient or type(y) is Quotient:
            return quotients_plus(x, y)
        return plain(exponentials(x).plus(exponentials(y)))

    def subtract_one(self, x: Any, y: Any) -> Any:
        if type(x) is Polynomial and type(y) is Polynomial:
            return x.plus(y, -1)
        if type(y) is float:
            return self.add_one(x, -y)
        if type(x) is float and y is not None:
            return x
        if type(x) is Log and type(y) is Log and x.natural == y.natural and x.of == y.of:
            return x.shift.plus(y.shift, -1)
        return self.add_one(x, self.multiply_one(Polynomial.constant(-1), y))

    def multiply_one(self, x: Any, y: Any) -> Any:
        if type(x) is float or type(y) is float:
            return self._infinite_product(x, y)
        if type(x) is Polynomial and type(y) is Polynomial:
            for one, other in ((x, y), (y, x)):
                elements = self._elements_of(one)
                if elements is not None and other != LN2_NUMBER and self._is_not_negative(other):
                    return self._largest(frozenset(p.times(other) for p in elements))
            return x.times(y)
        if type(x) is Log or type(y) is Log:
            return log_times(x, y)
        if type(x) is Quotient or type(y) is Quotient:
            (a, b), (c, d) = fraction(x), fraction(y)
            if type(x) is not type(y):
                # x is bottom · 2^shift, as where parts are combined.
                factor, top, bottom = (c, a, b) if type(x) is Quotient else (a, c, d)
                shift = shift_between(factor, bottom)
                if shift is not None:
                    return plain(top.shift(shift))
            return Quotient(a.times(c), b.times(d))
        return plain(exponentials(x).times(exponentials(y)))

    def divide_one(self, x: Any, y: Any) -> Any:
        if type(x) is float or type(y) is float:
            if x is None or y is None or math.inf in (x, y) or -math.inf in (x, y):
                raise Undecided("a quotient with ∞, or with a value that was never written")
            return math.nan
        if isinstance(y, Polynomial) and y.number:
            return self.multiply_one(x, Polynomial.constant(1 / Fraction(y.number)))
        top, bottom = fraction(x), fraction(y)
        (a, b), (c, d) = top, bottom
        known = self._log_sum_exps.get(c)
        if known is not None:
            inverse = self.exp2_one(known.times(LOG2E_NUMBER).scale(-1))
            return self.multiply_one(x, inverse)
        self._check_positive(c)
        return Quotient(a.times(d), b.times(c))

    def max_one(self, x: Any, y: Any) -> Any:
        for one, another in ((x, y), (y, x)):
            if type(one) is float:
                return another if one != math.inf else one
        return self._largest(self._elements(x) | self._elements(y))

    def absolute_one(self, x: Any) -> Any:
        number = x.number if type(x) is Polynomial else None
        if number is not None:
            return Polynomial.constant(-number if number < 0 else number)
        raise Undecided(f"the absolute value of {self.element_text(x)}, which may have either sign")

    def exp2_one(self, x: Any) -> Any:
        if type(x) is float:
            if x == math.inf:
                raise Undecided("2 to the power of ∞")
            return ZERO if x == -math.inf else x
        if type(x) is Log and not x.natural:
            return plain(x.of.shift(exponent(x.shift, self._apart)))
        if type(x) is not Polynomial:
            raise Undecided(f"2 to the power of {self.element_text(x)}")
        key = exponent(x, self._apart)
        return plain(Exponentials({key: Polynomial.constant(1)}))

    def log2_one(self, x: Any) -> Any:
        if type(x) is float:
            raise Undecided("the logarithm of −∞ or NaN")
        if type(x) is Polynomial and x.number == 1:
            return ZERO
        if type(x) is Polynomial and x.number == 0:
            return -math.inf
        if type(x) in (Quotient, Log):
            raise Undecided(f"the logarithm of {self.element_text(x)}")
        of = exponentials(x)
        self._check_positive(of)
        return Log(ZERO, of, False)

    def compare_one(self, predicate: str, x: Any, y: Any) -> bool:
        if x is None or y is None:
            raise Undecided("a value that was never written")
        if x != x or y != y:
            return predicate[0] == "u"
        if type(x) is float or type(y) is float:
            near, far = (z if type(z) is float else 0.0 for z in (x, y))
            order = int(near > far) - int(near < far)
        else:
            order = self._order(x, y)
        kind = predicate[1:]
        if kind in ("eq", "ne"):
            return (order == 0) == (kind == "eq")
        if order == 2:
            raise Undecided(
                f"the order of {self.element_text(x)} and {self.element_text(y)} ({predicate})"
            )
        return {"lt": order < 0, "le": order <= 0, "gt": order > 0, "ge": order >= 0}[kind]

    def _order(self, x: Any, y: Any) -> int:
        """−1, 0, 1; 2: they differ, and their order is not known. Raises Undecided if that is not
        known either."""
        if type(x) in (Quotient, Log) or type(y) in (Quotient, Log):
            raise Undecided(f"whether {self.element_text(x)} is {self.element_text(y)}")
        difference = exponentials(x).plus(exponentials(y), -1)
        if not difference:
            return 0
        polynomial = difference.polynomial
        if polynomial is not None and polynomial.number is not None:
            return 1 if polynomial.number > 0 else -1
        if is_positive(difference):
            return 1
        if is_positive(Exponentials({}).plus(difference, -1)):
            return -1
        raise Undecided(f"whether {self.element_text(x)} is {self.element_text(y)}")

    def at_most_zero_one(self, x: Any) -> bool:
        if type(x) is float:
            return x != math.inf
        if type(x) is Log:
            return self._is_log_at_most_zero(x)
        if type(x) is not Polynomial:
            return False
        if x.number is not None:
            return x.number <= 0
        # Maxima of logarithms come with log₂e.
        return self._is_below_maximum(x) or self._is_below_maximum(x.times(LN2_NUMBER))

    def _is_below_maximum(self, x: Polynomial) -> bool:
        """Whether x is a number less a maximum of numbers among which it is."""
        for monomial, coefficient in x.terms.items():
            above = self._above.get(monomial)
            if above is None or coefficient != -1:
                continue
            rest = Polynomial({m: c for m, c in x.terms.items() if m != monomial})
            elements = self._elements_of(rest)
            if rest in above or (elements is not None and elements <= above):
                return True
        return False

    def _is_log_at_most_zero(self, x: Log) -> bool:
        """Whether x is a logarithm less a maximum of logarithms among which it is."""
        shift = x.shift if x.natural else x.shift.times(LN2_NUMBER)
        for monomial, coefficient in shift.terms.items():
            above = self._above.get(monomial)
            if above is not None and coefficient == -1:
                rest = Polynomial({m: c for m, c in shift.terms.items() if m != monomial})
                if self._log_atoms.get((rest, x.of)) in above:
                    return True
        return False

    def equal_one(self, x: Any, y: Any) -> bool:
        if x is None or y is None or x != x or y != y:
            return False
        if type(x) is float or type(y) is float:
            return type(x) is float and type(y) is float and x == y
        if type(x) is Log or type(y) is Log:
            if type(x) is not type(y):
                return False
            x, y = (
                self.exp2_one(z if not z.natural else log_times(z, LOG2E_NUMBER)) for z in (x, y)
            )
        (a, b), (c, d) = fraction(x), fraction(y)
        if a == c and b == d:
            return True
        shift = shift_between(b, d)
        if shift is not None and a == c.shift(shift):
            return True
        return a.times(d).canonical() == c.times(b).canonical()

    # ---------------------------------------------------------------------------- reductions

    def sum(self, a: Array, axis: int) -> Array:
        return self._rows(a, axis, self._sum)

    def largest(self, a: Array, axis: int) -> Array:
        return self._rows(a, axis, self._maximum)

    def _rows(self, a: Array, axis: int, f: Any) -> Array:
        a = np.moveaxis(a, axis, -1)
        found = np.empty(a.shape[:-1], object)
        for place in np.ndindex(found.shape):
            found[place] = f(list(a[place]))
        return found

    def _sum(self, elements: list[Any]) -> Any:
        if all(type(x) in (Polynomial, Exponentials) for x in elements):
            return plain(total(pair for x in elements for pair in exponentials(x).terms.items()))
        found = elements[0]
        for x in elements[1:]:
            found = self.add_one(found, x)
        return found

    def _maximum(self, elements: list[Any]) -> Any:
        numbers = [x for x in elements if type(x) is not float]
        special = [x for x in elements if type(x) is float]
        if math.inf in special:
            raise Undecided("a maximum with ∞")
        if not numbers:
            # NaN counts only where there is nothing else.
            return -math.inf if -math.inf in special else math.nan
        return self._largest(frozenset().union(*map(self._elements, numbers)))

    def dot(self, a: Array, b: Array, c: Array) -> Array:
        sums = (Polynomial, Exponentials)
        if any(type(x) not in sums for x in (*a.flat, *b.flat, *c.flat)):
            return super().dot(a, b, c)
        rows = [[(k, exponentials(x).terms.items()) for k, x in enumerate(row) if x] for row in a]
        columns = [[exponentials(x).terms.items() for x in column] for column in b.T]
        found = np.empty(c.shape, object)
        for i, j in np.ndindex(c.shape):
            column = columns[j]
            parts = [
                (together(key, another), p.times(q))
                for k, terms in rows[i]
                for key, p in terms
                for another, q in column[k]
            ]
            found[i, j] = plain(total([*exponentials(c[i, j]).terms.items(), *parts]))
        return found

    # -------------------------------------------------------------------------------- maxima

    def _largest(self, elements: Elements) -> Polynomial:
        if len(elements) == 1:
            return next(iter(elements))
        number = self._maxima.get(elements)
        if number is None:
            number = self._maxima[elements] = len(self.names)
            self.names.append(f"max{len(self._maxima)}")
            self._apart |= {number}
            self._above[number,] = elements
        return Polynomial.atom(number)

    def _elements_of(self, x: Polynomial) -> Elements | None:
        """The set of which x is the largest element, if x is a maximum; else None."""
        if len(x.terms) != 1:
            return None
        (monomial, coefficient), *_ = x.terms.items()
        return self._above.get(monomial) if coefficient == 1 and len(monomial) == 1 else None

    def _elements(self, x: Any) -> Elements:
        if type(x) is Log and x.natural:
            key = (x.shift, x.of)
            atom = self._log_atoms.get(key)
            if atom is None:
                atom = self._log_atoms[key] = self.atom(f"log{len(self._log_atoms) + 1}")
            return frozenset([atom])
        if type(x) is not Polynomial:
            raise Undecided(f"the maximum of {self.element_text(x)}")
        found = self._elements_of(x)
        return frozenset([x]) if found is None else found

    # --------------------------------------------------------------------------------- signs

    def _is_not_negative(self, x: Polynomial) -> bool:
        for monomial, coefficient in x.terms.items():
            if coefficient < 0 or not self._not_negative.issuperset(monomial):
                return False
        used = {a for monomial in x.terms for a in monomial} - {LN2_ATOM, LOG2E_ATOM}
        self.assumed |= {f"{self.names[a]} ≥ 0" for a in used}
        return True

    def _infinite_product(self, x: Any, y: Any) -> float:
        if type(x) is float:
            x, y = y, x
        if type(x) is float or y != y:
            return math.nan
        if type(x) is Polynomial and x and self._is_not_negative(x):
            self.assumed |= {f"{self.names[a]} ≠ 0" for m in x.terms for a in m if a > LOG2E_ATOM}
            return float(y)
        if type(x) is Polynomial and x.number is not None and x.number < 0:
            return -float(y)
        return math.nan

    def _check_positive(self, x: Exponentials) -> None:
        if not is_positive(x):
            raise Undecided(f"whether {self.element_text(x)} is above 0")

    # ---------------------------------------------------------------------------------- text

    def text(self, a: Array) -> str:
        return self.element_text(a[()])

    def element_text(self, x: Any) -> str:
        """An element as a formula."""
        if type(x) is Polynomial:
            return self._polynomial_text(x)
        if type(x) is Exponentials:
            parts = [
                f"({self._polynomial_text(c)})·2^({self._polynomial_text(polynomial_of(key))})"
                for key, c in x.terms.items()
            ]
            return " + ".join(parts) or "0"
        if type(x) is Quotient:
            return f"[{self.element_text(x.top)}] / [{self.element_text(x.bottom)}]"
        if type(x) is Log:
            log = "ln" if x.natural else "log₂"
            return f"{self._polynomial_text(x.shift)} + {log}[{self.element_text(x.of)}]"
        return {None: "not written"}.get(x, str(x))

    def _polynomial_text(self, x: Polynomial) -> str:
        parts = []
        for monomial, c in x.terms.items():
            factors = [self.names[a] for a in monomial]
            parts.append("·".join([str(c), *factors] if c != 1 or not factors else factors))
        return " + ".join(parts) or "0"
