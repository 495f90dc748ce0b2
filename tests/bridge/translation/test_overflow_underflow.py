"""No input that the Spec says to fit overflows where numbers underflow, computed in fractions that
are off by as much as a number below the normal ones may be, most of them upwards."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from overflow_cases import IN_ACCUMULATOR, Numbers

from bridge.spec import overflow_bounds as bounds
from bridge.spec import overflow_changes as changed
from bridge.spec import overflow_underflow as sums
from bridge.spec import overflow_underflow_options as options
from bridge.spec import overflow_underflow_rows as spec
from bridge.spec.core import EXACT
from bridge.spec.score_change_tolerance import ScoreChanges
from bridge.spec.tolerance import Denominator, Precision

DRAWN = 400
UNIT = Fraction(1, 2**14)
NU = Fraction(1, 2**10)
NONE = Fraction(0)
PRECISION = Precision(UNIT, UNIT, 2 * UNIT, NONE, NONE, Denominator.UNROUNDED)
SCALE = Fraction(1, 8)
UNCHANGED = ScoreChanges(None, None, None)


@dataclass(frozen=True)
class Case:
    """One query, its keys, one component of their values, and the largest number."""

    q: Numbers
    k: Numbers
    v: Numbers
    largest: Fraction
    overflows: bool

    def range(self) -> bounds.Largest:
        return bounds.Largest(*[self.largest] * 5)


class Arithmetic:
    """Operations that are off by as much as they may be, and the largest of their results."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.biggest = NONE

    def off(self, x: Fraction, error: Fraction) -> Fraction:
        size = abs(x) + self.rng.choice([-1, 0, 1, 1, 1, 1]) * error
        self.biggest = max(self.biggest, size)
        return size if x >= 0 else -size

    def store(self, x: Fraction, unit: Fraction = UNIT) -> Fraction:
        return self.off(x, min(abs(x), max(unit * abs(x), NU)))

    def total(self, terms: list[Fraction]) -> Fraction:
        s = terms[0]
        for x in terms[1:]:
            s = self.off(s + x, UNIT * (abs(s) + abs(x)) + (NU if s != 0 != x else NONE))
        return s


def draw(seed: int) -> Case:
    """Inner products or sums of weights are the largest numbers, and the range ends about there."""
    rng = random.Random(seed)

    def numbers(n: int, least: int) -> list[Fraction]:
        return [rng.choice([1, 1, -1]) * Fraction(rng.randint(1, 64), 2**least) for _ in range(n)]

    d, num_keys = rng.randint(1, 8), rng.randint(1, 8)
    least = rng.choice([3, 5, 9])
    q = [numbers(d, least)]
    k = [numbers(d, least) for _ in range(num_keys)]
    v = [numbers(1, 8) for _ in range(num_keys)]
    biggest = compute(q, k, v, seed)
    near = rng.choice([1 - Fraction(1, 2**12), Fraction(3, 2), Fraction(3)])
    return Case(q, k, v, biggest * near, near < 1)


def compute(q: Numbers, k: Numbers, v: Numbers, seed: int) -> Fraction:
    """The largest of the numbers of an output."""
    num = Arithmetic(seed)
    scores = [
        num.store(SCALE * num.total([num.store(x * y) for x, y in zip(q[0], key, strict=True)]))
        for key in k
    ]
    weights = [
        num.store(Fraction(math.exp(num.off(s - max(scores), NONE))), 2 * UNIT) for s in scores
    ]
    numerator = num.total([num.store(w * x) for w, (x,) in zip(weights, v, strict=True)])
    num.store(numerator / num.total(weights))
    return num.biggest


@cache
def all_cases() -> list[Case]:
    return [draw(seed) for seed in range(DRAWN)]


def see_all(i: int, j: int) -> bool:
    return True


def fits(case: Case, nu: Fraction = NU) -> bool:
    n, d = len(case.k), len(case.q[0])
    one = Fraction(1)
    return spec.score_changes_tiny_output_fits(
        PRECISION, IN_ACCUMULATOR, nu, case.range(), d, n, 0, one, one, SCALE, UNCHANGED, see_all,
        case.q, case.k, case.v, 0, 0, kv_len=n, d=d, num=EXACT,
    )  # fmt: skip


def no_room(case: Case) -> bool:
    """As if nothing underflowed."""
    return fits(case, NONE)


def no_room_in_scores(case: Case) -> bool:
    return no_room(case) and sums_fit(case, NU)


def no_room_in_sums(case: Case) -> bool:
    n, d = len(case.k), len(case.q[0])
    one = Fraction(1)
    return sums_fit(case, NONE) and all(
        spec.score_changes_tiny_fits(
            PRECISION, IN_ACCUMULATOR, NU, case.range(), d, one, one, SCALE, UNCHANGED,
            case.q, case.k, 0, j, d=d, num=EXACT,
        )
        for j in range(n)
    )  # fmt: skip


def sums_fit(case: Case, nu: Fraction) -> bool:
    n, d = len(case.k), len(case.q[0])
    one = Fraction(1)
    reference = spec.score_changes_tiny_row_size(
        PRECISION, IN_ACCUMULATOR, nu, d, one, one, SCALE, UNCHANGED, see_all, case.q, case.k, 0,
        kv_len=n, d=d, num=EXACT,
    )  # fmt: skip
    row = changed.score_changes_bounded_columns(
        UNCHANGED, see_all, 0, lambda j: NONE if j is None else case.v[j][0], kv_len=n, num=EXACT
    )
    return sums.tiny_sums_fit(PRECISION, nu, case.range(), n, 0, reference, row, num=EXACT)


def let_through(hypothesis: Callable[[Case], bool]) -> list[Case]:
    """Cases that the hypothesis says to fit, and that overflow all the same."""
    return [case for case in all_cases() if case.overflows and hypothesis(case)]


def test_what_fits_does_not_overflow() -> None:
    assert let_through(fits) == []


def test_how_often_it_decides() -> None:
    """It is no empty hypothesis: of the cases that do not overflow many fit."""
    finite = [case for case in all_cases() if not case.overflows]
    assert DRAWN / 5 < len(finite) < 4 * DRAWN / 5
    assert sum(map(fits, finite)) > len(finite) / 3


def decide(test: Callable[..., bool], case: Case, formats: list[Any], rest: list[Any]) -> bool:
    """What a test of a row says, of no changes and a scale on the inner product alone."""
    n, d = len(case.k), len(case.q[0])
    one = Fraction(1)
    row = [d, n, 0, one, one, SCALE, UNCHANGED, see_all, case.q, case.k]
    return test(PRECISION, *formats, case.range(), *row, *rest, kv_len=n, d=d, num=EXACT)


def keep_even(_query: int, key: int) -> bool:
    return key % 2 == 0


def decide_all(tests: list[Callable[..., bool]], case: Case, formats: list[Any]) -> list[bool]:
    """Whether an output fits, with dropout too, and a log-sum-exp."""
    dropout = [Fraction(1, 2), keep_even]
    rests: list[list[Any]] = [[case.v, 0, 0], [case.v, *dropout, 0, 0], [0]]
    return [decide(test, case, formats, rest) for test, rest in zip(tests, rests, strict=True)]


def outputs(case: Case, nu: Fraction) -> list[bool]:
    return decide_all(
        [
            spec.score_changes_tiny_output_fits,
            options.score_changes_tiny_dropped_fits,
            options.score_changes_tiny_log_sum_exp_fits,
        ],
        case,
        [IN_ACCUMULATOR, nu],
    )


def test_without_underflow_they_are_the_other_tests() -> None:
    others: list[Callable[..., bool]] = [
        changed.score_changes_output_fits,
        changed.score_changes_dropped_fits,
        changed.score_changes_log_sum_exp_fits,
    ]
    for case in all_cases()[::2]:
        assert outputs(case, NONE) == decide_all(others, case, [IN_ACCUMULATOR])


@pytest.mark.thorough
def test_with_room_they_ask_for_no_less() -> None:
    found = [(outputs(case, NU), outputs(case, NONE)) for case in all_cases()[::2]]
    for i in range(3):
        assert all(without[i] for with_room, without in found if with_room[i])
        assert any(with_room[i] for with_room, _ in found)


@pytest.mark.parametrize(
    "hypothesis",
    [lambda case: True, no_room, no_room_in_scores, no_room_in_sums],
    ids=["nothing", "no room", "no room in scores", "no room in sums"],
)
def test_a_weaker_hypothesis_is_not_enough(hypothesis: Callable[[Case], bool]) -> None:
    assert let_through(hypothesis) != []
