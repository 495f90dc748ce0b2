"""The backward pass of a transformer.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardTransformer.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import Mask, mask_to_score_mod
from bridge.spec.backward import vjp
from bridge.spec.backward_layers import feed_forward_rows_vjp, layer_norm_rows_vjp, linear_rows_vjp
from bridge.spec.core import Arithmetic, Value
from bridge.spec.embedding import add_positions, embed
from bridge.spec.feed_forward import feed_forward_rows
from bridge.spec.heads import multi_head
from bridge.spec.layer_norm import LayerNorm, layer_norm_rows
from bridge.spec.linear import add_rows, linear_rows
from bridge.spec.multi_head import MultiHead, concat_heads, multi_head_rows, split_heads
from bridge.spec.slopes import score_slope_one
from bridge.spec.transformer import Transformer, softmax_vec
from bridge.spec.transformer_layer import DecoderLayer, EncoderLayer
from bridge.spec.transformer_norms import (
    FinalNorms,
    decode_normed,
    decoder_layer_rows,
    encode_normed,
    encoder_layer_rows,
    transformer_logits_normed,
)
from bridge.spec.vector import vec_smul, vec_sum_over, vec_zero


def cross_entropy_gradient(z: list[Value], y: int, *, vocab: int, num: Arithmetic) -> list[Value]:
    """The gradient of the cross-entropy by a row of logits: softmax, less 1 at the token `y` that
    comes next.

    Lean: `Attention.Spec.crossEntropyGradient`.
    """
    p = softmax_vec(z, num=num)
    return [p[k] - (num.value(1) if k == y else num.value(0)) for k in range(vocab)]


def cross_entropy_vjp(
    Z: list[list[Value]], y: list[int], dLoss: list[Value], *, n: int, vocab: int, num: Arithmetic
) -> list[list[Value]]:
    """The backward pass of the cross-entropies of rows of logits: `dLoss` is the gradient by each
    row's, 1 where the loss is their sum and one part in their number where it is their mean.

    Lean: `Attention.Spec.crossEntropyVjp`.
    """
    return [
        vec_smul(dLoss[i], cross_entropy_gradient(Z[i], y[i], vocab=vocab, num=num))
        for i in range(n)
    ]


def embed_vjp(
    tokens: list[int], dX: list[list[Value]], *, n: int, vocab: int, d: int, num: Arithmetic
) -> list[list[Value]]:
    """The gradient by a table of embeddings: row v is the sum of the gradients by the rows of the
    places that have token v.

    Lean: `Attention.Spec.embedVjp`.
    """
    return [
        vec_sum_over(
            lambda i: dX[i], [i for i in range(n) if tokens[i] == v], d=d, zero=num.value(0)
        )
        for v in range(vocab)
    ]


@dataclass(frozen=True)
class MultiHeadGradients:
    """The gradients of a loss by the inputs of multi-head attention with its projections.

    parameters: by the four projections.

    dQ: by the rows that queries are made of.

    dK: by those that keys are made of.

    dV: by those that values are made of.

    Lean: `Attention.Spec.MultiHeadGradients`.
    """

    parameters: MultiHead
    dQ: list[list[Value]]
    dK: list[list[Value]]
    dV: list[list[Value]]


def multi_head_rows_vjp(
    scale: Value,
    mask: Mask,
    W: MultiHead,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    dY: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d_model: int,
    num_heads: int,
    d: int,
    num: Arithmetic,
) -> MultiHeadGradients:
    """The backward pass of multi-head attention with its projections: of the output's projection,
    of the attention of each head, of the projections of queries, keys and values.

    Lean: `Attention.Spec.MultiHead.rowsVjp`.
    """
    q = split_heads(
        linear_rows(W.query, Q, d_in=d_model, d_out=num_heads * d, num=num),
        n=q_len,
        num_heads=num_heads,
        d=d,
    )
    k = split_heads(
        linear_rows(W.key, K, d_in=d_model, d_out=num_heads * d, num=num),
        n=kv_len,
        num_heads=num_heads,
        d=d,
    )
    v = split_heads(
        linear_rows(W.value, V, d_in=d_model, d_out=num_heads * d, num=num),
        n=kv_len,
        num_heads=num_heads,
        d=d,
    )
    O = concat_heads(
        multi_head(
            scale,
            lambda _x, i, j, x: mask_to_score_mod(mask)(i, j, x),
            q,
            k,
            v,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d,
            num_heads=num_heads,
            num=num,
        ),
        n=q_len,
    )
    output = linear_rows_vjp(W.output, O, dY, m=q_len, d_in=num_heads * d, d_out=d_model, num=num)
    dHeads = split_heads(output[1], n=q_len, num_heads=num_heads, d=d)
    each = [
        vjp(
            scale,
            mask_to_score_mod(mask),
            score_slope_one(num=num),
            q[h],
            k[h],
            v[h],
            lambda x: x,
            dHeads[h],
            vec_zero(d=q_len, zero=num.value(0)),
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d,
            num=num,
        )
        for h in range(num_heads)
    ]
    query = linear_rows_vjp(
        W.query,
        Q,
        concat_heads([each[h].dQ for h in range(num_heads)], n=q_len),
        m=q_len,
        d_in=d_model,
        d_out=num_heads * d,
        num=num,
    )
    key = linear_rows_vjp(
        W.key,
        K,
        concat_heads([each[h].dK for h in range(num_heads)], n=kv_len),
        m=kv_len,
        d_in=d_model,
        d_out=num_heads * d,
        num=num,
    )
    value = linear_rows_vjp(
        W.value,
        V,
        concat_heads([each[h].dV for h in range(num_heads)], n=kv_len),
        m=kv_len,
        d_in=d_model,
        d_out=num_heads * d,
        num=num,
    )
    return MultiHeadGradients(
        parameters=MultiHead(query=query[0], key=key[0], value=value[0], output=output[0]),
        dQ=query[1],
        dK=key[1],
        dV=value[1],
    )


def encoder_layer_pre_norm_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[EncoderLayer, list[list[Value]]]:
    """The backward pass of an encoder layer, normalised before.

    Lean: `Attention.Spec.EncoderLayer.preNormVjp`.
    """
    A = layer_norm_rows(sqrt, eps, L.attention_norm, X, d=d_model, num=num)
    Y = add_rows(
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
    N = layer_norm_rows(sqrt, eps, L.feed_forward_norm, Y, d=d_model, num=num)
    f = feed_forward_rows_vjp(L.feed_forward, N, dY, m=n, d=d_model, d_ff=d_ff, num=num)
    fNorm = layer_norm_rows_vjp(sqrt, eps, L.feed_forward_norm, Y, f[1], m=n, d=d_model, num=num)
    dY_1 = add_rows(dY, fNorm[1], m=n)
    a = multi_head_rows_vjp(
        scale,
        mask,
        L.attention,
        A,
        A,
        A,
        dY_1,
        q_len=n,
        kv_len=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    aNorm = layer_norm_rows_vjp(
        sqrt,
        eps,
        L.attention_norm,
        X,
        add_rows(a.dQ, add_rows(a.dK, a.dV, m=n), m=n),
        m=n,
        d=d_model,
        num=num,
    )
    return (
        EncoderLayer(
            attention=a.parameters,
            attention_norm=aNorm[0],
            feed_forward=f[0],
            feed_forward_norm=fNorm[0],
        ),
        add_rows(dY_1, aNorm[1], m=n),
    )


def encoder_layer_post_norm_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[EncoderLayer, list[list[Value]]]:
    """The backward pass of an encoder layer, normalised after.

    Lean: `Attention.Spec.EncoderLayer.postNormVjp`.
    """
    S = add_rows(
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
    )
    Y = layer_norm_rows(sqrt, eps, L.attention_norm, S, d=d_model, num=num)
    T = add_rows(Y, feed_forward_rows(L.feed_forward, Y, d=d_model, d_ff=d_ff, num=num), m=n)
    fNorm = layer_norm_rows_vjp(sqrt, eps, L.feed_forward_norm, T, dY, m=n, d=d_model, num=num)
    f = feed_forward_rows_vjp(L.feed_forward, Y, fNorm[1], m=n, d=d_model, d_ff=d_ff, num=num)
    aNorm = layer_norm_rows_vjp(
        sqrt, eps, L.attention_norm, S, add_rows(fNorm[1], f[1], m=n), m=n, d=d_model, num=num
    )
    a = multi_head_rows_vjp(
        scale,
        mask,
        L.attention,
        X,
        X,
        X,
        aNorm[1],
        q_len=n,
        kv_len=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    return (
        EncoderLayer(
            attention=a.parameters,
            attention_norm=aNorm[0],
            feed_forward=f[0],
            feed_forward_norm=fNorm[0],
        ),
        add_rows(aNorm[1], add_rows(a.dQ, add_rows(a.dK, a.dV, m=n), m=n), m=n),
    )


@dataclass(frozen=True)
class DecoderGradients:
    """The gradients of a loss by the inputs of decoder layers.

    parameters: by the parameters.

    dContext: by the rows of the encoder's output.

    dX: by the decoder's rows.

    Lean: `Attention.Spec.DecoderGradients`.
    """

    parameters: Any
    dContext: list[list[Value]]
    dX: list[list[Value]]


def decoder_layer_pre_norm_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> DecoderGradients:
    """The backward pass of a decoder layer, normalised before.

    Lean: `Attention.Spec.DecoderLayer.preNormVjp`.
    """
    A = layer_norm_rows(sqrt, eps, L.attention_norm, X, d=d_model, num=num)
    Y = add_rows(
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
    B = layer_norm_rows(sqrt, eps, L.cross_norm, Y, d=d_model, num=num)
    Z = add_rows(
        Y,
        multi_head_rows(
            scale,
            cross_mask,
            L.cross,
            B,
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
    N = layer_norm_rows(sqrt, eps, L.feed_forward_norm, Z, d=d_model, num=num)
    f = feed_forward_rows_vjp(L.feed_forward, N, dY, m=t, d=d_model, d_ff=d_ff, num=num)
    fNorm = layer_norm_rows_vjp(sqrt, eps, L.feed_forward_norm, Z, f[1], m=t, d=d_model, num=num)
    dZ = add_rows(dY, fNorm[1], m=t)
    c = multi_head_rows_vjp(
        scale,
        cross_mask,
        L.cross,
        B,
        context,
        context,
        dZ,
        q_len=t,
        kv_len=s,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    cNorm = layer_norm_rows_vjp(sqrt, eps, L.cross_norm, Y, c.dQ, m=t, d=d_model, num=num)
    dY_1 = add_rows(dZ, cNorm[1], m=t)
    a = multi_head_rows_vjp(
        scale,
        mask,
        L.attention,
        A,
        A,
        A,
        dY_1,
        q_len=t,
        kv_len=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    aNorm = layer_norm_rows_vjp(
        sqrt,
        eps,
        L.attention_norm,
        X,
        add_rows(a.dQ, add_rows(a.dK, a.dV, m=t), m=t),
        m=t,
        d=d_model,
        num=num,
    )
    return DecoderGradients(
        parameters=DecoderLayer(
            attention=a.parameters,
            attention_norm=aNorm[0],
            cross=c.parameters,
            cross_norm=cNorm[0],
            feed_forward=f[0],
            feed_forward_norm=fNorm[0],
        ),
        dContext=add_rows(c.dK, c.dV, m=s),
        dX=add_rows(dY_1, aNorm[1], m=t),
    )


def decoder_layer_post_norm_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> DecoderGradients:
    """The backward pass of a decoder layer, normalised after.

    Lean: `Attention.Spec.DecoderLayer.postNormVjp`.
    """
    S = add_rows(
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
    )
    Y = layer_norm_rows(sqrt, eps, L.attention_norm, S, d=d_model, num=num)
    T = add_rows(
        Y,
        multi_head_rows(
            scale,
            cross_mask,
            L.cross,
            Y,
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
    Z = layer_norm_rows(sqrt, eps, L.cross_norm, T, d=d_model, num=num)
    U = add_rows(Z, feed_forward_rows(L.feed_forward, Z, d=d_model, d_ff=d_ff, num=num), m=t)
    fNorm = layer_norm_rows_vjp(sqrt, eps, L.feed_forward_norm, U, dY, m=t, d=d_model, num=num)
    f = feed_forward_rows_vjp(L.feed_forward, Z, fNorm[1], m=t, d=d_model, d_ff=d_ff, num=num)
    cNorm = layer_norm_rows_vjp(
        sqrt, eps, L.cross_norm, T, add_rows(fNorm[1], f[1], m=t), m=t, d=d_model, num=num
    )
    c = multi_head_rows_vjp(
        scale,
        cross_mask,
        L.cross,
        Y,
        context,
        context,
        cNorm[1],
        q_len=t,
        kv_len=s,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    aNorm = layer_norm_rows_vjp(
        sqrt, eps, L.attention_norm, S, add_rows(cNorm[1], c.dQ, m=t), m=t, d=d_model, num=num
    )
    a = multi_head_rows_vjp(
        scale,
        mask,
        L.attention,
        X,
        X,
        X,
        aNorm[1],
        q_len=t,
        kv_len=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        num=num,
    )
    return DecoderGradients(
        parameters=DecoderLayer(
            attention=a.parameters,
            attention_norm=aNorm[0],
            cross=c.parameters,
            cross_norm=cNorm[0],
            feed_forward=f[0],
            feed_forward_norm=fNorm[0],
        ),
        dContext=add_rows(c.dK, c.dV, m=s),
        dX=add_rows(aNorm[1], add_rows(a.dQ, add_rows(a.dK, a.dV, m=t), m=t), m=t),
    )


def final_norm_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    norm: LayerNorm | None,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    n: int,
    d: int,
    num: Arithmetic,
) -> tuple[LayerNorm | None, list[list[Value]]]:
    """The backward pass of a normalisation that may be there or not.

    Lean: `Attention.Spec.finalNormVjp`.
    """
    if norm is None:
        return (None, dY)
    g = layer_norm_rows_vjp(sqrt, eps, norm, X, dY, m=n, d=d, num=num)
    return (g[0], g[1])


def encoder_layer_rows_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    L: EncoderLayer,
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[EncoderLayer, list[list[Value]]]:
    """The backward pass of an encoder layer, normalised before or, without `normFirst`, after.

    Lean: `Attention.Spec.EncoderLayer.rowsVjp`.
    """
    if norm_first:
        return encoder_layer_pre_norm_vjp(
            sqrt,
            eps,
            scale,
            mask,
            L,
            X,
            dY,
            n=n,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return encoder_layer_post_norm_vjp(
        sqrt,
        eps,
        scale,
        mask,
        L,
        X,
        dY,
        n=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )


def decoder_layer_rows_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    cross_mask: Mask,
    L: DecoderLayer,
    context: list[list[Value]],
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> DecoderGradients:
    """The backward pass of a decoder layer, normalised before or, without `normFirst`, after.

    Lean: `Attention.Spec.DecoderLayer.rowsVjp`.
    """
    if norm_first:
        return decoder_layer_pre_norm_vjp(
            sqrt,
            eps,
            scale,
            mask,
            cross_mask,
            L,
            context,
            X,
            dY,
            s=s,
            t=t,
            d_model=d_model,
            num_heads=num_heads,
            d=d,
            d_ff=d_ff,
            num=num,
        )
    return decoder_layer_post_norm_vjp(
        sqrt,
        eps,
        scale,
        mask,
        cross_mask,
        L,
        context,
        X,
        dY,
        s=s,
        t=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )


def encode_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    norm: LayerNorm | None,
    layers: list[EncoderLayer],
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    n: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[tuple[list[EncoderLayer], LayerNorm | None], list[list[Value]]]:
    """The backward pass of the encoder: of the normalisation at its end, then from the last layer
    to the first.

    Lean: `Attention.Spec.encodeVjp`.
    """
    if not layers:
        last = final_norm_vjp(sqrt, eps, norm, X, dY, n=n, d=d_model, num=num)
        return (([], last[0]), last[1])
    later = encode_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        mask,
        norm,
        layers[1:],
        encoder_layer_rows(
            sqrt,
            eps,
            scale,
            norm_first,
            mask,
            layers[0],
            X,
            n=n,
            d=d,
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            num=num,
        ),
        dY,
        n=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    first = encoder_layer_rows_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        mask,
        layers[0],
        X,
        later[1],
        n=n,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    return (([first[0], *later[0][0]], later[0][1]), first[1])


def decode_vjp(
    sqrt: Callable[[Value], Value],
    eps: Value,
    scale: Value,
    norm_first: bool,
    mask: Mask,
    cross_mask: Mask,
    norm: LayerNorm | None,
    context: list[list[Value]],
    layers: list[DecoderLayer],
    X: list[list[Value]],
    dY: list[list[Value]],
    *,
    s: int,
    t: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> DecoderGradients:
    """The backward pass of the decoder: of the normalisation at its end, then from the last layer
    to the first, the gradients by the encoder's output summed.

    Lean: `Attention.Spec.decodeVjp`.
    """
    if not layers:
        last = final_norm_vjp(sqrt, eps, norm, X, dY, n=t, d=d_model, num=num)
        return DecoderGradients(
            parameters=([], last[0]),
            dContext=[vec_zero(d=d_model, zero=num.value(0)) for _ in range(s)],
            dX=last[1],
        )
    later = decode_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        mask,
        cross_mask,
        norm,
        context,
        layers[1:],
        decoder_layer_rows(
            sqrt,
            eps,
            scale,
            norm_first,
            mask,
            cross_mask,
            layers[0],
            context,
            X,
            s=s,
            t=t,
            d=d,
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            num=num,
        ),
        dY,
        s=s,
        t=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    first = decoder_layer_rows_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        mask,
        cross_mask,
        layers[0],
        context,
        X,
        later.dX,
        s=s,
        t=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    return DecoderGradients(
        parameters=([first.parameters, *later.parameters[0]], later.parameters[1]),
        dContext=add_rows(first.dContext, later.dContext, m=s),
        dX=first.dX,
    )


def transformer_logits_vjp(
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
    dZ: list[list[Value]],
    *,
    s: int,
    t: int,
    s_vocab: int,
    t_vocab: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[Transformer, FinalNorms]:
    """The gradients of a loss by all parameters of a transformer, those of the normalisations at
    the ends of encoder and decoder among them, from those by its logits.

    Lean: `Attention.Spec.Transformer.logitsVjp`.
    """
    X = add_positions(position, embed(T.source, source), n=s)
    context = encode_normed(
        sqrt,
        eps,
        scale,
        norm_first,
        source_mask,
        T.encoder,
        norms.encoder,
        X,
        n=s,
        d=d,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num=num,
    )
    Y = add_positions(position, embed(T.target, target), n=t)
    D = decode_normed(
        sqrt,
        eps,
        scale,
        norm_first,
        target_mask,
        cross_mask,
        T.decoder,
        norms.decoder,
        context,
        Y,
        s=s,
        t=t,
        d=d,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num=num,
    )
    output = linear_rows_vjp(T.output, D, dZ, m=t, d_in=d_model, d_out=t_vocab, num=num)
    decoder = decode_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        target_mask,
        cross_mask,
        norms.decoder,
        context,
        T.decoder,
        Y,
        output[1],
        s=s,
        t=t,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    encoder = encode_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        source_mask,
        norms.encoder,
        T.encoder,
        X,
        decoder.dContext,
        n=s,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
    return (
        Transformer(
            source=embed_vjp(source, encoder[1], n=s, vocab=s_vocab, d=d_model, num=num),
            target=embed_vjp(target, decoder.dX, n=t, vocab=t_vocab, d=d_model, num=num),
            encoder=encoder[0][0],
            decoder=decoder.parameters[0],
            output=output[0],
        ),
        FinalNorms(encoder=encoder[0][1], decoder=decoder.parameters[1]),
    )


def transformer_loss_vjp(
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
    y: list[int],
    dLoss: list[Value],
    *,
    s: int,
    t: int,
    s_vocab: int,
    t_vocab: int,
    d_model: int,
    num_heads: int,
    d: int,
    d_ff: int,
    num: Arithmetic,
) -> tuple[Transformer, FinalNorms]:
    """The gradient of training: of the cross-entropies of a transformer's logits with the tokens
    `y` that come next, weighted by `dLoss`, by all its parameters.

    Lean: `Attention.Spec.Transformer.lossVjp`.
    """
    return transformer_logits_vjp(
        sqrt,
        eps,
        scale,
        norm_first,
        norms,
        position,
        source_mask,
        target_mask,
        cross_mask,
        T,
        source,
        target,
        cross_entropy_vjp(
            transformer_logits_normed(
                sqrt,
                eps,
                scale,
                norm_first,
                norms,
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
                d=d,
                d_model=d_model,
                num_heads=num_heads,
                d_ff=d_ff,
                num=num,
            ),
            y,
            dLoss,
            n=t,
            vocab=t_vocab,
            num=num,
        ),
        s=s,
        t=t,
        s_vocab=s_vocab,
        t_vocab=t_vocab,
        d_model=d_model,
        num_heads=num_heads,
        d=d,
        d_ff=d_ff,
        num=num,
    )
