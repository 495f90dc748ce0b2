"""How the input of a vector of a transformer is given to the translated definition that it
names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import spec_calls

from bridge.spec import embedding, feed_forward, layer_norm, linear, multi_head, transformer
from bridge.spec import transformer_cache as cached
from bridge.spec import transformer_layer as layers
from bridge.vectors.model import transformers as given
from bridge.vectors.model.transformers import LayerVector, TransformerVector

NUM = spec_calls.NATURAL
# sin(a·π/2) for a = 0, …, 3.
SINES = (0, 1, 0, -1)


def number(x: Any) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def numbers(row: Sequence[Any]) -> list[Decimal]:
    return [number(x) for x in row]


def matrix(rows: Sequence[Sequence[Any]]) -> list[list[Decimal]]:
    return [numbers(row) for row in rows]


# The structures of the Spec have the fields of the vectors', in the same order.
STRUCTURES: Mapping[type, Callable[..., Any]] = {
    given.Linear: linear.Linear,
    given.LayerNorm: layer_norm.LayerNorm,
    given.FeedForward: feed_forward.FeedForward,
    given.MultiHead: multi_head.MultiHead,
    given.EncoderLayer: layers.EncoderLayer,
    given.DecoderLayer: layers.DecoderLayer,
}


def translate(part: Any) -> Any:
    """Parameters as the Spec has them."""
    if isinstance(part, tuple):
        return [translate(x) for x in part]
    make = STRUCTURES.get(type(part))
    return number(part) if make is None else make(*map(translate, vars(part).values()))


def scale_of(v: LayerVector | TransformerVector) -> Decimal:
    assert v.head_dim is not None
    return 1 / Decimal(v.head_dim).sqrt() if v.scale is None else number(v.scale)


def sizes_of(v: LayerVector | TransformerVector, first: Any) -> dict[str, Any]:
    """Those of a layer like the first."""
    return {
        "d_model": len(first.attention.output.bias),
        "num_heads": v.num_heads,
        "d": v.head_dim,
        "d_ff": len(first.feed_forward.hidden.bias),
        "num": NUM,
    }


def _linear(v: LayerVector) -> Any:
    p = translate(v.parameters)
    return linear.linear_rows(p, matrix(v.x), d_in=len(v.x[0]), d_out=len(p.bias), num=NUM)


def _layer_norm(v: LayerVector) -> Any:
    given_ = (Decimal.sqrt, number(v.eps), translate(v.parameters), matrix(v.x))
    return layer_norm.layer_norm_rows(*given_, d=len(v.x[0]), num=NUM)


def _feed_forward(v: LayerVector) -> Any:
    p = translate(v.parameters)
    size = {"d": len(v.x[0]), "d_ff": len(p.hidden.bias), "num": NUM}
    return feed_forward.feed_forward_rows(p, matrix(v.x), **size)


def _multi_head(v: LayerVector) -> Any:
    keys = v.x if v.context is None else v.context
    values = keys if v.values is None else v.values
    return multi_head.multi_head_rows(
        scale_of(v), spec_calls.mask_of(v.mask, len(v.x), len(keys)), translate(v.parameters),
        matrix(v.x), matrix(keys), matrix(values), q_len=len(v.x), kv_len=len(keys),
        num_heads=v.num_heads, d=v.head_dim, d_model=len(v.x[0]), num=NUM,
    )  # fmt: skip


def _attention(v: LayerVector) -> tuple[Any, ...]:
    return (Decimal.sqrt, number(v.eps), scale_of(v))


def _encoder(function: Callable[..., Any]) -> Callable[[LayerVector], Any]:
    """One layer, or layers one after another, with a normalisation behind them if there is one."""

    def call(v: LayerVector) -> Any:
        mask = spec_calls.mask_of(v.mask, len(v.x), len(v.x))
        parameters: Any = [translate(p) for p in v.layers]
        if function in (layers.encoder_layer_pre_norm, layers.encoder_layer_post_norm):
            (parameters,) = parameters
        behind = () if v.norm is None else (translate(v.norm),)
        size = {**sizes_of(v, v.layers[0]), "n": len(v.x)}
        return function(*_attention(v), mask, parameters, *behind, matrix(v.x), **size)

    return call


def _decoder(function: Callable[..., Any]) -> Callable[[LayerVector], Any]:
    def call(v: LayerVector) -> Any:
        t, s = len(v.x), len(v.context)
        masks = (spec_calls.mask_of(v.mask, t, t), spec_calls.mask_of(v.context_mask, t, s))
        parameters: Any = [translate(p) for p in v.layers]
        if function in (layers.decoder_layer_pre_norm, layers.decoder_layer_post_norm):
            (parameters,) = parameters
        behind = () if v.norm is None else (translate(v.norm),)
        rows = (matrix(v.context), matrix(v.x))
        size = {**sizes_of(v, v.layers[0]), "s": s, "t": t}
        return function(*_attention(v), *masks, parameters, *behind, *rows, **size)

    return call


def _by_cache(v: LayerVector) -> Any:
    """Token by token: no mask of the targets is needed."""
    assert v.mask.kind == "causal"
    return cached.decode_cached(
        *_attention(v), lambda j: v.context_mask.visible(0, j), [translate(p) for p in v.layers],
        matrix(v.context), matrix(v.x), s=len(v.context), **sizes_of(v, v.layers[0]),
    )  # fmt: skip


def _positions(v: TransformerVector) -> Callable[[int], Any]:
    """By the definition where the angles are quarter turns."""
    if v.quarter_turns is None:
        return matrix(v.positions).__getitem__
    turns = v.quarter_turns
    return lambda p: embedding.sinusoids(
        lambda a: Decimal(SINES[a % 4]), lambda a: Decimal(SINES[(a + 1) % 4]),
        lambda place, i: turns[place][i], p, half=len(turns[p]),
    )  # fmt: skip


def _transformer(v: TransformerVector) -> Any:
    """Logits, probabilities, and the likeliest tokens."""
    p = v.parameters
    s, t = len(v.source_tokens), len(v.target_tokens)
    source = matrix(p.source)
    vocab = len(p.target)
    output = translate(p.output)
    if v.tied:
        tied = embedding.tied_output(source, vocab=vocab, num=NUM)
        assert tied == output
        output = tied
    model = transformer.Transformer(
        source, matrix(p.target), [translate(x) for x in p.encoder],
        [translate(x) for x in p.decoder], output,
    )  # fmt: skip
    arguments = (
        Decimal.sqrt, number(v.eps), scale_of(v), _positions(v),
        spec_calls.mask_of(v.source_mask, s, s), spec_calls.mask_of(v.mask, t, t),
        spec_calls.mask_of(v.context_mask, t, s), model, list(v.source_tokens),
        list(v.target_tokens),
    )  # fmt: skip
    size = {**sizes_of(v, p.encoder[0]), "s": s, "t": t, "t_vocab": vocab}
    logits = transformer.transformer_logits(*arguments, **size)
    shares = transformer.transformer_probabilities(*arguments, **size)
    return [logits, shares, [transformer.argmax(row, n=vocab) for row in logits]]


CALLS: Mapping[str, Callable[[Any], Any]] = {
    "Linear.rows": _linear,
    "LayerNorm.rows": _layer_norm,
    "FeedForward.rows": _feed_forward,
    "MultiHead.rows": _multi_head,
    "EncoderLayer.preNorm": _encoder(layers.encoder_layer_pre_norm),
    "EncoderLayer.postNorm": _encoder(layers.encoder_layer_post_norm),
    "encode": _encoder(transformer.encode),
    "encodePostNorm": _encoder(transformer.encode_post_norm),
    "DecoderLayer.preNorm": _decoder(layers.decoder_layer_pre_norm),
    "DecoderLayer.postNorm": _decoder(layers.decoder_layer_post_norm),
    "decode": _decoder(transformer.decode),
    "decodePostNorm": _decoder(transformer.decode_post_norm),
    "decodeCached": _by_cache,
    "Transformer.probabilities": _transformer,
}
