"""The exact weights of a row of attention, and how far off a function's own may be.

Errors of scores, of the weights made of them, and of storing these where they meet the values:
sections 1 and 3 of `docs/tolerances.md`. `Attention/Spec/Tolerance.lean` and the files beside it
define the bounds of them that are proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridge.conformance.tolerances.rounding_model import FLOAT64, RoundingModel
from pyimpl.internal.implements import implements

Array = NDArray[np.float64]

# Roundings of the scale (its own, log2 e, their product, a square root) act on every score alike.
_SCALE_ROUNDINGS = 3
# Roundings of one score alone: the product with the scale, and a later change of base.
_SCORE_ROUNDINGS = 2
# cap·tanh(score / cap), in roundings of cap: the division, a tanh made of exponentials (which loses
# its relative accuracy near 0), and the product.
_SOFTCAP_ROUNDINGS = 8
# Products, quotients and sums of a score beside those of its inner product, or with its cap.
_SCORE_PRODUCTS = 3.0
# Of each number of an inner product: its product, and the sum with the others.
_INNER_PRODUCTS = 2.0
# Beside those of rescalings, what a key's part of a sum loses below the normal numbers, each the
# smallest of them: a product, an addition, and, times a weight of up to 4, a value's with a factor.
TINY_OPERATIONS = 6
# With more tiles a weight that underflows is off by less than as much as it is, times 3 for each.
_MANY_BLOCKS = 600.0
# A number that is added, a product whose base may be changed; and the sum of score and number.
_SUM_ROUNDINGS = 2


@implements("Attention.Spec.ScoreChanges")
@dataclass(frozen=True)
class ScoreChanges:
    """The changes of the scores scale·⟨q, k⟩, in this order.

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
def gamma(operations: Array, unit: float) -> Array:
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


@implements("Attention.Spec.underflowFormats")
@implements("Attention.Spec.ScoreChanges.formats")
def score_underflow(
    head_dim: int, scale: float, changes: ScoreChanges, rounding: RoundingModel
) -> float:
    """At most what a score is off by where it is stored below the normal numbers, and where its
    products, quotients and sums in the accumulator are below these."""
    stored, tiny = 0.0, 0.0
    if rounding.scores is not None:
        stored = rounding.scores.unit
        tiny = rounding.scores.underflow(rounding.flush_to_zero)
    cap = 0.0 if changes.softcap is None else changes.softcap
    inner = _INNER_PRODUCTS * head_dim * max(1.0, abs(scale))
    numbers = inner + _SCORE_PRODUCTS * (1.0 + cap)
    growth = 1.0 + float(gamma(np.array(head_dim + 5.0), rounding.accumulation_unit))
    return tiny + (1.0 + stored) * growth * rounding.accumulator.smallest_normal * numbers


@implements("Attention.Spec.BoundedKey.flushed")
def _flushed_differences(blocks: Array, rounding: RoundingModel) -> Array:
    """At most what differences of scores that are flushed to 0 move a score: its own from the
    maximum, and each rise of that."""
    return (1.0 + blocks) * rounding.accumulator.smallest_normal


@implements("Attention.Spec.softcapError")
@implements("Attention.Spec.addedError")
@implements("Attention.Spec.changedError")
def _change_errors(
    errors: Array, products: Array, tiny: float, changes: ScoreChanges, rounding: RoundingModel
) -> Array:
    """The bounds of the errors of scores after softcap and addition, from those before. tiny: what
    underflows of a score each time that it is stored."""
    unit = rounding.accumulator.unit
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    if changes.softcap is not None:
        # An error of the score comes out no larger: the slope of tanh is at most 1.
        errors = errors + (_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap + tiny
    if changes.added is not None:
        added = _additions(products.shape, changes)
        scores = np.where(np.isfinite(added), _apply_softcap(products, changes) + added, 0.0)
        size = np.where(np.isfinite(added), np.abs(added), 0.0)
        growth = math.expm1(_SUM_ROUNDINGS * math.log1p(unit) + math.log1p(stored))
        # The errors of both are rounded with them: they count where the sum is 0 as well.
        errors = (errors + growth * size + tiny) * (1.0 + growth) + growth * np.abs(scores) + tiny
    return errors


@implements("Attention.Spec.sinkError")
def _sink_error(sink: float, tiny: float, rounding: RoundingModel) -> float:
    """The bound of the error of a sink's score. tiny: what underflows of a score."""
    return math.expm1(_SCORE_ROUNDINGS * math.log1p(rounding.accumulator.unit)) * abs(sink) + tiny


@dataclass(frozen=True)
class Rows:
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


@implements("Attention.Spec.operandUnderflow")
def _operand_underflow(q: Array, k: Array, scale: float, rounding: RoundingModel) -> Array:
    """How far scaled operands below the normal numbers move a score, [..., q_len, kv_len], but for
    their roundings in proportion."""
    head_dim = q.shape[-1]
    tiny = 0.0
    if rounding.operands is not None:
        tiny = rounding.operand_roundings * rounding.operands.underflow(rounding.flush_to_zero)
    # The other operand that an error meets has its part of the scale.
    reach = max(1.0, math.sqrt(abs(scale)))
    sums = np.abs(q).sum(-1)[..., :, None] + np.abs(k).sum(-1)[..., None, :]
    growth = 1.0 + gamma(np.array(head_dim + 5.0), rounding.accumulation_unit)
    return np.asarray(growth * tiny * (reach * sums + head_dim * tiny), dtype=np.float64)


@implements("Attention.Spec.magnitude")
@implements("Attention.Spec.scoreError")
def _score_errors(
    q: Array,
    k: Array,
    scores: Array,
    below_max: Array,
    tiny: float,
    scale: float,
    rounding: RoundingModel,
) -> Array:
    """Bound on the error of score − maximum, up to a constant of the row: [..., q_len, kv_len].
    tiny: what underflows of a score when it is stored."""
    unit = rounding.accumulator.unit
    magnitude = abs(scale) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    head_dim = q.shape[-1]
    relative = gamma(np.array(head_dim + 1.0), rounding.accumulation_unit)
    errors = np.zeros_like(scores)
    if rounding.operands is not None:
        # The product with the scale is rounded, and once more to a format that is not its own.
        once = math.log1p(unit)
        if rounding.operands != rounding.accumulator:
            once += math.log1p(rounding.operands.unit)
        of_operands = math.expm1(rounding.operand_roundings * once)
        relative = relative + (1.0 + relative) * of_operands
        errors = errors + (1.0 + of_operands) * _operand_underflow(q, k, scale, rounding)
    own = errors + relative * magnitude + _SCORE_ROUNDINGS * unit * np.abs(scores)
    # A common relative error ε of all scores changes s − m by ε·(s − m). The two units of float64
    # are for the caller's own rounding of the scale.
    of_scale = _SCALE_ROUNDINGS * unit + 2 * FLOAT64.unit
    errors = own + of_scale * below_max
    if rounding.scores is not None:
        # No common error cancels in the error of storing: it is that of the score as computed.
        computed = np.abs(scores) + own + of_scale * np.abs(scores)
        errors = errors + rounding.scores.unit * computed
    return np.asarray(errors + tiny, dtype=np.float64)


@implements("Attention.Spec.changedKeys")
@implements("Attention.Spec.boundedWeights")
@implements("Attention.Spec.lowTotal")
@implements("Attention.Spec.mostShare")
def bound_weights(
    q: Array,
    k: Array,
    mask: NDArray[np.bool_],
    scale: float,
    rounding: RoundingModel,
    changes: ScoreChanges,
    *,
    absolute: bool,
) -> Rows:
    """Softmax rows with their error intervals.

    absolute: a common relative error of all scores counts in full, as it does for the log-sum-exp;
    otherwise only its part that changes differences of scores counts.
    """
    unit = rounding.accumulator.unit
    products = scale * (q @ k.swapaxes(-1, -2))
    scores = _apply_changes(products, changes)
    mask = mask & (scores > -np.inf)
    tiny = score_underflow(q.shape[-1], scale, changes, rounding)
    sink_errors = np.zeros((*scores.shape[:-1], 0))
    if changes.sink is not None:
        # One more key, whose score is given.
        sink_errors = np.full((*scores.shape[:-1], 1), _sink_error(changes.sink, tiny, rounding))
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
    errors = _score_errors(q, k, products, below_max, tiny, scale, rounding)
    errors = _change_errors(errors, products, tiny, changes, rounding)
    errors = np.concatenate([errors, sink_errors], axis=-1)
    score_errors = np.where(mask, errors + _flushed_differences(blocks, rounding), 0.0)
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
    # weight is 1, up to the error of its exponentials, and so is their sum at least; and rescalings
    # may enlarge the error of a weight by as much.
    above = np.where(mask, errors - gap, 0.0).max(-1, keepdims=True, initial=0.0)
    own = np.exp((1.0 + 2.0 * blocks) * -math.log1p(-rounding.exp_error * unit))
    unit_share = np.minimum(np.exp(np.minimum(above, 700.0)) / low_total, own)
    scaled = np.where(mask, np.exp(errors - gap - above), 0.0).sum(-1, keepdims=True)
    log_error = np.where(
        above < 1.0,
        np.log1p(excess.sum(-1, keepdims=True) / total),
        above + np.log(np.where(num_keys > 0, scaled, 1.0) / total),
    )
    return Rows(
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


@dataclass(frozen=True)
class StoringErrors:
    """The errors of storing a row's weights, as shares of their sum. each, below_normal: of each
    key, [..., q_len, kv_len], all of it and the part that is at most an absolute error; unit: the
    unit roundoff; together: of all keys, [..., q_len, 1]."""

    unit: float
    each: Array
    below_normal: Array
    together: Array


@implements("Attention.Spec.storingError")
@implements("Attention.Spec.storingErrors")
def storing_errors(rows: Rows, rounding: RoundingModel) -> StoringErrors:
    """The errors of the weights as they are stored where they meet their values.

    A normal number is off by a unit roundoff of itself, a smaller one by an absolute amount, and
    neither by more than itself.
    """
    unit = 0.0 if rounding.weights is None else rounding.weights.unit
    tiny = _tiny_share(rows, rounding)
    each = np.minimum(rows.share, np.maximum(unit * rows.share, tiny)) * rows.mask
    below_normal = np.minimum(rows.share, tiny) * rows.mask
    # The weights' shares add up to 1, whatever the bounds on each are.
    once = unit + below_normal.sum(-1, keepdims=True)
    together = np.minimum(each.sum(-1, keepdims=True), once)
    return StoringErrors(unit, each, below_normal, together)


@implements("Attention.Spec.tinyShare")
def _tiny_share(rows: Rows, rounding: RoundingModel) -> Array:
    """Error of storing a weight below the normal numbers, as a share of the sum of weights."""
    if rounding.weights is None:
        return np.zeros_like(rows.unit_share)
    tiny = rounding.weights.underflow(rounding.flush_to_zero)
    if rounding.weights_normalized:
        return np.full_like(rows.unit_share, tiny)
    return np.asarray(tiny * rows.unit_share, dtype=np.float64)


@implements("Attention.Spec.underflowShare")
@implements("Attention.Spec.lostShare")
@implements("Attention.Spec.underflowCost")
def underflow_costs(rows: Rows, size: Array, rounding: RoundingModel) -> tuple[Array, Array]:
    """The underflow in the accumulators of a numerator and of a denominator, as shares of the sum
    of the weights: [..., q_len, value_dim], [..., q_len, 1]. size: of the values.

    It counts the exponentials of each weight and its product with a factor of dropout, with their
    largest errors, each product and each addition.
    """
    tiny = rounding.accumulator.smallest_normal * rows.unit_share
    whole = 3.0 ** np.minimum(rows.blocks + 2.0, _MANY_BLOCKS) * rows.share
    lost = 2.0 * np.minimum(whole, (rows.blocks + 2.0) * tiny) * rows.mask
    flushed = rows.num_keys * (rows.blocks + TINY_OPERATIONS) * tiny
    return lost @ size + flushed, lost.sum(-1, keepdims=True) + flushed
