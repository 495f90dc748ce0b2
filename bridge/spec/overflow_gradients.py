"""Inputs of whose gradients none overflows.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/OverflowGradients.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from bridge.spec.core import Arithmetic, Value
from bridge.spec.dropout import WeightFactor
from bridge.spec.gradient_tolerance import GradientCounts, GradientPrecision, mean_growth, mean_lost
from bridge.spec.score_tolerance import magnitude
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import absolute, numeral, power, smaller


@dataclass(frozen=True)
class LargestGradient:
    """The largest numbers of the formats of a backward pass.

    accumulator: of sums, products and gradients.

    weights: of weights where they are stored before they multiply G.

    stored: of weights and dS where they are stored for values, keys and queries.

    scores: of dP where it is stored.

    operands: of keys, queries and sums where they are stored in the format of operands.

    output: of the gradients that are the result.

    Lean: `Attention.Spec.LargestGradient`.
    """

    accumulator: Value
    weights: Value
    stored: Value
    scores: Value
    operands: Value
    output: Value


def below_size(u: Value, eta: Value, k: int, x: Value, *, num: Arithmetic) -> Value:
    """No number is larger that was `x` in size and is rounded or stored up to `k` times.

    Lean: `Attention.Spec.belowSize`.
    """
    return power(num.value(1) + u, k, num=num) * (x + numeral(k, num=num) * eta)


def sum_size(p: GradientPrecision, k: int, total: Value, *, num: Arithmetic) -> Value:
    """No sum of up to `k` products is larger, nor a part of it, in whatever order they are added,
    where their sizes are `total` together and none goes through more than `k` roundings. Each
    product and each addition may lose `p.tiny`.

    Lean: `Attention.Spec.sumSize`.
    """
    return power(num.value(1) + p.accumulation, k, num=num) * (
        total + numeral(2 * k, num=num) * p.tiny
    )


def dot_size(
    p: GradientPrecision,
    c: GradientCounts,
    dO: list[Value],
    v: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No part of ⟨dO, v⟩ is larger, in whatever order its terms are added.

    Lean: `Attention.Spec.dotSize`.
    """
    return sum_size(p, c.products, magnitude(dO, v, d=d, num=num), num=num)


def factored_size(
    p: GradientPrecision,
    c: GradientCounts,
    factor: Value,
    dO: list[Value],
    v: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No dP is larger before it is stored: the product with dropout's factor.

    Lean: `Attention.Spec.factoredSize`.
    """
    return factor * dot_size(p, c, dO, v, d=d, num=num) * (num.value(1) + p.factors) + p.tiny


def outer_size(
    p: GradientPrecision,
    c: GradientCounts,
    factor: Value,
    dO: list[Value],
    v: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """No dP is larger.

    Lean: `Attention.Spec.outerSize`.
    """
    return below_size(
        p.scores, p.scores_tiny, 1, factored_size(p, c, factor, dO, v, d=d, num=num), num=num
    )


def outer_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    c: GradientCounts,
    factor: Value,
    dO: list[Value],
    v: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> bool:
    """The numbers of which a dP is made are in the range.

    Lean: `Attention.Spec.outerFits`.
    """
    return dot_size(p, c, dO, v, d=d, num=num) <= largest.accumulator and factored_size(
        p, c, factor, dO, v, d=d, num=num
    ) <= smaller(largest.accumulator, largest.scores)


def mean_weight_size(
    p: GradientPrecision, c: GradientCounts, error: Value, weight: Value, *, num: Arithmetic
) -> Value:
    """No weight of which D is made is larger, which is `weight` in exact arithmetic.

    Lean: `Attention.Spec.meanWeightSize`.
    """
    return below_size(
        p.stored,
        p.stored_tiny * mean_growth(p, c, error, num=num),
        1,
        (num.value(1) + error) * weight + numeral(2, num=num) * mean_lost(p, c, error, num=num),
        num=num,
    )


def delta_size(
    p: GradientPrecision,
    c: GradientCounts,
    n: int,
    error: Value,
    reach: Value,
    outer: Value,
    *,
    num: Arithmetic,
) -> Value:
    """No part of D is larger, the mean of `n` numbers dP of the size `outer`, in whatever order
    and in whichever way it is computed. `reach` is Σ |dO|.

    Lean: `Attention.Spec.deltaSize`.
    """
    return (
        power(num.value(1) + p.accumulation, c.delta, num=num)
        * (
            (num.value(1) + p.factors)
            * (num.value(1) + p.output)
            / power(num.value(1) - p.exponential, c.rescalings + 1, num=num)
        )
        * (
            (
                (num.value(1) + p.stored) * (num.value(1) + error)
                + numeral(n, num=num) * mean_weight_size(p, c, error, num.value(0), num=num)
            )
            * outer
            + numeral(n, num=num) * mean_lost(p, c, error, num=num) * (numeral(2, num=num) + reach)
            + (p.output_tiny * reach + numeral(2 * c.products, num=num) * p.tiny)
        )
    )


def recomputed_size(p: GradientPrecision, error: Value, weight: Value, *, num: Arithmetic) -> Value:
    """No weight that multiplies G or meets dO is larger, which is `weight` in exact arithmetic.

    Lean: `Attention.Spec.recomputedSize`.
    """
    return below_size(
        p.weights, p.weights_tiny, 1, (num.value(1) + error) * weight + p.tiny, num=num
    )


def score_gradient_size(
    p: GradientPrecision, error: Value, inner: Value, weight: Value, *, num: Arithmetic
) -> Value:
    """No dS is larger whose G is at most `inner`.

    Lean: `Attention.Spec.scoreGradientSize`.
    """
    return below_size(
        p.unit, p.tiny, 2, recomputed_size(p, error, weight, num=num) * inner, num=num
    )


def sloped_size(
    p: GradientPrecision,
    error: Value,
    slope: Value,
    inner: Value,
    weight: Value,
    *,
    num: Arithmetic,
) -> Value:
    """Nor is dS times a slope, which is at most `slope`, where it is stored.

    Lean: `Attention.Spec.slopedSize`.
    """
    return below_size(
        p.stored,
        p.stored_tiny,
        1,
        below_size(
            p.unit,
            p.tiny,
            2,
            score_gradient_size(p, error, inner, weight, num=num) * slope,
            num=num,
        ),
        num=num,
    )


def weight_term_size(
    p: GradientPrecision, error: Value, factor: Value, *, num: Arithmetic
) -> Value:
    """No weight is larger where it meets dO, multiplied by dropout's factor and stored.

    Lean: `Attention.Spec.weightTermSize`.
    """
    return below_size(
        p.stored,
        p.stored_tiny,
        1,
        factor * recomputed_size(p, error, num.value(1), num=num) * (num.value(1) + p.factors)
        + p.tiny,
        num=num,
    )


def row_outer_size(
    p: GradientPrecision,
    c: GradientCounts,
    factor: Callable[[int], Value],
    value: Callable[[int], list[Value]],
    dO: list[Value],
    *,
    n: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The largest size of a dP of a row.

    Lean: `Attention.Spec.rowOuterSize`.
    """
    result = num.value(0)
    for j in range(n):
        result = max(result, outer_size(p, c, factor(j), dO, value(j), d=d_v, num=num))
    return result


def row_delta_size(
    p: GradientPrecision,
    c: GradientCounts,
    error: Value,
    factor: Callable[[int], Value],
    value: Callable[[int], list[Value]],
    dO: list[Value],
    *,
    n: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The size of a D of a row.

    Lean: `Attention.Spec.rowDeltaSize`.
    """
    return delta_size(
        p,
        c,
        n,
        error,
        sum_over(lambda i: absolute(dO[i], num=num), list(range(d_v)), zero=num.value(0)),
        row_outer_size(p, c, factor, value, dO, n=n, d_v=d_v, num=num),
        num=num,
    )


def row_inner_size(
    p: GradientPrecision,
    c: GradientCounts,
    error: Value,
    factor: Callable[[int], Value],
    value: Callable[[int], list[Value]],
    dO: list[Value],
    dL: Value,
    *,
    n: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The size of a G of a row, and of its parts: dP − D + dL, in whatever order.

    Lean: `Attention.Spec.rowInnerSize`.
    """
    return power(num.value(1) + p.unit, 3, num=num) * (
        row_outer_size(p, c, factor, value, dO, n=n, d_v=d_v, num=num)
        + row_delta_size(p, c, error, factor, value, dO, n=n, d_v=d_v, num=num)
        + absolute(dL, num=num)
        + numeral(3, num=num) * p.tiny
    )


def gradient_row_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    c: GradientCounts,
    error: Value,
    slope: Value,
    factor: Callable[[int], Value],
    value: Callable[[int], list[Value]],
    dO: list[Value],
    dL: Value,
    *,
    n: int,
    d_v: int,
    num: Arithmetic,
) -> bool:
    """All numbers of a query row are in the range: dP, D, G, dS and its product with a slope. No D
    and no G is larger than dS may be. Masked keys count as others do, since a function may
    compute a dP of them, too. No weight is off by more than `error`, as a share of itself, and
    no computed slope is larger than `slope`.

    Lean: `Attention.Spec.gradientRowFits`.
    """
    inner = row_inner_size(p, c, error, factor, value, dO, dL, n=n, d_v=d_v, num=num)
    return (
        all((outer_fits(p, largest, c, factor(j), dO, value(j), d=d_v, num=num) for j in range(n)))
        and mean_weight_size(p, c, error, num.value(1), num=num)
        <= smaller(largest.accumulator, largest.stored)
        and (
            recomputed_size(p, error, num.value(1), num=num)
            <= smaller(largest.accumulator, largest.weights)
        )
        and (score_gradient_size(p, error, inner, num.value(1), num=num) <= largest.accumulator)
        and (
            sloped_size(p, error, slope, inner, num.value(1), num=num)
            <= smaller(largest.accumulator, largest.stored)
        )
    )


def operand_size(
    p: GradientPrecision, stores: int, part: Value, y: Value, *, num: Arithmetic
) -> Value:
    """No number that meets dS or a weight is larger: `y` times a part of the scale, stored.

    Lean: `Attention.Spec.operandSize`.
    """
    return below_size(
        p.operands,
        p.operands_tiny,
        stores,
        below_size(p.unit, p.tiny, 3, absolute(part, num=num) * absolute(y, num=num), num=num),
        num=num,
    )


def total_size(
    p: GradientPrecision, roundings: int, stores: int, total: Value, *, num: Arithmetic
) -> Value:
    """No sum of products is larger whose sizes are `total` together, nor where it is stored.

    Lean: `Attention.Spec.totalSize`.
    """
    return below_size(
        p.operands, p.operands_tiny, stores, sum_size(p, roundings, total, num=num), num=num
    )


def gradient_size(
    p: GradientPrecision, roundings: int, stores: int, rest: Value, total: Value, *, num: Arithmetic
) -> Value:
    """Nor is the gradient that it becomes, multiplied by the rest of the scale.

    Lean: `Attention.Spec.gradientSize`.
    """
    return below_size(
        p.unit,
        p.tiny,
        3,
        absolute(rest, num=num) * total_size(p, roundings, stores, total, num=num),
        num=num,
    )


def gradient_sum_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    roundings: int,
    stores: int,
    part: Value,
    rest: Value,
    y: Callable[[int], Value],
    total: Value,
    *,
    n: int,
    num: Arithmetic,
) -> bool:
    """All numbers of scale · Σ xⱼ yⱼ are in the range, of which each y is multiplied by `part` and
    the sum by `rest`, and where the sizes of x and `part` y come to `total`.

    Lean: `Attention.Spec.gradientSumFits`.
    """
    return (
        all(
            (
                operand_size(p, stores, part, y(j), num=num)
                <= smaller(largest.accumulator, largest.operands)
                for j in range(n)
            )
        )
        and total_size(p, roundings, stores, total, num=num)
        <= smaller(largest.accumulator, largest.operands)
        and (
            gradient_size(p, roundings, stores, rest, total, num=num)
            <= smaller(largest.accumulator, largest.output)
        )
    )


def row_total(
    p: GradientPrecision,
    stores: int,
    part: Value,
    error: Value,
    slope: Value,
    inner: Value,
    y: Callable[[int], Value],
    *,
    n: int,
    num: Arithmetic,
) -> Value:
    """The sizes of dS and of what it meets, over the keys of a row. As the weights of a row are 1
    together at most, it is the largest of the keys that counts, and of all what may underflow.

    Lean: `Attention.Spec.rowTotal`.
    """
    return (
        sloped_size(p, error, slope, inner, num.value(1), num=num)
        - sloped_size(p, error, slope, inner, num.value(0), num=num)
    ) * reduce(
        lambda x, j: max(x, operand_size(p, stores, part, y(j), num=num)), range(n), num.value(0)
    ) + sloped_size(p, error, slope, inner, num.value(0), num=num) * sum_over(
        lambda j: operand_size(p, stores, part, y(j), num=num), list(range(n)), zero=num.value(0)
    )


def query_gradient_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    c: GradientCounts,
    roundings: int,
    stores: int,
    error: Value,
    slope: Value,
    part: Value,
    rest: Value,
    K: list[list[Value]],
    V: list[list[Value]],
    Z: WeightFactor,
    dO: list[list[Value]],
    dLse: list[Value],
    i: int,
    t: int,
    *,
    d_v: int,
    kv_len: int,
    num: Arithmetic,
) -> bool:
    """Of component `t` of dQ of query `i` no number overflows.

    Lean: `Attention.Spec.queryGradientFits`.
    """
    inner = row_inner_size(
        p,
        c,
        error,
        lambda i_1: Z(i, i_1),
        lambda j: V[j],
        dO[i],
        dLse[i],
        n=kv_len,
        d_v=d_v,
        num=num,
    )
    return gradient_row_fits(
        p,
        largest,
        c,
        error,
        slope,
        lambda i_1: Z(i, i_1),
        lambda j: V[j],
        dO[i],
        dLse[i],
        n=kv_len,
        d_v=d_v,
        num=num,
    ) and gradient_sum_fits(
        p,
        largest,
        roundings,
        stores,
        part,
        rest,
        lambda j: K[j][t],
        row_total(p, stores, part, error, slope, inner, lambda j: K[j][t], n=kv_len, num=num),
        n=kv_len,
        num=num,
    )


def key_gradient_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    c: GradientCounts,
    roundings: int,
    stores: int,
    error: Value,
    slope: Value,
    part: Value,
    rest: Value,
    Q: list[list[Value]],
    V: list[list[Value]],
    Z: WeightFactor,
    dO: list[list[Value]],
    dLse: list[Value],
    t: int,
    *,
    d_v: int,
    q_len: int,
    kv_len: int,
    num: Arithmetic,
) -> bool:
    """Of component `t` of dK of a key no number overflows.

    Lean: `Attention.Spec.keyGradientFits`.
    """

    def inner(i: int) -> Any:
        return row_inner_size(
            p,
            c,
            error,
            lambda i_1: Z(i, i_1),
            lambda j: V[j],
            dO[i],
            dLse[i],
            n=kv_len,
            d_v=d_v,
            num=num,
        )

    return all(
        (
            gradient_row_fits(
                p,
                largest,
                c,
                error,
                slope,
                lambda i_1: Z(i, i_1),
                lambda j: V[j],
                dO[i],
                dLse[i],
                n=kv_len,
                d_v=d_v,
                num=num,
            )
            for i in range(q_len)
        )
    ) and gradient_sum_fits(
        p,
        largest,
        roundings,
        stores,
        part,
        rest,
        lambda i: Q[i][t],
        sum_over(
            lambda i: (
                sloped_size(p, error, slope, inner(i), num.value(1), num=num)
                * operand_size(p, stores, part, Q[i][t], num=num)
            ),
            list(range(q_len)),
            zero=num.value(0),
        ),
        n=q_len,
        num=num,
    )


def value_gradient_fits(
    p: GradientPrecision,
    largest: LargestGradient,
    roundings: int,
    stores: int,
    error: Value,
    Z: WeightFactor,
    dO: list[list[Value]],
    j: int,
    t: int,
    *,
    q_len: int,
    num: Arithmetic,
) -> bool:
    """Of component `t` of dV of key `j` no number overflows.

    Lean: `Attention.Spec.valueGradientFits`.
    """
    return (
        recomputed_size(p, error, num.value(1), num=num)
        <= smaller(largest.accumulator, largest.weights)
        and all(
            (
                weight_term_size(p, error, Z(i, j), num=num)
                <= smaller(largest.accumulator, largest.stored)
                for i in range(q_len)
            )
        )
        and gradient_sum_fits(
            p,
            largest,
            roundings,
            stores,
            num.value(1),
            num.value(1),
            lambda i: dO[i][t],
            sum_over(
                lambda i: (
                    weight_term_size(p, error, Z(i, j), num=num)
                    * operand_size(p, stores, num.value(1), dO[i][t], num=num)
                ),
                list(range(q_len)),
                zero=num.value(0),
            ),
            n=q_len,
            num=num,
        )
    )
