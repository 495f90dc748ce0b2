"""Tolerances.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Tolerance.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

from bridge.spec.core import Arithmetic, Value
from bridge.spec.maximum import row_max
from bridge.spec.sum import sum_over


class Denominator(Enum):
    """Which weights the denominator of a function adds.

    Lean: `Attention.Spec.Denominator`.
    """

    UNROUNDED = "unrounded"
    ROUNDED = "rounded"


@dataclass(frozen=True)
class Precision:
    """The roundings of a function, and how coarse they are: bounds of errors, all relative but
    `storedTiny`.

    unit: of an operation on scores, weights and denominators: the unit roundoff of the
    accumulator.

    accumulation: of an operation on the numerator of the output; larger where a matrix unit
    truncates.

    exponential: of an exponential.

    stored: of a weight's format where it meets its value; 0 if it is not stored anew.

    storedTiny: of storing a weight below the normal numbers of that format, where the largest
    weight is 1: an absolute error, η; 0 if no weight is too small.

    denominator: which weights the denominator adds.

    Lean: `Attention.Spec.Precision`.
    """

    unit: Value
    accumulation: Value
    exponential: Value
    stored: Value
    stored_tiny: Value
    denominator: Denominator


@dataclass(frozen=True)
class BoundedKey:
    """One key as the tolerance sees it.

    score: the exact score of the key; `none` when the key is masked.

    error: how far the computed score may be from it, but for a constant that all keys share: δ.

    value: one component of the value.

    Lean: `Attention.Spec.BoundedKey`.
    """

    score: Value | None
    error: Value
    value: Value


@dataclass(frozen=True)
class BoundedWeight:
    """The weight of one key in a function that rounds: between `weight / factor` and `weight ·
    factor`, but for a factor that all keys share.

    weight: exp (s − m), and 0 when the key is masked.

    factor: e^ε: how far off it may be.

    value: one component of the value.

    Lean: `Attention.Spec.BoundedWeight`.
    """

    weight: Value
    factor: Value
    value: Value


@dataclass(frozen=True)
class ToleranceTerms:
    """The terms of a tolerance.

    shared: errors of the weights, which numerator and denominator share.

    stored: weights stored in a smaller format.

    sums: sums.

    Lean: `Attention.Spec.ToleranceTerms`.
    """

    shared: Value
    stored: Value
    sums: Value


def numeral(n: int, *, num: Arithmetic) -> Value:
    """The number `n`: Σ 1.

    Lean: `Attention.Spec.numeral`.
    """
    return sum_over(lambda _x: num.value(1), list(range(n)), zero=num.value(0))


def absolute(x: Value, *, num: Arithmetic) -> Value:
    """|x|.

    Lean: `Attention.Spec.absolute`.
    """
    return max(x, num.value(0) - x)


def smaller(a: Value, b: Value) -> Value:
    """The smaller of two numbers.

    Lean: `Attention.Spec.smaller`.
    """
    return a if a <= b else b


def gamma(k: int, u: Value, *, num: Arithmetic) -> Value:
    """γ: the relative error of `k` roundings of unit `u`, k · u / (1 − k · u). For k · u < 1.

    Lean: `Attention.Spec.gamma`.
    """
    return numeral(k, num=num) * u / (num.value(1) - numeral(k, num=num) * u)


def power(x: Value, n: int, *, num: Arithmetic) -> Value:
    """xⁿ.

    Lean: `Attention.Spec.power`.
    """
    result = num.value(1)
    for _ in range(n):
        result = result * x
    return result


def largest_error(row: list[BoundedKey], *, num: Arithmetic) -> Value:
    """The largest of the errors of the unmasked scores, at least 0.

    Lean: `Attention.Spec.largestError`.
    """
    result = num.value(0)
    for key in row:
        result = result if key.score is None else max(result, key.error)
    return result


def bounded_weight(
    p: Precision,
    rescalings: int,
    m: Value | None,
    delta: Value,
    key: BoundedKey,
    *,
    num: Arithmetic,
) -> BoundedWeight:
    """The exact weight of a key in a row with the maximum `m` and the largest error `Δ`, and how
    far off it may be after at most `rescalings` changes of the reference point: ε = δ + u · (m
    − s + δ + Δ), and one exponential for the weight and one for each rescaling.

    Lean: `Attention.Spec.boundedWeight`.
    """
    if key.score is not None and m is not None:
        return BoundedWeight(
            weight=num.exp(key.score - m),
            factor=num.exp(key.error + p.unit * (m - key.score + key.error + delta))
            / power(num.value(1) - p.exponential, rescalings + 1, num=num),
            value=key.value,
        )
    return BoundedWeight(weight=num.value(0), factor=num.value(1), value=key.value)


def bounded_weights(
    p: Precision, rescalings: int, row: list[BoundedKey], *, num: Arithmetic
) -> list[BoundedWeight]:
    """The exact weights of a row, and how far off they may be.

    Lean: `Attention.Spec.boundedWeights`.
    """
    return [
        bounded_weight(
            p,
            rescalings,
            row_max([x.score for x in row]),
            largest_error(row, num=num),
            key,
            num=num,
        )
        for key in row
    ]


def exact_output(keys: list[BoundedWeight], *, num: Arithmetic) -> Value:
    """The exact output: the mean of the values by the exact weights.

    Lean: `Attention.Spec.exactOutput`.
    """
    return sum_over(lambda k: k.weight * k.value, keys, zero=num.value(0)) / sum_over(
        lambda k: k.weight, keys, zero=num.value(0)
    )


def low_total(keys: list[BoundedWeight], *, num: Arithmetic) -> Value:
    """Σ w / e^ε: the sum of the weights is no smaller, but for the factor that all share.

    Lean: `Attention.Spec.lowTotal`.
    """
    return sum_over(lambda k: k.weight / k.factor, keys, zero=num.value(0))


def most_share(low: Value, k: BoundedWeight, *, num: Arithmetic) -> Value:
    """P: at most this share of the sum of the weights has a key, where that sum may be as small as
    `low`.

    Lean: `Attention.Spec.mostShare`.
    """
    return smaller(k.weight * k.factor / low, num.value(1))


def tiny_share(
    p: Precision, rescalings: int, keys: list[BoundedWeight], *, num: Arithmetic
) -> Value:
    """η h: the error of storing a weight below the normal numbers, as a share of the sum of the
    weights. In a function's own terms its largest weight is 1 but for the errors of
    exponentials and rescalings, and so is the sum of the weights at least; and that is at least
    `lowTotal`.

    Lean: `Attention.Spec.tinyShare`.
    """
    return p.stored_tiny * smaller(
        num.value(1) / power(num.value(1) - p.exponential, 2 * rescalings + 1, num=num),
        reduce(lambda x, k: max(x, k.weight * k.factor), keys, num.value(0))
        / low_total(keys, num=num),
    )


def storing_error(p: Precision, tiny: Value, share: Value) -> Value:
    """e: the error of storing a weight that has at most this share of the sum of the weights, as a
    share of that sum: in proportion to a normal number, at most `tiny` below these, and never
    more than the weight.

    Lean: `Attention.Spec.storingError`.
    """
    return smaller(share, max(p.stored * share, tiny))


def storing_errors(
    p: Precision, rescalings: int, keys: list[BoundedWeight], *, num: Arithmetic
) -> Value:
    """The errors of storing all weights of a row together, as a share of their sum: Σ e, or the
    error of a weight that has all of it and those of weights below the normal numbers.

    Lean: `Attention.Spec.storingErrors`.
    """
    low = low_total(keys, num=num)
    tiny = tiny_share(p, rescalings, keys, num=num)
    return smaller(
        sum_over(
            lambda k: storing_error(p, tiny, most_share(low, k, num=num)), keys, zero=num.value(0)
        ),
        p.stored
        + sum_over(lambda k: smaller(most_share(low, k, num=num), tiny), keys, zero=num.value(0)),
    )


def over_remainder(x: Value, e: Value, most: Value, *, num: Arithmetic) -> Value:
    """The error that `x` becomes where the sum that divides is too small by up to the share `e` of
    itself, and at most `most`.

    Lean: `Attention.Spec.overRemainder`.
    """
    return most if num.value(1) <= e else smaller(x / (num.value(1) - e), most)


def tolerance_terms(
    p: Precision,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> ToleranceTerms:
    """The terms of the tolerance of one component of the output of one row with an unmasked key. A
    key's part of the numerator and of the denominator goes through at most `roundings`
    roundings of sums and rescalings, that of the numerator through `6` more: the product with
    the value, and the division. Keys with a share of the sum of weights up to `negligible` are
    not counted among the values that the average may reach; the bound holds whatever that
    number is. Weights that are stored where they meet their values move the mean of the values
    by `stored`, and that of their sizes by `growth`: in proportion to sizes if the denominator
    adds them as they were, and otherwise in proportion to distances from the mean, over the sum
    of weights that storing leaves.

    Lean: `Attention.Spec.toleranceTerms`.
    """
    keys = bounded_weights(p, rescalings, row, num=num)
    output = exact_output(keys, num=num)

    def far(k: BoundedWeight) -> Any:
        return absolute(k.value - output, num=num)

    low = low_total(keys, num=num)

    def share(k: BoundedWeight) -> Any:
        return most_share(low, k, num=num)

    excess = sum_over(
        lambda k: k.weight * (k.factor - num.value(1)) * far(k), keys, zero=num.value(0)
    )
    farthest = reduce(
        lambda x, k: x if share(k) <= negligible else max(x, far(k)), keys, num.value(0)
    ) + sum_over(
        lambda k: share(k) * far(k) if share(k) <= negligible else num.value(0),
        keys,
        zero=num.value(0),
    )
    shared = smaller(excess / low, farthest)
    largest = farthest + absolute(output, num=num)
    size = smaller(
        sum_over(lambda k: share(k) * absolute(k.value, num=num), keys, zero=num.value(0)), largest
    )
    tiny = tiny_share(p, rescalings, keys, num=num)

    def error(k: BoundedWeight) -> Any:
        return storing_error(p, tiny, share(k))

    errors = storing_errors(p, rescalings, keys, num=num)
    if p.denominator is Denominator.UNROUNDED:
        stored = smaller(
            smaller(
                sum_over(lambda k: error(k) * absolute(k.value, num=num), keys, zero=num.value(0)),
                p.stored * size
                + sum_over(
                    lambda k: smaller(share(k), tiny) * absolute(k.value, num=num),
                    keys,
                    zero=num.value(0),
                ),
            ),
            size,
        )
    else:
        stored = over_remainder(
            sum_over(lambda k: error(k) * far(k), keys, zero=num.value(0)) + errors * shared,
            errors,
            numeral(2, num=num) * largest,
            num=num,
        )
    if p.denominator is Denominator.UNROUNDED:
        growth = stored
    else:
        growth = over_remainder(
            sum_over(lambda k: error(k) * absolute(k.value, num=num), keys, zero=num.value(0))
            + errors * size,
            errors,
            numeral(2, num=num) * largest,
            num=num,
        )
    numerator = gamma(roundings + 6, p.accumulation, num=num)
    denominator = gamma(roundings, p.unit, num=num)
    return ToleranceTerms(
        shared=shared,
        stored=stored,
        sums=(
            numerator * (size + growth)
            + denominator * (absolute(output, num=num) + shared + stored)
        )
        / (num.value(1) - denominator),
    )


def tolerance(
    p: Precision,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """How far the result of a function that rounds may be from the exact one: the sum of
    `toleranceTerms`.

    Lean: `Attention.Spec.tolerance`.
    """
    terms = tolerance_terms(p, roundings, rescalings, negligible, row, num=num)
    return terms.shared + terms.stored + terms.sums


def stored_tolerance(
    p: Precision,
    u: Value,
    eta: Value,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """The same where the result is stored in a format of unit roundoff `u`, which rounds it as a
    whole, with what it is off by already, and whose numbers below the normal ones are off by
    `η` at most.

    Lean: `Attention.Spec.storedTolerance`.
    """
    error = tolerance(p, roundings, rescalings, negligible, row, num=num)
    return (
        error
        + u
        * (
            absolute(exact_output(bounded_weights(p, rescalings, row, num=num), num=num), num=num)
            + error
        )
        + eta
    )
