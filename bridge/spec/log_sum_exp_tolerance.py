"""Tolerances of log-sum-exps.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/LogSumExpTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import (
    BoundedKey,
    BoundedWeight,
    Denominator,
    Precision,
    absolute,
    bounded_weights,
    gamma,
    numeral,
    storing_errors,
)


def denominator_error(
    p: Precision, roundings: int, rescalings: int, keys: list[BoundedWeight], *, num: Arithmetic
) -> Value:
    """How far the denominator of a function that rounds may be off, as a share of the sum of the
    weights that it computed.

    Lean: `Attention.Spec.denominatorError`.
    """
    if p.denominator is Denominator.UNROUNDED:
        return gamma(roundings + 1, p.unit, num=num)
    return gamma(roundings + 1, p.unit, num=num) + storing_errors(p, rescalings, keys, num=num)


def log_sum_exp_factor(
    p: Precision, roundings: int, rescalings: int, row: list[BoundedKey], *, num: Arithmetic
) -> Value:
    """The sum of the exponentials, exp m · l, as computed is off by this factor at most, up or
    down: Σ p exp ε / (1 − γ(roundings + 1)), where p are the exact shares of the weights. Where
    the denominator adds stored weights, their errors count with γ. Its logarithm is E.

    Lean: `Attention.Spec.logSumExpFactor`.
    """
    keys = bounded_weights(p, rescalings, row, num=num)
    return (
        sum_over(lambda k: k.weight * k.factor, keys, zero=num.value(0))
        / sum_over(lambda k: k.weight, keys, zero=num.value(0))
        / (num.value(1) - denominator_error(p, roundings, rescalings, keys, num=num))
    )


def log_sum_exp_tolerance(
    p: Precision, E: Value, log_total: Value, maximum: Value, delta: Value, *, num: Arithmetic
) -> Value:
    """The tolerance of a log-sum-exp: E and, for the logarithm, changes of base and the sum of
    maximum and logarithm, 4 roundings of each: E + γ(4) (ln l + 1 + |m| + E + 2 Δ), with the
    exact maximum m of the row, l = Σ exp (s − m), and the largest error Δ of a score, by which
    the computed maximum may be off. The 1 is for a logarithm whose error is absolute where its
    argument is near 1.

    Lean: `Attention.Spec.logSumExpTolerance`.
    """
    return E + gamma(4, p.unit, num=num) * (
        log_total + num.value(1) + absolute(maximum, num=num) + E + numeral(2, num=num) * delta
    )
