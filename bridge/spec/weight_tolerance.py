"""How far off the scores are that the weights of derivatives come from.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/WeightTolerance.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.gradient_tolerance import recomputed_error
from bridge.spec.score_change_tolerance import (
    ScoreChanges,
    score_changes_columns,
    score_changes_formats,
    score_changes_pair,
    score_changes_score,
    sink_error,
)
from bridge.spec.score_tolerance import ScoreFormats, magnitude, operand_underflow, score_error
from bridge.spec.slopes import score_slope_one, score_slope_softcap
from bridge.spec.softcap_tolerance import capped_change_error, capped_slope_error
from bridge.spec.tolerance import BoundedKey, Precision, absolute, largest_error, numeral
from bridge.spec.underflow_tolerance import bounded_key_flushed, underflow_log_sum_exp_tolerance
from bridge.spec.vector import vec_dot


def score_changes_capped_error(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    changes: ScoreChanges,
    scale: Value,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """How far the computed score of a column may be off, of which nothing cancels, and softcap
    leaves no more than it may.

    Lean: `Attention.Spec.ScoreChanges.cappedError`.
    """
    if col is None:
        if changes.sink is None:
            return num.value(0)
        return sink_error(p, f, changes.sink, num=num)
    s = scale * vec_dot(Q[i], K[col], d=d, zero=num.value(0))
    return capped_change_error(
        p,
        f,
        score_changes_pair(changes, i, col),
        s,
        score_error(
            p,
            f,
            additions,
            scale,
            magnitude(Q[i], K[col], d=d, num=num),
            operand_underflow(p, f, additions, Q[i], K[col], d=d, num=num),
            s,
            absolute(s, num=num),
            num=num,
        ),
        num=num,
    )


def capped_key(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    value: Value,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> BoundedKey:
    """A column of query `i` as the tolerance of its log-sum-exp sees it then, with any value.

    Lean: `Attention.Spec.cappedKey`.
    """
    return BoundedKey(
        score=score_changes_score(changes, scale, mask, Q, K, i, col, d=d, num=num),
        error=score_changes_capped_error(
            p, f, additions, changes, scale, Q, K, i, col, d=d, num=num
        ),
        value=value,
    )


def weight_row(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    rescalings: int,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> list[BoundedKey]:
    """All columns of query `i` as that tolerance sees them where numbers underflow by `ν` and
    there are at most `rescalings` rescalings. Their values do not matter to it.

    Lean: `Attention.Spec.weightRow`.
    """
    return [
        bounded_key_flushed(
            nu,
            rescalings,
            capped_key(
                p,
                score_changes_formats(changes, p, f, nu, additions, d, scale, num=num),
                additions,
                changes,
                scale,
                mask,
                Q,
                K,
                i,
                num.value(0),
                col,
                d=d,
                num=num,
            ),
            num=num,
        )
        for col in score_changes_columns(changes, kv_len=kv_len)
    ]


def pass_weight_error(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    rescalings: int,
    L: Value,
    M: Value,
    E: Value,
    col: int | None,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> Value:
    """ε: how far the weight of a column may be off, as a share of itself, whether a forward pass
    makes it for an output or another pass computes it again. The query has the log-sum-exp `L`
    and the largest score `M`, and e^E is the factor of `underflowLogSumExpFactor`.

    Lean: `Attention.Spec.passWeightError`.
    """
    s = score_changes_score(changes, scale, mask, Q, K, i, col, d=d, num=num)
    if s is None:
        return num.value(0)
    row = weight_row(
        p, f, nu, additions, changes, scale, mask, Q, K, i, rescalings, kv_len=kv_len, d=d, num=num
    )
    return recomputed_error(
        p.unit,
        nu,
        p.exponential,
        s,
        L,
        score_changes_capped_error(
            p,
            score_changes_formats(changes, p, f, nu, additions, d, scale, num=num),
            additions,
            changes,
            scale,
            Q,
            K,
            i,
            col,
            d=d,
            num=num,
        )
        + numeral(rescalings + 1, num=num) * nu,
        underflow_log_sum_exp_tolerance(p, nu, E, L - M, M, largest_error(row, num=num), num=num),
        num=num,
    )


def score_changes_slope(
    changes: ScoreChanges, *, num: Arithmetic
) -> Callable[[int, int, Value], Value]:
    """The slope of the changes: that of softcap.

    Lean: `Attention.Spec.ScoreChanges.slope`.
    """
    if changes.cap is None:
        return score_slope_one(num=num)
    return score_slope_softcap(changes.cap, num=num)


def score_changes_slope_error(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    changes: ScoreChanges,
    scale: Value,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    j: int,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """How far the slope of query `i` and key `j` may be off.

    Lean: `Attention.Spec.ScoreChanges.slopeError`.
    """
    if changes.cap is None:
        return num.value(0)
    f_1 = score_changes_formats(changes, p, f, nu, additions, d, scale, num=num)
    s = scale * vec_dot(Q[i], K[j], d=d, zero=num.value(0))
    return capped_slope_error(
        p.unit,
        nu,
        changes.cap,
        s,
        score_error(
            p,
            f_1,
            additions,
            scale,
            magnitude(Q[i], K[j], d=d, num=num),
            operand_underflow(p, f_1, additions, Q[i], K[j], d=d, num=num),
            s,
            absolute(s, num=num),
            num=num,
        ),
        num=num,
    )
