"""How the input of a vector of tangents is given to the translated definition that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import spec_calls

from bridge.spec.attention import ScoreMod, score
from bridge.spec.core import Dual
from bridge.spec.tangent import jvp, jvp_sink, lse_tangent, matrix_dual
from bridge.vectors.model.tangents import TangentVector


def dual(v: TangentVector, x: Any, rate: Any) -> Dual:
    return Dual(spec_calls.number(v, x), spec_calls.number(v, rate))


def modify_of(v: TangentVector) -> ScoreMod:
    """The changes of scores, whose numbers have rates."""
    given: dict[str, Any] = {}
    if v.softcap is not None:
        given["softcap"] = dual(v, v.softcap, 0)
    if v.alibi is not None:
        given["alibi"] = replace(v.alibi, slope=dual(v, v.alibi.slope, v.tangent_slope))
    if v.bias is not None:
        given["bias"] = [
            [None if b is None else dual(v, b, v.rate_of_bias(i, j)) for j, b in enumerate(row)]
            for i, row in enumerate(v.bias)
        ]
    with_rates = replace(v.attention(), **given)
    return spec_calls.changes_of(with_rates, lambda x: x, spec_calls.NATURAL.dual())


def _tangents(v: TangentVector) -> list[Any]:
    """Of each row the rates of the output, then that of the log-sum-exp, none where it is −∞."""
    modify, scale = modify_of(v), spec_calls.scale_of(v.attention())
    given = [
        spec_calls.values(v, getattr(v, f"{rate}{name}"))
        for name in "qkv"
        for rate in ("", "tangent_")
    ]
    size, num = spec_calls.sizes(v), spec_calls.NATURAL
    if v.sink is None:
        outputs = jvp(scale, modify, *given, **size)
    else:
        sink = spec_calls.number(v, v.sink), spec_calls.number(v, v.tangent_sink)
        outputs = jvp_sink(scale, modify, *sink, *given, **size)
    q, d_q, k, d_k, *_ = given
    rows = []
    for i, output in enumerate(outputs):
        scores = [] if v.sink is None else [dual(v, v.sink, v.tangent_sink)]
        scores += [
            score(
                Dual(scale, num.value(0)), modify,
                matrix_dual(q, d_q, m=v.q_len, n=v.head_dim),
                matrix_dual(k, d_k, m=v.kv_len, n=v.head_dim),
                i, j, d=v.head_dim, num=num.dual(),
            )
            for j in range(v.kv_len)
        ]  # fmt: skip
        seen = any(x is not None for x in scores)
        rows.append([*output, *([lse_tangent(scores, num=num)] if seen else [])])
    return rows


CALLS: Mapping[str, Callable[[Any], Any]] = {"jvp": _tangents, "jvpSink": _tangents}
