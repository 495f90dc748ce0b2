"""Slopes of score transformations.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Slopes.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import ScoreMod
from bridge.spec.core import Arithmetic, Dual, Score, Value
from bridge.spec.score_mods import tanh
from bridge.spec.tangent import ScoreSlope


def score_slope_one(*, num: Arithmetic) -> ScoreSlope:
    """The slope of masks and additive biases: 1.

    Lean: `Attention.Spec.ScoreSlope.one`.
    """
    return lambda _x, _x_1, _x_2: num.value(1)


def score_slope_softcap(cap: Value, *, num: Arithmetic) -> Callable[[int, int, Value], Value]:
    """The slope of softcap: 1 − tanh² (s / cap).

    Lean: `Attention.Spec.ScoreSlope.softcap`.
    """

    def function(_x: int, _x_1: int, s: Value) -> Any:
        t = tanh(s / cap, num=num)
        return num.value(1) - t * t

    return function


def score_slope_and_then(
    modify: ScoreMod, slope: ScoreSlope, slope_: ScoreSlope, *, num: Arithmetic
) -> ScoreSlope:
    """The slope of one transformation after the other: the product of the slopes, that of the
    second taken at what the first has made of the score.

    Lean: `Attention.Spec.ScoreSlope.andThen`.
    """

    def function(i: int, j: int, s: Score) -> Any:
        t = modify(i, j, s)
        if t is None:
            return num.value(0)
        return slope_(i, j, t) * slope(i, j, s)

    return function


def bias_dual(
    B: list[list[Value | None]], dB: list[list[Value]], *, q_len: int, kv_len: int
) -> list[list[Dual | None]]:
    """An additive bias that changes at the rates `dB`.

    Lean: `Attention.Spec.biasDual`.
    """
    return [
        [None if B[i][j] is None else Dual(B[i][j], dB[i][j]) for j in range(kv_len)]
        for i in range(q_len)
    ]


def bias_moved(
    B: list[list[Value | None]], t: Value, dB: list[list[Value]], *, q_len: int, kv_len: int
) -> list[list[Value | None]]:
    """The bias after time `t` at the rates `dB`; what is masked stays masked.

    Lean: `Attention.Spec.biasMoved`.
    """
    return [
        [None if B[i][j] is None else B[i][j] + t * dB[i][j] for j in range(kv_len)]
        for i in range(q_len)
    ]
