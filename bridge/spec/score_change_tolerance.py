"""Tolerances of scores that are changed.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreChangeTolerance.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.score_mods import tanh
from bridge.spec.score_tolerance import ScoreFormats
from bridge.spec.tolerance import Precision, absolute, numeral


@dataclass(frozen=True)
class ScoreChange:
    """What becomes of the score of a query and a key before the softmax, in this order.

    cap: the score is squeezed into (−cap, cap) by softcap.

    added: a number that is added, of a bias or of ALiBi.

    Lean: `Attention.Spec.ScoreChange`.
    """

    cap: Value | None
    added: Value | None


def score_change_apply(change: ScoreChange, s: Value, *, num: Arithmetic) -> Value:
    """The score after its changes.

    Lean: `Attention.Spec.ScoreChange.apply`.
    """
    s_1 = s if change.cap is None else change.cap * tanh(s / change.cap, num=num)
    return s_1 if change.added is None else s_1 + change.added


def softcap_error(
    p: Precision, f: ScoreFormats, cap: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after softcap, where it is off by `error` before. The slope of
    tanh is at most 1; a quotient by the cap, a tanh and a product with the cap are off by 8
    roundings of the cap together, and the result is stored.

    Lean: `Attention.Spec.softcapError`.
    """
    return error + (numeral(8, num=num) * p.unit + f.scores) * cap


def added_error(
    p: Precision, f: ScoreFormats, a: Value, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after `a` is added, where `s` is the exact score before and
    `error` how far off that one is: both numbers, with their errors, and their sum are rounded
    twice and stored, each by (1 + u)² (1 + u_s) at most.

    Lean: `Attention.Spec.addedError`.
    """
    growth = (num.value(1) + p.unit) * (num.value(1) + p.unit) * (
        num.value(1) + f.scores
    ) - num.value(1)
    return (error + growth * absolute(a, num=num)) * (num.value(1) + growth) + growth * absolute(
        s + a, num=num
    )


def sink_error(p: Precision, sink: Value, *, num: Arithmetic) -> Value:
    """How far the score of a sink may be off, a number that is given and rounded twice: ((1 + u)²
    − 1) |sink|.

    Lean: `Attention.Spec.sinkError`.
    """
    return ((num.value(1) + p.unit) * (num.value(1) + p.unit) - num.value(1)) * absolute(
        sink, num=num
    )


def changed_error(
    p: Precision, f: ScoreFormats, change: ScoreChange, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after its changes, where `s` is the exact score before them and
    `error` how far off that one is.

    Lean: `Attention.Spec.changedError`.
    """
    if change.cap is None:
        error_1 = error
    else:
        error_1 = softcap_error(p, f, change.cap, error, num=num)
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
