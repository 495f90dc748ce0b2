"""How far the rate of a score may be off after softcap.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/CappedRateTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tangent_tolerance import BoundedScoreRate
from bridge.spec.tolerance import Precision, numeral, power


def capped_rate_factor(p: Precision, f: ScoreFormats, *, num: Arithmetic) -> Value:
    """What three operations, a quotient and two products, and as many roundings to the format of
    scores make of a rate.

    Lean: `Attention.Spec.cappedRateFactor`.
    """
    return power(num.value(1) + p.unit, 3, num=num) * power(num.value(1) + f.scores, 3, num=num)


def bounded_score_rate_through_cap(
    p: Precision,
    f: ScoreFormats,
    cap: Value,
    slope: Value,
    slope_error: Value,
    b: BoundedScoreRate,
    *,
    num: Arithmetic,
) -> BoundedScoreRate:
    """The rate through softcap, whose derivative is `slope`, between 0 and 1, which may be off by
    `slopeError`. Its size is no less than what is computed for the slope has it. What is lost
    below the normal numbers meets the cap and the slope that is computed, or neither.

    Lean: `Attention.Spec.BoundedScoreRate.throughCap`.
    """
    return BoundedScoreRate(
        rate=slope * b.rate,
        size=(slope + slope_error) * b.size,
        error=(capped_rate_factor(p, f, num=num) - num.value(1))
        * ((slope + slope_error) * (b.size + b.error))
        + ((slope + slope_error) * b.error + slope_error * b.size)
        + capped_rate_factor(p, f, num=num)
        * (
            numeral(3, num=num)
            * (max(num.value(1), cap) * (num.value(1) + slope_error))
            * f.scores_tiny
        ),
    )
