"""How far the state of a cache may be from the exact one.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/StateTolerance.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.maximum import max_score, rescale
from bridge.spec.tolerance import absolute, numeral


@dataclass(frozen=True)
class BoundedColumn:
    """A column of a state, and how far a computed one may be from it.

    m: the reference point, `none` before the first unmasked key.

    value: σ exp (s − m) · v.

    error: the largest error.

    Lean: `Attention.Spec.BoundedColumn`.
    """

    m: Value | None
    value: Value
    error: Value


def second_order(*, num: Arithmetic) -> Value:
    """The factor that allows for products of two errors: 1.02.

    Lean: `Attention.Spec.secondOrder`.
    """
    return numeral(51, num=num) / numeral(50, num=num)


def weight_error(
    u: Value, nu: Value, s: Value | None, m: Value | None, *, num: Arithmetic
) -> Value:
    """How far a weight exp (s − m) is off, as a share of itself, where each score is rounded twice
    and their difference once, or flushed to 0 where it is `ν` at most: 4 u for the exponential,
    u (2 |s| + 2 |m| + |s − m|), and ν.

    Lean: `Attention.Spec.weightError`.
    """
    if s is not None and m is not None:
        return numeral(4, num=num) * u + (
            u
            * (
                numeral(2, num=num) * absolute(s, num=num)
                + numeral(2, num=num) * absolute(m, num=num)
                + absolute(s - m, num=num)
            )
            + nu
        )
    return num.value(0)


def bounded_column_append(
    u: Value, nu: Value, c: BoundedColumn, s: Value | None, v: Value, *, num: Arithmetic
) -> BoundedColumn:
    """One more key, with score `s` and value `v`. Weights, products and sums below the normal
    numbers are off by `ν` at most: those of the new key and of what was there.

    Lean: `Attention.Spec.BoundedColumn.append`.
    """
    m = max_score(c.m, s)
    alpha = rescale(c.m, m, num=num)
    p = rescale(s, m, num=num)
    return BoundedColumn(
        m=m,
        value=alpha * c.value + p * v,
        error=alpha * c.error
        + second_order(num=num)
        * (
            (weight_error(u, nu, c.m, m, num=num) + numeral(2, num=num) * u)
            * (alpha * (absolute(c.value, num=num) + c.error))
            + (weight_error(u, nu, s, m, num=num) + numeral(2, num=num) * u)
            * (p * absolute(v, num=num))
            + nu
            * (absolute(c.value, num=num) + c.error + absolute(v, num=num) + numeral(3, num=num))
        ),
    )


def bounded_column_delete(
    u: Value, nu: Value, c: BoundedColumn, s: Value | None, v: Value, *, num: Arithmetic
) -> BoundedColumn:
    """The terms of a key, with score `s` and value `v`, subtracted.

    Lean: `Attention.Spec.BoundedColumn.delete`.
    """
    p = rescale(s, c.m, num=num)
    return BoundedColumn(
        m=c.m,
        value=c.value - p * v,
        error=c.error
        + second_order(num=num)
        * (
            u * (absolute(c.value, num=num) + c.error)
            + (weight_error(u, nu, s, c.m, num=num) + numeral(2, num=num) * u)
            * (p * absolute(v, num=num))
            + nu * (absolute(v, num=num) + numeral(2, num=num))
        ),
    )
