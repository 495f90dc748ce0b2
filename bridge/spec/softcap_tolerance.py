"""Tolerances of softcap where scores are far off.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/SoftcapTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.gradient_tolerance import softcap_slope_error
from bridge.spec.score_change_tolerance import ScoreChange, added_error, score_change_apply
from bridge.spec.score_mods import tanh
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import Precision, numeral, smaller


def tanh_error(unit: Value, tiny: Value, cap: Value, error: Value, *, num: Arithmetic) -> Value:
    """How far tanh (s / cap) may be off, where the score s is off by `error`: no more than s / cap
    is, and no more than 2; and 8 roundings, and three of a quotient below the normal numbers,
    which are off by `tiny` each and rounded.

    Lean: `Attention.Spec.tanhError`.
    """
    return (
        smaller(error / cap, numeral(2, num=num))
        + numeral(8, num=num) * unit
        + numeral(4, num=num) * tiny
    )


def capped_error(
    p: Precision, f: ScoreFormats, cap: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far cap · tanh (s / cap) may be off once it is stored: no more than s is, and no more
    than 2 cap; 8 roundings of the cap and a store of it.

    Lean: `Attention.Spec.cappedError`.
    """
    return (
        smaller(error, numeral(2, num=num) * cap)
        + (numeral(8, num=num) * p.unit + f.scores) * cap
        + f.scores_tiny
    )


def capped_change_error(
    p: Precision, f: ScoreFormats, change: ScoreChange, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after its changes, as `changedError`, with `cappedError` for
    softcap.

    Lean: `Attention.Spec.cappedChangeError`.
    """
    if change.cap is None:
        error_1 = error
    else:
        error_1 = capped_error(p, f, change.cap, error, num=num)
    if change.added is None:
        return error_1
    return added_error(
        p,
        f,
        change.added,
        score_change_apply(ScoreChange(cap=change.cap, added=None), s, num=num),
        error_1,
        num=num,
    )


def capped_slope_error(
    unit: Value, tiny: Value, cap: Value, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far 1 − tanh² (s / cap), the slope of softcap, may be off, where s is off by `error`,
    and quotient and square by `tiny` below the normal numbers.

    Lean: `Attention.Spec.cappedSlopeError`.
    """
    return softcap_slope_error(
        unit, tiny, tanh(s / cap, num=num), tanh_error(unit, tiny, cap, error, num=num), num=num
    )
