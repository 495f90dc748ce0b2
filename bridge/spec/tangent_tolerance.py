"""Tolerances of tangents.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TangentTolerance.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_tolerance import ScoreFormats, magnitude, operand_factor
from bridge.spec.softmax import denominator, weight
from bridge.spec.sum import sum_over
from bridge.spec.tangent import score_tangent
from bridge.spec.tolerance import Precision, absolute, numeral, power
from bridge.spec.vector import vec_dot


@dataclass(frozen=True)
class BoundedRate:
    """A key of a row that changes, and one component of its value.

    weight: its exact weight p, 0 if it is masked.

    weightError: how far the computed weight may be off, as a share of it: ε.

    stored: unit roundoff of the format in which its weight, and the product of that with a
    rate, are stored; 0 if they are not, as of a sink.

    tiny: how far off numbers below the normal ones may be: the weight, as it is computed and as
    it is stored, and a product with it; 0 if it is masked.

    flushed: ν: how far off, below the normal numbers, a sum may be in which it is, the product
    of this sum with a number, and a factor by which the sum is rescaled; 0 if it is masked.

    rate: the rate ṡ at which its score changes.

    size: s: |ṡ| at least, where more is known of its terms their sizes.

    rateError: how far the computed rate may be off: δ.

    value: one component of its value.

    valueRate: the rate at which that changes.

    Lean: `Attention.Spec.BoundedRate`.
    """

    weight: Value
    weight_error: Value
    stored: Value
    tiny: Value
    flushed: Value
    rate: Value
    size: Value
    rate_error: Value
    value: Value
    value_rate: Value


def bounded_rate(
    row: list[ScoredValue],
    c: int,
    weight_error: Value,
    stored: Value,
    tiny: Value,
    flushed: Value,
    size: Value,
    rate_error: Value,
    x: ScoredValue,
    *,
    num: Arithmetic,
) -> BoundedRate:
    """Key `x` of a row that changes, and component `c` of its value; the other numbers are how far
    what is computed may be off.

    Lean: `Attention.Spec.boundedRate`.
    """
    return BoundedRate(
        weight=weight(None if x.score is None else x.score.val, num=num)
        / denominator([None if y.score is None else y.score.val for y in row], num=num),
        weight_error=weight_error,
        stored=stored,
        tiny=tiny,
        flushed=flushed,
        rate=score_tangent(x.score, num=num),
        size=size,
        rate_error=rate_error,
        value=x.value[c].val,
        value_rate=x.value[c].der,
    )


def mean_rate(keys: list[BoundedRate], *, num: Arithmetic) -> Value:
    """μ: the mean rate of the scores, by the weights.

    Lean: `Attention.Spec.meanRate`.
    """
    return sum_over(lambda k: k.weight * k.rate, keys, zero=num.value(0))


def output_rate(keys: list[BoundedRate], *, num: Arithmetic) -> Value:
    """ȯ: the rate of the component, Σ p ṡ v − μ Σ p v + Σ p v̇.

    Lean: `Attention.Spec.outputRate`.
    """
    return (
        sum_over(lambda k: k.weight * k.rate * k.value, keys, zero=num.value(0))
        - mean_rate(keys, num=num) * sum_over(lambda k: k.weight * k.value, keys, zero=num.value(0))
        + sum_over(lambda k: k.weight * k.value_rate, keys, zero=num.value(0))
    )


def rate_factor(p: Precision, roundings: int, rescalings: int, *, num: Arithmetic) -> Value:
    """The roundings, as one factor, of the weight of a key on its way into a sum, beside its
    stores: five operations on scores and weights, as a difference of rates and a product with a
    weight, and `roundings` and `rescalings` of sums.

    Lean: `Attention.Spec.rateFactor`.
    """
    return (
        power(num.value(1) + p.unit, 5, num=num)
        * power(num.value(1) + p.accumulation, roundings, num=num)
        * power(num.value(1) + p.exponential, rescalings, num=num)
    )


def weighed_loss(
    losses: int,
    size: Callable[[BoundedRate], Value],
    error: Callable[[BoundedRate], Value],
    other: Callable[[BoundedRate], Value],
    keys: list[BoundedRate],
    *,
    num: Arithmetic,
) -> Value:
    """The error that numbers below the normal ones add to a sum of weights times rates times
    `other`: of a weight, of its product with a rate, and of that with `other`; and up to
    `losses` times ν, as of sums and of products of sums, and ν times a term whose weight is 2,
    as of factors by which sums are rescaled.

    Lean: `Attention.Spec.weighedLoss`.
    """
    return sum_over(
        lambda k: (
            power(num.value(1) + k.stored, 2, num=num)
            * (
                k.tiny
                * (
                    numeral(2, num=num) * (size(k) + error(k)) * other(k)
                    + (numeral(2, num=num) * other(k) + num.value(1))
                )
                + numeral(losses, num=num)
                * (
                    k.flushed
                    * (num.value(1) + numeral(2, num=num) * ((size(k) + error(k)) * other(k)))
                )
            )
        ),
        keys,
        zero=num.value(0),
    )


def weighed_error(
    factor: Value,
    losses: int,
    size: Callable[[BoundedRate], Value],
    error: Callable[[BoundedRate], Value],
    other: Callable[[BoundedRate], Value],
    keys: list[BoundedRate],
    *,
    num: Arithmetic,
) -> Value:
    """How far Σ p x y may be off, where x is off by `error`, y is exact and each term is
    multiplied by up to `factor` beside the error of its weight and what it is stored in twice:
    Σ p ((1 + ε) (1 + stored)² factor (size + error) − size) |y|, and `weighedLoss`.

    Lean: `Attention.Spec.weighedError`.
    """
    return sum_over(
        lambda k: (
            k.weight
            * (
                (
                    (num.value(1) + k.weight_error)
                    * power(num.value(1) + k.stored, 2, num=num)
                    * factor
                    - num.value(1)
                )
                * (size(k) + error(k))
                + error(k)
            )
            * other(k)
        ),
        keys,
        zero=num.value(0),
    ) + factor * weighed_loss(losses, size, error, other, keys, num=num)


def mean_rate_tolerance(
    p: Precision,
    roundings: int,
    rescalings: int,
    losses: int,
    keys: list[BoundedRate],
    *,
    num: Arithmetic,
) -> Value:
    """How far a computed μ may be off, which is the rate of the log-sum-exp.

    Lean: `Attention.Spec.meanRateTolerance`.
    """
    return weighed_error(
        rate_factor(p, roundings, rescalings, num=num),
        losses,
        lambda x: x.size,
        lambda x: x.rate_error,
        lambda _x: num.value(1),
        keys,
        num=num,
    )


def tangent_tolerance(
    p: Precision,
    output: Value,
    apart: Value,
    lost: Value,
    roundings: int,
    rescalings: int,
    losses: int,
    keys: list[BoundedRate],
    *,
    num: Arithmetic,
) -> Value:
    """How far a computed ȯ may be off, before it is stored. `output` is the unit roundoff of a
    format in which o is stored before it meets μ, `apart` of one in which the three parts of
    the sum are stored, each 0 if there is none; below the normal numbers each of the four, the
    product of μ and o, and each addition of the parts is off by `lost`, and a difference ṡ − μ
    by ν.

    Lean: `Attention.Spec.tangentTolerance`.
    """
    factor = rate_factor(p, roundings, rescalings, num=num) * (num.value(1) + apart)

    def value(k: BoundedRate) -> Any:
        return absolute(k.value, num=num)

    mean = mean_rate_tolerance(p, roundings, rescalings, losses, keys, num=num)
    unstored = weighed_error(
        factor, losses, lambda _x: num.value(1), lambda _x: num.value(0), value, keys, num=num
    )
    output_error = (
        unstored
        + output
        * (
            absolute(sum_over(lambda k: k.weight * k.value, keys, zero=num.value(0)), num=num)
            + unstored
        )
        + factor * lost
    )
    return (
        weighed_error(
            factor,
            losses,
            lambda x: x.size,
            lambda k: k.rate_error + k.flushed,
            value,
            keys,
            num=num,
        )
        + (
            mean * (sum_over(lambda k: k.weight * value(k), keys, zero=num.value(0)) + output_error)
            + sum_over(lambda k: k.weight * k.size, keys, zero=num.value(0)) * output_error
        )
        + weighed_error(
            factor,
            losses,
            lambda _x: num.value(1),
            lambda _x: num.value(0),
            lambda k: absolute(k.value_rate, num=num),
            keys,
            num=num,
        )
        + factor * (numeral(6, num=num) * lost)
    )


def stored_tangent_tolerance(
    p: Precision,
    u: Value,
    eta: Value,
    output: Value,
    apart: Value,
    lost: Value,
    roundings: int,
    rescalings: int,
    losses: int,
    keys: list[BoundedRate],
    *,
    num: Arithmetic,
) -> Value:
    """The same where the result is stored in a format of unit roundoff `u`, which rounds it as a
    whole, with what it is off by already, and is off by `η` below its normal numbers.

    Lean: `Attention.Spec.storedTangentTolerance`.
    """
    error = tangent_tolerance(p, output, apart, lost, roundings, rescalings, losses, keys, num=num)
    return error + u * (absolute(output_rate(keys, num=num), num=num) + error) + eta


@dataclass(frozen=True)
class BoundedScoreRate:
    """The rate of a score, and how far a computed one may be from it.

    rate: ṡ.

    size: s: the sizes of its terms.

    error: δ.

    Lean: `Attention.Spec.BoundedScoreRate`.
    """

    rate: Value
    size: Value
    error: Value


def score_rate_factor(p: Precision, f: ScoreFormats, additions: int, *, num: Arithmetic) -> Value:
    """The roundings, as one factor, of a term of the rate of a score before it is changed: a
    product and `additions` additions; the products of the operands with the scale, as
    `operandFactor` has them, and one rounding more to their format; the scale, which is rounded
    three times, the product with it and the sum of two inner products; and to the format of
    scores each of these, their sum and the result.

    Lean: `Attention.Spec.scoreRateFactor`.
    """
    return (
        power(num.value(1) + p.accumulation, additions + 1, num=num)
        * (operand_factor(p, f, num=num) * (num.value(1) + f.operands))
        * power(num.value(1) + p.unit, 5, num=num)
        * power(num.value(1) + f.scores, 3, num=num)
    )


def rate_underflow(
    tau: Value, nu: Value, q: list[Value], k: list[Value], *, d: int, num: Arithmetic
) -> Value:
    """The error that numbers below the normal ones add to an inner product of operands that are
    each off by τ, which meet each other, and of products and sums that are off by ν: Σ (τ (|qᵢ|
    + |kᵢ| + τ) + 2 ν).

    Lean: `Attention.Spec.rateUnderflow`.
    """
    return sum_over(
        lambda i: (
            tau * (absolute(q[i], num=num) + absolute(k[i], num=num) + tau)
            + numeral(2, num=num) * nu
        ),
        list(range(d)),
        zero=num.value(0),
    )


def bounded_score_rate(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    scale: Value,
    q: list[Value],
    dq: list[Value],
    k: list[Value],
    dk: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> BoundedScoreRate:
    """ṡ = scale (⟨q̇, k⟩ + ⟨q, k̇⟩). Below the normal numbers each product of two numbers and each
    sum is off by `ν`, scaled operands by r η_op, the inner products by η_op where they are
    stored as operands are, and their sum and all that is stored as a score by η_s. Of the scale
    at most max (1, |scale|) multiplies any of these.

    Lean: `Attention.Spec.boundedScoreRate`.
    """
    size = absolute(scale, num=num) * (
        magnitude(dq, k, d=d, num=num) + magnitude(q, dk, d=d, num=num)
    )
    tau = numeral(f.roundings, num=num) * f.operands_tiny
    lost = (
        max(num.value(1), absolute(scale, num=num))
        * (
            rate_underflow(tau, nu, dq, k, d=d, num=num)
            + rate_underflow(tau, nu, q, dk, d=d, num=num)
            + (numeral(2, num=num) * f.operands_tiny + numeral(4, num=num) * f.scores_tiny)
        )
        + f.scores_tiny
    )
    return BoundedScoreRate(
        rate=scale
        * (vec_dot(dq, k, d=d, zero=num.value(0)) + vec_dot(q, dk, d=d, zero=num.value(0))),
        size=size,
        error=(score_rate_factor(p, f, additions, num=num) - num.value(1)) * size
        + score_rate_factor(p, f, additions, num=num) * lost,
    )


def change_factor(p: Precision, f: ScoreFormats, *, num: Arithmetic) -> Value:
    """The error of a rate after two operations and as many roundings to the format of scores.

    Lean: `Attention.Spec.changeFactor`.
    """
    return power(num.value(1) + p.unit, 2, num=num) * power(num.value(1) + f.scores, 2, num=num)


def bounded_score_rate_through(
    p: Precision,
    f: ScoreFormats,
    slope: Value,
    slope_error: Value,
    b: BoundedScoreRate,
    *,
    num: Arithmetic,
) -> BoundedScoreRate:
    """The rate through a change of the score, as softcap, whose derivative is `slope`, which is at
    least 0 and may be off by `slopeError`. Its size is no less than what is computed for the
    slope has it.

    Lean: `Attention.Spec.BoundedScoreRate.through`.
    """
    return BoundedScoreRate(
        rate=slope * b.rate,
        size=(slope + slope_error) * b.size,
        error=(change_factor(p, f, num=num) - num.value(1))
        * ((slope + slope_error) * (b.size + b.error))
        + ((slope + slope_error) * b.error + slope_error * b.size)
        + change_factor(p, f, num=num) * (numeral(2, num=num) * f.scores_tiny),
    )


def bounded_score_rate_plus(
    p: Precision, f: ScoreFormats, a: Value, b: BoundedScoreRate, *, num: Arithmetic
) -> BoundedScoreRate:
    """The rate with that of a number `a` that is added.

    Lean: `Attention.Spec.BoundedScoreRate.plus`.
    """
    return BoundedScoreRate(
        rate=b.rate + a,
        size=b.size + absolute(a, num=num),
        error=(change_factor(p, f, num=num) - num.value(1))
        * (b.size + absolute(a, num=num) + b.error)
        + b.error
        + change_factor(p, f, num=num) * (numeral(4, num=num) * f.scores_tiny),
    )
