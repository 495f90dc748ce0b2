"""The transformer.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Transformer.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic, Value
from bridge.spec.embedding import add_positions, embed
from bridge.spec.layer_norm import LayerNorm, layer_norm_rows
from bridge.spec.linear import Linear, linear_rows
from bridge.spec.softmax import softmax
from bridge.spec.transformer_layer import (
    DecoderLayer,
    EncoderLayer,
    decoder_layer_post_norm,
    decoder_layer_pre_norm,
    encoder_layer_post_norm,
    encoder_layer_pre_norm,
)


@dataclass(frozen=True)
class Transformer:
    """The parameters of a transformer.

    source: the embeddings of the source's tokens.

    target: the embeddings of the target's tokens.

    encoder: the encoder's layers.

    decoder: the decoder's layers.

    output: the layer of the logits.

    Lean: `Attention.Spec.Transformer`.
    """

    source: list[list[Value]]
    target: list[list[Value]]
    encoder: list[EncoderLayer]
    decoder: list[DecoderLayer]
    output: Linear


def argmax(x: list[Value], *, n: int) -> int | None:
    """The place of the largest component, the first if there are several; none in a vector without
    components.

    Lean: `Attention.Spec.argmax`.
    """
    result = None
    for j in range(n):
        if result is None:
            result = j
        else:
            result = result if x[j] <= x[result] else j
    return result


def softmax_vec(x: list[Value], *, num: Arithmetic) -> list[Value]:
    """The softmax of a vector, none of whose components is masked.

    Lean: `Attention.Spec.softmaxVec`.
    """
    return softmax([x_1 for x_1 in x], num=num)


def encode(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    layers: list[EncoderLayer],
    X: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The encoder: layer after layer, normalised before.

    Lean: `Attention.Spec.encode`.
    """
    result = X
    for L in layers:
        result = encoder_layer_pre_norm(
            sqrt,
            eps,
            scale,
            mask,
            L,
            result,
            n=n,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return result


def decode(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    layers: list[DecoderLayer],
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
    """The decoder: layer after layer, normalised before, each with the same output of the encoder.

    Lean: `Attention.Spec.decode`.
    """
    result = X
    for L in layers:
        result = decoder_layer_pre_norm(
            sqrt,
            eps,
            scale,
            mask,
            cross_mask,
            L,
            context,
            result,
            s=s,
            t=t,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return result


def encode_post_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    layers: list[EncoderLayer],
    norm: LayerNorm,
    X: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The encoder with layers that are normalised after, and a normalisation at its end.

    Lean: `Attention.Spec.encodePostNorm`.
    """
    return layer_norm_rows(
        sqrt,
        eps,
        norm,
        reduce(
            lambda X_1, L: encoder_layer_post_norm(
                sqrt,
                eps,
                scale,
                mask,
                L,
                X_1,
                n=n,
                d_model=d_model,
                num_heads=num_heads,
                d=d,
                d_ff=d_ff,
                num=num,
            ),
            layers,
            X,
        ),
        d=d_model,
        num=num,
    )


def decode_post_norm(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    layers: list[DecoderLayer],
    norm: LayerNorm,
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
    """The decoder with layers that are normalised after, and a normalisation at its end.

    Lean: `Attention.Spec.decodePostNorm`.
    """
    return layer_norm_rows(
        sqrt,
        eps,
        norm,
        reduce(
            lambda X_1, L: decoder_layer_post_norm(
                sqrt,
                eps,
                scale,
                mask,
                cross_mask,
                L,
                context,
                X_1,
                s=s,
                t=t,
                d_model=d_model,
                num_heads=num_heads,
                d=d,
                d_ff=d_ff,
                num=num,
            ),
            layers,
            X,
        ),
        d=d_model,
        num=num,
    )


def transformer_encode(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    position: Callable[[int], list[Value]],
    mask: Mask,
    T: Transformer,
    source: list[int],
    *,
    s: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The output of a transformer's encoder for a sequence of source tokens.

    Lean: `Attention.Spec.Transformer.encode`.
    """
    return encode(
        sqrt,
        eps,
        scale,
        mask,
        T.encoder,
        add_positions(position, embed(T.source, source), n=s),
        n=s,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )


def transformer_logits(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
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
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The logits of a transformer: row i goes with target token i.

    Lean: `Attention.Spec.Transformer.logits`.
    """
    context = transformer_encode(
        sqrt,
        eps,
        scale,
        position,
        source_mask,
        T,
        source,
        s=s,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    return linear_rows(
        T.output,
        decode(
            sqrt,
            eps,
            scale,
            target_mask,
            cross_mask,
            T.decoder,
            context,
            add_positions(position, embed(T.target, target), n=t),
            s=s,
            t=t,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        ),
        d_in=d_model,
        d_out=t_vocab,
        num=num,
    )


def transformer_probabilities(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
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
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The probabilities that a transformer gives: row i, those of the token after target token i.

    Lean: `Attention.Spec.Transformer.probabilities`.
    """
    return [
        softmax_vec(x, num=num)
        for x in transformer_logits(
            sqrt,
            eps,
            scale,
            position,
            source_mask,
            target_mask,
            cross_mask,
            T,
            source,
            target,
            s=s,
            t=t,
            t_vocab=t_vocab,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    ]
