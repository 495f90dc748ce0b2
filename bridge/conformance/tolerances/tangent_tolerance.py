"""The derivative of attention forwards in float64, and how far a correct one may be from it.

The one bound of tangents. It is computed per element from the inputs, their rates and an
implementation's rounding model (`rounding_model.RoundingModel`, the same as of the forward pass).
It is the Spec's bound. A theorem says that no function exceeds that one, given how far weights and
softcap's slope may be off: these are those of `recomputed_weights`.
`docs/tolerances.md` has every term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bridge.conformance.tolerances.gradient_tolerance import Bounded
from bridge.conformance.tolerances.recomputed_weights import Scored, Softmax, softmax_bounds
from bridge.conformance.tolerances.rounding_model import FLOAT64, RoundingModel
from pyimpl.internal.implements import implements

# Roundings of scores, rates and weights, between a weight and the sum of its products.
_OPERATIONS = 5
# An exponent that may be off by more than this bounds nothing.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Rates:
    """The rates at which the inputs change. query, key, value: of their shapes. added: of the
    summands of `Scored.added` that change, of their shapes. sinks: `[heads]`, None without sinks.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    added: Sequence[Tensor] = ()
    sinks: Tensor | None = None


@implements("Attention.Spec.meanRateTolerance")
@implements("Attention.Spec.tangentTolerance")
def tangent_bounds(
    query: Tensor, key: Tensor, value: Tensor, rates: Rates, scored: Scored, rounding: RoundingModel
) -> tuple[Bounded, Bounded]:
    """The rates of the output, `[batch, heads, q_len, value_dim]`, and of the log-sum-exp, `[batch,
    heads, q_len]`, 0 where it is −∞.

    `query` `[batch, heads, q_len, head_dim]`, `key`, `value` `[batch, heads, kv_len, …]`, of any
    floating dtype, taken as exact. Without dropout.
    """
    q, k, v, d_v = (x.double() for x in (query, key, value, rates.value))
    row = softmax_bounds(q, k, scored, rounding)
    moved = _score_rates(q, k, rates, scored, row, rounding)
    factor, tiny = _rate_factor(row, rounding), _Underflow.of(rounding)
    ones, alone = k.new_ones(k.shape[2], 1), _exactly(row.visible.double())
    mean = _weigh(row, factor, moved, ones, rounding)
    idle = 0.0
    if row.sink is not None and rates.sinks is not None:
        # One more key, whose value is 0, and whose weight is not stored.
        idle = tiny.unstored + _losses(row) * tiny.product
        rate = rates.sinks.double().view(1, -1, 1, 1)
        size = row.sink * rate.abs()
        error = _growth(row.sink_error, factor) * size
        lost = tiny.unstored * (2 * rate.abs() + 2)
        lost = lost + _losses(row) * tiny.product * 2 * rate.abs() + idle
        mean = mean + Bounded(row.sink * rate, error + _exp(factor) * lost, size)
    # (P ∘ S′) V − μ O + P V′, with O as it is stored. A function that stores its weights
    # in few bits may store each of the three so, too.
    apart = factor + math.log1p(0.0 if rounding.weights is None else rounding.output.unit)
    lost = _exp(apart) * tiny.result
    less_mean = Bounded(moved.exact, moved.error + tiny.product * row.visible, moved.size)
    by_scores = _weigh(row, apart, less_mean, v, rounding, idle)
    output = _weigh(row, apart, alone, v, rounding, idle)
    stored = output.error + rounding.output.unit * (output.exact.abs() + output.error) + lost
    by_values = _weigh(row, apart, alone, d_v, rounding, idle)
    by_mean = Bounded(
        -mean.exact * output.exact,
        mean.error * (output.size + stored) + mean.size * stored + 6 * lost,
        mean.size * output.size,
    )
    found = by_scores + by_mean + by_values
    return found, Bounded(mean.exact[..., 0], mean.error[..., 0], mean.size[..., 0])


def _exactly(x: Tensor) -> Bounded:
    return Bounded(x, torch.zeros_like(x), x.abs())


@implements("Attention.Spec.rateFactor")
def _rate_factor(row: Softmax, rounding: RoundingModel) -> Tensor:
    """The logarithm of the rounding factors of a weight on its way into a sum over keys, beside its
    own error, by tiles that are rescaled: `[batch, heads, rows, 1]`."""
    u = rounding.accumulator.unit
    once = _OPERATIONS * math.log1p(u) + row.blocks * math.log1p(rounding.exp_error * u)
    return once + (row.keys + 2 * row.blocks + 8) * math.log1p(rounding.accumulation_unit)


def _losses(row: Softmax) -> int:
    """How often what is added up may be off by ν for each term: in sums; in rescalings, of which
    the factor and the product may underflow; all twice where a division comes after them; and in
    the five operations of that."""
    return 4 * row.blocks + 7


def _exp(factor: Tensor) -> Tensor:
    return torch.exp(torch.clamp(factor, max=_LARGEST_EXPONENT))


def _growth(error: Tensor, factor: Tensor) -> Tensor:
    """(1 + error)·e^factor − 1."""
    return torch.expm1(torch.clamp(torch.log1p(error) + factor, max=_LARGEST_EXPONENT))


@implements("Attention.Spec.weighedError")
def _weigh(
    row: Softmax,
    factor: Tensor,
    x: Bounded,
    y: Tensor,
    rounding: RoundingModel,
    idle: float = 0.0,
) -> Bounded:
    """(P ∘ X) Y, `[batch, heads, rows, columns]`, Y exact. idle: what underflows of a sink whose
    value is 0."""
    most, of_sink = x.size + x.error, _exp(factor) * idle
    if rounding.weights is not None:
        # The weight, and its product.
        factor = factor + 2 * math.log1p(rounding.weights.unit)
    error = (row.p * (_growth(row.error, factor) * most + x.error)) @ y.abs()
    error = error + _exp(factor) * _weigh_loss(row, most, y, rounding) + of_sink
    return Bounded((row.p * x.exact) @ y, error, (row.p * x.size) @ y.abs())


@implements("Attention.Spec.weighedLoss")
def _weigh_loss(row: Softmax, most: Tensor, y: Tensor, rounding: RoundingModel) -> Tensor:
    """What underflows of (P ∘ X) Y, X of sizes `most`, before factors: `[batch, heads, rows,
    columns]`."""
    visible, tiny = row.visible.double(), _Underflow.of(rounding)
    keys, terms = visible.sum(-1, keepdim=True), 2 * ((visible * most) @ y.abs())
    of_weights = tiny.weight * (terms + 2 * (visible @ y.abs()) + keys)
    return of_weights + _losses(row) * tiny.product * (terms + keys)


@dataclass(frozen=True)
class _Underflow:
    """How far a number below the normal ones may be off: a product, a sum or a factor; an operand
    that is scaled and stored; the rate of a score, once it is stored; a weight, a quotient of an
    exponential, as of a sink and where it is stored; a part of the result, its product or sum."""

    product: float
    operand: float
    score: float
    unstored: float
    weight: float
    result: float

    @classmethod
    def of(cls, rounding: RoundingModel) -> _Underflow:
        flush, tiny = rounding.flush_to_zero, rounding.accumulator.smallest_normal
        operands, scores, weights = rounding.operands, rounding.scores, rounding.weights
        # A product that is stored, too: of relative errors of the storing no more than another.
        return cls(
            product=tiny,
            operand=0.0 if operands is None else operands.underflow(flush) + 2 * tiny,
            score=2 * tiny + (0.0 if scores is None else scores.underflow(flush)),
            unstored=3 * tiny,
            weight=3 * tiny + (0.0 if weights is None else weights.underflow(flush)),
            result=tiny + rounding.output.underflow(flush),
        )


@implements("Attention.Spec.rateUnderflow")
def _rate_underflow(q: Tensor, k: Tensor, operand: float, product: float) -> Tensor:
    """What underflow adds to inner products of these, in products and in sums: `[batch, heads,
    q_len, kv_len]`."""
    ends = q.abs().sum(-1)[..., None] + k.abs().sum(-1)[..., None, :]
    return operand * (ends + q.shape[-1] * operand) + 2 * q.shape[-1] * product


@implements("Attention.Spec.boundedScoreRate")
def _score_rates(
    q: Tensor, k: Tensor, rates: Rates, scored: Scored, row: Softmax, rounding: RoundingModel
) -> Bounded:
    """S′, `[batch, heads, q_len, kv_len]`, 0 where a pair is masked."""
    u = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    d_q, d_k, scale = rates.query.double(), rates.key.double(), scored.scale
    exact = scale * (d_q @ k.mT + q @ d_k.mT)
    size = abs(scale) * (d_q.abs() @ k.abs().mT + q.abs() @ d_k.abs().mT)
    factor = math.expm1(_score_rate_factor(q.shape[-1], rounding))
    tiny = _Underflow.of(rounding)
    operand = tiny.operand * rounding.operand_roundings
    lost = _rate_underflow(d_q, k, operand, tiny.product)
    lost = lost + _rate_underflow(q, d_k, operand, tiny.product)
    lost = max(1.0, abs(scale)) * (lost + 2 * tiny.operand + 4 * tiny.score) + tiny.score
    # Two units of float64 for the caller's own rounding of the scale.
    moved = Bounded(exact, (factor + 2 * FLOAT64.unit) * size + (1 + factor) * lost, size)
    changed = math.expm1(2 * math.log1p(u) + 2 * math.log1p(stored))
    if scored.softcap is not None:
        capped = math.expm1(3 * math.log1p(u) + 3 * math.log1p(stored))
        moved = _through_cap(moved, row, capped, tiny.score, scored.softcap)
    for added in rates.added:
        moved = _plus(moved, added.double(), changed, tiny.score)

    def where_visible(x: Tensor) -> Tensor:
        return torch.where(row.visible, x, 0.0)

    return Bounded(*(where_visible(x) for x in (moved.exact, moved.error, moved.size)))


@implements("Attention.Spec.scoreRateFactor")
def _score_rate_factor(head_dim: int, rounding: RoundingModel) -> float:
    """The logarithm of the rounding factors of a term of a score's rate, of 2·head_dim terms."""
    u = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    factor = 2 * head_dim * math.log1p(rounding.accumulation_unit)
    factor += 5 * math.log1p(u) + 3 * math.log1p(stored)
    if rounding.operands is not None:
        # Each product is rounded, and once more to a format that is not its own.
        own = rounding.operands != rounding.accumulator
        once = math.log1p(rounding.operands.unit) if own else 0.0
        factor += rounding.operand_roundings * (math.log1p(u) + once) + once
    return factor


@implements("Attention.Spec.BoundedScoreRate.throughCap")
def _through_cap(x: Bounded, row: Softmax, changed: float, tiny: float, cap: float) -> Bounded:
    """Through softcap. A slope that is 0 in float64, of a softcap that is reached, is not 0."""
    slope = row.slope + row.slope_error
    error = changed * slope * (x.size + x.error) + slope * x.error + row.slope_error * x.size
    lost = (1 + changed) * 3 * max(1.0, cap) * (1 + row.slope_error) * tiny
    return Bounded(row.slope * x.exact, error + lost, slope * x.size)


@implements("Attention.Spec.BoundedScoreRate.plus")
def _plus(x: Bounded, rate: Tensor, changed: float, tiny: float) -> Bounded:
    """The rate of a score with the rate of a number that is added to it."""
    size = x.size + rate.abs()
    error = changed * (size + x.error) + x.error + (1 + changed) * 4 * tiny
    return Bounded(x.exact + rate, error, size)
