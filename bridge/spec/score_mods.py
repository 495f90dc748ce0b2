"""Score transformations that are not masks: additive bias, ALiBi, softcap.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreMods.lean`.
"""

from __future__ import annotations

from typing import Any

from bridge.spec.attention import ScoreMod
from bridge.spec.core import Arithmetic, Score
from bridge.spec.masks import Alignment, alignment_shift


def score_mod_and_then(f: ScoreMod, g: ScoreMod) -> ScoreMod:
    """One transformation after the other; masked stays masked.

    Lean: `Attention.Spec.ScoreMod.andThen`.
    """

    def function(i: int, j: int, s: Score) -> Any:
        found = f(i, j, s)
        return None if found is None else g(i, j, found)

    return function


def score_mod_bias(B: list[list[Score | None]]) -> ScoreMod:
    """Additive bias: an entry of the matrix is added to the score; `none` masks the pair.

    Lean: `Attention.Spec.ScoreMod.bias`.
    """
    return lambda i, j, s: None if B[i][j] is None else s + B[i][j]


def distance(alignment: Alignment, i: int, j: int, *, q_len: int, kv_len: int) -> int:
    """How far query `i` is from key `j`, on either side.

    Lean: `Attention.Spec.distance`.
    """
    return abs(i + alignment_shift(q_len, kv_len, alignment) - j)


def score_mod_alibi(
    alignment: Alignment, slope: Score, *, q_len: int, kv_len: int, num: Arithmetic
) -> ScoreMod:
    """Attention with linear biases: the distance of query and key, times −slope, is added. Source:
    Press et al. 2022, "Train Short, Test Long", section 3; without a causal mask and for
    unequal lengths as in flash-attention's `alibi_slopes`.

    Lean: `Attention.Spec.ScoreMod.alibi`.
    """
    return lambda i, j, s: (
        s + slope * num.score(-distance(alignment, i, j, q_len=q_len, kv_len=kv_len))
    )


def tanh(x: Score, *, num: Arithmetic) -> Score:
    """The hyperbolic tangent, (e − 1) / (e + 1) with e = exp 2x.

    Lean: `Attention.Spec.tanh`.
    """
    e = num.exp(x + x)
    return (e - num.score(1)) / (e + num.score(1))


def score_mod_softcap(cap: Score, *, num: Arithmetic) -> ScoreMod:
    """Softcap: the score is squeezed into (−cap, cap). Source: Gemma Team 2024, "Gemma 2", section
    2, "Logit soft-capping".

    Lean: `Attention.Spec.ScoreMod.softcap`.
    """
    return lambda _x, _x_1, s: cap * tanh(s / cap, num=num)
