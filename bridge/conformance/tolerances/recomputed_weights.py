"""The weights that a pass over the derivatives computes again, and how far off a function's may be.

In float64: scores, log-sum-exps, e^(s − L) and the slope of softcap, of which `gradient_tolerance`
and `tangent_tolerance` make their bounds. `docs/tolerances.md` derives every term; those of the
forward pass are in `row_weights`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import FLOAT64, RoundingModel
from bridge.conformance.tolerances.row_weights import (
    TINY_OPERATIONS,
    ScoreChanges,
    score_underflow,
)
from pyimpl.internal.implements import implements

# γ(k) where k·u reaches 1 and there is no bound.
_NO_BOUND = 1e30
# As in `tolerance`: the product with the scale and a change of base; the scale itself; softcap,
# cap·tanh(score / cap), in roundings of cap; a number that is added, and the sum; the logarithm,
# changes of base and the sum with the maximum.
_SCORE_ROUNDINGS = 2
_SCALE_ROUNDINGS = 3
_SOFTCAP_ROUNDINGS = 8
_SUM_ROUNDINGS = 2
_LSE_ROUNDINGS = 4
# Of these, of maximum, logarithm and their sum, each that changes a base is a product, and there is
# the sum: what may underflow.
_LSE_OPERATIONS = 9
# 3 to the power of more tiles is no number of float64 that a weight may be multiplied by.
_MANY_BLOCKS = 600
_Number = TypeVar("_Number", float, Tensor)
# An exponent that may be off by more than this bounds nothing.
_LARGEST_EXPONENT = 300.0


@dataclass(frozen=True)
class Scored:
    """The changes that make scores of the products scale·⟨q, k⟩, in this order.

    softcap: cap·tanh(score / cap), cap > 0. added: tensors that broadcast to `[batch, heads, q_len,
    kv_len]`; −∞ masks. sinks: `[heads]`, one more score for every query, without a value. kept: the
    factors M / (1 − p) by which dropout multiplies the weights, which broadcast in the same way;
    factor: 1 / (1 − p), which says it where all are dropped, too.
    folded: `[heads, 1, 1]`, factors of the queries that a backward pass may have in the scale of
    dS and of its sums instead.
    """

    scale: float
    softcap: float | None = None
    added: Sequence[Tensor] = ()
    sinks: Tensor | None = None
    kept: Tensor | None = None
    factor: float = 1.0
    folded: Tensor | None = None


@dataclass(frozen=True)
class Softmax:
    """P = exp(s − L) `[batch, heads, rows, kv_len]`, 0 where it is masked, its relative error, and
    the slope of softcap with its error; of each query the number of keys that it sees and of tiles
    that it may see them in; the weight of its sink, with its relative error, None without sinks."""

    visible: Tensor
    p: Tensor
    error: Tensor
    slope: Tensor
    slope_error: Tensor
    keys: Tensor
    blocks: int
    sink: Tensor | None
    sink_error: Tensor


@implements("Attention.Spec.BoundedKey.flushed")
@implements("Attention.Spec.ScoreChanges.cappedError")
@implements("Attention.Spec.cappedKey")
@implements("Attention.Spec.weightRow")
@implements("Attention.Spec.passWeightError")
def softmax_bounds(q: Tensor, k: Tensor, scored: Scored, rounding: RoundingModel) -> Softmax:
    """The weights that a pass over the derivatives computes again from the log-sum-exp."""
    s, off, slope, slope_error = _scores(q, k, scored, rounding)
    u, exponential = rounding.accumulator.unit, rounding.exp_error * rounding.accumulator.unit
    visible = s > -math.inf
    s, off = torch.where(visible, s, 0.0), torch.where(visible, off, 0.0)
    filled, of_filled = torch.where(visible, s, -math.inf), off
    sinks = None if scored.sinks is None else scored.sinks.double().view(1, -1, 1, 1)
    if sinks is not None:
        sinks = sinks.expand(*s.shape[:3], 1)
        finite = torch.where(torch.isinf(sinks), 0.0, sinks)
        of_sinks = power(_SCORE_ROUNDINGS, u) * finite.abs() + _score_loss(q, scored, rounding)
        filled, of_filled = torch.cat((filled, sinks), -1), torch.cat((off, of_sinks), -1)
    keys = visible.sum(-1, keepdim=True, dtype=torch.float64)
    if sinks is not None:
        keys = keys + 1
    if not filled.shape[-1]:
        filled, of_filled = torch.full_like(keys, -math.inf), torch.zeros_like(keys)
    lse = torch.logsumexp(filled, -1, keepdim=True)
    dead = torch.isneginf(lse)
    lse = torch.where(dead, 0.0, lse)
    visible = visible & ~dead
    kv_len = s.shape[-1]
    blocks = kv_len if rounding.block_n is None else -(-kv_len // rounding.block_n)
    tiny = rounding.accumulator.smallest_normal
    # Differences that are flushed to 0: of a score and the maximum, and each rise of that.
    flushed = (blocks + 1) * tiny
    of_lse = _lse_error(filled, of_filled + flushed, keys, blocks, rounding)
    # A weight of the output has them too.
    error = _recomputed_error(u, tiny, exponential, s, lse, off + flushed, of_lse)
    sink, sink_error = None, torch.zeros_like(lse)
    if sinks is not None:
        sink = torch.where(dead, 0.0, torch.exp(sinks - lse))
        of_sinks = of_sinks + flushed
        sink_error = _recomputed_error(u, tiny, exponential, finite, lse, of_sinks, of_lse)
    p = torch.where(visible, torch.exp(s - lse), 0.0)
    return Softmax(visible, p, error, slope, slope_error, keys, blocks, sink, sink_error)


@implements("Attention.Spec.underflowLogSumExpFactor")
@implements("Attention.Spec.underflowLogSumExpTolerance")
def _lse_error(
    scores: Tensor, errors: Tensor, keys: Tensor, blocks: int, rounding: RoundingModel
) -> Tensor:
    """How far the log-sum-exp of scores, −∞ where masked, that are off by these errors may be off:
    the bound of `tolerance.lse_tolerance`, of rows of `keys` scores in that many tiles."""
    u, exponential = rounding.accumulator.unit, rounding.exp_error * rounding.accumulator.unit
    finite = ~torch.isinf(scores)
    largest = errors.amax(-1, keepdim=True)
    top = scores.amax(-1, keepdim=True)
    top = torch.where(torch.isinf(top), 0.0, top)
    below = torch.where(finite, top - scores, 0.0)
    weights = torch.where(finite, torch.exp(-below), 0.0)
    total = weights.sum(-1, keepdim=True).clamp(min=1.0)
    # Differences are rounded; one exponential for each weight and one for each rescaling.
    off = errors + u * (below + errors + largest) - (1 + blocks) * math.log1p(-exponential)
    of_weights = torch.log1p((weights / total * _expm1(off)).sum(-1, keepdim=True))
    lost, of_storing = _denominator_loss(below, off, finite, keys, blocks, rounding)
    added_up = gamma(keys + 2 * blocks + 1, u)
    added_up = added_up + (1 + added_up) * lost + of_storing
    of_sum = torch.where(added_up < 1, -torch.log1p(-added_up), _LARGEST_EXPONENT)
    error = of_weights + of_sum
    sizes = torch.log(total) + 1 + top.abs() + error + 2 * largest
    four = gamma(_LSE_ROUNDINGS, u)
    tiny = _LSE_OPERATIONS * rounding.accumulator.smallest_normal
    return error + four * sizes + (1 + four) * tiny


@implements("Attention.Spec.underflowCost")
@implements("Attention.Spec.storingErrors")
def _denominator_loss(
    below: Tensor, off: Tensor, finite: Tensor, keys: Tensor, blocks: int, rounding: RoundingModel
) -> tuple[Tensor, Tensor]:
    """What a denominator loses, as shares of it: where numbers of the accumulator underflow, and
    where it adds weights as they are stored. below: how far scores are below the largest; off: how
    far the logarithms of weights are."""
    off = torch.clamp(off, max=_LARGEST_EXPONENT)
    high, low = (torch.where(finite, torch.exp(x - below), 0.0) for x in (off, -off))
    low = low.sum(-1, keepdim=True)
    low = torch.where(low > 0, low, 1.0)
    # The largest weight, over the sum of them: h.
    exponential = rounding.exp_error * rounding.accumulator.unit
    own = math.exp((1 + 2 * blocks) * -math.log1p(-exponential))
    most = (high.amax(-1, keepdim=True) / low).clamp(max=own)
    share = (high / low).clamp(max=1.0)
    tiny = rounding.accumulator.smallest_normal * most
    whole = 3.0 ** min(blocks + 2, _MANY_BLOCKS) * share
    lost = 2 * torch.minimum(whole, (blocks + 2) * tiny).sum(-1, keepdim=True)
    lost = lost + keys * (blocks + TINY_OPERATIONS) * tiny
    if rounding.weights is None or rounding.denominator == "unrounded":
        return lost, torch.zeros_like(lost)
    unit = rounding.weights.unit
    tiny = rounding.weights.underflow(rounding.flush_to_zero) * most
    each = torch.minimum(share, torch.maximum(unit * share, tiny)).sum(-1, keepdim=True)
    once = unit + torch.minimum(share, tiny).sum(-1, keepdim=True)
    return lost, torch.minimum(each, once)


@implements("Attention.Spec.recomputedError")
def _recomputed_error(
    unit: float,
    tiny: float,
    exponential: float,
    s: Tensor,
    lse: Tensor,
    of_score: Tensor,
    of_lse: Tensor,
) -> Tensor:
    """How far exp(s − L) may be off, as a share of itself: both are off, and rounded three times
    more, by `tiny` besides below the normal numbers."""
    of_score, of_lse = of_score + 3 * tiny, of_lse + 3 * tiny
    sizes = s.abs() + of_score + (lse.abs() + of_lse)
    exponent = of_score + of_lse + gamma(3, unit) * sizes
    return compose(_expm1(exponent), exponential)


@implements("Attention.Spec.cappedError")
@implements("Attention.Spec.cappedChangeError")
@implements("Attention.Spec.cappedSlopeError")
@implements("Attention.Spec.ScoreChanges.slope")
@implements("Attention.Spec.ScoreChanges.slopeError")
def _scores(
    q: Tensor, k: Tensor, scored: Scored, rounding: RoundingModel
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(the scores, −∞ where masked; their errors; the slope of softcap, 1 without; its error)."""
    u = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    lost = _score_loss(q, scored, rounding)
    s = scored.scale * (q @ k.mT)
    relative = gamma(q.shape[-1] + 1.0, rounding.accumulation_unit)
    off = torch.zeros_like(s)
    if rounding.operands is not None:
        # The product with the scale is rounded, and once more to a format that is not its own.
        apart = rounding.operands != rounding.accumulator
        once = compose(u, rounding.operands.unit if apart else 0.0)
        operands = power(rounding.operand_roundings, once)
        relative = compose(relative, operands)
        tiny = rounding.operand_roundings * rounding.operands.underflow(rounding.flush_to_zero)
        reach = max(1.0, math.sqrt(abs(scored.scale)))
        ends = q.abs().sum(-1)[..., None] + k.abs().sum(-1)[..., None, :]
        growth = 1.0 + compose(gamma(q.shape[-1] + 5.0, rounding.accumulation_unit), operands)
        off = growth * tiny * (reach * ends + q.shape[-1] * tiny)
    off = off + relative * abs(scored.scale) * (q.abs() @ k.abs().mT)
    # With the caller's own rounding of the scale.
    roundings = _SCORE_ROUNDINGS + _SCALE_ROUNDINGS
    off = off + (roundings * u + 2 * FLOAT64.unit) * s.abs()
    off = off + stored * (s.abs() + off) + lost
    slope, slope_error = torch.ones_like(s), torch.zeros_like(s)
    if scored.softcap is not None:
        cap = scored.softcap
        tanh = torch.tanh(s / cap)
        tiny = rounding.accumulator.smallest_normal
        slope = 1 - tanh**2
        slope_error = _slope_error(u, tiny, tanh, _tanh_error(u, tiny, cap, off))
        s = cap * tanh
        off = torch.clamp(off, max=2 * cap) + (_SOFTCAP_ROUNDINGS * u + stored) * cap + lost
    growth = compose(power(_SUM_ROUNDINGS, u), stored)
    for added in scored.added:
        s = s + added.double()
        number, total = (torch.where(torch.isinf(added), 0.0, x.abs()) for x in (added.double(), s))
        # The errors of both are rounded with them.
        off = (off + growth * number + lost) * (1 + growth) + growth * total + lost
    return s, off, slope, slope_error


def _score_loss(q: Tensor, scored: Scored, rounding: RoundingModel) -> float:
    """What underflows of a score each time that it is stored."""
    changes = ScoreChanges(softcap=scored.softcap)
    return score_underflow(q.shape[-1], scored.scale, changes, rounding)


@implements("Attention.Spec.tanhError")
def _tanh_error(unit: float, tiny: float, cap: float, off: Tensor) -> Tensor:
    """How far tanh(score / cap) may be off, for a score that is off by this. Its slope is at most
    1, and no two values of it are further than 2 apart. tiny: what the quotient, rounded three
    times, is off by each time that it is below the normal numbers."""
    return torch.clamp(off / cap, max=2.0) + _SOFTCAP_ROUNDINGS * unit + 4 * tiny


@implements("Attention.Spec.softcapSlopeError")
def _slope_error(unit: float, tiny: float, tanh: Tensor, of_tanh: Tensor) -> Tensor:
    """How far 1 − t² may be off, for a t = tanh(score / cap) that is off by this."""
    most = torch.clamp((2 * tanh.abs() + of_tanh) * of_tanh + 2 * unit, max=1 + 2 * unit)
    return most + 2 * tiny


def _expm1(x: Tensor) -> Tensor:
    return torch.expm1(torch.clamp(x, max=_LARGEST_EXPONENT))


def gamma(count: _Number, unit: float) -> _Number:
    """Higham's γ: the relative error of that many roundings in a row."""
    product = count * unit
    if isinstance(product, Tensor):
        return torch.where(product < 1, product / (1 - product), _NO_BOUND)
    return product / (1 - product) if product < 1 else _NO_BOUND


def power(count: float, error: float) -> float:
    """The relative error of that many factors that have this one: (1 + e)ᵏ − 1."""
    return math.expm1(min(count * math.log1p(error), _LARGEST_EXPONENT))


def compose(one: _Number, *others: _Number | float) -> _Number:
    """The relative error of a product of factors that have these: (1 + a)(1 + b) … − 1."""
    for other in others:
        one = one + other + one * other
    return one
