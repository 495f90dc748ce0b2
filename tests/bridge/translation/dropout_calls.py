"""How the input of a vector of dropout is given to the translated definition that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import backward_calls
import spec_calls

from bridge.spec import attention as plain
from bridge.spec import backward_dropout, backward_heads, dropout, keep_mask, philox
from bridge.spec.core import EXACT
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector


def _heads(run: Callable[..., Any]) -> Callable[[DropoutVector], Any]:
    """The rows of all heads: `run` is given vector, threshold, number of the head, factors, and the
    inputs and sizes of attention."""

    def call(v: DropoutVector) -> Any:
        p, group = Fraction(v.dropout_p), v.num_heads // v.num_kv_heads
        threshold = keep_mask.keep_threshold(p.numerator, p.denominator)
        found = []
        for h, q in enumerate(v.q):
            inputs = (
                spec_calls.score_number(v, v.scale),
                plain.mask_to_score_mod(spec_calls.mask_of(v.mask, v.q_len, v.kv_len)),
                spec_calls.matrix(v, q),
                spec_calls.matrix(v, v.k[h // group]),
                spec_calls.values(v, v.v[h // group]),
            )
            keep = keep_mask.keep_mask(threshold, v.dropout_seed, h)
            factors = dropout.weight_factor_dropout(p, keep, num=EXACT)
            found += run(v, threshold, h, factors, inputs, spec_calls.sizes(v))
        return found

    return call


def _formula(v: Any, threshold: int, h: int, factors: Any, inputs: Any, sizes: Any) -> Any:
    return dropout.attention_dropout(*inputs, factors, **sizes)


def _tiles(v: Any, threshold: int, h: int, factors: Any, inputs: Any, sizes: Any) -> Any:
    return dropout.flash_dropout(*inputs, factors, *spec_calls.BLOCKS, **sizes)


def _draw(v: Any, threshold: int, h: int, factors: Any, inputs: Any, sizes: Any) -> Any:
    p = Fraction(v.dropout_p)
    return dropout.flash_drawn(
        *inputs, p, threshold, v.dropout_seed, h, *spec_calls.BLOCKS, **sizes
    )


def _philox(v: PhiloxVector) -> Any:
    words = [
        philox.philox(v.rounds, philox.PhiloxKey(*v.key), philox.Words(*counter))
        for counter in v.counters
    ]
    return [[w.c0, w.c1, w.c2, w.c3] for w in words]


def _vjp(v: GradientVector) -> Any:
    scale, mask, slope, q, k, value, dO, dLse = backward_calls.backward_inputs(v)
    group, each = v.num_heads // v.num_kv_heads, []
    for h in range(v.num_heads):
        of_head = (partial(mask, h), partial(slope, h))
        Z = backward_calls.factors(v, h)
        inputs = (scale, *of_head, q[h], k[h // group], value[h // group], Z)
        by = (backward_calls.to_value(v), dO[h], dLse[h])
        each.append(backward_dropout.vjp_dropout(*inputs, *by, **spec_calls.sizes(v)))
    found = backward_heads.group_gradients(each, **backward_calls.groups(v))
    return [found.dQ, found.dK, found.dV, found.dBias]


CALLS: Mapping[str, Callable[[Any], Any]] = {
    "attentionDropout": _heads(_formula),
    "flashDropout": _heads(_tiles),
    "flashDrawn": _heads(_draw),
    "philox": _philox,
    "vjpDropout": _vjp,
}
