"""Combining the outputs of splits.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Combine.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.attention import ScoredValue, attend
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.log_sum_exp import is_log_sum_exp
from bridge.spec.maximum import rescale
from bridge.spec.vector import vec_smul, vec_sum_over


@dataclass(frozen=True)
class Partial:
    """The result of a split: its output and its log-sum-exp.

    o: the attention over the keys of the split.

    lse: the log-sum-exp of their scores; `none` (−∞) when all are masked.

    Lean: `Attention.Spec.Partial`.
    """

    o: list[Value]
    lse: Score | None


def partial_to_key(part: Partial) -> ScoredValue:
    """A split as one key: its log-sum-exp is the score, its output the value.

    Lean: `Attention.Spec.Partial.toKey`.
    """
    return ScoredValue(score=part.lse, value=part.o)


def is_partial(part: Partial, row: list[ScoredValue], *, d: int, num: Arithmetic) -> bool:
    """The partial result is that of the keys `row`.

    Lean: `Attention.Spec.IsPartial`.
    """
    return part.o == attend(row, d_v=d, num=num) and is_log_sum_exp(
        part.lse, [x.score for x in row], num=num
    )


def combine(L: Score | None, parts: list[Partial], *, d: int, num: Arithmetic) -> list[Value]:
    """The output over all splits from what each has written: Σ exp (Lₖ − L) · Oₖ, with `L` the
    log-sum-exp of the Lₖ.

    Lean: `Attention.Spec.combine`.
    """
    return vec_sum_over(
        lambda part: vec_smul(rescale(part.lse, L, num=num), part.o), parts, d=d, zero=num.value(0)
    )
