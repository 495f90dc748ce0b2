"""How far gradients may be from the exact ones.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/GradientTolerance.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_tolerance import magnitude
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import absolute, gamma, numeral, power, smaller
from bridge.spec.vector import vec_dot


@dataclass(frozen=True)
class GradientPrecision:
    """The roundings of a backward pass, and how coarse they are: bounds of relative errors, 0
    where nothing is rounded, and of the absolute errors of numbers below the normal ones.

    unit: of an operation on scores, weights and their gradients.

    accumulation: of an operation inside a matrix product.

    exponential: of an exponential.

    weights: of the format in which P is stored before it multiplies G.

    stored: of the format in which P and dS are stored where they meet values, keys and queries.

    factors: of dropout's factor, with its product.

    scores: of the format in which dP is stored.

    output: of the format of the output, from which D may be computed.

    operands: of the format in which keys and queries are stored where they meet dS.

    tiny: how far off a product, a quotient, an exponential or the sum of two numbers may be
    besides, below the normal numbers of the format in which it is computed.

    weightsTiny: how far off a P may be besides where it is stored before it multiplies G.

    storedTiny: a P or dS where it is stored for values, keys and queries.

    scoresTiny: a dP where it is stored.

    outputTiny: a component of the output where it is stored, with its quotient.

    operandsTiny: a key, a query or a sum where it is stored in the format of operands.

    growth: how many times a loss of P or dS counts where it is stored for what it meets in a
    gradient, if a smaller number is stored, P without dropout's factor or dS times the scale:
    as many times as it is smaller. 1 where none is.

    Lean: `Attention.Spec.GradientPrecision`.
    """

    unit: Value
    accumulation: Value
    exponential: Value
    weights: Value
    stored: Value
    factors: Value
    scores: Value
    output: Value
    operands: Value
    tiny: Value
    weights_tiny: Value
    stored_tiny: Value
    scores_tiny: Value
    output_tiny: Value
    operands_tiny: Value
    growth: Value


@dataclass(frozen=True)
class GradientCounts:
    """How many roundings there are at most.

    products: of a product dO · v in dP.

    delta: of a product P · dO · v in D, in the sums over keys and over components together.

    rescalings: how often the output, from which D may be computed, was rescaled.

    Lean: `Attention.Spec.GradientCounts`.
    """

    products: int
    delta: int
    rescalings: int


@dataclass(frozen=True)
class GradientKey:
    """One key of a query as the gradients see it.

    weight: the exact weight P.

    error: how far off the weight that was computed again may be, as a share of it.

    factor: by what dropout multiplies the weight; 1 without.

    product: the factor times ⟨dO, v⟩: dP.

    size: the factor times |dO|ᵀ|v|: A.

    slope: the slope of what becomes of the score.

    slopeError: how far off the computed slope may be.

    Lean: `Attention.Spec.GradientKey`.
    """

    weight: Value
    error: Value
    factor: Value
    product: Value
    size: Value
    slope: Value
    slope_error: Value


@dataclass(frozen=True)
class GradientTerm:
    """One product of a sum that a gradient is.

    size: at least the size of the gradient or weight that is multiplied.

    error: how far off it may be.

    other: by what it is multiplied.

    Lean: `Attention.Spec.GradientTerm`.
    """

    size: Value
    error: Value
    other: Value


def gradient_precision_grown(p: GradientPrecision) -> GradientPrecision:
    """The losses of what is multiplied last and stored before it meets keys, queries or dO,
    counted as many times as they may be.

    Lean: `Attention.Spec.GradientPrecision.grown`.
    """
    return GradientPrecision(
        unit=p.unit,
        accumulation=p.accumulation,
        exponential=p.exponential,
        weights=p.weights,
        stored=p.stored,
        factors=p.factors,
        scores=p.scores,
        output=p.output,
        operands=p.operands,
        tiny=p.growth * p.tiny,
        weights_tiny=p.weights_tiny,
        stored_tiny=p.growth * p.stored_tiny,
        scores_tiny=p.scores_tiny,
        output_tiny=p.output_tiny,
        operands_tiny=p.operands_tiny,
        growth=p.growth,
    )


def exponent_error(
    unit: Value, nu: Value, s: Value, L: Value, of_score: Value, of_lse: Value, *, num: Arithmetic
) -> Value:
    """How far s − L may be off, where the score s is off by `ofScore`, the log-sum-exp L by
    `ofLse`, and both are rounded three times more, factors of another base, and the difference:
    each time they may be off by `ν` below the normal numbers.

    Lean: `Attention.Spec.exponentError`.
    """
    of_score_1 = of_score + numeral(3, num=num) * nu
    of_lse_1 = of_lse + numeral(3, num=num) * nu
    return (
        of_score_1
        + of_lse_1
        + gamma(3, unit, num=num)
        * (absolute(s, num=num) + of_score_1 + (absolute(L, num=num) + of_lse_1))
    )


def recomputed_error(
    unit: Value,
    nu: Value,
    exponential: Value,
    s: Value,
    L: Value,
    of_score: Value,
    of_lse: Value,
    *,
    num: Arithmetic,
) -> Value:
    """How far exp (s − L) may be off, as a share of itself.

    Lean: `Attention.Spec.recomputedError`.
    """
    return num.exp(exponent_error(unit, nu, s, L, of_score, of_lse, num=num)) * (
        num.value(1) + exponential
    ) - num.value(1)


def softcap_slope_error(
    unit: Value, tiny: Value, t: Value, of_tanh: Value, *, num: Arithmetic
) -> Value:
    """How far 1 − t², the slope of softcap, may be off, where t = tanh (x / cap) is off by
    `ofTanh`: the square and the difference are rounded, and none of them is far from the
    numbers up to 1; and the square may be off by `tiny` below the normal numbers.

    Lean: `Attention.Spec.softcapSlopeError`.
    """
    return (
        smaller(
            (numeral(2, num=num) * absolute(t, num=num) + of_tanh) * of_tanh
            + numeral(2, num=num) * unit,
            num.value(1) + numeral(2, num=num) * unit,
        )
        + numeral(2, num=num) * tiny
    )


def gradient_key(
    weight: Value,
    error: Value,
    factor: Value,
    slope: Value,
    slope_error: Value,
    dO: list[Value],
    v: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> GradientKey:
    """A key from the gradient by the output and its value.

    Lean: `Attention.Spec.gradientKey`.
    """
    return GradientKey(
        weight=weight,
        error=error,
        factor=factor,
        product=factor * vec_dot(dO, v, d=d, zero=num.value(0)),
        size=factor * magnitude(dO, v, d=d, num=num),
        slope=slope,
        slope_error=slope_error,
    )


def tiny_of(weight: Value, tiny: Value, *, num: Arithmetic) -> Value:
    """An error of something that the weight multiplies: none of a masked key, whose weight is 0.

    Lean: `Attention.Spec.tinyOf`.
    """
    return num.value(0) if weight <= num.value(0) else tiny


def product_tiny(
    p: GradientPrecision, c: GradientCounts, factor: Value, *, num: Arithmetic
) -> Value:
    """The underflow of dP: of its products and their sums, of the product with dropout's factor,
    and where it is stored. There are at most as many products as they are rounded times, and
    fewer additions.

    Lean: `Attention.Spec.productTiny`.
    """
    sum_ = (num.value(1) + gamma(c.products, p.accumulation, num=num)) * (
        numeral(2 * c.products, num=num) * p.tiny
    )
    return (factor * sum_ * (num.value(1) + p.factors) + p.tiny) * (
        num.value(1) + p.scores
    ) + p.scores_tiny


def mean_growth(p: GradientPrecision, c: GradientCounts, error: Value, *, num: Arithmetic) -> Value:
    """How an error grows that a forward pass makes of a weight: rescalings may enlarge it, and the
    denominator by which it is divided at the end may be smaller than 1 by its own errors. A
    weight that is computed again has `error` as its own, of which the denominator's is a part.

    Lean: `Attention.Spec.meanGrowth`.
    """
    return (num.value(1) + error) / power(
        num.value(1) - p.exponential, 3 * c.rescalings + 2, num=num
    )


def mean_lost(p: GradientPrecision, c: GradientCounts, error: Value, *, num: Arithmetic) -> Value:
    """The underflow of the exponentials of a weight of the output, its own and those of
    rescalings, of its product with dropout's factor, and of sums; and as much once more is that
    of as many products with its value.

    Lean: `Attention.Spec.meanLost`.
    """
    return numeral(c.rescalings + 6, num=num) * p.tiny * mean_growth(p, c, error, num=num)


def mean_weight_tiny(
    p: GradientPrecision, c: GradientCounts, k: GradientKey, *, num: Arithmetic
) -> Value:
    """The underflow of a weight of which D is made: what it may lose, or double, and then it is
    stored.

    Lean: `Attention.Spec.meanWeightTiny`.
    """
    return tiny_of(
        k.weight,
        numeral(2, num=num) * mean_lost(p, c, k.error, num=num) * (num.value(1) + p.stored)
        + p.stored_tiny * mean_growth(p, c, k.error, num=num),
        num=num,
    )


def mean_product(keys: list[GradientKey], *, num: Arithmetic) -> Value:
    """D = Σ P dP.

    Lean: `Attention.Spec.meanProduct`.
    """
    return sum_over(lambda k: k.weight * k.product, keys, zero=num.value(0))


def mean_size(keys: list[GradientKey], *, num: Arithmetic) -> Value:
    """W = Σ P A.

    Lean: `Attention.Spec.meanSize`.
    """
    return sum_over(lambda k: k.weight * k.size, keys, zero=num.value(0))


def mean_factor(p: GradientPrecision, c: GradientCounts, *, num: Arithmetic) -> Value:
    """The relative error of D by its sums, as a factor F, whichever way D is computed: as the sum
    Σ P dP, or as ⟨dO, O⟩ from an output that was stored.

    Lean: `Attention.Spec.meanFactor`.
    """
    return (
        (num.value(1) + gamma(c.delta, p.accumulation, num=num))
        * (num.value(1) + p.factors)
        * (num.value(1) + p.scores)
        * (num.value(1) + p.output)
        / power(num.value(1) - p.exponential, c.rescalings + 1, num=num)
    )


def mean_tiny(
    p: GradientPrecision,
    c: GradientCounts,
    reach: Value,
    keys: list[GradientKey],
    *,
    num: Arithmetic,
) -> Value:
    """The underflow of D in either way, before its sums are rounded: of each key that of its
    weight, of its dP, and of its products with dP, as they are made and added, or with its
    value and in rescalings; then that of the output where it is stored, and of its products
    with dO and their sums. `reach` is Σ |dO|.

    Lean: `Attention.Spec.meanTiny`.
    """
    return sum_over(
        lambda k: (
            mean_weight_tiny(p, c, k, num=num) * (k.size + product_tiny(p, c, k.factor, num=num))
            + k.weight
            * ((num.value(1) + k.error) * (num.value(1) + p.stored))
            * product_tiny(p, c, k.factor, num=num)
            + tiny_of(k.weight, mean_lost(p, c, k.error, num=num), num=num)
            * (numeral(2, num=num) + reach)
        ),
        keys,
        zero=num.value(0),
    ) + (p.output_tiny * reach + numeral(2 * c.products, num=num) * p.tiny)


def mean_error(
    p: GradientPrecision,
    c: GradientCounts,
    reach: Value,
    keys: list[GradientKey],
    *,
    num: Arithmetic,
) -> Value:
    """The error of D: Σ P A ((1 + ε) (1 + u_P) F − 1), and F times what underflows.

    Lean: `Attention.Spec.meanError`.
    """
    return sum_over(
        lambda k: (
            k.weight
            * k.size
            * (
                (num.value(1) + k.error) * (num.value(1) + p.stored) * mean_factor(p, c, num=num)
                - num.value(1)
            )
        ),
        keys,
        zero=num.value(0),
    ) + mean_factor(p, c, num=num) * mean_tiny(p, c, reach, keys, num=num)


def inner_gradient(dL: Value, keys: list[GradientKey], k: GradientKey, *, num: Arithmetic) -> Value:
    """G = dP − D + dL, where dL is the gradient by the log-sum-exp.

    Lean: `Attention.Spec.innerGradient`.
    """
    return k.product - mean_product(keys, num=num) + dL


def inner_size(dL: Value, keys: list[GradientKey], k: GradientKey, *, num: Arithmetic) -> Value:
    """The sizes of its terms: A + W + |dL|.

    Lean: `Attention.Spec.innerSize`.
    """
    return k.size + mean_size(keys, num=num) + absolute(dL, num=num)


def inner_error(
    p: GradientPrecision,
    c: GradientCounts,
    reach: Value,
    dL: Value,
    keys: list[GradientKey],
    k: GradientKey,
    *,
    num: Arithmetic,
) -> Value:
    """The error of G, whose three terms are rounded up to three times, and added twice.

    Lean: `Attention.Spec.innerError`.
    """
    terms = (
        (
            (num.value(1) + gamma(c.products, p.accumulation, num=num))
            * (num.value(1) + p.factors)
            * (num.value(1) + p.scores)
            - num.value(1)
        )
        * k.size
        + product_tiny(p, c, k.factor, num=num)
        + mean_error(p, c, reach, keys, num=num)
        + numeral(2, num=num) * p.tiny
    )
    return terms + gamma(3, p.unit, num=num) * (inner_size(dL, keys, k, num=num) + terms)


def weight_tiny(p: GradientPrecision, k: GradientKey, *, num: Arithmetic) -> Value:
    """The underflow of a weight that multiplies G or meets dO, where it is computed again and
    stored.

    Lean: `Attention.Spec.weightTiny`.
    """
    return tiny_of(k.weight, p.tiny * (num.value(1) + p.weights) + p.weights_tiny, num=num)


def times_tiny(p: GradientPrecision, k: GradientKey, *, num: Arithmetic) -> Value:
    """The underflow of up to two products that the weight takes part in, with G and the slope.

    Lean: `Attention.Spec.timesTiny`.
    """
    return (num.value(1) + gamma(2, p.unit, num=num)) * (
        numeral(2, num=num) * tiny_of(k.weight, p.tiny, num=num)
    )


def score_gradient_error(
    p: GradientPrecision,
    c: GradientCounts,
    reach: Value,
    dL: Value,
    keys: list[GradientKey],
    k: GradientKey,
    *,
    num: Arithmetic,
) -> Value:
    """The error of dS = P G, the gradient by a score and by a bias.

    Lean: `Attention.Spec.scoreGradientError`.
    """
    of_inner = inner_error(p, c, reach, dL, keys, k, num=num)
    of_weight = (num.value(1) + k.error) * (num.value(1) + p.weights) * (
        num.value(1) + gamma(2, p.unit, num=num)
    ) - num.value(1)
    largest = absolute(inner_gradient(dL, keys, k, num=num), num=num) + of_inner
    return k.weight * (of_weight * largest + of_inner) + (
        (num.value(1) + gamma(2, p.unit, num=num)) * weight_tiny(p, k, num=num) * largest
        + times_tiny(p, k, num=num)
    )


def score_gradient_term(
    p: GradientPrecision,
    c: GradientCounts,
    reach: Value,
    dL: Value,
    keys: list[GradientKey],
    k: GradientKey,
    other: Value,
    *,
    num: Arithmetic,
) -> GradientTerm:
    """The error that dS times the slope adds to dQ and dK, `other` being a component of the key or
    the query: its error where it is stored for that product.

    Lean: `Attention.Spec.scoreGradientTerm`.
    """
    dS = k.weight * inner_gradient(dL, keys, k, num=num)
    largest = absolute(k.slope, num=num) + k.slope_error
    error = (
        score_gradient_error(p, c, reach, dL, keys, k, num=num) * largest
        + absolute(dS, num=num) * k.slope_error
        + times_tiny(gradient_precision_grown(p), k, num=num)
    )
    return GradientTerm(
        size=k.weight * inner_size(dL, keys, k, num=num) * largest,
        error=error
        + p.stored * (absolute(dS, num=num) * absolute(k.slope, num=num) + error)
        + tiny_of(k.weight, gradient_precision_grown(p).stored_tiny, num=num),
        other=other,
    )


def weight_term(
    p: GradientPrecision, k: GradientKey, other: Value, *, num: Arithmetic
) -> GradientTerm:
    """The error that a weight adds to dV.

    Lean: `Attention.Spec.weightTerm`.
    """
    size = k.factor * k.weight
    return GradientTerm(
        size=size,
        error=size
        * (
            (num.value(1) + k.error)
            * (num.value(1) + p.weights)
            * (num.value(1) + p.factors)
            * (num.value(1) + p.stored)
            - num.value(1)
        )
        + (
            (
                k.factor * weight_tiny(p, k, num=num) * (num.value(1) + p.factors)
                + tiny_of(k.weight, gradient_precision_grown(p).tiny, num=num)
            )
            * (num.value(1) + p.stored)
            + tiny_of(k.weight, gradient_precision_grown(p).stored_tiny, num=num)
        ),
        other=other,
    )


def gradient_error(
    p: GradientPrecision,
    roundings: int,
    stores: int,
    scale: Value,
    reach: Value,
    terms: list[GradientTerm],
    *,
    num: Arithmetic,
) -> Value:
    """The error of scale · Σ x · y, where each y is stored up to `stores` times, a product goes
    through at most `roundings` roundings, there are no more products than that, and fewer
    additions, and the sum is multiplied by the scale in up to three. No part of the scale that
    multiplies the sum is larger than `reach`, nor is 1.

    Lean: `Attention.Spec.gradientError`.
    """
    sums = (num.value(1) + gamma(roundings, p.accumulation, num=num)) * (
        num.value(1) + gamma(3, p.unit, num=num)
    ) * power(num.value(1) + p.operands, stores, num=num) - num.value(1)
    lost = numeral(3, num=num) * p.tiny + numeral(stores, num=num) * p.operands_tiny
    return absolute(scale, num=num) * sum_over(
        lambda t: (t.error + sums * (t.size + t.error)) * absolute(t.other, num=num),
        terms,
        zero=num.value(0),
    ) + (num.value(1) + sums) * reach * (
        lost * (sum_over(lambda t: t.size + t.error, terms, zero=num.value(0)) + num.value(1))
        + numeral(2 * roundings, num=num) * p.tiny
    )


def total_error(
    accumulation: Value,
    stored: Value,
    tiny: Value,
    stored_tiny: Value,
    roundings: int,
    terms: list[GradientTerm],
    *,
    num: Arithmetic,
) -> Value:
    """The error of Σ x · y, where each x is stored once more, and a product goes through at most
    `roundings` roundings, of which there are no fewer than products: a sum over the heads that
    share keys, over what a bias is broadcast over, or over the queries of a sink. A product and
    the sum of two numbers may be off by `tiny` besides, a number that is stored by
    `storedTiny`.

    Lean: `Attention.Spec.totalError`.
    """
    sums = (num.value(1) + stored) * (
        num.value(1) + gamma(roundings, accumulation, num=num)
    ) - num.value(1)
    return sum_over(
        lambda t: (t.error + sums * (t.size + t.error)) * absolute(t.other, num=num),
        terms,
        zero=num.value(0),
    ) + (num.value(1) + gamma(roundings, accumulation, num=num)) * (
        stored_tiny * sum_over(lambda t: absolute(t.other, num=num), terms, zero=num.value(0))
        + numeral(2 * roundings, num=num) * tiny
    )
