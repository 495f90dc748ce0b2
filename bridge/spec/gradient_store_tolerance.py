"""How far a gradient may be off that is stored at the end.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/GradientStoreTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.gradient_tolerance import GradientPrecision, GradientTerm, total_error
from bridge.spec.stored_gradient_tolerance import tiled_gradient_error
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import absolute


def present_error(
    scale: Value, error: Value, terms: list[GradientTerm], *, num: Arithmetic
) -> Value:
    """The error of scale · Σ x · y, of which `error` is a bound: 0 where every product is 0, as in
    a sum over keys that are all masked.

    Lean: `Attention.Spec.presentError`.
    """
    if absolute(scale, num=num) * sum_over(
        lambda t: (t.size + t.error) * absolute(t.other, num=num), terms, zero=num.value(0)
    ) <= num.value(0):
        return num.value(0)
    return error


def present_gradient_term(
    p: GradientPrecision,
    roundings: int,
    stores: int,
    tiles: int,
    scale: Value,
    reach: Value,
    terms: list[GradientTerm],
    *,
    num: Arithmetic,
) -> GradientTerm:
    """A gradient scale · Σ x · y as a number that is off itself, where it is added to those of
    other heads.

    Lean: `Attention.Spec.presentGradientTerm`.
    """
    return GradientTerm(
        size=absolute(scale, num=num)
        * sum_over(lambda t: t.size * absolute(t.other, num=num), terms, zero=num.value(0)),
        error=present_error(
            scale,
            tiled_gradient_error(p, roundings, stores, tiles, scale, reach, terms, num=num),
            terms,
            num=num,
        ),
        other=num.value(1),
    )


def shared_gradient_error(
    p: GradientPrecision, tiny: Value, roundings: int, heads: list[GradientTerm], *, num: Arithmetic
) -> Value:
    """The error of the gradient by a key or a value of which these are the gradients of the heads
    that share it: those of several heads are stored in the format of the output, where they may
    be off by `tiny` below its normal numbers, and then added.

    Lean: `Attention.Spec.sharedGradientError`.
    """
    if heads and (not heads[1:]):
        return heads[0].error
    return present_error(
        num.value(1),
        total_error(p.accumulation, p.output, p.tiny, tiny, roundings, heads, num=num),
        heads,
        num=num,
    )


def stored_gradient_error(
    stored: Value, stored_tiny: Value, exact: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a gradient may be off that is `exact`, computed up to `error`, and stored at the end
    in a format of unit roundoff `stored` whose numbers below the normal ones are off by at most
    `storedTiny`: a 0 that is known to be exact is stored as 0.

    Lean: `Attention.Spec.storedGradientError`.
    """
    if absolute(exact, num=num) + error <= num.value(0):
        return num.value(0)
    return error + stored * (absolute(exact, num=num) + error) + stored_tiny
