"""Softmax of one row of scores.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Softmax.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.maximum import rescale, row_max
from bridge.spec.sum import sum_over


def weight(s: Score | None, *, num: Arithmetic) -> Value:
    """The unnormalised weight of a score: exp s, and 0 for a masked one.

    Lean: `Attention.Spec.weight`.
    """
    return num.value(0) if s is None else num.exp(s)


def denominator(row: list[Score | None], *, num: Arithmetic) -> Value:
    """The softmax denominator Σ exp s over the unmasked scores.

    Lean: `Attention.Spec.denominator`.
    """
    return sum_over(lambda x: weight(x, num=num), row, zero=num.value(0))


def softmax(row: list[Score | None], *, num: Arithmetic) -> list[Value]:
    """Softmax: pⱼ = exp sⱼ / Σ exp s, and 0 for a masked key.

    Lean: `Attention.Spec.softmax`.
    """
    l = denominator(row, num=num)
    return [num.value(0) if s is None else num.exp(s) / l for s in row]


def safe_softmax(row: list[Score | None], *, num: Arithmetic) -> list[Value]:
    """Softmax as every kernel computes it, the maximum subtracted first: pⱼ = exp (sⱼ − m) / Σ exp
    (s − m).

    Lean: `Attention.Spec.safeSoftmax`.
    """
    m = row_max(row)
    l = sum_over(lambda s: rescale(s, m, num=num), row, zero=num.value(0))
    return [num.value(0) if s is None else rescale(s, m, num=num) / l for s in row]
