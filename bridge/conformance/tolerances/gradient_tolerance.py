"""The gradients of attention in float64, and how far a correct backward pass may be from them.

The one bound of gradients: that of the vectors, of the tests and of the benchmark. It is computed
per element from the inputs and from an implementation's rounding model
(`rounding_model.RoundingModel`, the same as of the forward pass). `docs/tolerances.md` derives
every term, and says of which backward passes the bound is proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bridge.conformance.tolerances.recomputed_weights import (
    Scored,
    compose,
    gamma,
    power,
    softmax_bounds,
)
from bridge.conformance.tolerances.rounding_model import FLOAT64, Format, RoundingModel
from bridge.conformance.tolerances.tolerance import FACTOR_ROUNDINGS
from pyimpl.backends import reference
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions

# Slack on the error before the last store; what is proved holds with 1 in its place.
SECOND_ORDER = 1.02
# How often the quotient of an output may underflow: up to five roundings, and where it is stored.
_QUOTIENT_ROUNDINGS = 6


@dataclass(frozen=True)
class Bounded:
    """A number that is exact up to float64's rounding; how far the computed one may be from it
    before it is stored; and the sum of the sizes of its terms. All of one shape."""

    exact: Tensor
    error: Tensor
    size: Tensor

    def __add__(self, other: Bounded) -> Bounded:
        return Bounded(self.exact + other.exact, self.error + other.error, self.size + other.size)

    def sum(self, factors: Tensor, over: Sequence[int], rounding: RoundingModel) -> Bounded:
        """Σ factors·this over these dimensions, kept as 1, added up by the kernel in any order."""
        count = math.prod(self.exact.shape[i] for i in over)

        def one(x: Tensor) -> Tensor:
            return x.sum(dim=list(over), keepdim=True) if over else x

        size = one(factors.abs() * self.size)
        error = one(factors.abs() * self.error)
        unit, tiny = rounding.accumulation_unit, rounding.accumulator.smallest_normal
        error = _total_error(error, size, count + 3, unit, tiny=tiny)
        return Bounded(one(factors * self.exact), error, size)

    @implements("Attention.Spec.storedGradientTerm")
    def store(self, rounding: RoundingModel) -> Bounded:
        """This in the format of the output, from which more is computed."""
        error = self.error + rounding.output.unit * (self.exact.abs() + self.error)
        return replace(self, error=error + rounding.output.underflow(rounding.flush_to_zero))

    @implements("Attention.Spec.storedGradientError")
    def tolerance(self, stored: Format, flush_to_zero: bool = False) -> Tensor:
        """How far it may be off once it is stored in this format."""
        error = SECOND_ORDER * self.error
        whole = error + stored.unit * (self.exact.abs() + error) + stored.underflow(flush_to_zero)
        # The expected number is rounded to float64 too; what is 0 exactly is stored as 0.
        whole = whole + 2 * FLOAT64.unit * self.exact.abs()
        return torch.where(self.exact.abs() + self.error == 0, 0.0, whole)


@dataclass(frozen=True)
class Bounds:
    """The gradients by query, key and value, of their shapes; by the scores after softcap, `[batch,
    heads, q_len, kv_len]`, which is that of a bias; and by the sink of every query, `[batch, heads,
    q_len]`, None without sinks."""

    query: Bounded
    key: Bounded
    value: Bounded
    scores: Bounded
    sinks: Bounded | None


@implements("Attention.Spec.totalError")
def _total_error(
    errors: Tensor,
    sizes: Tensor,
    roundings: float,
    accumulation: float,
    stored: float = 0.0,
    *,
    tiny: float = 0.0,
    others_tiny: float = 0.0,
) -> Tensor:
    """The error of a sum of products of numbers that are stored first, from the sums of their
    errors and sizes times the other numbers' sizes; tiny: what a product and the sum of two numbers
    may be off by below the normal numbers; others_tiny: what storing may, times the sum of the
    other numbers' sizes."""
    summed = gamma(roundings, accumulation)
    lost = (1 + summed) * (others_tiny + 2 * roundings * tiny)
    return _present_error(errors, sizes, errors + compose(stored, summed) * (sizes + errors) + lost)


@implements("Attention.Spec.presentError")
def _present_error(errors: Tensor, sizes: Tensor, error: Tensor) -> Tensor:
    """The error of a sum of products, from what is known of it and the sums of the products' errors
    and sizes: of products that are all 0 nothing but 0 is made."""
    return torch.where(sizes + errors == 0, 0.0, error)


def _largest_factor(scored: Scored) -> float:
    """Of dropout; 1 without. A function may store P and dS without it, and multiply the sums by it:
    then what it loses of them below the normal numbers counts as often, of dS where every weight is
    dropped, too."""
    if scored.kept is None or not scored.kept.numel():
        return scored.factor
    return max(scored.factor, float(scored.kept.max()))


# Functions multiply dS by a scale before they store it where the scale is not below this.
_LEAST_SCALE = 2.0**-12


@implements("Attention.Spec.GradientPrecision.grown")
def _score_growth(scored: Scored, factor: float) -> Tensor:
    """How often a loss of dS counts, before it is multiplied by the scale, where a function may
    store dS without dropout's factor, and times the scale, the temperature or both."""
    scale = torch.tensor(abs(scored.scale), dtype=torch.float64)
    parts = [scale]
    if scored.folded is not None:
        heat = scored.folded.abs()
        parts += [heat, scale * heat]
    growth = torch.ones_like(scale)
    for part in parts:
        growth = torch.maximum(growth, torch.where(part < _LEAST_SCALE, 1.0, 1 / part))
    return factor * growth


def _largest_parts(scored: Scored, factor: float) -> tuple[Tensor, Tensor]:
    """No part of the scale and of dropout's factor that multiplies a sum of dQ, or of dK, is larger
    than these, nor is 1. The temperature may be a part of the scale, where the gradient by a query
    meets it after the bound that the first of these is for. Lean: `temperature_in_scale`."""
    most = torch.tensor(max(1.0, abs(scored.scale)), dtype=torch.float64)
    if scored.folded is None:
        return factor * most, factor * most
    heat = scored.folded.abs()
    of_queries = torch.maximum(most, 1 / heat.clamp(min=_LEAST_SCALE))
    return factor * of_queries, factor * most * heat.clamp(min=1.0)


def _twice_stored(unit: float, lost: float, tiny: float, factor: float) -> float:
    """What a dP loses that is stored before dropout's factor multiplies it, and after that, in a
    format that loses `lost` below its normal numbers. Lean: `twiceStored_product`."""
    return (factor * lost + tiny) * (1 + unit) + lost + tiny * (1 + unit) ** 2


@implements("Attention.Spec.scoreGradientTerm")
@implements("Attention.Spec.weightTerm")
@implements("Attention.Spec.gradientError")
@implements("Attention.Spec.tiledGradientError")
@implements("Attention.Spec.presentGradientTerm")
@implements("Attention.Spec.sharedGradientError")
def gradient_bounds(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    scored: Scored,
    rounding: RoundingModel,
    *,
    q_len: int | None = None,
) -> Bounds:
    """The gradients of ⟨grad_out, O⟩ + ⟨grad_lse, L⟩ and their bounds.

    `query` `[batch, heads, rows, head_dim]`, `key`, `value` `[batch, kv_heads, kv_len, …]`,
    `grad_out` `[batch, heads, rows, value_dim]`, `grad_lse` `[batch, heads, rows]` or None for 0;
    of any floating dtype, taken as exact. q_len: how many queries there are, where the rows are
    some of them: then the bounds of key and value are those rows' parts, to be added up.
    """
    q, k, v, d_o = (x.double() for x in (query, key, value, grad_out))
    batch, heads, rows, _ = q.shape
    kv_heads, kv_len, value_dim = v.shape[1:]
    group = heads // max(kv_heads, 1)
    members = group * (rows if q_len is None else q_len)
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    d_l = q.new_zeros(batch, heads, rows, 1) if grad_lse is None else grad_lse.double()[..., None]
    u, ua = rounding.accumulator.unit, rounding.accumulation_unit
    exponential = rounding.exp_error * u
    tiny = rounding.accumulator.smallest_normal
    weight_unit = 0.0 if rounding.weights is None else rounding.weights.unit
    early_unit = weight_unit if rounding.weights_normalized else 0.0

    def underflow(form: Format | None) -> float:
        return 0.0 if form is None else form.underflow(rounding.flush_to_zero)

    factor, by_kept = _largest_factor(scored), 0.0
    if scored.kept is not None:
        by_kept = gamma(factor + FACTOR_ROUNDINGS, u)
        # A function may leave the factor out, as it computes it, of dP and of all that it makes of
        # it, and D times its inverse.
        factor *= 1 + by_kept
        tiny *= 2 * factor
    score_unit, score_tiny = 0.0, underflow(rounding.scores)
    if rounding.scores is not None:
        score_unit = rounding.scores.unit
        if scored.kept is not None:
            score_tiny = _twice_stored(rounding.scores.unit, score_tiny, tiny, factor)
            score_unit = compose(score_unit, score_unit)
    by_values, by_scores = factor, _score_growth(scored, factor)
    weight_tiny = underflow(rounding.weights)
    early_tiny = weight_tiny if rounding.weights_normalized else 0.0
    output_tiny = underflow(rounding.output) + _QUOTIENT_ROUNDINGS * tiny

    row = softmax_bounds(q, k, scored, rounding)
    p, off, seen_keys = row.p, row.error, row.visible.double()
    # dP and D: their sizes A and W bound every way to come by D, from the output or from P ∘ dP.
    kept = torch.ones_like(p) if scored.kept is None else scored.kept.double()
    grad_p = kept * (d_o @ v.mT)
    products = kept * (d_o.abs() @ v.abs().mT)
    delta = (p * grad_p).sum(-1, keepdim=True)
    mean = (p * products).sum(-1, keepdim=True)
    sums = compose(
        gamma(row.keys + 2 * row.blocks + value_dim + 8, ua),
        *(by_kept, score_unit, rounding.output.unit, power(-row.blocks - 1, -exponential)),
    )
    of_delta = (p * products * compose(off, weight_unit, sums)).sum(-1, keepdim=True)
    reach = d_o.abs().sum(-1, keepdim=True)
    # There are fewer additions than products.
    products_tiny = 2 * (value_dim + 2) * tiny

    def of_product(factor: Tensor | float) -> Tensor | float:
        summed = (1 + gamma(value_dim + 2, ua)) * products_tiny
        lost = (factor * summed * (1 + by_kept) + tiny) * (1 + score_unit)
        return lost + score_tiny

    def loss_of_mean(
        weights: Tensor,
        errors: Tensor,
        seen: Tensor,
        sizes: Tensor | float,
        product: Tensor | float,
    ) -> Tensor:
        # What a forward pass loses of a weight grows with its rescalings and its denominator.
        growth = 1 + compose(errors, power(-3 * row.blocks - 2, -exponential))
        of_key = (row.blocks + 6) * tiny * growth
        of_weight = 2 * of_key * (1 + weight_unit) + weight_tiny * growth
        lost = weights * (1 + compose(errors, weight_unit)) * product
        return lost + seen * (of_weight * (sizes + product) + of_key * (2 + reach))

    lost = loss_of_mean(p, off, seen_keys, products, of_product(kept)).sum(-1, keepdim=True)
    seen_sinks = torch.zeros_like(reach)
    if row.sink is not None and scored.sinks is not None:
        seen_sinks = seen_sinks + ~torch.isinf(scored.sinks).view(1, -1, 1, 1)
        lost = lost + loss_of_mean(row.sink, row.sink_error, seen_sinks, 0.0, of_product(1.0))
    of_delta = of_delta + (1 + sums) * (lost + (output_tiny * reach + products_tiny))
    # G = dP − D + dL, dS = P ∘ G.
    inner = grad_p - delta + d_l
    size = products + mean + d_l.abs()
    of_terms = compose(gamma(value_dim + 2, ua), by_kept, score_unit) * products
    of_terms = of_terms + of_product(kept) + of_delta + 2 * tiny
    of_inner = of_terms + gamma(3, u) * (size + of_terms)

    # What underflows of a weight, and of up to two products with it.
    lost_weight = tiny * (1 + early_unit) + early_tiny
    of_times = (1 + gamma(2, u)) * (2 * tiny)

    def times_inner(
        weights: Tensor, errors: Tensor, exact: Tensor, error: Tensor, seen: Tensor
    ) -> Tensor:
        most = exact.abs() + error
        off = weights * (compose(errors, early_unit, gamma(2, u)) * most + error)
        return off + seen * ((1 + gamma(2, u)) * lost_weight * most + of_times)

    grad_s = p * inner
    of_s = torch.where(row.visible, times_inner(p, off, inner, of_inner, seen_keys), 0.0)
    scores = Bounded(grad_s, of_s, p * size)
    slope_error = row.slope_error
    if scored.softcap is not None:
        # A function may multiply the slope by the scale first. Lean: `scaled_slope`.
        slope_error = slope_error + u * (1 + slope_error) + by_scores * tiny
    grad_x, of_x = grad_s * row.slope, of_s * (row.slope + slope_error)
    of_x = of_x + grad_s.abs() * slope_error + by_scores * of_times * seen_keys
    # Rounded to the weights' format for the products.
    of_x = of_x + weight_unit * (grad_x.abs() + of_x) + by_scores * weight_tiny * seen_keys
    of_v = kept * p * compose(off, early_unit, by_kept, weight_unit)
    lost_weights = kept * lost_weight * (1 + by_kept) + by_values * tiny
    lost_weights = lost_weights * (1 + weight_unit) + by_values * weight_tiny
    of_v = of_v + lost_weights * seen_keys
    p = kept * p

    operands, of_operand = 0.0, 3 * tiny
    if rounding.operands is not None:
        # One more than forwards: the product, before it meets the second root of the scale.
        stores = rounding.operand_roundings + 1
        operands = power(stores, rounding.operands.unit)
        of_operand = of_operand + stores * underflow(rounding.operands)
    # A slope that is 0 in float64, of a softcap that is reached, is not 0.
    sizes = scores.size * (row.slope + slope_error)

    # How many sums of tiles are rounded to the output's format before the last.
    of_queries = of_keys = 0
    if rounding.gradient_rows is not None:
        of_queries, of_keys = row.blocks, -(-members // rounding.gradient_rows)

    def product(
        exact: Tensor,
        error: Tensor,
        sizes: Tensor,
        other: Tensor,
        terms: int,
        factor: float,
        tiles: int,
        largest_part: Tensor | float,
    ) -> Bounded:
        all_sizes = abs(factor) * (sizes @ other.abs())
        of_terms = errors = abs(factor) * (error @ other.abs())
        relative = compose(
            gamma(terms + 3, ua), gamma(3, u), operands, power(tiles, rounding.output.unit)
        )
        errors = errors + relative * (all_sizes + errors)
        lost = of_operand * ((sizes + error).sum(-1, True) + 1 + tiles)
        lost = lost + (2 * (terms + 3) + tiles) * tiny + 2 * tiles * output_tiny
        errors = errors + (1 + relative) * largest_part * lost
        errors = _present_error(of_terms, all_sizes, errors)
        return Bounded(factor * (exact @ other), errors, all_sizes)

    def by_key_head(x: Bounded) -> Bounded:
        def one(y: Tensor) -> Tensor:
            return y.reshape(batch, kv_heads, group, *y.shape[2:]).sum(2)

        error, size = one(x.error), one(x.size)
        if group > 1:
            # A function may round each head's contribution.
            arguments = error, size, group, ua, rounding.output.unit
            stored = group * underflow(rounding.output)
            error = _total_error(*arguments, tiny=tiny, others_tiny=stored)
        return Bounded(one(x.exact), error, size)

    sinks = None
    if row.sink is not None:
        # A key of value 0: its dP is 0.
        inner, size, weight = d_l - delta, mean + d_l.abs(), row.sink
        of_terms = of_product(1.0) + of_delta + 2 * tiny
        of_inner = of_terms + gamma(3, u) * (size + of_terms)
        error = times_inner(weight, row.sink_error, inner, of_inner, seen_sinks)
        sinks = Bounded(*(x.squeeze(-1) for x in (weight * inner, error, weight * size)))
    scale, (by_queries, by_keys) = scored.scale, _largest_parts(scored, factor)
    of_query = product(grad_x, of_x, sizes, k, kv_len, scale, of_queries, by_queries)
    of_key = product(grad_x.mT, of_x.mT, sizes.mT, q, members, scale, of_keys, by_keys)
    of_value = product(p.mT, of_v.mT, p.mT, d_o, members, 1.0, of_keys, factor)
    return Bounds(
        of_query,
        by_key_head(of_key),
        by_key_head(of_value),
        scores,
        sinks,
    )


def _with_stored_queries(rounding: RoundingModel, queries: Tensor) -> RoundingModel:
    """The rounding model for queries that were computed before and stored in the input's format:
    one more rounding of an operand, unless it changes none of these."""
    fractions = torch.frexp(queries)[0] / rounding.input.unit
    if torch.equal(fractions, fractions.round()):
        return rounding
    return replace(
        rounding, operands=rounding.input, operand_roundings=rounding.operand_roundings + 1
    )


def of_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    rounding: RoundingModel,
) -> dict[str, Bounded]:
    """The gradients by every input that has one, with their bounds: by "q", "k", "v", and by
    "bias", "slopes", "sinks" and "temperature" where the options have them. The gradients by the
    latter are sums over the dimensions in which each is broadcast, kept with size 1."""
    (_, _, q_len, _), kv_len = query.shape, key.shape[2]
    device = query.device
    added = [torch.where(reference.window(options, q_len, kv_len, device), 0.0, -torch.inf)]
    place = torch.arange(q_len, device=device)[:, None] + options.shift
    distance = (place - torch.arange(kv_len, device=device)).abs().double()
    if options.alibi_slopes is not None:
        added.append(-options.alibi_slopes.double()[..., None, None] * distance)
    if options.bias is not None:
        added.append(options.bias)
    if options.mask is not None:
        added.append(torch.where(options.mask, 0.0, -torch.inf))
    kept, factor = None, 1.0
    if options.dropout is not None:
        kept = reference.drop(query.new_ones(*query.shape[:3], kv_len), options)
        factor = max(factor, options.dropout.scale)
    scaled, temperature = query.double(), None
    if options.temperature is not None:
        temperature = options.temperature.double()[:, None, None]
        scaled = scaled * temperature
        rounding = _with_stored_queries(rounding, scaled)
    scored = Scored(options.scale, options.softcap, added, options.sinks, kept, factor, temperature)
    bounds = gradient_bounds(scaled, key, value, grad_out, grad_lse, scored, rounding)
    found = {"q": bounds.query, "k": bounds.key, "v": bounds.value}
    if temperature is not None:
        by_scaled = bounds.query.store(rounding)
        found["q"] = by_scaled.sum(temperature, [], rounding)
        found["temperature"] = by_scaled.sum(query.double(), [0, 2, 3], rounding)
    whole = bounds.scores.exact.shape
    if options.bias is not None:
        sizes = (1,) * (4 - options.bias.dim()) + tuple(options.bias.shape)
        over = [i for i in range(4) if sizes[i] != whole[i]]
        found["bias"] = bounds.scores.sum(torch.ones((), device=device), over, rounding)
    if options.alibi_slopes is not None:
        each = options.alibi_slopes.shape[0] == whole[0]
        over = [2, 3] if each else [0, 2, 3]
        found["slopes"] = bounds.scores.sum(-distance, over, rounding)
    if bounds.sinks is not None:
        found["sinks"] = bounds.sinks.sum(torch.ones((), device=device), [0, 2], rounding)
    return found
