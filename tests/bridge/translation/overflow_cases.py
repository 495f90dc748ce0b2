"""One query of attention in float16, drawn, and all numbers that it makes in torch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch

from bridge.spec import format as formats
from bridge.spec import overflow_bounds as spec
from bridge.spec.core import EXACT
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import Denominator, Precision

Numbers = list[list[Fraction]]

LARGEST = Fraction(formats.format_largest(formats.binary16(), num=EXACT))
UNIT = Fraction(1, 2**11)
# torch computes an exponential in float32 and rounds it once more.
PRECISION = Precision(UNIT, UNIT, 2 * UNIT, Fraction(0), Fraction(0), Denominator.UNROUNDED)
IN_ACCUMULATOR = ScoreFormats(Fraction(0), 0, Fraction(0), Fraction(0), Fraction(1), Fraction(0))
RANGE = spec.Largest(LARGEST, LARGEST, LARGEST, LARGEST, LARGEST)


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


def total(terms: torch.Tensor) -> list[torch.Tensor]:
    """The partial sums, the last of which is the sum."""
    sums = [torch.zeros((), dtype=torch.float16)]
    for x in terms:
        sums.append(sums[-1] + x)
    return sums


def inner_products(case: Case) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The scores of a case, and all numbers on the way to them."""
    formed = []
    scores = []
    for key in case.k:
        products = case.q * key
        sums = total(products)
        scores.append(case.scale * sums[-1])
        formed += [*products, *sums, scores[-1]]
    return scores, formed


def attend(scores: torch.Tensor, values: torch.Tensor) -> list[torch.Tensor]:
    """All numbers from scores on: differences, weights, their sums and the quotient."""
    differences = scores - scores.max()
    weights = differences.exp()
    products = weights * values
    denominators, numerators = total(weights), total(products)
    formed = [*differences, *weights, *products, *denominators, *numerators]
    return [*formed, numerators[-1] / denominators[-1]]


def all_finite(formed: list[torch.Tensor]) -> bool:
    """Whether none of the numbers is an infinity or a NaN."""
    return bool(torch.stack(formed).isfinite().all())
