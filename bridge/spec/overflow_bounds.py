"""Inputs of which attention overflows nowhere.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/OverflowBounds.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_tolerance import ScoreFormats, magnitude, operand_factor
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import BoundedKey, Precision, absolute, numeral, power, smaller


@dataclass(frozen=True)
class Largest:
    """The largest numbers of the formats of a function.

    accumulator: of scores, weights, sums and quotients.

    operands: of operands that are multiplied by a part of the scale and stored.

    scores: of scores where they are stored.

    weights: of weights where they are stored for their values.

    output: of the result.

    Lean: `Attention.Spec.Largest`.
    """

    accumulator: Value
    operands: Value
    scores: Value
    weights: Value
    output: Value


def product_size(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    q: list[Value],
    k: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No part of the inner product of q and k, multiplied by `scaleQ` and `scaleK`, is larger, in
    whatever order its terms are added: they may cancel in their sum and in no partial sum.

    Lean: `Attention.Spec.productSize`.
    """
    return power(num.value(1) + p.accumulation, additions + 1, num=num) * (
        operand_factor(p, f, num=num)
        * (absolute(scale_q, num=num) * absolute(scale_k, num=num) * magnitude(q, k, d=d, num=num))
    )


def score_size(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    q: list[Value],
    k: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No score is larger: the inner product times `scale`, rounded twice and stored.

    Lean: `Attention.Spec.scoreSize`.
    """
    return (num.value(1) + f.scores) * (
        power(num.value(1) + p.unit, 2, num=num)
        * (
            absolute(scale, num=num)
            * product_size(p, f, additions, scale_q, scale_k, q, k, d=d, num=num)
        )
    )


def score_fits(
    p: Precision,
    f: ScoreFormats,
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

    Lean: `Attention.Spec.scoreFits`.
    """

    def fits(x: Value) -> Any:
        return operand_factor(p, f, num=num) * absolute(x, num=num) <= smaller(
            largest.accumulator, largest.operands
        )

    return (
        all((fits(scale_q * q[i]) and fits(scale_k * k[i]) for i in range(d)))
        and product_size(p, f, additions, scale_q, scale_k, q, k, d=d, num=num)
        <= largest.accumulator
        and (
            score_size(p, f, additions, scale_q, scale_k, scale, q, k, d=d, num=num)
            <= smaller(largest.accumulator, largest.scores)
        )
    )


def of_unmasked(key: BoundedKey, x: Value, *, num: Arithmetic) -> Value:
    """`x` for an unmasked key, and 0 for a masked one.

    Lean: `Attention.Spec.ofUnmasked`.
    """
    return num.value(0) if key.score is None else x


def weight_size(p: Precision, rescalings: int, *, num: Arithmetic) -> Value:
    """No weight is larger, however often it is rescaled and where it is stored: a weight is an
    exponential, off by its error, of a number that is not positive, and so is a rescaling.

    Lean: `Attention.Spec.weightSize`.
    """
    return power(num.value(1) + p.exponential, rescalings + 1, num=num) * (
        num.value(1) + p.stored + p.stored_tiny
    )


def value_size(row: list[BoundedKey], *, num: Arithmetic) -> Value:
    """The largest of the sizes of the values of unmasked keys.

    Lean: `Attention.Spec.valueSize`.
    """
    result = num.value(0)
    for key in row:
        result = max(result, of_unmasked(key, absolute(key.value, num=num), num=num))
    return result


def quotient_size(p: Precision, roundings: int, row: list[BoundedKey], *, num: Arithmetic) -> Value:
    """No quotient of a numerator and a denominator is larger. Storing a weight below the normal
    numbers may double it, where the denominator adds it as it was.

    Lean: `Attention.Spec.quotientSize`.
    """
    return (
        numeral(2, num=num)
        * power(
            (num.value(1) + p.accumulation) / (num.value(1) - p.accumulation),
            roundings + 6,
            num=num,
        )
        * value_size(row, num=num)
    )


def denominator_size(
    p: Precision, roundings: int, rescalings: int, row: list[BoundedKey], *, num: Arithmetic
) -> Value:
    """No denominator is larger: the weight of each key that is not masked, with all its growth.

    Lean: `Attention.Spec.denominatorSize`.
    """
    return (
        power(num.value(1) + p.accumulation, roundings + 1, num=num)
        * weight_size(p, rescalings, num=num)
        * sum_over(lambda key: of_unmasked(key, num.value(1), num=num), row, zero=num.value(0))
    )


def sums_fit(
    p: Precision,
    largest: Largest,
    roundings: int,
    rescalings: int,
    reference: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> bool:
    """The weights, sums, quotients and the result of a row are in the range, and so are
    differences of scores and reference points that are at most `reference` in size. The order
    of the sums is not known, so it is the sum of the sizes of the values that counts.

    Lean: `Attention.Spec.sumsFit`.
    """
    growth = power(num.value(1) + p.accumulation, roundings + 1, num=num)
    weight = weight_size(p, rescalings, num=num)
    return (
        numeral(2, num=num) * reference <= largest.accumulator
        and weight <= smaller(largest.accumulator, largest.weights)
        and (denominator_size(p, roundings, rescalings, row, num=num) <= largest.accumulator)
        and (
            growth
            * weight
            * sum_over(
                lambda key: of_unmasked(key, absolute(key.value, num=num), num=num),
                row,
                zero=num.value(0),
            )
            <= largest.accumulator
        )
        and (
            quotient_size(p, roundings, row, num=num)
            <= smaller(largest.accumulator, largest.output)
        )
    )


def denominator_least(p: Precision, roundings: int, rescalings: int, *, num: Arithmetic) -> Value:
    """No denominator of a row is smaller in which a score attains the reference point: its weight
    is an exponential of 0, off by its error and where it is stored.

    Lean: `Attention.Spec.denominatorLeast`.
    """
    return (
        power(num.value(1) - p.accumulation, roundings, num=num)
        * power(num.value(1) - p.exponential, rescalings, num=num)
        * ((num.value(1) - p.exponential) * (num.value(1) - p.stored) - p.stored_tiny)
    )


def log_sum_exp_size(
    p: Precision,
    roundings: int,
    rescalings: int,
    reference: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """No number is larger of which a log-sum-exp m + ln l is made: ln l is at most l and at least
    −1 / l, is off by 4 units, and up to 8 roundings grow it.

    Lean: `Attention.Spec.logSumExpSize`.
    """
    log = max(
        denominator_size(p, roundings, rescalings, row, num=num),
        num.value(1) / denominator_least(p, roundings, rescalings, num=num),
    )
    return power(num.value(1) + p.unit, 8, num=num) * (
        reference + (log + numeral(4, num=num) * p.unit * (log + num.value(1)))
    )


def log_sum_exp_fits(
    p: Precision,
    largest: Largest,
    roundings: int,
    rescalings: int,
    reference: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> bool:
    """The numbers of the log-sum-exp of a row are in the range, whose sums are.

    Lean: `Attention.Spec.logSumExpFits`.
    """
    return (
        not denominator_least(p, roundings, rescalings, num=num) <= num.value(0)
        and log_sum_exp_size(p, roundings, rescalings, reference, row, num=num)
        <= largest.accumulator
    )


def row_score_size(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    *,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> Value:
    """The largest size of a score of an unmasked key.

    Lean: `Attention.Spec.rowScoreSize`.
    """
    result = num.value(0)
    for j in range(kv_len):
        result = max(
            result,
            score_size(p, f, additions, scale_q, scale_k, scale, Q[i], K[j], d=d, num=num)
            if mask(i, j)
            else num.value(0),
        )
    return result


def output_fits(
    p: Precision,
    f: ScoreFormats,
    largest: Largest,
    additions: int,
    roundings: int,
    rescalings: int,
    scale_q: Value,
    scale_k: Value,
    scale: Value,
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
    """Of component `t` of the output of query `i` no number overflows that a function forms whose
    scores are multiplied by the scale in the parts `scaleQ`, on q, `scaleK`, on k, and `scale`.

    Lean: `Attention.Spec.outputFits`.
    """
    return all(
        (
            not mask(i, j)
            or score_fits(
                p, f, largest, additions, scale_q, scale_k, scale, Q[i], K[j], d=d, num=num
            )
            for j in range(kv_len)
        )
    ) and sums_fit(
        p,
        largest,
        roundings,
        rescalings,
        row_score_size(
            p, f, additions, scale_q, scale_k, scale, mask, Q, K, i, kv_len=kv_len, d=d, num=num
        ),
        [
            BoundedKey(
                score=num.value(0) if mask(i, j) else None, error=num.value(0), value=V[j][t]
            )
            for j in range(kv_len)
        ],
        num=num,
    )
