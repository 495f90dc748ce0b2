"""The decoder token by token, with a cache of keys and values.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TransformerCache.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bridge.spec.core import Arithmetic, Value
from bridge.spec.feed_forward import feed_forward_row
from bridge.spec.layer_norm import layer_norm_row
from bridge.spec.linear import linear_row
from bridge.spec.masks import mask_full
from bridge.spec.multi_head import MultiHead, multi_head_attend, multi_head_rows
from bridge.spec.transformer_layer import DecoderLayer
from bridge.spec.vector import vec_add

# The entry that a layer keeps for each row that it has seen: the keys and the values of all heads.
# Lean: `Attention.Spec.LayerCache`.
LayerCache: TypeAlias = list[tuple[list[Value], list[Value]]]


def multi_head_cached_row(
    scale: Value,
    W: MultiHead,
    cache: LayerCache,
    x: list[Value],
    *,
    d_model: int,
    num_heads: int,
    d: int,
    num: Arithmetic,
) -> list[Value]:
    """Multi-head attention of one row to all rows of a cache.

    Lean: `Attention.Spec.MultiHead.cachedRow`.
    """
    K = [kv[0] for kv in cache]
    V = [kv[1] for kv in cache]
    Q = [linear_row(W.query, x, d_in=d_model, d_out=num_heads * d, num=num) for _ in range(1)]
    return multi_head_attend(
        scale,
        mask_full(),
        W,
        Q,
        K,
        V,
        q_len=1,
        kv_len=len(cache),
        num_heads=num_heads,
        d=d,
        d_model=d_model,
        num=num,
    )[0]


def decoder_layer_step(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    visible: Callable[[int], bool],
    L: DecoderLayer,
    context: list[list[Value]],
    cache: LayerCache,
    x: list[Value],
    *,
    s: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[LayerCache, list[Value]]:
    """One more row through a decoder layer, normalised before: the cache with its key and value,
    and what becomes of the row. `visible` says which rows of `context` may be attended to.

    Lean: `Attention.Spec.DecoderLayer.step`.
    """
    a = layer_norm_row(sqrt, eps, L.attention_norm, x, d=d_model, num=num)
    cache_1 = [
        *cache,
        (
            linear_row(L.attention.key, a, d_in=d_model, d_out=num_heads * d, num=num),
            linear_row(L.attention.value, a, d_in=d_model, d_out=num_heads * d, num=num),
        ),
    ]
    x_1 = vec_add(
        x,
        multi_head_cached_row(
            scale, L.attention, cache_1, a, d_model=d_model, num_heads=num_heads, d=d, num=num
        ),
    )
    Q = [layer_norm_row(sqrt, eps, L.cross_norm, x_1, d=d_model, num=num) for _ in range(1)]
    x_2 = vec_add(
        x_1,
        multi_head_rows(
            scale,
            lambda _x, j: visible(j),
            L.cross,
            Q,
            context,
            context,
            q_len=1,
            kv_len=s,
            num_heads=num_heads,
            d=d,
            d_model=d_model,
            num=num,
        )[0],
    )
    return (
        cache_1,
        vec_add(
            x_2,
            feed_forward_row(
                L.feed_forward,
                layer_norm_row(sqrt, eps, L.feed_forward_norm, x_2, d=d_model, num=num),
                d=d_model,
                d_ff=d_ff,
                num=num,
            ),
        ),
    )


def decode_step(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    visible: Callable[[int], bool],
    layers: list[DecoderLayer],
    context: list[list[Value]],
    caches: list[LayerCache],
    x: list[Value],
    *,
    s: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[list[LayerCache], list[Value]]:
    """One more row through all layers of a decoder: their caches, and what becomes of the row.

    Lean: `Attention.Spec.decodeStep`.
    """
    result = ([], x)
    for x_1 in zip(layers, caches, strict=False):
        out = decoder_layer_step(
            sqrt,
            eps,
            scale,
            visible,
            x_1[0],
            context,
            x_1[1],
            result[1],
            s=s,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
        result = ([*result[0], out[0]], out[1])
    return result


def decode_cached(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    visible: Callable[[int], bool],
    layers: list[DecoderLayer],
    context: list[list[Value]],
    rows: list[list[Value]],
    *,
    s: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The decoder with a cache, from empty caches on: what becomes of each row, in their order.

    Lean: `Attention.Spec.decodeCached`.
    """
    found = ([[] for _ in layers], [])
    for x in rows:
        out = decode_step(
            sqrt,
            eps,
            scale,
            visible,
            layers,
            context,
            found[0],
            x,
            s=s,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
        found = (out[0], [*found[1], out[1]])
    return found[1]
