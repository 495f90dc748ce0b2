"""How the input of a vector of gradients is given to the translated definition that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Any

import spec_calls

from bridge.spec import attention as plain
from bridge.spec import (
    backward_dropout,
    backward_heads,
    backward_one_loop,
    backward_options,
    backward_tiles,
    dropout,
    keep_mask,
    log_sum_exp,
    score_temperature,
    slopes,
)
from bridge.spec import flash as tile_loop
from bridge.spec import online as states
from bridge.spec.core import EXACT
from bridge.spec.masks import Alignment
from bridge.spec.schedule import TileKind, TileRange
from bridge.vectors.model.gradients import GradientVector


def backward_inputs(v: GradientVector) -> tuple[Any, ...]:
    """scale, modify, slope, Q, K, V, dO and dLse, head by head; modify and slope take the head
    first."""
    num = spec_calls.arithmetic(v)
    heads = v.attentions()
    modify = [spec_calls.modify_of(head) for head in heads]
    slope = slopes.score_slope_one(num=num)
    if v.softcap is not None:
        slope = slopes.score_slope_softcap(spec_calls.number(v, v.softcap), num=num)
    return (
        spec_calls.scale_of(heads[0]),
        lambda h, i, j, s: modify[h](i, j, s),
        lambda h, i, j, s: slope(i, j, s),
        [spec_calls.matrix(v, q) for q in v.q],
        [spec_calls.matrix(v, k) for k in v.k],
        [spec_calls.values(v, x) for x in v.v],
        [spec_calls.values(v, x) for x in v.grad_output],
        spec_calls.values(v, v.grad_log_sum_exp),
    )


def groups(v: GradientVector) -> dict[str, Any]:
    """The sizes of groups of heads that share keys and values: gradients are added up over them."""
    sizes = {name: n for name, n in spec_calls.sizes(v).items() if name != "q_len"}
    return {**sizes, "num_kv_heads": v.num_kv_heads, "group": v.num_heads // v.num_kv_heads}


def _sizes(v: GradientVector) -> dict[str, Any]:
    return {"q_len": v.q_len, **groups(v)}


def _vjp(v: GradientVector) -> Any:
    scale, modify, slope, *others = backward_inputs(v)
    found = backward_heads.grouped_query_vjp(
        scale, modify, slope, *others[:3], to_value(v), *others[3:], **_sizes(v)
    )
    return _with_options(v, found)


def _sink_vjp(v: GradientVector) -> Any:
    scale, modify, slope, *others = backward_inputs(v)
    assert v.sinks is not None
    sinks = [spec_calls.number(v, x) for x in v.sinks]
    found = backward_options.sink_vjp(
        scale, modify, slope, sinks, *others[:3], to_value(v), *others[3:], **_sizes(v)
    )
    return [*_with_options(v, found.inputs), found.dSinks]


def _temperature_vjp(v: GradientVector) -> Any:
    """One head at a time; dK and dV summed over those that share keys and values."""
    scale, modify, slope, q, k, value, dO, dLse = backward_inputs(v)
    assert v.temperature is not None
    group, size = v.num_heads // v.num_kv_heads, spec_calls.sizes(v)
    each = [
        score_temperature.temperature_vjp(
            scale, spec_calls.score_number(v, t), partial(modify, h), partial(slope, h), q[h],
            k[h // group], value[h // group], to_value(v), dO[h], dLse[h], **size,
        )
        for h, t in enumerate(v.temperature)
    ]  # fmt: skip
    found = backward_heads.group_gradients([g.inputs for g in each], **groups(v))
    return [*_with_options(v, found), [g.dTemperature for g in each]]


def to_value(v: GradientVector) -> Callable[[Any], Any]:
    return Fraction if v.model == "exact" else lambda x: x


def _with_options(v: GradientVector, found: backward_heads.GroupedGradients[Any]) -> Any:
    """By queries, keys, values and the bias, of its shape, and by slopes where there are some."""
    num = spec_calls.arithmetic(v)
    by_bias = found.dBias
    if v.bias is not None:
        if len(v.bias) == 1:
            heads = list(range(v.num_heads))
            size = {"m": v.q_len, "n": v.kv_len, "num": num}
            by_bias = [backward_heads.sum_matrices(lambda h: found.dBias[h], heads, **size)]
        if len(v.bias[0]) == 1:
            size = {"m": v.q_len, "n": v.kv_len, "num": num}
            by_bias = [backward_options.sum_rows(dB, **size) for dB in by_bias]
    parts = [found.dQ, found.dK, found.dV, by_bias]
    if v.alibi is None:
        return parts
    at = Alignment.BOTTOM_RIGHT if v.alibi.shift else Alignment.TOP_LEFT
    size = {"q_len": v.q_len, "kv_len": v.kv_len, "num": num}
    return [*parts, [backward_options.slope_gradient(at, dS, **size) for dS in found.dBias]]


def factors(v: GradientVector, h: int) -> dropout.WeightFactor:
    """The factors of the weights of head h: 1 without dropout."""
    if not v.dropout:
        return lambda i, j: Fraction(1)
    p = Fraction(v.dropout[h].p)
    threshold = keep_mask.keep_threshold(p.numerator, p.denominator)
    # Drawn once, and not for each use.
    keep = cache(keep_mask.keep_mask(threshold, v.dropout_seed, h))
    num = spec_calls.arithmetic(v)
    return dropout.weight_factor_dropout(spec_calls.number(v, p), keep, num=num)


def _residuals(v: GradientVector) -> tuple[Any, ...]:
    """The log-sum-exp of each row, the output and the gradients by scores, of the only head."""
    scale, modify_of, slope_of, (q,), (k,), (value,), (dO,), (dLse,) = backward_inputs(v)
    modify, slope, Z = partial(modify_of, 0), partial(slope_of, 0), factors(v, 0)
    size = spec_calls.sizes(v)
    cols = list(range(v.kv_len))
    lses = []
    for i in range(v.q_len):
        keys = plain.scored(scale, modify, q, k, value, i, cols, d=v.head_dim, num=EXACT)
        state = states.of_block(keys, d=v.value_dim, num=EXACT)
        lses.append(None if state.m is None else state.m + int(state.l).bit_length() - 1)
        assert log_sum_exp.state_has_log_sum_exp(state, lses[-1], num=EXACT)
    out = dropout.attention_dropout(scale, modify, q, k, value, Z, **size)
    given = (scale, modify, slope, q, k, value, Z, Fraction, dO, dLse)
    return lses, out, backward_dropout.vjp_dropout(*given, **size).dBias


def _by_tiles(v: GradientVector, function: Callable[..., Any], *tiles: Any) -> Any:
    scale, _, slope_of, (q,), (k,), (value,), (dO,), (dLse,) = backward_inputs(v)
    slope = partial(slope_of, 0)
    lses, out, dS = _residuals(v)
    mask = spec_calls.mask_of(v.mask, v.q_len, v.kv_len)
    Z = factors(v, 0)
    given = (Fraction, scale, lambda i, j, s: s, mask, slope, q, k, value, Z, lses, dO)
    dQ, (dK, dV) = function(*given, *tiles, out, dLse, **spec_calls.sizes(v))
    return [[dQ], [dK], [dV], [dS]]


def _flash_backward(v: GradientVector) -> Any:
    """Tiles of two and three, all visited."""

    def loop(outer: int, inner: int, terms: int) -> backward_tiles.TileLoop:
        every = TileRange(0, tile_loop.num_tiles(terms, inner))
        return backward_tiles.TileLoop(outer, inner, lambda t: every, lambda t, u: TileKind.MASKED)

    loops = loop(2, 3, v.q_len), loop(3, 2, v.kv_len)
    return _by_tiles(v, backward_tiles.flash_backward, *loops)


def _one_loop(v: GradientVector) -> Any:
    tiles = (*spec_calls.BLOCKS, lambda u, t: TileKind.MASKED)
    return _by_tiles(v, backward_one_loop.flash_backward_one_loop, *tiles)


CALLS: Mapping[str, Callable[[GradientVector], Any]] = {
    "groupedQueryVjp": _vjp,
    "sinkVjp": _sink_vjp,
    "temperatureVjp": _temperature_vjp,
    "flashBackward": _flash_backward,
    "flashBackwardOneLoop": _one_loop,
}
