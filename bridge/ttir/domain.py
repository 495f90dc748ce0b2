"""A domain: the numbers that stand for a kernel's floats while its TTIR is run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A tile of numbers of a domain: an array of objects, or several arrays.
Numbers = Any
Array = NDArray[Any]

LN2 = float(np.float32(math.log(2.0)))
LOG2E = float(np.float32(1.0 / math.log(2.0)))
# The factors with which a launcher passes on a number that it was given.
UNITS = (1.0, math.log(2.0), 1.0 / math.log(2.0))
# Two computations of one number differ by less, relatively, if log₂e is written with 9 digits.
_CLOSE = 2.0**-24


class Domain(ABC):
    """Elementwise operations take tiles whose shapes broadcast, as numpy's do. No operation rounds;
    float literals within 2⁻²⁴ of ln 2 and log₂e stand for these."""

    # known: numbers that the launch was given, each with the numbers that it stands for. An
    # argument of a launcher that is such a number times one of `UNITS` stands for the product.
    # literals: float32 numbers in a kernel's text that stand for others. left_open: the result of
    # a masked load where the kernel does not say; None: nobody knows.
    def __init__(self) -> None:
        self.known: list[tuple[float, Numbers]] = []
        self.literals: dict[float, Numbers] = {}
        self.left_open: Numbers | None = None

    def literal(self, x: float) -> Numbers:
        """The number that a float literal in a kernel's text stands for."""
        return self.literals[x] if x in self.literals else self.constant(x)

    def scalar(self, x: float) -> Numbers:
        """The number that a float argument of a kernel stands for."""
        for given, stands_for in self.known:
            for unit, factor in zip(UNITS, (None, LN2, LOG2E), strict=True):
                if math.isclose(x, given * unit, rel_tol=_CLOSE):
                    exact = stands_for
                    return exact if factor is None else self.multiply(exact, self.constant(factor))
        return self.unknown_scalar(x)

    def unknown_scalar(self, x: float) -> Numbers:
        """A float argument that is none of `known`: float32, as Triton passes it."""
        return self.constant(float(np.float32(x)))

    @abstractmethod
    def constant(self, x: float) -> Numbers:
        """A float literal, a tile of shape ()."""

    @abstractmethod
    def integers(self, x: Array) -> Numbers: ...

    @abstractmethod
    def empty(self, size: int) -> Numbers:
        """Memory that nothing was stored to."""

    def each(self, f: Callable[..., Any], *tiles: Numbers) -> Numbers:
        """Apply `f`, which only moves elements, to the arrays behind these tiles."""
        return f(*tiles)

    @abstractmethod
    def add(self, a: Numbers, b: Numbers) -> Numbers: ...
    @abstractmethod
    def subtract(self, a: Numbers, b: Numbers) -> Numbers: ...
    @abstractmethod
    def multiply(self, a: Numbers, b: Numbers) -> Numbers: ...
    @abstractmethod
    def divide(self, a: Numbers, b: Numbers) -> Numbers: ...

    @abstractmethod
    def maximum(self, a: Numbers, b: Numbers) -> Numbers:
        """The larger number; of a NaN and a number the number."""

    @abstractmethod
    def absolute(self, a: Numbers) -> Numbers: ...
    @abstractmethod
    def exp2(self, a: Numbers) -> Numbers: ...
    @abstractmethod
    def log2(self, a: Numbers) -> Numbers: ...

    def exp(self, a: Numbers) -> Numbers:
        return self.exp2(self.multiply(a, self.constant(LOG2E)))

    def log(self, a: Numbers) -> Numbers:
        return self.multiply(self.log2(a), self.constant(LN2))

    def negate(self, a: Numbers) -> Numbers:
        return self.multiply(self.constant(-1.0), a)

    def minimum(self, a: Numbers, b: Numbers) -> Numbers:
        return self.negate(self.maximum(self.negate(a), self.negate(b)))

    @abstractmethod
    def compare(self, predicate: str, a: Numbers, b: Numbers) -> Array:
        """`arith.cmpf`: a tile of truth values. Predicates: oeq, ogt, oge, olt, ole, one, ord, and
        with u for o those that hold if one is NaN."""

    @abstractmethod
    def sum(self, a: Numbers, axis: int) -> Numbers: ...
    @abstractmethod
    def largest(self, a: Numbers, axis: int) -> Numbers: ...

    @abstractmethod
    def dot(self, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        """a @ b + c, matrices."""

    def log_sum_exp(self, name: str, of: Numbers) -> Numbers:
        """The natural logarithms of sums of exponentials, as a backward pass is given them; `name`:
        their name in formulas."""
        return self.log(of)

    def settle(self, a: Numbers) -> Numbers:
        """The same numbers, with the names of `log_sum_exp` for logarithms, and quotients, of sums
        that it was given."""
        return a

    @abstractmethod
    def at_most_zero(self, a: Numbers) -> Array | None:
        """Which elements are ≤ 0 or NaN; None where the domain knows no order."""

    @abstractmethod
    def equal(self, a: Numbers, b: Numbers) -> Array:
        """Which elements of two tiles of one shape are the same number, neither of them NaN."""

    @abstractmethod
    def text(self, a: Numbers) -> str:
        """A single number, to be read."""


class ObjectDomain(Domain):
    """A domain whose tiles are arrays of Python objects; a subclass defines its operations on
    elements.

    Elements are the objects of the domain, and the floats −∞, ∞ and NaN.
    """

    def __init__(self) -> None:
        super().__init__()
        two = "add_one subtract_one multiply_one divide_one max_one equal_one"
        self._two = {name: np.frompyfunc(getattr(self, name), 2, 1) for name in two.split()}
        one = "absolute_one exp2_one log2_one at_most_zero_one"
        self._one = {name: np.frompyfunc(getattr(self, name), 1, 1) for name in one.split()}
        self._integer = np.frompyfunc(self.integer_one, 1, 1)

    @abstractmethod
    def constant_one(self, x: float) -> Any: ...
    @abstractmethod
    def integer_one(self, x: int) -> Any: ...
    @abstractmethod
    def add_one(self, x: Any, y: Any) -> Any: ...
    @abstractmethod
    def subtract_one(self, x: Any, y: Any) -> Any: ...
    @abstractmethod
    def multiply_one(self, x: Any, y: Any) -> Any: ...
    @abstractmethod
    def divide_one(self, x: Any, y: Any) -> Any: ...
    @abstractmethod
    def max_one(self, x: Any, y: Any) -> Any: ...
    @abstractmethod
    def absolute_one(self, x: Any) -> Any: ...
    @abstractmethod
    def exp2_one(self, x: Any) -> Any: ...
    @abstractmethod
    def log2_one(self, x: Any) -> Any: ...
    @abstractmethod
    def compare_one(self, predicate: str, x: Any, y: Any) -> bool: ...
    @abstractmethod
    def at_most_zero_one(self, x: Any) -> bool: ...
    @abstractmethod
    def equal_one(self, x: Any, y: Any) -> bool: ...

    def constant(self, x: float) -> Array:
        return single(self.constant_one(x))

    def integers(self, x: Array) -> Array:
        return array(self._integer(x.astype(object)))

    def empty(self, size: int) -> Array:
        return np.full(size, None, object)

    def add(self, a: Array, b: Array) -> Array:
        return array(self._two["add_one"](a, b))

    def subtract(self, a: Array, b: Array) -> Array:
        return array(self._two["subtract_one"](a, b))

    def multiply(self, a: Array, b: Array) -> Array:
        return array(self._two["multiply_one"](a, b))

    def divide(self, a: Array, b: Array) -> Array:
        return array(self._two["divide_one"](a, b))

    def maximum(self, a: Array, b: Array) -> Array:
        return array(self._two["max_one"](a, b))

    def absolute(self, a: Array) -> Array:
        return array(self._one["absolute_one"](a))

    def exp2(self, a: Array) -> Array:
        return array(self._one["exp2_one"](a))

    def log2(self, a: Array) -> Array:
        return array(self._one["log2_one"](a))

    def compare(self, predicate: str, a: Array, b: Array) -> Array:
        compare = np.frompyfunc(lambda x, y: self.compare_one(predicate, x, y), 2, 1)
        return array(compare(a, b)).astype(bool)

    def at_most_zero(self, a: Array) -> Array:
        return array(self._one["at_most_zero_one"](a)).astype(bool)

    def equal(self, a: Array, b: Array) -> Array:
        return array(self._two["equal_one"](a, b)).astype(bool)

    def sum(self, a: Array, axis: int) -> Array:
        return array(self._two["add_one"].reduce(a, axis=axis))

    def largest(self, a: Array, axis: int) -> Array:
        return array(self._two["max_one"].reduce(a, axis=axis))

    def dot(self, a: Array, b: Array, c: Array) -> Array:
        found = c
        for k in range(a.shape[1]):
            found = self.add(found, self.multiply(a[:, k : k + 1], b[k : k + 1]))
        return found

    def text(self, a: Array) -> str:
        return str(a[()])


def single(x: Any) -> Array:
    """A tile of shape () of an element."""
    tile = np.empty((), object)
    tile[()] = x
    return tile


def array(x: Any) -> Array:
    """A numpy function's result as an array: for tiles of shape () numpy returns an element."""
    return x if isinstance(x, np.ndarray) else single(x)


def answer_of(predicate: str, order: int | None) -> bool:
    """The answer of `arith.cmpf` for numbers of which the first is smaller (−1), equal (0) or
    larger (1), or one is NaN (None)."""
    if predicate in ("ord", "uno"):
        return (order is None) == (predicate == "uno")
    if order is None:
        return predicate[0] == "u"
    return order in _ORDERS[predicate[1:]]


_ORDERS = {
    "eq": (0,), "ne": (-1, 1), "gt": (1,), "ge": (0, 1), "lt": (-1,), "le": (-1, 0),
}  # fmt: skip
