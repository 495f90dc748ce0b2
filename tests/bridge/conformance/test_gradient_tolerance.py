"""The gradients to which the bound belongs, and that it follows the roundings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bridge.conformance.tolerances.gradient_tolerance import SECOND_ORDER, Bounds, gradient_bounds
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import FLOAT16, FLOAT32, FLOAT64, RoundingModel

GENERATOR = torch.Generator().manual_seed(0)


def normal(*size: int) -> Tensor:
    return torch.randn(*size, generator=GENERATOR, dtype=torch.float64)


QUERY, GRAD_OUT = normal(2, 4, 9, 6), normal(2, 4, 9, 5)
KEY, VALUE = normal(2, 2, 11, 6), normal(2, 2, 11, 5)
GRAD_LSE, BIAS, SINKS = normal(2, 4, 9), normal(1, 4, 9, 11), normal(4)
HIDDEN = torch.where(torch.rand(9, 11, generator=GENERATOR) < 0.7, 0.0, -torch.inf).double()
HIDDEN[3] = -torch.inf
SCORED = Scored(0.7, 1.5, (BIAS, HIDDEN), SINKS)


def bounds(rounding: RoundingModel, scored: Scored = SCORED, rows: slice = slice(None)) -> Bounds:
    return gradient_bounds(
        QUERY[:, :, rows], KEY, VALUE, GRAD_OUT[:, :, rows], GRAD_LSE[:, :, rows],
        replace(scored, added=tuple(x[..., rows, :] for x in scored.added)), rounding, q_len=9,
    )  # fmt: skip


def test_the_gradients_are_those_of_autograd() -> None:
    leaves = [x.clone().requires_grad_() for x in (QUERY, KEY, VALUE, BIAS, SINKS)]
    query, key, value, bias, sinks = leaves
    key, value = (x.repeat_interleave(2, 1) for x in (key, value))
    scores = 1.5 * torch.tanh(0.7 * (query @ key.mT) / 1.5) + bias + HIDDEN
    scores = torch.cat((scores, sinks.view(1, -1, 1, 1).expand(2, 4, 9, 1)), -1)
    out = torch.softmax(scores, -1)[..., :-1] @ value
    loss = (out * GRAD_OUT).sum() + (torch.logsumexp(scores, -1) * GRAD_LSE).sum()
    expected = torch.autograd.grad(loss, leaves)
    found = bounds(RoundingModel.float64())
    of_bias = found.scores.sum(torch.ones(()), [0], RoundingModel.float64())
    of_sinks = found.sinks.sum(torch.ones(()), [0, 2], RoundingModel.float64())
    computed = (found.query, found.key, found.value, of_bias, of_sinks)
    for bound, gradient in zip(computed, expected, strict=True):
        off = (bound.exact.reshape(gradient.shape) - gradient).abs()
        assert (off <= 2 * bound.tolerance(FLOAT64).reshape(gradient.shape)).all()
        assert bound.exact.abs().max() > 0.1
        assert (bound.tolerance(FLOAT64) < 1e-12).all()


def test_rows_add_up_to_the_whole() -> None:
    """The gradients to within float64's errors on each side; the bounds to within the slack that
    `Bounded.tolerance` has over them."""
    rounding = RoundingModel.flash("bfloat16", block_n=16)
    whole, exact = bounds(rounding), bounds(RoundingModel.float64())
    some, others = (bounds(rounding, rows=rows) for rows in (slice(0, 4), slice(4, 9)))
    slack = SECOND_ORDER - 1

    def close(one: Tensor, other: Tensor) -> bool:
        # This is far below the effect of a row left out, or counted twice.
        return bool(((one - other).abs() <= slack * other).all())

    for name in ("key", "value"):
        both, one = getattr(some, name) + getattr(others, name), getattr(whole, name)
        allowed = 2 * getattr(exact, name).tolerance(FLOAT64)
        assert ((both.exact - one.exact).abs() <= allowed).all()
        assert close(both.error, one.error)
        assert close(both.size, one.size)
    assert close(torch.cat((some.query.error, others.query.error), 2), whole.query.error)


def test_the_slope_of_a_softcap_that_is_reached_may_come_to_0() -> None:
    """It is 4·e^(−2x); 1 − tanh² is not that in float64, nor in the functions that are judged."""
    x = 29.0
    query, key = torch.tensor([[[[x]]]]).double(), torch.tensor([[[[1.0], [-0.01]]]]).double()
    value = torch.tensor([[[[1.0], [-2.0]]]]).double()
    found = gradient_bounds(
        query, key, value, torch.ones(1, 1, 1, 1), None, Scored(1.0, 1.0), RoundingModel.float32()
    )
    by_score = float(found.scores.exact[..., 0])
    assert abs(by_score) > 0.1
    assert (
        0 < abs(by_score) * 4 * math.exp(-2 * x) * x < float(found.key.tolerance(FLOAT32)[0, 0, 0])
    )
    assert 0 < abs(by_score) * 4 * math.exp(-2 * x) < float(found.query.tolerance(FLOAT32))


def test_where_nothing_is_visible_nothing_is_allowed() -> None:
    found = bounds(RoundingModel.float32(), replace(SCORED, sinks=None, softcap=None))
    row = found.query.tolerance(FLOAT32)[:, :, 3]
    assert (row <= FLOAT32.smallest_subnormal).all()
    hidden = torch.isneginf(HIDDEN).expand(2, 4, 9, 11)
    assert (found.scores.exact[hidden] == 0).all()
    assert (found.scores.error[hidden] == 0).all()


@pytest.mark.parametrize(
    "change",
    [
        {"accumulator": FLOAT16},
        {"accumulation_unit": FLOAT16.unit},
        {"weights": FLOAT16},
        {"output": FLOAT16},
        {"operands": FLOAT16},
        {"scores": FLOAT16},
        {"exp_error": 1e5},
        {"gradient_rows": 2, "output": FLOAT16},
    ],
    ids=lambda change: "+".join(change),
)
def test_what_is_rounded_more_may_be_off_by_more(change: dict[str, object]) -> None:
    before = RoundingModel.float32()
    if "gradient_rows" in change:
        before = replace(before, output=FLOAT16)
    plain, other = bounds(before), bounds(replace(before, **change))
    for name in ("query", "key", "value"):
        assert (getattr(other, name).error >= getattr(plain, name).error).all()
        assert getattr(other, name).error.sum() > 1.5 * getattr(plain, name).error.sum() or (
            change.keys() == {"output"} and name == "value"
        )
