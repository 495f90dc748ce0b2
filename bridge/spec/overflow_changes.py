"""Inputs of which attention with changed scores and dropout overflows nowhere.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/OverflowChanges.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.overflow_bounds import (
    Largest,
    log_sum_exp_fits,
    score_fits,
    score_size,
    sums_fit,
    weight_size,
)
from bridge.spec.score_change_tolerance import (
    ScoreChange,
    ScoreChanges,
    column_value,
    score_changes_columns,
    score_changes_pair,
)
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import BoundedKey, Precision, absolute, numeral, power, smaller


def stored_size(p: Precision, f: ScoreFormats, x: Value, *, num: Arithmetic) -> Value:
    """A number of size `x`, rounded twice and stored as a score is, is no larger.

    Lean: `Attention.Spec.storedSize`.
    """
    return (num.value(1) + f.scores) * (power(num.value(1) + p.unit, 2, num=num) * x)


def capped_size(p: Precision, f: ScoreFormats, cap: Value, *, num: Arithmetic) -> Value:
    """No score is larger after softcap: a tanh is at most 1, off by 4 roundings, and is multiplied
    by the cap, rounded up to 3 times and stored.

    Lean: `Attention.Spec.cappedSize`.
    """
    return (num.value(1) + f.scores) * (
        power(num.value(1) + p.unit, 3, num=num)
        * (cap * (num.value(1) + numeral(4, num=num) * p.unit))
    )


def changed_size(
    p: Precision, f: ScoreFormats, change: ScoreChange, size: Value, *, num: Arithmetic
) -> Value:
    """No score is larger after its changes, where it is at most `size` before.

    Lean: `Attention.Spec.changedSize`.
    """
    capped = size if change.cap is None else capped_size(p, f, change.cap, num=num)
    if change.added is None:
        return capped
    return stored_size(
        p, f, capped + stored_size(p, f, absolute(change.added, num=num), num=num), num=num
    )


def sink_size(p: Precision, sink: Value, *, num: Arithmetic) -> Value:
    """The score of a sink, rounded twice, is no larger.

    Lean: `Attention.Spec.sinkSize`.
    """
    return power(num.value(1) + p.unit, 2, num=num) * absolute(sink, num=num)


def change_fits(
    p: Precision,
    f: ScoreFormats,
    largest: Largest,
    change: ScoreChange,
    size: Value,
    *,
    num: Arithmetic,
) -> bool:
    """All numbers of the changes of a score that is at most `size` before are in the range.

    Lean: `Attention.Spec.changeFits`.
    """
    return changed_size(p, f, change, size, num=num) <= smaller(
        largest.accumulator, largest.scores
    ) and (
        True
        if change.cap is None
        else num.value(1) <= largest.accumulator
        and power(num.value(1) + p.unit, 3, num=num) * (size / change.cap) <= largest.accumulator
    )


def score_changes_sees(changes: ScoreChanges, mask: Mask, i: int, col: int | None) -> bool:
    """Whether query `i` sees a column: a key, or (`none`) the sink.

    Lean: `Attention.Spec.ScoreChanges.sees`.
    """
    if col is None:
        return changes.sink is not None
    return mask(i, col) and (True if changes.added is None else changes.added[i][col] is not None)


def score_changes_size(
    p: Precision,
    f: ScoreFormats,
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

    Lean: `Attention.Spec.ScoreChanges.size`.
    """
    if col is None:
        if changes.sink is None:
            return num.value(0)
        return sink_size(p, changes.sink, num=num)
    return changed_size(
        p,
        f,
        score_changes_pair(changes, i, col),
        score_size(p, f, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num),
        num=num,
    )


def score_changes_fits(
    p: Precision,
    f: ScoreFormats,
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

    Lean: `Attention.Spec.ScoreChanges.fits`.
    """
    if col is None:
        if changes.sink is None:
            return True
        return sink_size(p, changes.sink, num=num) <= largest.accumulator
    return score_fits(
        p, f, largest, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num
    ) and change_fits(
        p,
        f,
        largest,
        score_changes_pair(changes, i, col),
        score_size(p, f, additions, scale_q, scale_k, scale, Q[i], K[col], d=d, num=num),
        num=num,
    )


def score_changes_row_size(
    p: Precision,
    f: ScoreFormats,
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

    Lean: `Attention.Spec.ScoreChanges.rowSize`.
    """
    result = num.value(0)
    for col in score_changes_columns(changes, kv_len=kv_len):
        result = max(
            result,
            score_changes_size(
                p, f, additions, scale_q, scale_k, scale, changes, Q, K, i, col, d=d, num=num
            )
            if score_changes_sees(changes, mask, i, col)
            else num.value(0),
        )
    return result


def score_changes_bounded_columns(
    changes: ScoreChanges,
    mask: Mask,
    i: int,
    value: Callable[[int | None], Value],
    *,
    kv_len: int,
    num: Arithmetic,
) -> list[BoundedKey]:
    """The columns of query `i` as `sumsFit` sees them, which of their scores only asks if they are
    seen.

    Lean: `Attention.Spec.ScoreChanges.boundedColumns`.
    """
    return [
        BoundedKey(
            score=num.value(0) if score_changes_sees(changes, mask, i, col) else None,
            error=num.value(0),
            value=value(col),
        )
        for col in score_changes_columns(changes, kv_len=kv_len)
    ]


def score_changes_row_fits(
    p: Precision,
    f: ScoreFormats,
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
    of the size `value` at most, of a function whose scores are changed and are multiplied by
    the scale in the parts `scaleQ`, on q, `scaleK`, on k, and `scale`.

    Lean: `Attention.Spec.ScoreChanges.rowFits`.
    """
    return all(
        (
            not score_changes_sees(changes, mask, i, col)
            or score_changes_fits(
                p,
                f,
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
    ) and sums_fit(
        p,
        largest,
        roundings,
        rescalings,
        score_changes_row_size(
            p,
            f,
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


def score_changes_output_fits(
    p: Precision,
    f: ScoreFormats,
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

    Lean: `Attention.Spec.ScoreChanges.outputFits`.
    """
    return score_changes_row_fits(
        p,
        f,
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


def score_changes_log_sum_exp_fits(
    p: Precision,
    f: ScoreFormats,
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
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> bool:
    """The numbers of the log-sum-exp of query `i` are in the range, those of whose row are.

    Lean: `Attention.Spec.ScoreChanges.logSumExpFits`.
    """
    return log_sum_exp_fits(
        p,
        largest,
        roundings,
        rescalings,
        score_changes_row_size(
            p,
            f,
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
        score_changes_bounded_columns(
            changes, mask, i, lambda _x: num.value(0), kv_len=kv_len, num=num
        ),
        num=num,
    )


def factor_size(p: Precision, q: Value, *, num: Arithmetic) -> Value:
    """No factor of dropout with probability `q` is larger: the probability, one minus it and, four
    times, the quotient are rounded.

    Lean: `Attention.Spec.factorSize`.
    """
    return power(num.value(1) + p.accumulation, 4, num=num) * (
        num.value(1)
        / ((num.value(1) - q * (num.value(1) + p.accumulation)) * (num.value(1) - p.accumulation))
    )


def dropped_size(p: Precision, q: Value, keep: bool, v: Value, *, num: Arithmetic) -> Value:
    """No value `v` is larger, multiplied by its factor of dropout and rounded.

    Lean: `Attention.Spec.droppedSize`.
    """
    if keep:
        return (num.value(1) + p.accumulation) * (factor_size(p, q, num=num) * absolute(v, num=num))
    return num.value(0)


def dropped_weight_fits(
    p: Precision,
    largest: Largest,
    rescalings: int,
    q: Value,
    keep: bool,
    v: Value,
    *,
    num: Arithmetic,
) -> bool:
    """A weight that is multiplied by its factor of dropout before it meets the value `v`, and
    their product, are in the range.

    Lean: `Attention.Spec.droppedWeightFits`.
    """
    return (
        not num.value(1) <= q * (num.value(1) + p.accumulation)
        and num.value(1) <= largest.accumulator
        and (factor_size(p, q, num=num) <= largest.accumulator)
        and (dropped_size(p, q, keep, v, num=num) <= largest.accumulator)
        and (
            weight_size(p, rescalings, num=num) * factor_size(p, q, num=num)
            <= smaller(largest.accumulator, largest.weights)
        )
        and (
            weight_size(p, rescalings, num=num) * dropped_size(p, q, keep, v, num=num)
            <= largest.accumulator
        )
    )


def score_changes_dropped_fits(
    p: Precision,
    f: ScoreFormats,
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
    q: Value,
    keep: Mask,
    i: int,
    t: int,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> bool:
    """With dropout of probability `q`, whose factors are multiplied with the values, no number
    overflows of component `t` of the output of query `i`, or of the products with the values.

    Lean: `Attention.Spec.ScoreChanges.droppedFits`.
    """
    return (
        not num.value(1) <= q * (num.value(1) + p.accumulation)
        and factor_size(p, q, num=num) <= largest.accumulator
        and all(
            (
                dropped_size(p, q, keep(i, j), V[j][t], num=num) <= largest.accumulator
                for j in range(kv_len)
            )
        )
        and score_changes_row_fits(
            p,
            f,
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
            lambda col: (
                num.value(0)
                if col is None
                else dropped_size(p, q, keep(i, col), V[col][t], num=num)
            ),
            kv_len=kv_len,
            d=d,
            num=num,
        )
    )
