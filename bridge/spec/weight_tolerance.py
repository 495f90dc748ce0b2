"""How far off the scores are that the weights of derivatives come from.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/WeightTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_change_tolerance import (
    ScoreChanges,
    score_changes_pair,
    score_changes_score,
    sink_error,
)
from bridge.spec.score_tolerance import ScoreFormats, magnitude, operand_underflow, score_error
from bridge.spec.softcap_tolerance import capped_change_error
from bridge.spec.tolerance import BoundedKey, Precision, absolute
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
