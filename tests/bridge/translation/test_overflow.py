"""No input that the Spec says to fit overflows in float16, whatever is computed of it: scores,
weights, sums, quotients, each operation rounded by torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch

from bridge.spec import format as formats
from bridge.spec import overflow_bounds as spec
from bridge.spec.core import EXACT
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import BoundedKey, Denominator, Precision

Numbers = list[list[Fraction]]

LARGEST = Fraction(formats.format_largest(formats.binary16(), num=EXACT))
UNIT = Fraction(1, 2**11)
# torch computes an exponential in float32 and rounds it once more.
PRECISION = Precision(UNIT, UNIT, 2 * UNIT, Fraction(0), Fraction(0), Denominator.UNROUNDED)
IN_ACCUMULATOR = ScoreFormats(Fraction(0), 0, Fraction(0), Fraction(0), Fraction(1), Fraction(0))
RANGE = spec.Largest(LARGEST, LARGEST, LARGEST, LARGEST, LARGEST)
DRAWN = 600


@dataclass(frozen=True)
class Case:
    """One query, its keys and one component of their values, numbers of float16."""

    scale: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor

    @property
    def num_keys(self) -> int:
        return self.k.shape[0]

    def exact(self) -> tuple[Fraction, Numbers, Numbers, Numbers]:
        """The scale, Q, K and V."""
        q, k, v = (
            [[Fraction(x) for x in row] for row in a.double().tolist()]
            for a in (self.q[None], self.k, self.v[:, None])
        )
        return Fraction(self.scale.item()), q, k, v


def draw(seed: int) -> Case:
    """Sizes from next to nothing to past the range; half of the cases have no cancellation."""
    rng = torch.Generator().manual_seed(seed)

    def integer(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=rng))

    def numbers(*shape: int, least: int, most: int) -> torch.Tensor:
        x = torch.randn(shape, generator=rng, dtype=torch.float64)
        x = x.abs() if integer(0, 2) else x
        return (x * 2.0 ** integer(least, most)).clamp(-6e4, 6e4).half()

    d, num_keys = integer(1, 17), integer(1, 9)
    return Case(
        scale=torch.tensor(2.0 ** -integer(0, 8)).half(),
        q=numbers(d, least=3, most=10),
        k=numbers(num_keys, d, least=3, most=10),
        v=numbers(num_keys, least=4, most=17),
    )


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


def total(terms: torch.Tensor) -> list[torch.Tensor]:
    """The partial sums, the last of which is the sum."""
    sums = [torch.zeros((), dtype=torch.float16)]
    for x in terms:
        sums.append(sums[-1] + x)
    return sums


def overflows(case: Case) -> bool:
    """Whether one of the numbers is an infinity or a NaN."""
    formed = []
    scores = []
    for key in case.k:
        products = case.q * key
        sums = total(products)
        scores.append(case.scale * sums[-1])
        formed += [*products, *sums, scores[-1]]
    s = torch.stack(scores)
    differences = s - s.max()
    weights = differences.exp()
    products = weights * case.v
    denominators, numerators = total(weights), total(products)
    formed += [*differences, *weights, *products, *denominators, *numerators]
    formed.append(numerators[-1] / denominators[-1])
    return not bool(torch.stack(formed).isfinite().all())


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
