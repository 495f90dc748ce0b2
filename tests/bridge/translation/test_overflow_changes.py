"""No input that the Spec says to fit overflows in float16 where scores are changed by softcap and a
bias, with a sink and with dropout, each operation rounded by torch; the log-sum-exp too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
import torch
from overflow_cases import (
    IN_ACCUMULATOR,
    PRECISION,
    RANGE,
    Case,
    all_finite,
    attend,
    draw,
    inner_products,
    total,
)

from bridge.spec import overflow_changes as spec
from bridge.spec.core import EXACT
from bridge.spec.score_change_tolerance import ScoreChanges

DRAWN = 1500


@dataclass(frozen=True)
class Changed:
    """A case, what changes its scores, and dropout: all numbers of float16, None where there is no
    such change. Every other key is kept."""

    case: Case
    cap: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    sink: torch.Tensor | None = None
    probability: torch.Tensor | None = None


def draw_changed(seed: int) -> Changed:
    """Sizes from next to nothing to past the range, each change in half of the cases."""
    rng = torch.Generator().manual_seed(seed + 10**6)
    case = draw(seed)

    def integer(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=rng))

    def numbers(*shape: int) -> torch.Tensor | None:
        x = torch.randn(shape, generator=rng, dtype=torch.float64) * 2.0 ** integer(3, 16)
        return x.clamp(-6e4, 6e4).half() if integer(0, 2) else None

    cap = torch.tensor(2.0 ** integer(-10, 16)).half() if integer(0, 2) else None
    probability = torch.tensor(1 - 2.0 ** -integer(1, 9)).half() if integer(0, 2) else None
    return Changed(case, cap, numbers(case.num_keys), numbers(), probability)


def all_cases() -> list[Changed]:
    """The drawn ones, and a score and a sink of opposite signs whose difference is too large."""
    one = torch.ones((1,)).half()
    opposite = Case(one[0], 200 * one, -150 * one[None], one)
    sink = torch.tensor(6e4).half()
    return [*map(draw_changed, range(DRAWN)), Changed(opposite, sink=sink)]


def keep_even(_query: int, key: int) -> bool:
    return key % 2 == 0


def see_all(_query: int, _key: int) -> bool:
    return True


def overflows(changed: Changed) -> bool:
    """Whether one of the numbers is an infinity or a NaN."""
    scores, formed = inner_products(changed.case)
    s, v = torch.stack(scores), changed.case.v
    if changed.cap is not None:
        quotients = s / changed.cap
        s = changed.cap * quotients.tanh()
        formed += [*quotients, *s]
    if changed.bias is not None:
        s = s + changed.bias
        formed += [*s]
    if changed.probability is not None:
        rest = 1 - changed.probability
        factor = 1 / rest
        v = torch.stack([factor * x if keep_even(0, j) else 0 * x for j, x in enumerate(v)])
        formed += [rest, factor, *v]
    if changed.sink is not None:
        s = torch.cat([changed.sink[None], s])
        v = torch.cat([torch.zeros(1).half(), v])
    logarithm = total((s - s.max()).exp())[-1].log()
    formed += [logarithm, s.max() + logarithm]
    return not all_finite(formed + attend(s, v))


def exact(x: torch.Tensor | None) -> Fraction | None:
    return None if x is None else Fraction(x.item())


def fits(changed: Changed) -> bool:
    scale, q, k, v = changed.case.exact()
    n, d = changed.case.num_keys, len(q[0])
    one = Fraction(1)
    bias = None if changed.bias is None else [[Fraction(x) for x in changed.bias.double().tolist()]]
    changes = ScoreChanges(exact(changed.cap), bias, exact(changed.sink))
    given = (PRECISION, IN_ACCUMULATOR, RANGE, d, n + 1, 0, one, one, scale, changes, see_all)
    probability = exact(changed.probability)
    if not spec.score_changes_log_sum_exp_fits(*given, q, k, 0, kv_len=n, d=d, num=EXACT):
        return False
    if probability is None:
        return spec.score_changes_output_fits(
            *given, q, k, v, 0, 0, kv_len=n, d=d, num=EXACT
        )  # fmt: skip
    return spec.score_changes_dropped_fits(
        *given, q, k, v, probability, keep_even, 0, 0, kv_len=n, d=d, num=EXACT
    )  # fmt: skip


def let_through(hypothesis: Callable[[Changed], bool]) -> list[Changed]:
    """Cases that the hypothesis says to fit, and that overflow all the same."""
    return [changed for changed in all_cases() if overflows(changed) and hypothesis(changed)]


@pytest.mark.thorough
def test_what_fits_does_not_overflow() -> None:
    assert let_through(fits) == []


@pytest.mark.thorough
def test_how_often_it_decides() -> None:
    """It is no empty hypothesis: of cases that do not overflow many fit, some of each change."""
    finite = [changed for changed in all_cases() if not overflows(changed)]
    assert DRAWN / 10 < len(finite) < 4 * DRAWN / 5
    passing = [changed for changed in finite if fits(changed)]
    assert len(passing) > len(finite) / 3
    for name in ("cap", "bias", "sink", "probability"):
        assert len([x for x in passing if getattr(x, name) is not None]) > 10, name


def cap_alone(changed: Changed) -> bool:
    """Softcap bounds scores, so nothing is asked of the product."""
    if changed.cap is None:
        return fits(changed)
    case = changed.case
    return fits(replace(changed, case=replace(case, k=torch.zeros_like(case.k))))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "hypothesis",
    [
        lambda changed: fits(replace(changed, cap=None)),
        cap_alone,
        lambda changed: fits(replace(changed, bias=None)),
        lambda changed: fits(replace(changed, sink=None)),
        lambda changed: fits(replace(changed, probability=None)),
    ],
    ids=["no quotient by the cap", "the cap alone", "no bias", "no sink", "no factor"],
)
def test_a_weaker_hypothesis_is_not_enough(hypothesis: Callable[[Changed], bool]) -> None:
    assert let_through(hypothesis) != []
