"""Fixed-point intervals.

Written by `.venv/bin/python -m bridge translate` from `Attention/Model/Interval.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bridge.spec.core import int_div, log2


@dataclass(frozen=True)
class IntervalAll:
    """Lean: `Attention.Model.Interval.all`."""


@dataclass(frozen=True)
class IntervalBetween:
    """Lean: `Attention.Model.Interval.between`."""

    lo: int
    hi: int


# `between lo hi` stands for the numbers x with lo ≤ x · 2^p ≤ hi; `all` for all numbers: nothing is
# known. Lean: `Attention.Model.Interval`.
Interval: TypeAlias = IntervalAll | IntervalBetween


def interval_ceil_div(n: int, m: int) -> int:
    """n / m rounded up; `n / m` itself rounds down, for m > 0.

    Lean: `Attention.Model.Interval.ceilDiv`.
    """
    return -int_div(-n, m)


def interval_of_dyadic(n: int, e: int, *, p: int) -> Interval:
    """The number n / 2^e, rounded outward where e exceeds the precision.

    Lean: `Attention.Model.Interval.ofDyadic`.
    """
    return IntervalBetween(int_div(n * 2**p, 2**e), interval_ceil_div(n * 2**p, 2**e))


def interval_add(interval: Interval, interval_1: Interval) -> Interval:
    """Lean: `Attention.Model.Interval.add`."""
    if isinstance(interval, IntervalBetween) and isinstance(interval_1, IntervalBetween):
        return IntervalBetween(interval.lo + interval_1.lo, interval.hi + interval_1.hi)
    return IntervalAll()


def interval_neg(interval: Interval) -> Interval:
    """Lean: `Attention.Model.Interval.neg`."""
    if isinstance(interval, IntervalBetween):
        return IntervalBetween(-interval.hi, -interval.lo)
    return IntervalAll()


def interval_least_product(a: int, b: int, c: int, d: int) -> int:
    """The least product of a number from a to b with one from c to d. It is that of two bounds,
    and their signs tell which.

    Lean: `Attention.Model.Interval.leastProduct`.
    """
    if 0 <= a:
        return a * c if 0 <= c else b * c
    if b <= 0:
        return b * d if d <= 0 else a * d
    if 0 <= c:
        return a * d
    return b * c if d <= 0 else min(a * d, b * c)


def interval_mul(interval: Interval, interval_1: Interval, *, p: int) -> Interval:
    """The least product of numbers in both, and the greatest, which is the least of −x · y
    negated, rounded outward: a shift by p divides by 2^p and rounds down.

    Lean: `Attention.Model.Interval.mul`.
    """
    if isinstance(interval, IntervalBetween) and isinstance(interval_1, IntervalBetween):
        return IntervalBetween(
            interval_least_product(interval.lo, interval.hi, interval_1.lo, interval_1.hi) >> p,
            -(
                interval_least_product(-interval.hi, -interval.lo, interval_1.lo, interval_1.hi)
                >> p
            ),
        )
    return IntervalAll()


def interval_div_lower(p: int, a: int, c: int, d: int) -> int:
    """A lower bound of a number above a / 2^p, divided by a number between c / 2^p and d / 2^p;
    for 0 < c.

    Lean: `Attention.Model.Interval.divLower`.
    """
    return int_div(a * 2**p, d) if 0 <= a else int_div(a * 2**p, c)


def interval_div(interval: Interval, interval_1: Interval, *, p: int) -> Interval:
    """Division by an interval of positive numbers; `all` for any other.

    Lean: `Attention.Model.Interval.div`.
    """
    if isinstance(interval, IntervalBetween) and isinstance(interval_1, IntervalBetween):
        if 0 < interval_1.lo:
            return IntervalBetween(
                interval_div_lower(p, interval.lo, interval_1.lo, interval_1.hi),
                -interval_div_lower(p, -interval.hi, interval_1.lo, interval_1.hi),
            )
        return IntervalAll()
    return IntervalAll()


def interval_larger(interval: Interval, interval_1: Interval) -> Interval:
    """The larger of two numbers: the larger of the lower bounds, and of the upper ones.

    Lean: `Attention.Model.Interval.larger`.
    """
    if isinstance(interval, IntervalBetween) and isinstance(interval_1, IntervalBetween):
        return IntervalBetween(max(interval.lo, interval_1.lo), max(interval.hi, interval_1.hi))
    return IntervalAll()


def interval_squarings(p: int, k: int, a: int) -> int:
    """k squarings of a / 2^p, rounded down.

    Lean: `Attention.Model.Interval.squarings`.
    """
    return a if k == 0 else interval_squarings(p, k - 1, a * a >> p)


def interval_exp_lower(p: int, k: int, n: int) -> int:
    """A lower bound of 2^p · exp (n / 2^p), by k squarings.

    Lean: `Attention.Model.Interval.expLower`.
    """
    return interval_squarings(p, k, max(0, 2**p + (n >> k)))


def interval_exp_upper(p: int, k: int, n: int) -> int | None:
    """An upper bound of 2^p · exp (n / 2^p); none where the precision does not suffice for one.

    Lean: `Attention.Model.Interval.expUpper`.
    """
    c = interval_exp_lower(p, k, -n)
    return interval_ceil_div(2**p * 2**p, c) if 0 < c else None


def interval_num_squarings(p: int) -> int:
    """The number of squarings: rounding errors stay far below the bound's own error.

    Lean: `Attention.Model.Interval.numSquarings`.
    """
    return p // 3


def interval_exponential(interval: Interval, *, p: int) -> Interval:
    """The exponentials of an interval.

    Lean: `Attention.Model.Interval.exponential`.
    """
    if isinstance(interval, IntervalAll):
        return IntervalAll()
    hi = interval_exp_upper(p, interval_num_squarings(p), interval.hi)
    if hi is None:
        return IntervalAll()
    return IntervalBetween(interval_exp_lower(p, interval_num_squarings(p), interval.lo), hi)


def interval_sqrt_candidate(n: int, fuel: int, r: int) -> int:
    """Newton's iteration for √n, from above.

    Lean: `Attention.Model.Interval.sqrtCandidate`.
    """
    if fuel == 0:
        return r
    r_ = int_div(r + int_div(n, r), 2)
    return interval_sqrt_candidate(n, fuel - 1, r_) if r_ < r else r


def interval_inv_sqrt(d: int, *, p: int) -> Interval:
    """1 / √d: the number s ≥ 0 with d · s² = 1.

    Lean: `Attention.Model.Interval.invSqrt`.
    """
    r = interval_sqrt_candidate(int_div(2**p * 2**p, d), 2 * p, 2**p)
    if 0 <= r and r * r * d <= 2**p * 2**p and (2**p * 2**p <= (r + 1) * (r + 1) * d):
        return IntervalBetween(r, r + 1)
    return IntervalAll()


def interval_sqrt_floor(n: int) -> int:
    """The integer part of √n, for n ≥ 0: Newton's iteration from a power of 2 above it.

    Lean: `Attention.Model.Interval.sqrtFloor`.
    """
    return interval_sqrt_candidate(n, log2(abs(n)) + 4, 2 ** (log2(abs(n)) // 2 + 1))


def interval_sqrt(interval: Interval, *, p: int) -> Interval:
    """The square roots of an interval of numbers that are not negative: every r ≥ 0 with r² in it;
    `all` for any other.

    Lean: `Attention.Model.Interval.sqrt`.
    """
    if isinstance(interval, IntervalBetween):
        lo = interval_sqrt_floor(interval.lo * 2**p)
        r = interval_sqrt_floor(interval.hi * 2**p)
        hi = r if interval.hi * 2**p <= r * r else r + 1
        if (
            0 <= interval.lo
            and 0 <= hi
            and (lo * lo <= interval.lo * 2**p)
            and (interval.hi * 2**p <= hi * hi)
        ):
            return IntervalBetween(lo, hi)
        return IntervalAll()
    return IntervalAll()


def interval_log_candidate(p: int, x: int, steps: int, L: int) -> int:
    """Newton's iteration L ← L + x / exp L − 1 for the logarithm of x.

    Lean: `Attention.Model.Interval.logCandidate`.
    """
    if steps == 0:
        return L
    return interval_log_candidate(
        p,
        x,
        steps - 1,
        L + int_div(x * interval_exp_lower(p, interval_num_squarings(p), -L), 2**p) - 2**p,
    )


def interval_log(interval: Interval, *, p: int) -> Interval:
    """The logarithms of an interval of positive numbers: every L with exp L in it.

    Lean: `Attention.Model.Interval.log`.
    """
    if isinstance(interval, IntervalBetween):
        start = int_div((log2(abs(interval.lo)) - p) * 2**p * 710, 1024)
        slack = 2 ** max(p - p // 4, 0)
        lo = interval_log_candidate(p, interval.lo, 12, start) - slack
        hi = interval_log_candidate(p, interval.hi, 12, start) + slack
        least = interval_exp_upper(p, interval_num_squarings(p), lo)
        if least is None:
            return IntervalAll()
        if least <= interval.lo and interval.hi <= interval_exp_lower(
            p, interval_num_squarings(p), hi
        ):
            return IntervalBetween(lo, hi)
        return IntervalAll()
    return IntervalAll()
