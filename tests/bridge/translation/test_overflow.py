"""No input that the Spec says to fit overflows in float16, whatever is computed of it: scores,
weights, sums, quotients, each operation rounded by torch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from overflow_cases import (
    IN_ACCUMULATOR,
    LARGEST,
    PRECISION,
    RANGE,
    Case,
    Numbers,
    all_finite,
    attend,
    draw,
    inner_products,
)

from bridge.spec import overflow_bounds as spec
from bridge.spec.core import EXACT
from bridge.spec.tolerance import BoundedKey

DRAWN = 600


def all_cases() -> list[Case]:
    """The drawn ones, one whose scores are of opposite signs and nearly too large, and one of equal
    weights whose values are nearly too large together."""
    one = torch.ones((1,)).half()
    opposite = 200 * torch.stack([one, -one])
    return [
        *map(draw, range(DRAWN)),
        Case(one[0], opposite[0], opposite, torch.zeros(2).half()),
        Case(one[0], one, torch.zeros(3, 1).half(), torch.full((3,), 3e4).half()),
    ]


def overflows(case: Case) -> bool:
    """Whether one of the numbers is an infinity or a NaN."""
    scores, formed = inner_products(case)
    return not all_finite(formed + attend(torch.stack(scores), case.v))


def fits(case: Case) -> bool:
    scale, q, k, v = case.exact()
    n, d = case.num_keys, len(q[0])
    one = Fraction(1)
    return spec.output_fits(
        PRECISION, IN_ACCUMULATOR, RANGE, d, n, 0, one, one, scale, see_all, q, k, v, 0, 0,
        kv_len=n, d=d, num=EXACT,
    )  # fmt: skip


def see_all(i: int, j: int) -> bool:
    return True


def let_through(hypothesis: Callable[[Case], bool]) -> list[Case]:
    """Cases that the hypothesis says to fit, and that overflow all the same."""
    return [case for case in all_cases() if overflows(case) and hypothesis(case)]


def test_what_fits_does_not_overflow() -> None:
    assert let_through(fits) == []


@pytest.mark.thorough
def test_how_often_it_decides() -> None:
    """It is no empty hypothesis: of the cases that do not overflow most fit."""
    finite = [case for case in all_cases() if not overflows(case)]
    assert DRAWN / 5 < len(finite) < 4 * DRAWN / 5
    assert sum(map(fits, finite)) > len(finite) / 2


def scores_alone(case: Case) -> bool:
    """Not the inner products, which the scale may make small."""
    scale, q, k, v = case.exact()
    d = len(q[0])
    sizes = [
        spec.score_size(
            PRECISION, IN_ACCUMULATOR, d, Fraction(1), Fraction(1), scale, q[0], row, d=d, num=EXACT
        )
        for row in k
    ]
    return max(sizes) <= LARGEST and sums_fit(max(sizes), v)


def sums_fit(reference: Fraction, v: Numbers) -> bool:
    row = [BoundedKey(Fraction(0), Fraction(0), x) for (x,) in v]
    return spec.sums_fit(PRECISION, RANGE, len(v), 0, reference, row, num=EXACT)


def exact_sums(case: Case) -> bool:
    """The sums as they come out, in which terms cancel."""
    scale, q, k, v = case.exact()
    inner = [sum((x * y for x, y in zip(q[0], row, strict=True)), Fraction(0)) for row in k]
    return (
        all(abs(x) <= LARGEST and abs(scale * x) <= LARGEST for x in inner)
        and abs(sum((x for (x,) in v), Fraction(0))) <= LARGEST
    )


def one_value_at_a_time(case: Case) -> bool:
    """The largest of the values, and not their sum."""
    largest = max(case.exact()[3], key=lambda row: abs(row[0]))
    only = Case(case.scale, case.q, case.k, torch.zeros_like(case.v))
    return fits(only) and sums_fit(Fraction(0), [largest])


def no_differences(case: Case) -> bool:
    """The scores, but not their differences, which are up to twice as large."""
    scale, q, k, v = case.exact()
    d = len(q[0])
    one = Fraction(1)
    return all(
        spec.score_fits(
            PRECISION, IN_ACCUMULATOR, RANGE, d, one, one, scale, q[0], row, d=d, num=EXACT
        )
        for row in k
    ) and sums_fit(Fraction(0), v)


@pytest.mark.parametrize(
    "hypothesis",
    [lambda case: True, scores_alone, exact_sums, one_value_at_a_time, no_differences],
    ids=["nothing", "scores alone", "exact sums", "one value at a time", "no differences"],
)
def test_a_weaker_hypothesis_is_not_enough(hypothesis: Callable[[Case], bool]) -> None:
    assert let_through(hypothesis) != []
