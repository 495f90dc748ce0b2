"""Tolerances: how far a correct attention function may be from the exact result.

Outputs and log-sum-exps; gradients have `gradient_tolerance`. Each bound is computed per element,
in float64, from the inputs of one vector and a declared rounding model. The derivation of every
term is in `docs/tolerances.md`, with what of it is proved. That part is defined once more in Lean,
`Attention/Spec/Tolerance.lean`; functions that say they implement it compute it with the terms
added that it lacks, for numbers below the normal ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridge.conformance.rounding_model import FLOAT64, RoundingModel
from bridge.conformance.tolerances.row_average import row_average
from pyimpl.internal.implements import implements

Array = NDArray[np.float64]

# The bounds are themselves evaluated in float64: this factor covers the rounding of doing so.
EVALUATION = 1.0 + 2.0**-20
# Roundings of the scale (its own, log2 e, their product, a square root) act on every score alike.
_SCALE_ROUNDINGS = 3
# Roundings of one score alone: the product with the scale, and a later change of base.
_SCORE_ROUNDINGS = 2
# cap·tanh(score / cap), in roundings of cap: the division, a tanh made of exponentials (which loses
# its relative accuracy near 0), and the product.
_SOFTCAP_ROUNDINGS = 8
# A number that is added, a product whose base may be changed; and the sum of score and number.
_SUM_ROUNDINGS = 2
# Product with the value, and a division: normalisation of a weight or of the output, which GPUs do
# to 2 units in the last place (4 roundings) or as reciprocal and product.
_OUTPUT_ROUNDINGS = 6
# Roundings of maximum and logarithm each: the logarithm, changes of base, the sum of both.
_LSE_ROUNDINGS = 4.0
# A dropout factor z = 1 / (1 − p): the difference, a division as above, the product with the
# weight; and p as it is given, whose rounding moves z by up to (z − 1) roundings of z.
FACTOR_ROUNDINGS = 5
# Shares of the weights below this are added up instead of bounding the average's reach.
_NO_WEIGHT = 2.0**-200


@dataclass(frozen=True)
class ScoreChanges:
    """What becomes of the scores scale·⟨q, k⟩, in this order.

    softcap: cap·tanh(score / cap), cap > 0. added: numbers that are added, which broadcast to
    [..., q_len, kv_len]; −∞ masks. sink: one more score in every softmax, without a value.
    """

    softcap: float | None = None
    added: ArrayLike | None = None
    sink: float | None = None

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return not (self.softcap is None and self.added is None and self.sink is None)


NO_CHANGES = ScoreChanges()


@implements("Attention.Spec.gamma")
def _gamma(operations: Array, unit: float) -> Array:
    """Higham's γ: the relative error of that many roundings in a row; ∞ where it has no bound."""
    product = operations * unit
    return np.where(product < 1.0, product / (1.0 - product), np.inf)


def _apply_softcap(products: Array, changes: ScoreChanges) -> Array:
    """The scores after softcap alone."""
    if changes.softcap is None:
        return products
    return np.asarray(changes.softcap * np.tanh(products / changes.softcap), dtype=np.float64)


def _additions(shape: tuple[int, ...], changes: ScoreChanges) -> Array:
    """The numbers that are added to scores of this shape."""
    added = 0.0 if changes.added is None else changes.added
    return np.broadcast_to(np.asarray(added, dtype=np.float64), shape)


@implements("Attention.Spec.ScoreChange.apply")
def _apply_changes(products: Array, changes: ScoreChanges) -> Array:
    """The scores after softcap and addition."""
    return _apply_softcap(products, changes) + _additions(products.shape, changes)


@implements("Attention.Spec.softcapError")
@implements("Attention.Spec.addedError")
@implements("Attention.Spec.changedError")
def _change_errors(
    errors: Array, products: Array, changes: ScoreChanges, rounding: RoundingModel
) -> Array:
    """The bounds of the errors of scores after softcap and addition, from those before."""
    unit = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    if changes.softcap is not None:
        # An error of the score comes out no larger: the slope of tanh is at most 1.
        errors = errors + (_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap
    if changes.added is not None:
        added = _additions(products.shape, changes)
        scores = np.where(np.isfinite(added), _apply_softcap(products, changes) + added, 0.0)
        size = np.where(np.isfinite(added), np.abs(added), 0.0)
        growth = math.expm1(_SUM_ROUNDINGS * math.log1p(unit) + math.log1p(stored))
        # The errors of both are rounded with them: they count where the sum is 0 as well.
        errors = (errors + growth * size) * (1.0 + growth) + growth * np.abs(scores)
    return errors


@implements("Attention.Spec.sinkError")
def _sink_error(sink: float, rounding: RoundingModel) -> float:
    """The bound of the error of a sink's score."""
    return math.expm1(_SCORE_ROUNDINGS * math.log1p(rounding.accumulator.unit)) * abs(sink)


@dataclass(frozen=True)
class _Rows:
    """The exact softmax of every row, and by how much a kernel's weights may be off.

    Arrays are [..., q_len, kv_len], or [..., q_len, 1] for the quantities of a row. Weights are
    exp(score − maximum): the largest is 1. A masked key has weight 0 in every array.
    """

    mask: NDArray[np.bool_]
    # The exact scores, and the bounds of their errors but for a constant of the row.
    scores: Array
    score_errors: Array
    maximum: Array
    weights: Array
    total: Array
    # By errors that numerator and denominator share, a weight can be up to weights + excess, and
    # the weights' sum down to low_total.
    excess: Array
    low_total: Array
    # Upper bounds of weight / sum of weights, and of that quotient for a weight equal to the
    # largest one that the kernel sees.
    share: Array
    unit_share: Array
    # Bound on the error of the logarithm of the sum of weights, as far as it is shared.
    log_error: Array
    blocks: Array
    num_keys: Array

    @property
    def empty(self) -> NDArray[np.bool_]:
        return np.asarray(self.num_keys == 0)


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


@implements("Attention.Spec.magnitude")
@implements("Attention.Spec.scoreError")
def _score_errors(
    q: Array, k: Array, scores: Array, below_max: Array, scale: float, rounding: RoundingModel
) -> Array:
    """Bound on the error of score − maximum, up to a constant of the row: [..., q_len, kv_len]."""
    unit = rounding.accumulator.unit
    magnitude = abs(scale) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    head_dim = q.shape[-1]
    relative = _gamma(np.array(head_dim + 1.0), rounding.accumulation_unit)
    errors = np.zeros_like(scores)
    if rounding.operands is not None:
        # The product with the scale is rounded, and once more to a format that is not its own.
        once = math.log1p(unit)
        if rounding.operands != rounding.accumulator:
            once += math.log1p(rounding.operands.unit)
        relative = relative + (1.0 + relative) * math.expm1(rounding.operand_roundings * once)
        tiny = rounding.operands.underflow(rounding.flush_to_zero)
        factor = max(1.0, math.sqrt(abs(scale)))
        sums = np.abs(q).sum(-1)[..., :, None] + np.abs(k).sum(-1)[..., None, :]
        errors = errors + 2.0 * tiny * (factor * sums + head_dim * tiny)
    own = errors + relative * magnitude + _SCORE_ROUNDINGS * unit * np.abs(scores)
    # A common relative error ε of all scores changes s − m by ε·(s − m). The two units of float64
    # are for the caller's own rounding of the scale.
    of_scale = _SCALE_ROUNDINGS * unit + 2 * FLOAT64.unit
    errors = own + of_scale * below_max
    if rounding.scores is not None:
        # Nothing of a common error cancels from what is stored: the score as it was computed.
        computed = np.abs(scores) + own + of_scale * np.abs(scores)
        errors = errors + rounding.scores.unit * computed
        errors = errors + rounding.scores.underflow(rounding.flush_to_zero)
    return np.asarray(errors, dtype=np.float64)


@implements("Attention.Spec.boundedWeights")
def _rows(
    q: Array,
    k: Array,
    mask: NDArray[np.bool_],
    scale: float,
    rounding: RoundingModel,
    changes: ScoreChanges,
    *,
    absolute: bool,
) -> _Rows:
    """Softmax rows with their error intervals.

    absolute: a common relative error of all scores counts in full, as it does for the log-sum-exp;
    otherwise only its part that changes differences of scores counts.
    """
    unit = rounding.accumulator.unit
    products = scale * (q @ k.swapaxes(-1, -2))
    scores = _apply_changes(products, changes)
    mask = mask & (scores > -np.inf)
    sink_errors = np.zeros((*scores.shape[:-1], 0))
    if changes.sink is not None:
        # One more key, whose score is given.
        sink_errors = np.full((*scores.shape[:-1], 1), _sink_error(changes.sink, rounding))
        scores = np.concatenate([scores, np.full_like(sink_errors, changes.sink)], axis=-1)
        mask = np.concatenate([mask, np.ones_like(sink_errors, dtype=bool)], axis=-1)
    num_keys = mask.sum(-1, keepdims=True).astype(np.float64)
    block_n = 1 if rounding.block_n is None else rounding.block_n
    blocks = np.full_like(num_keys, math.ceil(mask.shape[-1] / block_n))
    maximum = np.where(mask, scores, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    anchor = np.where(num_keys > 0, maximum, 0.0)
    gap = np.where(mask, anchor - scores, 0.0)
    # A common relative error of the products does not cancel from scores that were changed.
    in_full = absolute or changes.any
    below_max = np.abs(products) if in_full else gap
    errors = _score_errors(q, k, products, below_max, scale, rounding)
    errors = _change_errors(errors, products, changes, rounding)
    errors = np.concatenate([errors, sink_errors], axis=-1)
    score_errors = np.where(mask, errors, 0.0)
    # Differences of scores and maxima are rounded; along the rescalings they add up to the gap.
    largest_error = score_errors.max(-1, keepdims=True, initial=0.0)
    errors = score_errors + unit * (gap + score_errors + largest_error)
    # One exponential for the weight and one for each rescaling; numerator and denominator share
    # them.
    errors = errors - (1.0 + blocks) * math.log1p(-rounding.exp_error * unit)
    weights = np.where(mask, np.exp(-gap), 0.0)
    total = np.where(num_keys > 0, weights.sum(-1, keepdims=True), 1.0)
    high = np.where(mask, np.exp(errors - gap), 0.0)
    high = np.maximum(high, np.where(mask, FLOAT64.smallest_normal, 0.0))
    small = weights * np.expm1(np.minimum(errors, 1.0))
    excess = np.where(errors < 1.0, small, high - weights)
    low_total = np.where(mask, np.exp(-errors - gap), 0.0).sum(-1, keepdims=True)
    # The kernel's own maximum may exceed the exact one by this much. In its own terms the largest
    # weight is 1, up to the error of its exponentials, and so is their sum at least.
    above = np.where(mask, errors - gap, 0.0).max(-1, keepdims=True, initial=0.0)
    own = np.exp((1.0 + blocks) * -math.log1p(-rounding.exp_error * unit))
    unit_share = np.minimum(np.exp(np.minimum(above, 700.0)) / low_total, own)
    scaled = np.where(mask, np.exp(errors - gap - above), 0.0).sum(-1, keepdims=True)
    log_error = np.where(
        above < 1.0,
        np.log1p(excess.sum(-1, keepdims=True) / total),
        above + np.log(np.where(num_keys > 0, scaled, 1.0) / total),
    )
    return _Rows(
        mask=mask,
        scores=scores,
        score_errors=score_errors,
        maximum=maximum,
        weights=weights,
        total=total,
        excess=excess,
        low_total=low_total,
        share=np.where(mask, np.fmin(high / low_total, 1.0), 0.0),
        unit_share=unit_share,
        log_error=log_error,
        blocks=blocks,
        num_keys=num_keys,
    )


def _storing_error(rows: _Rows, unit: float, absolute: float | Array) -> Array:
    """Error of storing each weight, as a share of the sum of weights.

    A normal number is off by a unit roundoff of itself, a smaller one by an absolute amount, and
    neither by more than itself.
    """
    stored = np.minimum(rows.share, np.maximum(unit * rows.share, absolute)) * rows.mask
    return np.asarray(stored, dtype=np.float64)


@implements("Attention.Spec.tolerance")
@implements("Attention.Spec.dropoutTolerance")
@implements("Attention.Spec.storedTolerance")
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
    attend to key j; None: everywhere. changes: what becomes of the scores. factors: what dropout
    multiplies each weight by where it meets its value, [..., q_len, kv_len]; None: 1.

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
        rows = _rows(q_, k_, mask_, scale, rounding, changes, absolute=False)
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
    """What the tolerance of each element is the sum of, [..., q_len, value_dim]: errors of the
    weights that numerator and denominator share; weights that underflow or are rounded; sums; the
    output's format. The sections of `docs/tolerances.md` have the same order."""

    shared: Array
    stored: Array
    sums: Array
    result: Array

    @property
    def total(self) -> Array:
        return self.shared + self.stored + self.sums + self.result


@dataclass(frozen=True)
class Explained:
    """A tolerance with what it is made of. Of each key, [..., q_len, kv_len]: its exact score and
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
    unit = 0.0 if rounding.weights is None else rounding.weights.unit
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        rows = _rows(q_, k_, mask_, scale, rounding, NO_CHANGES, absolute=False)
        weights = np.where(rows.weights > 0.0, rows.weights, 1.0)
        return Explained(
            terms=_output_terms(rows, v_, rounding, 0.0),
            scores=rows.scores,
            score_errors=rows.score_errors,
            errors=np.log1p(rows.excess / weights),
            share=rows.share,
            rounding=_storing_error(rows, unit, _tiny_weight(rows, rounding)),
        )


@implements("Attention.Spec.toleranceTerms")
def _output_terms(rows: _Rows, v: Array, rounding: RoundingModel, roundings: float) -> Terms:
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
    # 2. Exponentials that underflow in the accumulator, and weights stored in a smaller format.
    lost = np.minimum(rows.share, acc.smallest_normal * rows.unit_share)
    stored = lost @ size + lost.sum(-1, keepdims=True) * mean_output
    stored_size = mean_size + stored
    if rounding.weights is not None:
        unit, tiny = rounding.weights.unit, _tiny_weight(rows, rounding)
        error = _storing_error(rows, unit, tiny)
        # The weights' shares add up to 1, whatever the bounds on each are.
        underflow = np.minimum(rows.share, tiny)
        numerator_only = np.minimum(error @ size, unit * mean_size + underflow @ size)
        moved = average.spread(error) + error.sum(-1, keepdims=True) * shared
        left = np.maximum(1.0 - error.sum(-1, keepdims=True), 0.0)
        both = moved / left
        of_weights = {
            "unrounded": numerator_only,
            "rounded": both,
            "either": np.fmax(numerator_only, both),
        }[rounding.denominator]
        # The average of the sizes grows even where the values cancel.
        of_sizes = (error @ size + error.sum(-1, keepdims=True) * mean_size) / left
        if rounding.denominator == "unrounded":
            of_sizes = numerator_only
        stored = stored + np.fmin(of_weights, 2 * largest)
        stored_size = stored_size + np.fmin(of_sizes, 2 * largest)
    # 3. Sums: every key's part goes through at most one addition per key, and one product and one
    # addition per tile.
    additions = rows.num_keys + 2 * rows.blocks
    numerator = _gamma(additions + _OUTPUT_ROUNDINGS + roundings, rounding.accumulation_unit)
    denominator = _gamma(additions, acc.unit)
    sums = numerator * stored_size + denominator * (mean_output + stored)
    sums = sums / np.maximum(1.0 - denominator, 0.0)
    sums = sums + 2 * (additions + 1) * acc.smallest_normal * rows.unit_share
    # 4. The result is rounded to the output's format.
    error = shared + stored + sums
    result = rounding.output.unit * (np.abs(output) + error) + rounding.output.underflow(flush)
    # Weights below float64's own range count as 0 above.
    result = result + FLOAT64.smallest_normal * size.sum(-2, keepdims=True)
    return Terms(shared, stored, sums, result)


def _tiny_weight(rows: _Rows, rounding: RoundingModel) -> Array:
    """Error of storing a weight below the normal numbers, as a share of the sum of weights."""
    if rounding.weights is None:
        return np.zeros_like(rows.unit_share)
    tiny = rounding.weights.underflow(rounding.flush_to_zero)
    if rounding.weights_normalized:
        return np.full_like(rows.unit_share, tiny)
    return tiny * rows.unit_share


@implements("Attention.Spec.logSumExpFactor")
@implements("Attention.Spec.logSumExpTolerance")
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
        rows = _rows(q_, k_, mask_, scale, rounding, changes, absolute=True)
        # The sum of the weights, and weights that underflow or are rounded.
        relative = _gamma(rows.num_keys + 2 * rows.blocks + 1, unit)
        tiny = rows.num_keys * rows.unit_share
        relative = relative + tiny * rounding.accumulator.smallest_normal
        if rounding.weights is not None and rounding.denominator != "unrounded":
            each = _storing_error(rows, rounding.weights.unit, _tiny_weight(rows, rounding))
            together = rounding.weights.unit + rows.num_keys * _tiny_weight(rows, rounding)
            relative = relative + np.minimum(each.sum(-1, keepdims=True), together)
        error = rows.log_error - np.log1p(-np.minimum(relative, 1.0))
        # The logarithm, changes of base, and the sum of maximum and logarithm: of the numbers that
        # the function has for them, which are off themselves.
        anchor = np.where(rows.empty, 0.0, np.abs(rows.maximum))
        off = error + 2.0 * rows.score_errors.max(-1, keepdims=True, initial=0.0)
        four = _gamma(np.array(_LSE_ROUNDINGS), unit)
        error = error + four * (np.log(rows.total) + 1.0 + anchor + off)
    error = np.where(rows.empty, 0.0, error * EVALUATION)
    return np.asarray(error[..., 0], dtype=np.float64)
