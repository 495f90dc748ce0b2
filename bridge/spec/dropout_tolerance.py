"""Tolerances with dropout.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/DropoutTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.tolerance import BoundedKey, Precision, numeral, tolerance


def more_roundings(p: Precision, roundings: int, more: Value, *, num: Arithmetic) -> Precision:
    """A precision whose `roundings` roundings of the numerator count for `more` roundings more.

    Lean: `Attention.Spec.moreRoundings`.
    """
    return Precision(
        unit=p.unit,
        accumulation=p.accumulation
        * (numeral(roundings, num=num) + more)
        / numeral(roundings, num=num),
        exponential=p.exponential,
        stored=p.stored,
        stored_tiny=p.stored_tiny,
        denominator=p.denominator,
    )


def dropout_tolerance(
    p: Precision,
    z: Value,
    roundings: int,
    rescalings: int,
    negligible: Value,
    row: list[BoundedKey],
    *,
    num: Arithmetic,
) -> Value:
    """The tolerance of one component of the output of a row with dropout, whose values are
    multiplied by their factors, of which `z` is the largest. The factor has 5 roundings and its
    product with weight or value one; the probability is rounded as it is given, which moves z
    by z − 1 units: z + 5 roundings more.

    Lean: `Attention.Spec.dropoutTolerance`.
    """
    return tolerance(
        more_roundings(p, roundings + 6, z + numeral(5, num=num), num=num),
        roundings,
        rescalings,
        negligible,
        row,
        num=num,
    )
