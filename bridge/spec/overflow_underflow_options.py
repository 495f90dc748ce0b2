"""Log-sum-exps and dropout that overflow nowhere, where numbers underflow.

Written by `.venv/bin/python -m bridge translate` from
`Attention/Spec/OverflowUnderflowOptions.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.overflow_bounds import Largest, denominator_size
from bridge.spec.overflow_changes import dropped_size, factor_size, score_changes_bounded_columns
from bridge.spec.overflow_underflow import room_for_weights, tiny_denominator_least
from bridge.spec.overflow_underflow_rows import (
    score_changes_tiny_row_fits,
    score_changes_tiny_row_size,
)
from bridge.spec.score_change_tolerance import ScoreChanges
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import BoundedKey, Precision, numeral, power


def tiny_log_sum_exp_size(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    reference: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """No number is larger of which a log-sum-exp is made: `logSumExpSize` of the bounds of a
    denominator that underflows, with up to eight products and a sum that underflow by `ν`.

    Lean: `Attention.Spec.tinyLogSumExpSize`.
    """
    log = max(
        denominator_size(room_for_weights(p, nu, num=num), roundings, rescalings, row, num=num),
        num.value(1) / tiny_denominator_least(p, nu, roundings, rescalings, row, num=num),
    )
    return power(num.value(1) + p.unit, 8, num=num) * (
        reference
        + (log + numeral(4, num=num) * p.unit * (log + num.value(1)))
        + numeral(9, num=num) * nu
    )


def score_changes_tiny_log_sum_exp_fits(
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
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> bool:
    """The numbers of the log-sum-exp of query `i` are in the range, those of whose row are.

    Lean: `Attention.Spec.ScoreChanges.tinyLogSumExpFits`.
    """
    return (
        tiny_log_sum_exp_size(
            p,
            nu,
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
            score_changes_bounded_columns(
                changes, mask, i, lambda _x: num.value(0), kv_len=kv_len, num=num
            ),
            num=num,
        )
        <= largest.accumulator
    )


def score_changes_tiny_dropped_fits(
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

    Lean: `Attention.Spec.ScoreChanges.tinyDroppedFits`.
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
        and score_changes_tiny_row_fits(
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
