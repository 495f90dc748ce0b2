"""How far computed gradients may be from the exact ones: the bound of one query head, per element,
from its inputs and a precision profile, and the sum over the heads that share keys and values.

The derivation of every term is in `docs/allowances.md`, "Gradients": derived, not yet proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.conformance.allowance import (
    _EVALUATION,
    _SCALE_ROUNDINGS,
    _SOFTCAP_ROUNDINGS,
    NO_CHANGES,
    Array,
    ScoreChanges,
    _gamma,
    _rows,
    attention_allowance,
    lse_allowance,
)
from bridge.conformance.profile import FLOAT64, Format, Profile

# s − L: the subtraction, and a change of base of each.
_DIFFERENCE_ROUNDINGS = 3
# dP − D + dL, and the product with P.
_SCORE_GRADIENT_ROUNDINGS = 4


@dataclass(frozen=True)
class Head:
    """What one query head adds, and how far each number may be off before it is rounded to the
    output's format.

    query [q_len, head_dim], key [kv_len, head_dim], value [kv_len, value_dim], scores [q_len,
    kv_len] (by an added bias): exact magnitudes; off_…: bounds of their errors.
    """

    query: Array
    key: Array
    value: Array
    scores: Array
    off_query: Array
    off_key: Array
    off_value: Array
    off_scores: Array


def of_head(
    q: Array,
    k: Array,
    v: Array,
    grad_out: Array,
    grad_lse: Array,
    *,
    scale: float,
    mask: NDArray[np.bool_],
    profile: Profile,
    changes: ScoreChanges = NO_CHANGES,
) -> Head:
    """The bounds of one query head.

    q [q_len, head_dim], k [kv_len, head_dim], v [kv_len, value_dim], mask [q_len, kv_len]: as for
    `attention_allowance`; grad_out [q_len, value_dim], grad_lse [q_len], by the log-sum-exp in base
    e.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return _of_head(q, k, v, grad_out, grad_lse, scale, mask, profile, changes)


def _of_head(
    q: Array,
    k: Array,
    v: Array,
    grad_out: Array,
    grad_lse: Array,
    scale: float,
    mask: NDArray[np.bool_],
    profile: Profile,
    changes: ScoreChanges,
) -> Head:
    unit, sums, least = (
        profile.accumulator.unit,
        profile.accumulation_unit,
        profile.accumulator.smallest_normal,
    )
    asked: dict[str, Any] = {
        "scale": scale, "mask": mask, "profile": profile, "changes": changes,
    }  # fmt: skip
    keys, value_dim = v.shape
    rows = _rows(q, k, mask, scale, profile, changes, absolute=True)
    seen = rows.mask[:, :keys]
    weights, excess = rows.weights[:, :keys], rows.excess[:, :keys]
    p = np.where(seen, weights / rows.total, 0.0)

    # P = exp(s − L): errors of the score, of the log-sum-exp, and of their difference.
    gap = np.where(seen, -np.log(np.where(weights > 0, weights, 1.0)), 0.0)
    lse = np.where(rows.empty, 0.0, rows.maximum + np.log(rows.total))
    off_lse = lse_allowance(q, k, **asked)[:, None]
    off_lse = off_lse + unit * (_DIFFERENCE_ROUNDINGS * np.abs(lse) + gap + np.log(rows.total))
    off_p = np.where(seen, (weights + excess) / rows.total * np.exp(off_lse) - p, 0.0)
    off_p = off_p + np.minimum(p + off_p, least)
    off_stored_p = off_p + _stored(p + off_p, profile.weights, profile)
    # Where the weights are normalised before they are stored, dS is made of the stored ones.
    off_p = off_stored_p if profile.weights_normalized else off_p
    high_p = p + off_p

    # dP = dO Vᵀ
    grad_p, size = grad_out @ v.T, np.abs(grad_out) @ np.abs(v).T
    off_grad_p = _gamma(np.array(value_dim + 1.0), sums) * size + value_dim * least
    off_grad_p = off_grad_p + _stored(np.abs(grad_p) + off_grad_p, profile.scores, profile)

    # D = rowsum(dO ∘ O), with the saved O; or rowsum(P ∘ dP), as the Jacobian of softmax has it.
    out = p @ v
    off_out = attention_allowance(q, k, v, **asked)
    delta = (grad_out * out).sum(-1, keepdims=True)
    by_out = (np.abs(grad_out) * off_out).sum(-1, keepdims=True)
    by_out = by_out + _gamma(np.array(value_dim + 1.0), unit) * (
        np.abs(grad_out) * (np.abs(out) + off_out)
    ).sum(-1, keepdims=True)
    by_p = (off_p * np.abs(grad_p) + high_p * off_grad_p).sum(-1, keepdims=True)
    by_p = by_p + _gamma(rows.num_keys + 1, unit) * (high_p * (np.abs(grad_p) + off_grad_p)).sum(
        -1, keepdims=True
    )
    off_delta = np.maximum(by_out, by_p) + (value_dim + rows.num_keys) * least

    # dS = P ∘ (dP − D + dL)
    inner = grad_p - delta + grad_lse[:, None]
    sizes = np.abs(grad_p) + off_grad_p + np.abs(delta) + off_delta + np.abs(grad_lse)[:, None]
    off_inner = off_grad_p + off_delta + _SCORE_GRADIENT_ROUNDINGS * unit * sizes
    grad_s = p * inner
    off_s = off_p * (np.abs(inner) + off_inner) + p * off_inner + 2 * least
    grad_x, off_x = _through_softcap(q, k, v, grad_s, off_s, scale, rows.excess, weights, profile,
                                     changes)  # fmt: skip
    for stored in (profile.weights, profile.scores):
        off_x = off_x + _stored(np.abs(grad_x) + off_x, stored, profile)
    off_s, off_x = np.where(seen, off_s, 0.0), np.where(seen, off_x, 0.0)

    # dV = Pᵀ dO, dQ = scale·dX K, dK = scale·dXᵀ Q
    per_query, per_key = seen.sum(-1)[:, None], seen.sum(0)[:, None]
    relative, tiny = _of_operands(profile)
    root = math.sqrt(abs(scale))

    def product(x: Array, off: Array, y: Array, terms: Array) -> tuple[Array, Array]:
        """scale·x y with x off by `off`, of so many terms: exactly, and its error."""
        grown = (1.0 + _gamma(terms + 4.0, sums)) * (1.0 + relative) - 1.0
        size = (np.abs(x) + off) @ np.abs(y)
        lost = (np.abs(x) + off).sum(-1, keepdims=True) * tiny * max(1.0, root)
        lost = lost + (terms + 2) * least
        error = abs(scale) * (off @ np.abs(y) + grown * size) + max(1.0, root) * lost + root * tiny
        return np.abs(scale * (x @ y)), np.where(terms > 0, error, 0.0)

    query, off_query = product(grad_x, off_x, k, per_query)
    key, off_key = product(grad_x.T, off_x.T, q, per_key)
    high = (p + off_stored_p).T @ np.abs(grad_out)
    off_value = off_stored_p.T @ np.abs(grad_out) + _gamma(per_key + 2.0, sums) * high
    off_value = np.where(per_key > 0, off_value + (per_key + 2) * least, 0.0)
    return Head(
        query=query,
        key=key,
        value=np.abs(p.T @ grad_out),
        scores=np.abs(grad_s),
        off_query=off_query,
        off_key=off_key,
        off_value=off_value,
        off_scores=off_s,
    )


def _stored(size: Array, kept: Format | None, profile: Profile) -> Array:
    """Error of storing numbers of at most this size in a format; 0 for None."""
    if kept is None:
        return np.zeros_like(size)
    least = kept.underflow(profile.flush_to_zero)
    return np.asarray(np.minimum(size, np.maximum(kept.unit * size, least)))


def _of_operands(profile: Profile) -> tuple[float, float]:
    """The relative error of scale·K or scale·Q as a factor of a product, and an absolute one of an
    operand below the normal numbers."""
    relative = _SCALE_ROUNDINGS * profile.accumulator.unit + 2 * FLOAT64.unit
    if profile.operands is None:
        return relative, 0.0
    # One more than forwards: the product itself, before the second root of the scale.
    rounded = (1.0 + profile.operands.unit) ** (profile.operand_roundings + 1)
    tiny = profile.operands.underflow(profile.flush_to_zero)
    return (1.0 + relative) * rounded - 1.0, tiny


def _through_softcap(
    q: Array,
    k: Array,
    v: Array,
    grad_s: Array,
    off_s: Array,
    scale: float,
    excess: Array,
    weights: Array,
    profile: Profile,
    changes: ScoreChanges,
) -> tuple[Array, Array]:
    """dX = dS·(1 − tanh²(x / cap)), and its error; dS itself without a softcap."""
    if changes.softcap is None:
        return grad_s, off_s
    unit = profile.accumulator.unit
    tanh = np.tanh(scale * (q @ k.T) / changes.softcap)
    slope = 1.0 - tanh**2
    # What the weight's logarithm is off by is at least what the capped score is off by.
    keys = v.shape[0]
    off_score = np.log1p(excess[:, :keys] / np.where(weights > 0, weights, 1.0))
    off_tanh = off_score / changes.softcap + _SOFTCAP_ROUNDINGS * unit
    off_slope = 2 * np.abs(tanh) * off_tanh + off_tanh**2 + 3 * unit
    off = off_s * (slope + off_slope) + np.abs(grad_s) * off_slope
    return grad_s * slope, off + unit * (np.abs(grad_s) + off_s)


def rounded(
    parts: Sequence[tuple[Array, Array]], exact: Array, profile: Profile, *, shared: bool
) -> Array:
    """How far the sum of some parts may be off in the output's format. parts: magnitude and error
    of each; exact: the sum. shared: the parts are those of several heads, which a function may
    round one by one before it adds them. 0 where no part may be off at all."""
    unit, tiny = profile.output.unit, profile.output.underflow(profile.flush_to_zero)
    error = sum((off for _, off in parts), np.zeros_like(exact))
    touched = error > 0
    if shared:
        size = sum((np.abs(x) + off for x, off in parts), np.zeros_like(exact))
        added = _gamma(np.array(float(len(parts))), profile.accumulation_unit) * size
        error = error + unit * size + len(parts) * tiny + added
    error = error + unit * (np.abs(exact) + error) + tiny
    # The exact number is itself rounded to float64, after a product.
    error = error + 2 * FLOAT64.unit * np.abs(exact)
    return np.asarray(np.where(touched, error * _EVALUATION, 0.0))
