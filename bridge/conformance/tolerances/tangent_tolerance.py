"""The derivative of attention forwards in float64, and how far a correct one may be from it.

The one bound of tangents. It is computed per element from the inputs, their rates and what an
implementation rounds (`rounding_model.RoundingModel`, the same as of the forward pass); the weights
are those of `gradient_tolerance`; `docs/tolerances.md` derives every term: derived, not yet proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bridge.conformance.rounding_model import FLOAT64, RoundingModel
from bridge.conformance.tolerances.gradient_tolerance import (
    SECOND_ORDER,
    Bounded,
    Scored,
    Softmax,
    softmax_bounds,
)


@dataclass(frozen=True)
class Rates:
    """At what rates the inputs change. query, key, value: of their shapes. added: of the summands
    of `Scored.added` that change, of their shapes. sinks: `[heads]`, None without sinks."""

    query: Tensor
    key: Tensor
    value: Tensor
    added: Sequence[Tensor] = ()
    sinks: Tensor | None = None


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
    u, ua = rounding.accumulator.unit, rounding.accumulation_unit
    tiny = rounding.accumulator.smallest_normal * row.visible
    weight_unit = 0.0 if rounding.weights is None else rounding.weights.unit
    if rounding.weights is not None:
        tiny = tiny + rounding.weights.underflow(rounding.flush_to_zero) * row.visible
    # A sum over keys, by tiles that are rescaled.
    sums = (row.keys + 2 * row.blocks + 8) * ua + row.blocks * rounding.exp_error * u
    p, of_p = row.p, row.p * (row.error + weight_unit) + tiny
    # P ∘ S′, also rounded to the weights' format.
    of_moved = of_p * (moved.size + moved.error) + p * moved.error
    of_moved = of_moved + (weight_unit + u) * p * moved.size
    mean = Bounded(
        (p * moved.exact).sum(-1, True),
        of_moved.sum(-1, True) + sums * (p * moved.size).sum(-1, True),
        (p * moved.size).sum(-1, True),
    )
    if row.sink is not None and rates.sinks is not None:
        rate = rates.sinks.double().view(1, -1, 1, 1)
        size = row.sink * rate.abs()
        error = (row.sink * row.sink_error + rounding.accumulator.smallest_normal) * rate.abs()
        mean = mean + Bounded(row.sink * rate, error + sums * size, size)

    def weigh(weights: Tensor, errors: Tensor, sizes: Tensor, values: Tensor) -> Bounded:
        size = sizes @ values.abs()
        return Bounded(weights @ values, errors @ values.abs() + sums * size, size)

    # (P ∘ S′) V − μ O + P V′, with O as it is stored.
    by_scores = weigh(p * moved.exact, of_moved, p * moved.size, v)
    output = weigh(p, of_p, p, v).store(rounding)
    by_values = weigh(p, of_p, p, d_v)
    by_mean = Bounded(
        -mean.exact * output.exact,
        mean.error * (output.size + output.error) + mean.size * output.error,
        mean.size * output.size,
    )
    found = by_scores + by_mean + by_values
    # What stores its weights in few bits may store the two products so, too.
    apart = rounding.output.unit if rounding.weights is not None else 0.0
    found = Bounded(
        found.exact, found.error + (4 * u + apart + weight_unit) * found.size, found.size
    )
    return found, Bounded(mean.exact[..., 0], mean.error[..., 0], mean.size[..., 0])


def _score_rates(
    q: Tensor, k: Tensor, rates: Rates, scored: Scored, row: Softmax, rounding: RoundingModel
) -> Bounded:
    """S′, `[batch, heads, q_len, kv_len]`, 0 where a pair is masked."""
    u = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    d_q, d_k, scale = rates.query.double(), rates.key.double(), scored.scale
    exact = scale * (d_q @ k.mT + q @ d_k.mT)
    size = abs(scale) * (d_q.abs() @ k.abs().mT + q.abs() @ d_k.abs().mT)
    # Two products of head_dim terms, and their sum.
    relative = (2 * q.shape[-1] + 3) * rounding.accumulation_unit + 5 * u + 3 * stored
    off = (relative + 2 * FLOAT64.unit) * size
    if rounding.operands is not None:
        unit = (rounding.operand_roundings + 1) * rounding.operands.unit
        lost = rounding.operands.underflow(rounding.flush_to_zero) * max(1.0, abs(scale))
        rows, columns = ((x.abs() + dx.abs()).sum(-1) for x, dx in ((q, d_q), (k, d_k)))
        ends = rows[..., None] + columns[..., None, :]
        off = off + SECOND_ORDER * unit * size
        off = off + 2 * torch.where(size == 0, 0.0, lost * (ends + q.shape[-1] * lost))
    # Through softcap.
    off = off * (row.slope + row.slope_error) + size * row.slope_error
    # A slope that is 0 in float64, of a softcap that is reached, is not 0.
    exact, size = exact * row.slope, size * (row.slope + row.slope_error)
    off = off + 2 * (u + stored) * size
    for added in rates.added:
        rate = added.double()
        exact, size = exact + rate, size + rate.abs()
        off = off + SECOND_ORDER * (2 * u + stored) * (size + off)

    def where_visible(x: Tensor) -> Tensor:
        return torch.where(row.visible, x, 0.0)

    return Bounded(where_visible(exact), where_visible(off), where_visible(size))
