"""Scales and other changes of scores: softcap, slopes, bias, sinks; heads of the keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from bridge.conformance.mutants.hypotheses.call import Call, Hypothesis, option, tensor
from pyimpl.internal.arguments import mask_as_4d, resolve_scale

LN2 = math.log(2.0)


def _scale_by(factor: Callable[[Call, float], float]) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        scale = factor(call, call.options.scale)
        return None if scale == call.options.scale else call.with_options(scale=scale)

    return change


def _base(call: Call) -> Call:
    """Every score times ln 2."""
    o = call.options
    return call.with_options(
        scale=o.scale * LN2,
        softcap=None if o.softcap is None else o.softcap * LN2,
        alibi_slopes=None if o.alibi_slopes is None else o.alibi_slopes * LN2,
        bias=None if o.bias is None else o.bias * LN2,
        sinks=None if o.sinks is None else o.sinks * LN2,
    )


def _without_bias(call: Call) -> dict[str, Any]:
    """−∞ still masks."""
    bias = tensor(call.options.bias)
    return {"bias": torch.where(torch.isneginf(bias), bias, 0.0)}


def _bias_times(factor: Callable[[Call], float]) -> Callable[[Call], dict[str, Any]]:
    def edit(call: Call) -> dict[str, Any]:
        bias = tensor(call.options.bias)
        return {"bias": torch.where(torch.isneginf(bias), bias, bias * factor(call))}

    return edit


def _signed_distance(call: Call) -> dict[str, Any]:
    slopes, (q_len, kv_len) = tensor(call.options.alibi_slopes), call.lengths
    place = torch.arange(q_len).unsqueeze(-1) + call.options.shift
    added = -slopes.double()[..., None, None] * (place - torch.arange(kv_len))
    if call.options.bias is not None:
        added = added + mask_as_4d(call.options.bias, q_len, kv_len)
    return {"alibi_slopes": None, "bias": added}


def _cap(call: Call) -> float:
    assert call.options.softcap is not None
    return call.options.softcap


def _heads_modulo(call: Call) -> Call | None:
    """Query head h reads head h modulo their number of the keys."""
    if call.group == 1 or call.key.shape[1] == 1:
        return None
    key, value = (x.repeat(1, call.group, 1, 1) for x in (call.key, call.value))
    return replace(call, key=key, value=value)


def _default_scale(call: Call, scale: float) -> float:
    return float(resolve_scale(None, call.query.shape[-1]))


SCALES = (
    Hypothesis("doubled-scale", "scores are scaled twice", _scale_by(lambda c, s: s * s)),
    Hypothesis("omitted-scale", "scores are not scaled at all", _scale_by(lambda c, s: 1.0)),
    Hypothesis(
        "wrong-scale", "1/√head_dim is used whatever scale is asked for", _scale_by(_default_scale)
    ),
    Hypothesis(
        "default-scale-too", "scores are multiplied by 1/√head_dim as well",
        _scale_by(lambda c, s: s * _default_scale(c, s)),
    ),
    Hypothesis(
        "divided-by-scale", "scores are divided by the scale",
        _scale_by(lambda c, s: 1.0 / s if s else s),
    ),
    Hypothesis(
        "root-of-scale", "scores are multiplied by the square root of the scale",
        _scale_by(lambda c, s: s**0.5 if s > 0 else s),
    ),
    Hypothesis(
        "head-dim-not-rooted", "the default scale is 1/head_dim, not its square root",
        _scale_by(lambda c, s: s * s if s == _default_scale(c, s) else s),
    ),
    Hypothesis("base-of-exponential", "log₂e is forgotten: 2^s instead of e^s", _base),
)  # fmt: skip
CHANGES = (
    Hypothesis(
        "softcap-omitted", "scores are not capped", option("softcap", lambda c: {"softcap": None})
    ),
    Hypothesis(
        "softcap-not-divided", "scores are not divided by the cap before the tanh",
        option("softcap", lambda c: {"scale": c.options.scale * _cap(c)}),
    ),
    Hypothesis(
        "softcap-not-multiplied", "the tanh is not multiplied by the cap",
        option("softcap", lambda c: {"scale": c.options.scale / _cap(c), "softcap": 1.0}),
    ),
    Hypothesis(
        "softcap-before-scale", "scores are capped before they are scaled",
        lambda c: (
            c.with_options(softcap=_cap(c) * c.options.scale)
            if c.options.softcap is not None and c.options.scale > 0 else None
        ),
    ),
    Hypothesis(
        "alibi-omitted", "the slopes are left out",
        option("alibi_slopes", lambda c: {"alibi_slopes": None}),
    ),
    Hypothesis(
        "alibi-sign", "ALiBi favours distant keys",
        option("alibi_slopes", lambda c: {"alibi_slopes": -tensor(c.options.alibi_slopes)}),
    ),
    Hypothesis(
        "alibi-signed-distance", "ALiBi favours keys after the query",
        option("alibi_slopes", _signed_distance),
    ),
    Hypothesis("bias-omitted", "the bias is left out", option("bias", _without_bias)),
    Hypothesis(
        "bias-base", "log₂e is forgotten for the bias", option("bias", _bias_times(lambda c: LN2))
    ),
    Hypothesis(
        "bias-scaled", "the bias is added before the scores are scaled",
        option("bias", _bias_times(lambda c: c.options.scale)),
    ),
    Hypothesis(
        "sink-left-out", "the sink is left out", option("sinks", lambda c: {"sinks": None})
    ),
    Hypothesis("gqa-modulo", "query head h uses head h % kv_heads of the keys", _heads_modulo),
)  # fmt: skip
