"""Tolerances: how far a correct attention function may be from the exact result.

Outputs and log-sum-exps; gradients have `gradient_tolerance`. Each bound is computed per element,
in float64, from the inputs of one vector and a declared rounding model. `docs/tolerances.md`
derives every term, and says which part is proved. That part is defined once more in Lean,
`Attention/Spec/Tolerance.lean` and `UnderflowTolerance.lean` beside it. Functions that say they
implement it add only terms where float64's own numbers end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridge.conformance.tolerances.rounding_model import FLOAT64, RoundingModel
from bridge.conformance.tolerances.row_average import row_average
from bridge.conformance.tolerances.row_weights import (
    NO_CHANGES,
    Rows,
    ScoreChanges,
    bound_weights,
    gamma,
    storing_errors,
    underflow_costs,
)
from pyimpl.internal.implements import implements

Array = NDArray[np.float64]

# The bounds are themselves evaluated in float64: this factor covers the rounding of doing so.
EVALUATION = 1.0 + 2.0**-20
# Product with the value, and a division: normalisation of a weight or of the output, which GPUs do
# to 2 units in the last place (4 roundings) or as reciprocal and product.
_OUTPUT_ROUNDINGS = 6
# Roundings of maximum and logarithm each: the logarithm, changes of base, the sum of both.
_LSE_ROUNDINGS = 4.0
# Of these, of maximum, logarithm and their sum, each that changes a base is a product, and there is
# the sum: what may underflow.
_LSE_OPERATIONS = 9.0
# A dropout factor z = 1 / (1 − p): the difference, a division as above, the product with the
# weight; and p as it is given, whose rounding moves z by up to (z − 1) roundings of z.
FACTOR_ROUNDINGS = 5
# Roundings of the quotient, each of which may underflow.
_QUOTIENT_ROUNDINGS = 5
# At least this share of a denominator counts as left. Where less is, nothing is proved of it, and
# no function is to fail for that: the loss counts a million times then, and is still a number.
_LEFT = 2.0**-20
# Shares of the weights below this are added up instead of bounding the average's reach.
_NO_WEIGHT = 2.0**-200


def _check(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    q_, k_, v_ = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    if min(q_.ndim, k_.ndim, v_.ndim) < 2:
        raise ValueError("q, k and v need at least two dimensions: [..., len, dim]")
    if q_.shape[-1] != k_.shape[-1]:
        raise ValueError(f"q has head_dim {q_.shape[-1]} but k has {k_.shape[-1]}")
    if k_.shape[-2] != v_.shape[-2]:
        raise ValueError(f"k has {k_.shape[-2]} keys but v has {v_.shape[-2]}")
    batch = np.broadcast_shapes(q_.shape[:-2], k_.shape[:-2], v_.shape[:-2])
    shape = (*batch, q_.shape[-2], k_.shape[-2])
    mask_ = np.ones(shape, bool) if mask is None else np.asarray(mask, dtype=bool)
    return q_, k_, v_, np.broadcast_to(mask_, shape)


@implements("Attention.Spec.tolerance")
@implements("Attention.Spec.dropoutTolerance")
@implements("Attention.Spec.storedTolerance")
@implements("Attention.Spec.outputTolerance")
def attention_tolerance(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    scale: float,
    mask: ArrayLike | None = None,
    rounding: RoundingModel,
    changes: ScoreChanges = NO_CHANGES,
    factors: ArrayLike | None = None,
) -> Array:
    """Largest error, per output element, of a correct attention function of this rounding model.

    q: [..., q_len, head_dim]; k: [..., kv_len, head_dim]; v: [..., kv_len, value_dim]; numbers as
    the implementation receives them. scale: factor of the scores in natural units (the weights are
    e^(scale·⟨q, k⟩)). mask: booleans that broadcast to [..., q_len, kv_len], True where query i may
    attend to key j; None: everywhere. changes: those of the scores. factors: dropout's factor of
    each weight where it meets its value, [..., q_len, kv_len]; None: 1.

    Returns a float64 array [..., q_len, value_dim], non-negative; 0 for a row that sees no key,
    whose output is exactly 0, with a sink as without. Raises ValueError for shapes that do not fit.
    """
    q_, k_, v_, mask_ = _check(q, k, v, mask)
    roundings = 0.0
    if factors is not None:
        # Each query is a problem by itself, whose values are multiplied by its factors.
        z = np.broadcast_to(np.asarray(factors, dtype=np.float64), mask_.shape)
        q_, k_, mask_ = q_[..., :, None, :], k_[..., None, :, :], mask_[..., :, None, :]
        v_ = z[..., None] * v_[..., None, :, :]
        if changes.added is not None:
            added = np.broadcast_to(np.asarray(changes.added, dtype=np.float64), z.shape)
            changes = replace(changes, added=added[..., :, None, :])
        roundings = z.max(initial=0.0) + FACTOR_ROUNDINGS
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        rows = bound_weights(q_, k_, mask_, scale, rounding, changes, absolute=False)
        if changes.sink is not None:
            v_ = np.concatenate([v_, np.zeros((*v_.shape[:-2], 1, v_.shape[-1]))], axis=-2)
        bound = _output_terms(rows, v_, rounding, roundings).total * EVALUATION
    # A sink has no value: a row that sees nothing else has output 0 as well.
    sinks = 0 if changes.sink is None else 1
    bound = np.where(rows.num_keys > sinks, bound, 0.0)
    return np.asarray(bound if factors is None else bound[..., 0, :], dtype=np.float64)


@implements("Attention.Spec.ToleranceTerms")
@dataclass(frozen=True)
class Terms:
    """The summands of each element's tolerance, [..., q_len, value_dim]: errors of the weights that
    numerator and denominator share; weights that are stored; sums, and the underflow in the
    accumulator; the output's format. The sections of `docs/tolerances.md` have the same order."""

    shared: Array
    stored: Array
    sums: Array
    result: Array

    @property
    def total(self) -> Array:
        return self.shared + self.stored + self.sums + self.result


@dataclass(frozen=True)
class Explained:
    """A tolerance with its parts. Of each key, [..., q_len, kv_len]: its exact score and
    the bound δ of that one's error, of no meaning where it is masked; errors, share, rounding: the
    bounds ε, P and e."""

    terms: Terms
    scores: Array
    score_errors: Array
    errors: Array
    share: Array
    rounding: Array


def explain(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    scale: float,
    mask: ArrayLike | None = None,
    rounding: RoundingModel,
) -> Explained:
    """The parts of `attention_tolerance`, of the same arguments: its result is their sum, but for
    the factor that covers the rounding of computing it. For rows that see a key."""
    q_, k_, v_, mask_ = _check(q, k, v, mask)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        rows = bound_weights(q_, k_, mask_, scale, rounding, NO_CHANGES, absolute=False)
        weights = np.where(rows.weights > 0.0, rows.weights, 1.0)
        return Explained(
            terms=_output_terms(rows, v_, rounding, 0.0),
            scores=rows.scores,
            score_errors=rows.score_errors,
            errors=np.log1p(rows.excess / weights),
            share=rows.share,
            rounding=storing_errors(rows, rounding).each,
        )


@implements("Attention.Spec.toleranceTerms")
def _output_terms(rows: Rows, v: Array, rounding: RoundingModel, roundings: float) -> Terms:
    acc = rounding.accumulator
    flush = rounding.flush_to_zero
    size = np.abs(v)
    output = (rows.weights @ v) / rows.total
    average = row_average(rows.weights, rows.mask, v)
    # 1. Weights off by factors that numerator and denominator share: still an average of values.
    # Keys of next to no weight are not counted as values that the average could reach.
    near = rows.share > _NO_WEIGHT
    farthest = average.farthest(near) + average.spread(rows.share * ~near)
    shared = np.fmin(average.spread(rows.excess) / rows.low_total, farthest)
    largest = farthest + np.abs(output)
    mean_size = np.minimum(rows.share @ size, largest)
    mean_output = np.abs(output) + shared
    # 2. Weights stored in a smaller format.
    stored = np.zeros_like(mean_size)
    stored_size = mean_size
    if rounding.weights is not None:
        error = storing_errors(rows, rounding)
        # Never by more than the weights are, whose shares add up to 1.
        of_parts = error.unit * mean_size + error.below_normal @ size
        numerator_only = np.minimum(np.minimum(error.each @ size, of_parts), mean_size)
        moved = average.spread(error.each) + error.together * shared
        left = np.maximum(1.0 - error.together, 0.0)
        both = moved / left
        of_weights = {
            "unrounded": numerator_only,
            "rounded": both,
            "either": np.fmax(numerator_only, both),
        }[rounding.denominator]
        # The average of the sizes grows even where the values cancel.
        of_sizes = (error.each @ size + error.together * mean_size) / left
        if rounding.denominator == "unrounded":
            of_sizes = numerator_only
        stored = np.fmin(of_weights, 2 * largest)
        stored_size = mean_size + np.fmin(of_sizes, 2 * largest)
    # 3. Sums: every key's part goes through at most one addition per key, and one product and one
    # addition per tile.
    additions = rows.num_keys + 2 * rows.blocks
    numerator = gamma(additions + _OUTPUT_ROUNDINGS + roundings, rounding.accumulation_unit)
    denominator = gamma(additions, acc.unit)
    sums = numerator * stored_size + denominator * (mean_output + stored)
    sums = sums / np.maximum(1.0 - denominator, 0.0)
    most = np.abs(output) + shared + stored + sums
    sums = sums + _underflow_error(rows, size, most, numerator, rounding)
    # 4. The result is rounded to the output's format.
    off = shared + stored + sums
    result = rounding.output.unit * (np.abs(output) + off) + rounding.output.underflow(flush)
    # Weights below float64's own range count as 0 above.
    result = result + FLOAT64.smallest_normal * size.sum(-2, keepdims=True)
    return Terms(shared, stored, sums, result)


@implements("Attention.Spec.underflowLeft")
@implements("Attention.Spec.underflowError")
def _underflow_error(
    rows: Rows, size: Array, most: Array, numerator: Array, rounding: RoundingModel
) -> Array:
    """How much further off an output may be where products, quotients and exponentials underflow
    in the accumulator, for values and outputs of these sizes and a numerator's error of sums."""
    of_sizes, of_weights = underflow_costs(rows, size, rounding)
    denominator = gamma(rows.num_keys + 2 * rows.blocks + 1, rounding.accumulator.unit)
    moved = (1.0 + denominator) * of_weights
    left = 1.0 - denominator - moved
    if rounding.denominator != "unrounded":
        left = left - storing_errors(rows, rounding).together
    error = (of_sizes + most * moved) / np.maximum(left, _LEFT)
    quotient = _QUOTIENT_ROUNDINGS * rounding.accumulator.smallest_normal
    error = (1.0 + numerator) * (error + quotient)
    # Without a bound of the roundings there is none of this.
    return np.where(np.isnan(error), np.inf, error)


@implements("Attention.Spec.logSumExpFactor")
@implements("Attention.Spec.logSumExpTolerance")
@implements("Attention.Spec.underflowLogSumExpFactor")
@implements("Attention.Spec.underflowLogSumExpTolerance")
def lse_tolerance(
    q: ArrayLike,
    k: ArrayLike,
    *,
    scale: float,
    mask: ArrayLike | None = None,
    rounding: RoundingModel,
    changes: ScoreChanges = NO_CHANGES,
) -> Array:
    """Largest error of the log-sum-exp (base e) of each row: [..., q_len].

    Arguments as for `attention_tolerance`. 0 for a row that sees neither a key nor a sink, whose
    log-sum-exp is exactly −∞. The log-sum-exp is taken to be returned in the accumulator's format.
    """
    k_ = np.asarray(k, dtype=np.float64)
    q_, k_, _, mask_ = _check(q, k_, k_, mask)
    unit = rounding.accumulator.unit
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        rows = bound_weights(q_, k_, mask_, scale, rounding, changes, absolute=True)
        # The sum of the weights, and weights that underflow or are rounded.
        relative = gamma(rows.num_keys + 2 * rows.blocks + 1, unit)
        ones = np.ones((rows.weights.shape[-1], 1))
        relative = relative + (1.0 + relative) * underflow_costs(rows, ones, rounding)[1]
        if rounding.weights is not None and rounding.denominator != "unrounded":
            relative = relative + storing_errors(rows, rounding).together
        error = rows.log_error - np.log1p(-np.minimum(relative, 1.0))
        # The logarithm, changes of base, and the sum of maximum and logarithm: of the numbers that
        # the function has for them, which are off themselves.
        anchor = np.where(rows.empty, 0.0, np.abs(rows.maximum))
        off = error + 2.0 * rows.score_errors.max(-1, keepdims=True, initial=0.0)
        four = gamma(np.array(_LSE_ROUNDINGS), unit)
        error = error + four * (np.log(rows.total) + 1.0 + anchor + off)
        # Products that change a base may underflow.
        tiny = _LSE_OPERATIONS * rounding.accumulator.smallest_normal
        error = error + (1.0 + four) * tiny
    error = np.where(rows.empty, 0.0, error * EVALUATION)
    return np.asarray(error[..., 0], dtype=np.float64)
