"""The tolerance where products, quotients, exponentials and sums underflow.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/UnderflowTolerance.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.core import Arithmetic, Value
from bridge.spec.log_sum_exp_tolerance import denominator_error, log_sum_exp_tolerance
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import (
    BoundedKey,
    BoundedWeight,
    Precision,
    absolute,
    bounded_weights,
    exact_output,
    gamma,
    low_total,
    numeral,
    power,
    smaller,
    tiny_share,
    tolerance,
)


def underflow_share(
    p: Precision, nu: Value, rescalings: int, keys: list[BoundedWeight], *, num: Arithmetic
) -> Value:
    """ν h: an error of `ν` in a function's own terms, in which its largest weight is 1, as a share
    of the sum of the weights.

    Lean: `Attention.Spec.underflowShare`.
    """
    return tiny_share(
        Precision(
            unit=p.unit,
            accumulation=p.accumulation,
            exponential=p.exponential,
            stored=p.stored,
            stored_tiny=nu,
            denominator=p.denominator,
        ),
        rescalings,
        keys,
        num=num,
    )


def bounded_key_flushed(
    nu: Value, rescalings: int, key: BoundedKey, *, num: Arithmetic
) -> BoundedKey:
    """A key whose score is further off where differences of scores of `ν` at most are flushed to
    0: by ν for its difference from the reference point, and for each rise of that.

    Lean: `Attention.Spec.BoundedKey.flushed`.
    """
    return BoundedKey(
        score=key.score, error=key.error + numeral(rescalings + 1, num=num) * nu, value=key.value
    )


def lost_share(
    rescalings: int, low: Value, tiny: Value, k: BoundedWeight, *, num: Arithmetic
) -> Value:
    """The error of a weight where its exponential, those of its rescalings and its product with a
    factor of dropout underflow, as a share of the sum of the weights, which is at least `low`:
    twice, since a weight that is stored anew may double such an error. Each may be off by as
    much as it is; one of them alone is by no more than `tiny`.

    Lean: `Attention.Spec.lostShare`.
    """
    return numeral(2, num=num) * smaller(
        power(numeral(3, num=num), rescalings + 2, num=num) * (k.weight * k.factor / low),
        numeral(rescalings + 2, num=num) * tiny,
    )


def underflow_cost(
    p: Precision,
    nu: Value,
    rescalings: int,
    row: list[BoundedKey],
    f: Callable[[BoundedWeight], Value],
    *,
    num: Arithmetic,
) -> Value:
    """The underflow of a sum of weights times the numbers `f`, which are sizes of values or 1, as
    a share of the sum of the weights: of the exponentials of each weight and its product with a
    factor, and for each unmasked key of a product and an addition, of a product for each
    rescaling, and of that of the value with a factor, which a weight of up to 4 multiplies.

    Lean: `Attention.Spec.underflowCost`.
    """
    keys = bounded_weights(p, rescalings, row, num=num)
    tiny = underflow_share(p, nu, rescalings, keys, num=num)
    return sum_over(
        lambda k: lost_share(rescalings, low_total(keys, num=num), tiny, k, num=num) * f(k),
        keys,
        zero=num.value(0),
    ) + sum_over(
        lambda key: num.value(0) if key.score is None else numeral(rescalings + 6, num=num) * tiny,
        row,
        zero=num.value(0),
    )


def underflow_left(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """The least share of the sum of the weights that is left in a denominator: it is off by its
    roundings, by weights that are stored, and by what underflows.

    Lean: `Attention.Spec.underflowLeft`.
    """
    return (
        num.value(1)
        - denominator_error(
            p, roundings, rescalings, bounded_weights(p, rescalings, row, num=num), num=num
        )
        - (num.value(1) + gamma(roundings + 1, p.unit, num=num))
        * underflow_cost(p, nu, rescalings, row, lambda _x: num.value(1), num=num)
    )


def underflow_log_sum_exp_factor(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """The sum of the exponentials, exp m · l, as computed is off by this factor at most, up or
    down, where numbers underflow: `logSumExpFactor` with what is left of the denominator then.

    Lean: `Attention.Spec.underflowLogSumExpFactor`.
    """
    keys = bounded_weights(p, rescalings, row, num=num)
    return (
        sum_over(lambda k: k.weight * k.factor, keys, zero=num.value(0))
        / sum_over(lambda k: k.weight, keys, zero=num.value(0))
        / underflow_left(p, nu, roundings, rescalings, row, num=num)
    )


def underflow_log_sum_exp_tolerance(
    p: Precision,
    nu: Value,
    E: Value,
    log_total: Value,
    maximum: Value,
    delta: Value,
    *,
    num: Arithmetic,
) -> Value:
    """The tolerance of a log-sum-exp where numbers underflow: `logSumExpTolerance` of an E that
    the factor above has, up to eight products that change a base, of maximum, logarithm and
    sum, and the sum itself, which may be flushed to 0.

    Lean: `Attention.Spec.underflowLogSumExpTolerance`.
    """
    return log_sum_exp_tolerance(p, E, log_total, maximum, delta, num=num) + (
        num.value(1) + gamma(4, p.unit, num=num)
    ) * (numeral(9, num=num) * nu)


def underflow_error(
    p: Precision,
    nu: Value,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """How much further off the output may be where numbers underflow: what that does to the
    numerator and to the denominator, over what is left of this, and up to five roundings of the
    quotient.

    Lean: `Attention.Spec.underflowError`.
    """
    most = absolute(
        exact_output(bounded_weights(p, rescalings, row, num=num), num=num), num=num
    ) + tolerance(p, roundings, rescalings, negligible, row, num=num)
    return (num.value(1) + gamma(roundings + 6, p.accumulation, num=num)) * (
        (
            underflow_cost(p, nu, rescalings, row, lambda k: absolute(k.value, num=num), num=num)
            + most
            * (
                (num.value(1) + gamma(roundings + 1, p.unit, num=num))
                * underflow_cost(p, nu, rescalings, row, lambda _x: num.value(1), num=num)
            )
        )
        / underflow_left(p, nu, roundings, rescalings, row, num=num)
        + numeral(5, num=num) * nu
    )


def output_tolerance(
    p: Precision,
    nu: Value,
    u: Value,
    eta: Value,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """The tolerance of one component of the output of one row, all in all: the sum of
    `toleranceTerms`, what underflows in the accumulator by `ν` at most, and the result stored
    in a format of unit roundoff `u`, whose numbers below the normal ones are off by `η` at
    most.

    Lean: `Attention.Spec.outputTolerance`.
    """
    error = tolerance(p, roundings, rescalings, negligible, row, num=num) + underflow_error(
        p, nu, roundings, rescalings, negligible, row, num=num
    )
    return (
        error
        + u
        * (
            absolute(exact_output(bounded_weights(p, rescalings, row, num=num), num=num), num=num)
            + error
        )
        + eta
    )
