"""Maxima of scores, and weights against them.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Maximum.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Score, Value


def max_score(a: Score | None, b: Score | None) -> Score | None:
    """The larger of two scores; `none` stands for −∞.

    Lean: `Attention.Spec.maxScore`.
    """
    if a is None:
        return b
    if b is None:
        return a
    return b if a <= b else a


def row_max(row: list[Score | None]) -> Score | None:
    """The largest unmasked score of a row; `none` when every key is masked.

    Lean: `Attention.Spec.rowMax`.
    """
    result = None
    for s in reversed(row):
        result = max_score(s, result)
    return result


def rescale(s: Score | None, m: Score | None, *, num: Arithmetic) -> Value:
    """exp (s − m): the weight of `s` against the reference point `m`, and 0 when `s` is −∞.

    Lean: `Attention.Spec.rescale`.
    """
    return num.exp(s - m) if s is not None and m is not None else num.value(0)
