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


# Attention/Model/Exact.lean: integers for scores, rational values, exp k = 2^k.
EXACT = Arithmetic(lambda k: Fraction(2) ** k, int, Fraction)


def div(a: int, b: int) -> int:
    """a / b of natural numbers, rounded down; by 0 it is 0. Lean: `Nat.div`."""
    return a // b if b else 0


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
