"""A temperature for each head.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreTemperature.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.attention import ScoreMod
from bridge.spec.backward import Gradients, vjp
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.tangent import ScoreSlope, matrix_inner
from bridge.spec.vector import vec_smul


def score_mod_temperature(t: Score) -> ScoreMod:
    """Each score of the head, times its temperature `t`.

    Lean: `Attention.Spec.ScoreMod.temperature`.
    """
    return lambda _x, _x_1, s: t * s


def scale_rows(t: Value, A: list[list[Value]], *, m: int) -> list[list[Value]]:
    """A matrix multiplied by a number, row by row.

    Lean: `Attention.Spec.scaleRows`.
    """
    return [vec_smul(t, A[i]) for i in range(m)]


@dataclass(frozen=True)
class TemperatureGradients:
    """The gradients of a loss by the inputs of a head and by its temperature.

    inputs: by queries, keys, values and a bias.

    dTemperature: by the temperature.

    Lean: `Attention.Spec.TemperatureGradients`.
    """

    inputs: Gradients
    dTemperature: Value


def temperature_vjp(
    scale: Score,
    t: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    to_value: Callable[[Score], Value],
    dO: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> TemperatureGradients:
    """The backward pass of a head with a temperature: that of attention at the queries times t,
    and the chain rule. With dQ' the gradient by those, dQ = t · dQ', and the gradient by t is
    ⟨dQ', Q⟩.

    Lean: `Attention.Spec.temperatureVjp`.
    """
    g = vjp(
        scale,
        modify,
        slope,
        scale_rows(t, Q, m=q_len),
        K,
        V,
        to_value,
        dO,
        dLse,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )
    return TemperatureGradients(
        inputs=Gradients(
            dQ=scale_rows(to_value(t), g.dQ, m=q_len), dK=g.dK, dV=g.dV, dBias=g.dBias
        ),
        dTemperature=matrix_inner(
            g.dQ,
            [[to_value(x) for x in Q[i]] for i in range(q_len)],
            m=q_len,
            n=d,
            zero=num.value(0),
        ),
    )
