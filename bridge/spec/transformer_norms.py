"""Transformers, wherever they normalise.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TransformerNorms.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.embedding import add_positions, embed
from bridge.spec.layer_norm import LayerNorm, layer_norm_rows
from bridge.spec.linear import linear_rows
from bridge.spec.transformer import Transformer
from bridge.spec.transformer_layer import (
    DecoderLayer,
    EncoderLayer,
    decoder_layer_post_norm,
    decoder_layer_pre_norm,
    encoder_layer_post_norm,
    encoder_layer_pre_norm,
)


@dataclass(frozen=True)
class FinalNorms:
    """The normalisations behind a transformer's encoder and decoder, where there are such.

    encoder: that behind the encoder's layers.

    decoder: that behind the decoder's.

    Lean: `Attention.Spec.FinalNorms`.
    """

    encoder: LayerNorm | None
    decoder: LayerNorm | None


def final_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    norm: LayerNorm | None,
    X: list[list[Value]],
    *,
    d: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Rows that are normalised if there is a normalisation.

    Lean: `Attention.Spec.finalNorm`.
    """
    return X if norm is None else layer_norm_rows(sqrt, eps, norm, X, d=d, num=num)


def encoder_layer_rows(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    *,
    n: int,
    d: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """An encoder layer, normalised before or, without `normFirst`, after.

    Lean: `Attention.Spec.EncoderLayer.rows`.
    """
    if norm_first:
        return encoder_layer_pre_norm(
            sqrt,
            eps,
            scale,
            mask,
            L,
            X,
            n=n,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return encoder_layer_post_norm(
        sqrt,
        eps,
        scale,
        mask,
        L,
        X,
        n=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )


def decoder_layer_rows(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    *,
    s: int,
    t: int,
    d: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A decoder layer, normalised before or, without `normFirst`, after.

    Lean: `Attention.Spec.DecoderLayer.rows`.
    """
    if norm_first:
        return decoder_layer_pre_norm(
            sqrt,
            eps,
            scale,
            mask,
            cross_mask,
            L,
            context,
            X,
            s=s,
            t=t,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return decoder_layer_post_norm(
        sqrt,
        eps,
        scale,
        mask,
        cross_mask,
        L,
        context,
        X,
        s=s,
        t=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )


def encode_normed(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    layers: list[EncoderLayer],
    norm: LayerNorm | None,
    X: list[list[Value]],
    *,
    n: int,
    d: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The encoder: layer after layer, and a normalisation behind them if there is one.

    Lean: `Attention.Spec.encodeNormed`.
    """
    return final_norm(
        sqrt,
        eps,
        norm,
        reduce(
            lambda X_1, L: encoder_layer_rows(
                sqrt,
                eps,
                scale,
                norm_first,
                mask,
                L,
                X_1,
                n=n,
                d=d,
                d_model=d_model,
                num_heads=num_heads,
                d_ff=d_ff,
                num=num,
            ),
            layers,
            X,
        ),
        d=d_model,
        num=num,
    )


def decode_normed(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    cross_mask: Mask,
    layers: list[DecoderLayer],
    norm: LayerNorm | None,
    context: list[list[Value]],
    X: list[list[Value]],
    *,
    s: int,
    t: int,
    d: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The decoder: layer after layer, each with the same output of the encoder, and a
    normalisation behind them if there is one.

    Lean: `Attention.Spec.decodeNormed`.
    """
    return final_norm(
        sqrt,
        eps,
        norm,
        reduce(
            lambda X_1, L: decoder_layer_rows(
                sqrt,
                eps,
                scale,
                norm_first,
                mask,
                cross_mask,
                L,
                context,
                X_1,
                s=s,
                t=t,
                d=d,
                d_model=d_model,
                num_heads=num_heads,
                d_ff=d_ff,
                num=num,
            ),
            layers,
            X,
        ),
        d=d_model,
        num=num,
    )


def transformer_logits_normed(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    norms: FinalNorms,
    position: Callable[[int], list[Value]],
    source_mask: Mask,
    target_mask: Mask,
    cross_mask: Mask,
    T: Transformer,
    source: list[int],
    target: list[int],
    *,
    s: int,
    t: int,
    t_vocab: int,
    d: int,
    d_model: int,
    num_heads: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The logits of a transformer, wherever it normalises.

    Lean: `Attention.Spec.Transformer.logitsNormed`.
    """
    context = encode_normed(
        sqrt,
        eps,
        scale,
        norm_first,
        source_mask,
        T.encoder,
        norms.encoder,
        add_positions(position, embed(T.source, source), n=s),
        n=s,
        d=d,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num=num,
    )
    return linear_rows(
        T.output,
        decode_normed(
            sqrt,
            eps,
            scale,
            norm_first,
            target_mask,
            cross_mask,
            T.decoder,
            norms.decoder,
            context,
            add_positions(position, embed(T.target, target), n=t),
            s=s,
            t=t,
            d=d,
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            num=num,
        ),
        d_in=d_model,
        d_out=t_vocab,
        num=num,
    )
