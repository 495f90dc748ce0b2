"""The log-sum-exp.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/LogSumExp.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Score
from bridge.spec.online import State
from bridge.spec.softmax import denominator, weight


def is_log_sum_exp(L: Score | None, row: list[Score | None], *, num: Arithmetic) -> bool:
    """`L` is the log-sum-exp of a row of scores, ln Σ exp s: the one score that weighs as much as
    the whole row. It is `none` (−∞) when nothing weighs anything.

    Lean: `Attention.Spec.IsLogSumExp`.
    """
    return weight(L, num=num) == denominator(row, num=num)


def state_has_log_sum_exp(s: State, L: Score | None, *, num: Arithmetic) -> bool:
    """`L` is what a kernel writes beside the output, m + ln l, and −∞ for a state without a
    maximum: ln l is L − m.

    Lean: `Attention.Spec.Online.State.HasLogSumExp`.
    """
    if s.m is not None and L is not None:
        return num.exp(L - s.m) == s.l
    return s.m is None and L is None
