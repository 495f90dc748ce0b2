"""No input that the Spec says to fit overflows in float16 where gradients are computed of it, each
operation rounded by torch: dP, D in both ways, G, dS, and the sums that dQ, dK and dV are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from unittest.mock import patch

import pytest
import torch
from overflow_cases import LARGEST, UNIT, Numbers, total

from bridge.spec import overflow_gradients as spec
from bridge.spec.core import EXACT
from bridge.spec.gradient_tolerance import GradientCounts, GradientPrecision

DRAWN = 250
# Half the smallest number of float16.
TINY = Fraction(1, 2**25)
NONE = Fraction(0)
PRECISION = GradientPrecision(
    unit=UNIT, accumulation=UNIT, exponential=2 * UNIT, weights=NONE, stored=NONE, factors=2 * UNIT,
    scores=NONE, output=UNIT, operands=NONE, tiny=TINY, weights_tiny=NONE, stored_tiny=NONE,
    scores_tiny=NONE, output_tiny=TINY, operands_tiny=NONE, growth=Fraction(1),
)  # fmt: skip
RANGE = spec.LargestGradient(*[LARGEST] * 6)
# A weight is rounded once.
ERROR = UNIT


@dataclass(frozen=True)
class Case:
    """Queries and keys, one component of each, numbers of float16; weights come from scores of
    their own. The scale multiplies the sums. `keep` is 0 or the factor of dropout."""

    scale: torch.Tensor
    scores: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    d_out: torch.Tensor
    d_lse: torch.Tensor
    keep: torch.Tensor

    @property
    def weights(self) -> torch.Tensor:
        return self.scores.double().softmax(-1).half()


def draw(seed: int) -> Case:
    """Sizes from next to nothing to past the range; half of the cases have no cancellation."""
    rng = torch.Generator().manual_seed(seed)

    def integer(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=rng))

    def numbers(*shape: int, least: int, most: int) -> torch.Tensor:
        x = torch.randn(shape, generator=rng, dtype=torch.float64)
        x = x.abs() if integer(0, 2) else x
        return (x * 2.0 ** integer(least, most)).clamp(-6e4, 6e4).half()

    queries, keys, d_v = integer(1, 5), integer(1, 9), integer(1, 9)
    factor = 2.0 ** integer(0, 8)
    kept = torch.randint(0, 2, (queries, keys), generator=rng) if factor > 1 else 1
    return Case(
        scale=torch.tensor(2.0 ** -integer(0, 8)).half(),
        scores=torch.randn((queries, keys), generator=rng) * 2.0 ** integer(-2, 4),
        q=numbers(queries, least=-4, most=10),
        k=numbers(keys, least=-4, most=10),
        v=numbers(keys, d_v, least=-2, most=9),
        d_out=numbers(queries, d_v, least=-2, most=8),
        d_lse=numbers(queries, least=-4, most=14),
        keep=(torch.ones(queries, keys) * kept * factor).half(),
    )


def edge(
    *, v: list[list[float]], d_out: list[list[float]], scores: list[float] | None = None,
    keep: float = 1.0, d_lse: float = 0.0, q: float = 0.0,
) -> Case:  # fmt: skip
    """A case whose queries have the same scores, factors, dL and q, and whose keys are 0."""
    queries, keys = len(d_out), len(v)
    return Case(
        scale=torch.tensor(1.0).half(),
        scores=torch.tensor([scores or [0.0] * keys] * queries),
        q=torch.full((queries,), q).half(),
        k=torch.zeros(keys).half(),
        v=torch.tensor(v).half(),
        d_out=torch.tensor(d_out).half(),
        d_lse=torch.full((queries,), d_lse).half(),
        keep=torch.full((queries, keys), keep).half(),
    )


def edges() -> list[Case]:
    """What is seldom drawn, one number past the range."""
    return [
        # G: dP is nearly too large and on the other side of D.
        edge(v=[[4e4], [-4e4]], d_out=[[1.0]], scores=[10.0, 0.0]),
        # A part of dP, whose terms cancel.
        edge(v=[[4e4, 4e4, -6e4]], d_out=[[1.0] * 3]),
        # dP of a key that is dropped.
        edge(v=[[300.0]], d_out=[[300.0]], keep=0.0),
        # dK: a sum over two queries.
        edge(v=[[0.0]], d_out=[[0.0]] * 2, d_lse=200.0, q=200.0),
        # dV: 65344 + 8 · 17, each sum rounded upwards.
        edge(v=[[0.0]], d_out=[[65344.0], *[[17.0]] * 8]),
    ]


def numbers_of(case: Case) -> Iterator[torch.Tensor]:
    """All numbers of a backward pass, with D in both ways; sums in order."""
    weights, d_out = case.weights, case.d_out
    products = d_out[:, None] * case.v
    sums = total(products.movedim(-1, 0))
    outer = case.keep * sums[-1]
    shares = weights * outer
    means = total(shares.T)
    # The output as another pass has stored it, of the same weights.
    output = ((weights.double() * case.keep.double()) @ case.v.double()).half()
    parts = d_out * output
    dots = total(parts.T)
    yield from (products, *sums, outer, shares, *means, parts, *dots)
    for mean in (means[-1], dots[-1]):
        differences = outer - mean[:, None]
        inner = differences + case.d_lse[:, None]
        d_s = weights * inner
        yield from (differences, inner, d_s)
        for terms in ((d_s * case.k).T, d_s * case.q[:, None]):
            sums = total(terms)
            yield from (terms, *sums, case.scale * sums[-1])
    met = case.keep * weights
    terms = met[:, :, None] * d_out[:, None]
    yield from (met, terms, *total(terms))


def overflows(case: Case) -> bool:
    """Whether one of the numbers is an infinity or a NaN."""
    return not all(bool(x.isfinite().all()) for x in numbers_of(case))


def exact(x: torch.Tensor) -> Numbers:
    return [[Fraction(y) for y in row] for row in x.double().tolist()]


@dataclass(frozen=True)
class Inputs:
    """What a case is, in fractions, and its counts of roundings."""

    case: Case

    @property
    def queries(self) -> int:
        return len(self.case.q)

    @property
    def keys(self) -> int:
        return len(self.case.k)

    @property
    def d_v(self) -> int:
        return self.case.v.shape[1]

    @property
    def counts(self) -> GradientCounts:
        # D: the sum over components, its factor, and the sum over keys.
        return GradientCounts(self.d_v + 1, self.d_v + self.keys + 4, 0)

    @property
    def roundings(self) -> int:
        return max(self.queries, self.keys) + 1

    @property
    def scale(self) -> Fraction:
        return Fraction(self.case.scale.item())


def row_fits(case: Case, i: int) -> bool:
    x = Inputs(case)
    d_lse = Fraction(case.d_lse[i].item())
    keep, values = exact(case.keep)[i], exact(case.v)
    return spec.gradient_row_fits(
        PRECISION, RANGE, x.counts, ERROR, Fraction(1), lambda j: keep[j], lambda j: values[j],
        exact(case.d_out)[i], d_lse, n=x.keys, d_v=x.d_v, num=EXACT,
    )  # fmt: skip


def fits(case: Case) -> bool:
    """All components of all gradients."""
    x = Inputs(case)
    one = Fraction(1)
    keep = exact(case.keep)
    q, k = exact(case.q[:, None]), exact(case.k[:, None])
    v, d_out = exact(case.v), exact(case.d_out)
    d_lse = [row[0] for row in exact(case.d_lse[:, None])]

    def factor(i: int, j: int) -> Fraction:
        return keep[i][j]

    given = (PRECISION, RANGE, x.counts, x.roundings, 0, ERROR, one, one, x.scale)
    row = {"kv_len": x.keys, "d_v": x.d_v, "num": EXACT}
    return (
        all(
            spec.query_gradient_fits(*given, k, v, factor, d_out, d_lse, i, 0, **row)
            for i in range(x.queries)
        )
        and spec.key_gradient_fits(
            *given, q, v, factor, d_out, d_lse, 0, q_len=x.queries, **row
        )
        and all(
            spec.value_gradient_fits(
                PRECISION, RANGE, x.roundings, 0, ERROR, factor, d_out, j, t, q_len=x.queries,
                num=EXACT,
            )
            for j in range(x.keys)
            for t in range(x.d_v)
        )
    )  # fmt: skip


@functools.cache
def all_overflow() -> tuple[list[Case], list[Case]]:
    """The cases that overflow, and those that do not."""
    cases = [(case, overflows(case)) for case in [*map(draw, range(DRAWN)), *edges()]]
    return [case for case, past in cases if past], [case for case, past in cases if not past]


def let_through(hypothesis: Callable[[Case], bool]) -> list[Case]:
    """Cases that the hypothesis says to fit, and that overflow all the same."""
    return [case for case in all_overflow()[0] if hypothesis(case)]


def test_what_fits_does_not_overflow() -> None:
    assert let_through(fits) == []


@pytest.mark.thorough
def test_how_often_it_decides() -> None:
    """It is no empty hypothesis: of the cases that do not overflow a good part fits."""
    overflow, finite = all_overflow()
    assert len(overflow) > DRAWN / 4
    assert len(finite) > DRAWN / 4
    assert len([case for case in finite if fits(case)]) > len(finite) / 2


def rows_alone(case: Case) -> bool:
    """dS, and not the sums of its products with keys and queries."""
    return all(row_fits(case, i) for i in range(len(case.q)))


def exact_gradients(case: Case) -> bool:
    """The gradients as they come out: dS is small where its weight is."""
    p = case.weights.double()
    outer = case.keep.double() * (case.d_out.double() @ case.v.double().T)
    d_s = p * (outer - (p * outer).sum(-1, keepdim=True) + case.d_lse.double()[:, None])
    scale = case.scale.double()
    d_v = (p * case.keep.double()).T @ case.d_out.double()
    gradients = [d_s, scale * d_s @ case.k.double(), scale * d_s.T @ case.q.double(), d_v]
    return all(bool((x.abs() <= float(LARGEST)).all()) for x in gradients)


def without(name: str, instead: Callable[..., object]) -> Callable[[Case], bool]:
    """The test with another function of the Spec."""

    def hypothesis(case: Case) -> bool:
        with patch.object(spec, name, instead):
            return fits(case)

    return hypothesis


def exact_dot(p: object, c: object, x: list[Fraction], y: list[Fraction], **_: object) -> Fraction:
    return abs(sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)))


def gradient_alone(
    p: GradientPrecision, largest: spec.LargestGradient, roundings: int, stores: int,
    part: Fraction, rest: Fraction, y: object, total: Fraction, **_: object,
) -> bool:  # fmt: skip
    """Not the sum that the scale makes small."""
    return spec.gradient_size(p, roundings, stores, rest, total, num=EXACT) <= largest.output


def one_query_at_a_time(case: Case) -> bool:
    def only(x: torch.Tensor, i: int) -> torch.Tensor:
        return x[i : i + 1]

    return all(
        fits(
            replace(
                case, scores=only(case.scores, i), q=only(case.q, i), d_out=only(case.d_out, i),
                d_lse=only(case.d_lse, i), keep=only(case.keep, i),
            )
        )
        for i in range(len(case.q))
    )  # fmt: skip


def no_growth(case: Case) -> bool:
    zeros = GradientPrecision(*[Fraction(0)] * 15, growth=Fraction(1))
    with patch.dict(globals(), PRECISION=zeros, ERROR=Fraction(0)):
        return fits(case)


def true(*_: object, **__: object) -> bool:
    return True


def zero(*_: object, **__: object) -> Fraction:
    return Fraction(0)


WEAKER: dict[str, Callable[[Case], bool]] = {
    "nothing": true,
    "exact gradients": exact_gradients,
    "rows alone": rows_alone,
    "sums alone": without("gradient_row_fits", true),
    "no dP": without("outer_fits", true),
    "exact dP": without("dot_size", exact_dot),
    "no D": without("row_delta_size", zero),
    "no dL": lambda case: fits(replace(case, d_lse=torch.zeros_like(case.d_lse))),
    "no factor": lambda case: fits(replace(case, keep=case.keep.clamp(max=1.0))),
    "no queries": lambda case: fits(replace(case, q=torch.zeros_like(case.q))),
    "no keys": lambda case: fits(replace(case, k=torch.zeros_like(case.k))),
    "no dQ": without("query_gradient_fits", true),
    "no dK": without("key_gradient_fits", true),
    "no dV": without("value_gradient_fits", true),
    "gradients alone": without("gradient_sum_fits", gradient_alone),
    "one query at a time": one_query_at_a_time,
    "no growth": no_growth,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("hypothesis", WEAKER.values(), ids=WEAKER)
def test_a_weaker_hypothesis_is_not_enough(hypothesis: Callable[[Case], bool]) -> None:
    assert let_through(hypothesis) != []
