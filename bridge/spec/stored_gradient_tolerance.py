"""How far gradients may be off that are added up in a small format.

Written by `.venv/bin/python -m bridge translate` from
`Attention/Spec/StoredGradientTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.gradient_tolerance import GradientPrecision, GradientTerm
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import absolute, gamma, numeral, power


def tiled_gradient_error(
    p: GradientPrecision,
    roundings: int,
    stores: int,
    tiles: int,
    scale: Value,
    reach: Value,
    terms: list[GradientTerm],
    *,
    num: Arithmetic,
) -> Value:
    """The error of scale · Σ x · y, as `gradientError`, where up to `tiles` times what a tile
    adds, or a sum that it is part of, is stored in the format of the output before the whole
    is. There are at most `tiles` + 1 tiles, which `tiles` additions put together, and 2 `tiles`
    stores of what they add and of sums together. No product of the last parts of the scale,
    which multiply the sum of a tile or the whole, is larger than `reach`, nor is 1.

    Lean: `Attention.Spec.tiledGradientError`.
    """
    sums = (num.value(1) + gamma(roundings, p.accumulation, num=num)) * (
        num.value(1) + gamma(3, p.unit, num=num)
    ) * power(num.value(1) + p.operands, stores, num=num) * power(
        num.value(1) + p.output, tiles, num=num
    ) - num.value(1)
    lost = numeral(3, num=num) * p.tiny + numeral(stores, num=num) * p.operands_tiny
    return absolute(scale, num=num) * sum_over(
        lambda t: (t.error + sums * (t.size + t.error)) * absolute(t.other, num=num),
        terms,
        zero=num.value(0),
    ) + (num.value(1) + sums) * reach * (
        lost
        * (
            sum_over(lambda t: t.size + t.error, terms, zero=num.value(0))
            + numeral(tiles + 1, num=num)
        )
        + (
            numeral(2 * roundings + tiles, num=num) * p.tiny
            + numeral(2 * tiles, num=num) * p.output_tiny
        )
    )
