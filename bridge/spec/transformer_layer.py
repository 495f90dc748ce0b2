"""The layers of a transformer.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TransformerLayer.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.feed_forward import FeedForward, feed_forward_rows
from bridge.spec.layer_norm import LayerNorm, layer_norm_rows
from bridge.spec.linear import add_rows
from bridge.spec.multi_head import MultiHead, multi_head_rows


@dataclass(frozen=True)
class EncoderLayer:
    """The parameters of an encoder layer.

    attention: self-attention.

    attentionNorm: the normalisation that goes with self-attention.

    feedForward: the feed-forward network.

    feedForwardNorm: the normalisation that goes with the feed-forward network.

    Lean: `Attention.Spec.EncoderLayer`.
    """

    attention: MultiHead
    attention_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm


@dataclass(frozen=True)
class DecoderLayer:
    """The parameters of a decoder layer: those of an encoder layer, and attention to the output of
    the encoder.

    attention: self-attention.

    attentionNorm: the normalisation that goes with self-attention.

    cross: attention to the output of the encoder.

    crossNorm: the normalisation that goes with the attention to the output of the encoder.

    feedForward: the feed-forward network.

    feedForwardNorm: the normalisation that goes with the feed-forward network.

    Lean: `Attention.Spec.DecoderLayer`.
    """

    attention: MultiHead
    attention_norm: LayerNorm
    cross: MultiHead
    cross_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm


def encoder_layer_pre_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """An encoder layer, normalised before: LN, attention, sum; LN, feed-forward, sum.

    Lean: `Attention.Spec.EncoderLayer.preNorm`.
    """
    A = layer_norm_rows(sqrt, eps, L.attention_norm, X, d=d_model, num=num)
    X_1 = add_rows(
        X,
        multi_head_rows(
            scale,
            mask,
            L.attention,
            A,
            A,
            A,
            q_len=n,
            kv_len=n,
            num_heads=num_heads,
            d=d,
            d_model=d_model,
            num=num,
        ),
        m=n,
    )
    return add_rows(
        X_1,
        feed_forward_rows(
            L.feed_forward,
            layer_norm_rows(sqrt, eps, L.feed_forward_norm, X_1, d=d_model, num=num),
            d=d_model,
            d_ff=d_ff,
            num=num,
        ),
        m=n,
    )


def encoder_layer_post_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """An encoder layer, normalised after: attention, sum, LN; feed-forward, sum, LN.

    Lean: `Attention.Spec.EncoderLayer.postNorm`.
    """
    X_1 = layer_norm_rows(
        sqrt,
        eps,
        L.attention_norm,
        add_rows(
            X,
            multi_head_rows(
                scale,
                mask,
                L.attention,
                X,
                X,
                X,
                q_len=n,
                kv_len=n,
                num_heads=num_heads,
                d=d,
                d_model=d_model,
                num=num,
            ),
            m=n,
        ),
        d=d_model,
        num=num,
    )
    return layer_norm_rows(
        sqrt,
        eps,
        L.feed_forward_norm,
        add_rows(X_1, feed_forward_rows(L.feed_forward, X_1, d=d_model, d_ff=d_ff, num=num), m=n),
        d=d_model,
        num=num,
    )


def decoder_layer_pre_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A decoder layer, normalised before. `mask` is that of the self-attention, `crossMask` that
    of the attention to the rows of `context`.

    Lean: `Attention.Spec.DecoderLayer.preNorm`.
    """
    A = layer_norm_rows(sqrt, eps, L.attention_norm, X, d=d_model, num=num)
    X_1 = add_rows(
        X,
        multi_head_rows(
            scale,
            mask,
            L.attention,
            A,
            A,
            A,
            q_len=t,
            kv_len=t,
            num_heads=num_heads,
            d=d,
            d_model=d_model,
            num=num,
        ),
        m=t,
    )
    X_2 = add_rows(
        X_1,
        multi_head_rows(
            scale,
            cross_mask,
            L.cross,
            layer_norm_rows(sqrt, eps, L.cross_norm, X_1, d=d_model, num=num),
            context,
            context,
            q_len=t,
            kv_len=s,
            num_heads=num_heads,
            d=d,
            d_model=d_model,
            num=num,
        ),
        m=t,
    )
    return add_rows(
        X_2,
        feed_forward_rows(
            L.feed_forward,
            layer_norm_rows(sqrt, eps, L.feed_forward_norm, X_2, d=d_model, num=num),
            d=d_model,
            d_ff=d_ff,
            num=num,
        ),
        m=t,
    )


def decoder_layer_post_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A decoder layer, normalised after.

    Lean: `Attention.Spec.DecoderLayer.postNorm`.
    """
    X_1 = layer_norm_rows(
        sqrt,
        eps,
        L.attention_norm,
        add_rows(
            X,
            multi_head_rows(
                scale,
                mask,
                L.attention,
                X,
                X,
                X,
                q_len=t,
                kv_len=t,
                num_heads=num_heads,
                d=d,
                d_model=d_model,
                num=num,
            ),
            m=t,
        ),
        d=d_model,
        num=num,
    )
    X_2 = layer_norm_rows(
        sqrt,
        eps,
        L.cross_norm,
        add_rows(
            X_1,
            multi_head_rows(
                scale,
                cross_mask,
                L.cross,
                X_1,
                context,
                context,
                q_len=t,
                kv_len=s,
                num_heads=num_heads,
                d=d,
                d_model=d_model,
                num=num,
            ),
            m=t,
        ),
        d=d_model,
        num=num,
    )
    return layer_norm_rows(
        sqrt,
        eps,
        L.feed_forward_norm,
        add_rows(X_2, feed_forward_rows(L.feed_forward, X_2, d=d_model, d_ff=d_ff, num=num), m=t),
        d=d_model,
        num=num,
    )
