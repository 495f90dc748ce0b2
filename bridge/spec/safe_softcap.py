"""Softcap without the exponential of a positive number.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/SafeSoftcap.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import ScoreMod
from bridge.spec.core import Arithmetic, Score


def safe_tanh(x: Score, *, num: Arithmetic) -> Score:
    """The hyperbolic tangent: ±(1 − 2e / (1 + e)) with e = exp (−2|x|).

    Lean: `Attention.Spec.safeTanh`.
    """
    size = x if num.score(0) <= x else num.score(0) - x
    e = num.exp(num.score(0) - (size + size))
    t = num.score(1) - (e + e) / (num.score(1) + e)
    return t if num.score(0) <= x else num.score(0) - t


def score_mod_safe_softcap(cap: Score, *, num: Arithmetic) -> ScoreMod:
    """Softcap by this tangent.

    Lean: `Attention.Spec.ScoreMod.safeSoftcap`.
    """
    return lambda _x, _x_1, s: cap * safe_tanh(s / cap, num=num)
