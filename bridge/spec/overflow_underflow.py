"""Inputs of which attention overflows nowhere, where numbers underflow.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/OverflowUnderflow.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.overflow_bounds import (
    Largest,
    denominator_least,
    of_unmasked,
    sums_fit,
    value_size,
)
from bridge.spec.score_change_tolerance import ScoreChange
from bridge.spec.score_tolerance import ScoreFormats, operand_factor
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import BoundedKey, Precision, absolute, numeral, power, smaller


def tiny_operand_size(p: Precision, f: ScoreFormats, x: Value, *, num: Arithmetic) -> Value:
    """No operand `x` is larger, multiplied by its part of the scale, where it is stored.

    Lean: `Attention.Spec.tinyOperandSize`.
    """
    return operand_factor(p, f, num=num) * (
        absolute(x, num=num) + numeral(f.roundings, num=num) * f.operands_tiny
    )


def tiny_product_size(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    scale_q: Value,
    scale_k: Value,
    q: list[Value],
    k: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No part of the inner product is larger: each product and each addition may be off by `ν`.

    Lean: `Attention.Spec.tinyProductSize`.
    """
    tiny = numeral(f.roundings, num=num) * f.operands_tiny
    return power(num.value(1) + p.accumulation, additions + 1, num=num) * sum_over(
        lambda i: (
            operand_factor(p, f, num=num)
            * (
                (absolute(scale_q * q[i], num=num) + tiny)
                * (absolute(scale_k * k[i], num=num) + tiny)
            )
            + numeral(2, num=num) * nu
        ),
        list(range(d)),
        zero=num.value(0),
    )


def tiny_stored_size(
    p: Precision, f: ScoreFormats, nu: Value, k: int, x: Value, *, num: Arithmetic
) -> Value:
    """A number of size `x`, rounded `k` times where it may be below the normal numbers, and stored
    as a score is, is no larger.

    Lean: `Attention.Spec.tinyStoredSize`.
    """
    return (num.value(1) + f.scores) * (
        power(num.value(1) + p.unit, k, num=num) * (x + numeral(k, num=num) * nu)
    ) + f.scores_tiny


def tiny_score_size(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
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
    """No score is larger.

    Lean: `Attention.Spec.tinyScoreSize`.
    """
    return tiny_stored_size(
        p,
        f,
        nu,
        2,
        absolute(scale, num=num)
        * tiny_product_size(p, f, nu, additions, scale_q, scale_k, q, k, d=d, num=num),
        num=num,
    )


def tiny_changed_size(
    p: Precision, f: ScoreFormats, nu: Value, change: ScoreChange, size: Value, *, num: Arithmetic
) -> Value:
    """No score is larger after its changes, where it is at most `size` before.

    Lean: `Attention.Spec.tinyChangedSize`.
    """
    if change.cap is None:
        capped = size
    else:
        capped = tiny_stored_size(
            p, f, nu, 3, change.cap * (num.value(1) + numeral(4, num=num) * p.unit), num=num
        )
    if change.added is None:
        return capped
    return tiny_stored_size(
        p,
        f,
        nu,
        2,
        capped + tiny_stored_size(p, f, nu, 2, absolute(change.added, num=num), num=num) + nu,
        num=num,
    )


def tiny_sink_size(
    p: Precision, f: ScoreFormats, nu: Value, sink: Value, *, num: Arithmetic
) -> Value:
    """The score of a sink is no larger.

    Lean: `Attention.Spec.tinySinkSize`.
    """
    return (
        power(num.value(1) + p.unit, 2, num=num)
        * (absolute(sink, num=num) + numeral(2, num=num) * nu)
        + f.scores_tiny
    )


def room_for_weights(p: Precision, nu: Value, *, num: Arithmetic) -> Precision:
    """A precision whose exponentials have room for what underflows of a weight: of its
    exponential, and of an addition or a rescaling.

    Lean: `Attention.Spec.roomForWeights`.
    """
    return Precision(
        unit=p.unit,
        accumulation=p.accumulation,
        exponential=p.exponential + numeral(2, num=num) * nu,
        stored=p.stored,
        stored_tiny=p.stored_tiny,
        denominator=p.denominator,
    )


def room_for_value(nu: Value, rescalings: int, key: BoundedKey, *, num: Arithmetic) -> BoundedKey:
    """A key whose value has room for what underflows where a weight meets it, in an addition and
    in each rescaling.

    Lean: `Attention.Spec.roomForValue`.
    """
    return BoundedKey(
        score=key.score,
        error=key.error,
        value=absolute(key.value, num=num) + numeral(rescalings + 3, num=num) * nu,
    )


def lost_size(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """No denominator loses more by underflow, and no numerator of values of at most 1: what a key
    loses in exponentials, products and sums, of which rescalings make up to 1 / (1 − e) each.

    Lean: `Attention.Spec.lostSize`.
    """
    return power(num.value(1) + p.accumulation, roundings + 1, num=num) * (
        numeral(3 * rescalings + 10, num=num)
        * (nu / power(num.value(1) - p.exponential, rescalings, num=num))
        * sum_over(lambda key: of_unmasked(key, num.value(1), num=num), row, zero=num.value(0))
    )


def tiny_denominator_least(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """No denominator of a row is smaller in which a score attains the reference point.

    Lean: `Attention.Spec.tinyDenominatorLeast`.
    """
    return denominator_least(p, roundings, rescalings, num=num) - lost_size(
        p, nu, roundings, rescalings, row, num=num
    )


def tiny_quotient_size(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """No quotient of a numerator and a denominator is larger: `quotientSize`, with what both lose
    as a share of the least denominator, and with five roundings of the quotient.

    Lean: `Attention.Spec.tinyQuotientSize`.
    """
    value = value_size(row, num=num)
    return (
        numeral(2, num=num)
        * power(
            (num.value(1) + p.accumulation) / (num.value(1) - p.accumulation),
            roundings + 6,
            num=num,
        )
        * (
            value
            + lost_size(p, nu, roundings, rescalings, row, num=num)
            * (numeral(2, num=num) * value + num.value(1))
            / tiny_denominator_least(p, nu, roundings, rescalings, row, num=num)
            + numeral(5, num=num) * nu
        )
    )


def tiny_sums_fit(
    p: Precision,
    nu: Value,
    largest: Largest,
    roundings: int,
    rescalings: int,
    reference: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> bool:
    """`sumsFit` where numbers underflow.

    Lean: `Attention.Spec.tinySumsFit`.
    """
    return (
        sums_fit(
            room_for_weights(p, nu, num=num),
            largest,
            roundings,
            rescalings,
            reference,
            [room_for_value(nu, rescalings, key, num=num) for key in row],
            num=num,
        )
        and (not tiny_denominator_least(p, nu, roundings, rescalings, row, num=num) <= num.value(0))
        and (
            tiny_quotient_size(p, nu, roundings, rescalings, row, num=num)
            <= smaller(largest.accumulator, largest.output)
        )
    )
