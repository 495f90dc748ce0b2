"""What the translated definitions stand on: numbers, and the functions of core Lean that Python
lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

# A number of any type that `num` makes: the Spec's S and R.
Score: TypeAlias = Any
Value: TypeAlias = Any

T = TypeVar("T")


@dataclass(frozen=True)
class Arithmetic:
    """What the definitions need of numbers beside + − · / and ≤.

    exp: from a score to a value. score, value: an integer as one of them. Any numbers will do:
    `Arithmetic(math.exp, float, float)`, `Arithmetic(Decimal.exp, Decimal, Decimal)`,
    `Arithmetic(torch.exp, torch.tensor, torch.tensor)`, mpmath's, intervals.
    """

    exp: Callable[[Score], Value]
    score: Callable[[int], Score]
    value: Callable[[int], Value]

    def dual(self) -> Arithmetic:
        """The same over dual numbers, for an exponential that is its own derivative."""

        def exp(a: Dual) -> Dual:
            e = self.exp(a.val)
            return Dual(e, e * a.der)

        def constant(n: int) -> Dual:
            return Dual(self.value(n), self.value(0))

        return Arithmetic(exp, constant, constant)


@dataclass(frozen=True)
class Dual:
    """The number `val`, changing at the rate `der`: val + der · ε, with ε² = 0.

    Lean: `Attention.Dual` and its instances.
    """

    val: Value
    der: Value

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.val + other.val, self.der + other.der)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.val - other.val, self.der - other.der)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.val * other.val, self.der * other.val + self.val * other.der)

    def __truediv__(self, other: Dual) -> Dual:
        rate = self.der * other.val - self.val * other.der
        return Dual(self.val / other.val, rate / (other.val * other.val))


# Attention/Model/Exact.lean: integers for scores, rational values, exp k = 2^k.
EXACT = Arithmetic(lambda k: Fraction(2) ** k, int, Fraction)


def div(a: int, b: int) -> int:
    """a / b of natural numbers, rounded down; by 0 it is 0. Lean: `Nat.div`."""
    return a // b if b else 0


def int_div(a: int, b: int) -> int:
    """a / b of integers, so that what remains is not negative; by 0 it is 0. Lean: `Int.ediv`."""
    return 0 if b == 0 else a // b if b > 0 else -(a // -b)


def log2(n: int) -> int:
    """The largest k with 2^k ≤ n; of 0 it is 0. Lean: `Nat.log2`."""
    return max(n.bit_length() - 1, 0)


def mod(a: int, b: int) -> int:
    """a % b of natural numbers; by 0 it is a. Lean: `Nat.mod`."""
    return a % b if b else a


def get_or(xs: Sequence[T], i: int, default: T) -> T:
    """Element i, or the default beyond the end. Lean: `List.getD`."""
    return xs[i] if i < len(xs) else default


def get_or_none(xs: Sequence[T], i: int) -> T | None:
    """Element i, or None beyond the end. Lean: `xs[i]?`."""
    return xs[i] if i < len(xs) else None


def erase_index(xs: Sequence[T], i: int) -> list[T]:
    """The list without element i; all of it if there is none. Lean: `List.eraseIdx`."""
    return [*xs[:i], *xs[i + 1 :]]


def set_index(xs: Sequence[T], i: int, x: T) -> list[T]:
    """The list with element i replaced; unchanged if there is none. Lean: `List.set`."""
    return [*xs[:i], x, *xs[i + 1 :]] if i < len(xs) else list(xs)
