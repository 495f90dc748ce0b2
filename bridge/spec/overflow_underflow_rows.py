"""Rows of which attention overflows nowhere, where numbers underflow.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/OverflowUnderflowRows.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.overflow_bounds import Largest
from bridge.spec.overflow_changes import score_changes_bounded_columns, score_changes_sees
from bridge.spec.overflow_underflow import (
    tiny_changed_size,
    tiny_operand_size,
    tiny_product_size,
    tiny_score_size,
    tiny_sink_size,
    tiny_sums_fit,
)
from bridge.spec.score_change_tolerance import (
    ScoreChange,
    ScoreChanges,
    column_value,
    score_changes_columns,
    score_changes_pair,
)
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import Precision, numeral, power, smaller


def tiny_score_fits(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    largest: Largest,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    q: list[Value],
    k: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> bool:
    """The operands, the parts of the inner product and the score of `q` and `k` are in the range.

    Lean: `Attention.Spec.tinyScoreFits`.
    """

    def fits(x: Value) -> Any:
        return tiny_operand_size(p, f, x, num=num) <= smaller(largest.accumulator, largest.operands)

    return (
        all((fits(scale_q * q[i]) and fits(scale_k * k[i]) for i in range(d)))
        and tiny_product_size(p, f, nu, additions, scale_q, scale_k, q, k, d=d, num=num)
        <= largest.accumulator
        and (
            tiny_score_size(p, f, nu, additions, scale_q, scale_k, scale, q, k, d=d, num=num)
            <= smaller(largest.accumulator, largest.scores)
        )
    )


def tiny_change_fits(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    largest: Largest,
    change: ScoreChange,
    size: Value,
    *,
    num: Arithmetic,
) -> bool:
    """All numbers of the changes of a score that is at most `size` before are in the range.

    Lean: `Attention.Spec.tinyChangeFits`.
    """
    return tiny_changed_size(p, f, nu, change, size, num=num) <= smaller(
        largest.accumulator, largest.scores
    ) and (
        True
        if change.cap is None
        else num.value(1) <= largest.accumulator
        and power(num.value(1) + p.unit, 3, num=num)
        * (size / change.cap + numeral(3, num=num) * nu)
        <= largest.accumulator
    )


def score_changes_tiny_size(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    changes: ScoreChanges,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """The computed score of a column of query `i` is no larger.

    Lean: `Attention.Spec.ScoreChanges.tinySize`.
    """
    if col is None:
        if changes.sink is None:
            return num.value(0)
        return tiny_sink_size(p, f, nu, changes.sink, num=num)
    return tiny_changed_size(
        p,
        f,
        nu,
        score_changes_pair(changes, i, col),
        tiny_score_size(p, f, nu, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num),
        num=num,
    )


def score_changes_tiny_fits(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    largest: Largest,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    changes: ScoreChanges,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> bool:
    """All numbers from which the score of a column of query `i` is made are in the range.

    Lean: `Attention.Spec.ScoreChanges.tinyFits`.
    """
    if col is None:
        if changes.sink is None:
            return True
        return tiny_sink_size(p, f, nu, changes.sink, num=num) <= largest.accumulator
    return tiny_score_fits(
        p, f, nu, largest, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num
    ) and tiny_change_fits(
        p,
        f,
        nu,
        largest,
        score_changes_pair(changes, i, col),
        tiny_score_size(p, f, nu, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num),
        num=num,
    )


def score_changes_tiny_row_size(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    changes: ScoreChanges,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> Value:
    """The largest size of a score of a column that query `i` sees.

    Lean: `Attention.Spec.ScoreChanges.tinyRowSize`.
    """
    result = num.value(0)
    for col in score_changes_columns(changes, kv_len=kv_len):
        result = max(
            result,
            score_changes_tiny_size(
                p, f, nu, additions, scale_q, scale_k, scale, changes, Q, K, i, col, d=d, num=num
            )
            if score_changes_sees(changes, mask, i, col)
            else num.value(0),
        )
    return result


def score_changes_tiny_row_fits(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    largest: Largest,
    additions: int,
    roundings: int,
    rescalings: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    changes: ScoreChanges,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    value: Callable[[int | None], Value],
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> bool:
    """No number overflows of the row of query `i`, in which the weight of a column meets a value
    of the size `value` at most.

    Lean: `Attention.Spec.ScoreChanges.tinyRowFits`.
    """
    return all(
        (
            not score_changes_sees(changes, mask, i, col)
            or score_changes_tiny_fits(
                p,
                f,
                nu,
                largest,
                additions,
                scale_q,
                scale_k,
                scale,
                changes,
                Q,
                K,
                i,
                col,
                d=d,
                num=num,
            )
            for col in score_changes_columns(changes, kv_len=kv_len)
        )
    ) and tiny_sums_fit(
        p,
        nu,
        largest,
        roundings,
        rescalings,
        score_changes_tiny_row_size(
            p,
            f,
            nu,
            additions,
            scale_q,
            scale_k,
            scale,
            changes,
            mask,
            Q,
            K,
            i,
            kv_len=kv_len,
            d=d,
            num=num,
        ),
        score_changes_bounded_columns(changes, mask, i, value, kv_len=kv_len, num=num),
        num=num,
    )


def score_changes_tiny_output_fits(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    largest: Largest,
    additions: int,
    roundings: int,
    rescalings: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    changes: ScoreChanges,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    i: int,
    t: int,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> bool:
    """Of component `t` of the output of query `i` no number overflows.

    Lean: `Attention.Spec.ScoreChanges.tinyOutputFits`.
    """
    return score_changes_tiny_row_fits(
        p,
        f,
        nu,
        largest,
        additions,
        roundings,
        rescalings,
        scale_q,
        scale_k,
        scale,
        changes,
        mask,
        Q,
        K,
        i,
        lambda col: column_value(V, t, col, num=num),
        kv_len=kv_len,
        d=d,
        num=num,
    )
