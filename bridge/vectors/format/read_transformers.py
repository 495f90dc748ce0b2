"""From the fields of an entry to vectors of layers and of a transformer.

Readers of parameters add to `Entry.cost`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bridge.vectors.format.fields import LARGEST_UNCERTAINTY, Entry, Field, bf16
from bridge.vectors.format.read_options import scale
from bridge.vectors.model.attention import Exact, Mask, Matrix
from bridge.vectors.model.transformers import (
    DecoderLayer,
    Enclosed,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    LayerVector,
    Linear,
    MultiHead,
    Parameters,
    TransformerVector,
    keys_of_decoder,
)

# sin(a·π/2) for a = 0, …, 3.
_SINES = (0, 1, 0, -1)
_PRODUCTS = "a number and a parameter, or a query and a column of a key"
_PADDING = ("none", "key-padding", "key-length")
Size = tuple[int, str]


def _linear(part: Field, inputs: Size, outputs: Size | None = None) -> Linear:
    """outputs: None for any number of them."""
    outputs = outputs or part["weight"].number_of("rows")
    part.entry.cost += inputs[0] * outputs[0]
    return Linear(part["weight"].numbers(outputs, inputs), part["bias"].numbers(outputs))


def _layer_norm(part: Field, width: Size) -> LayerNorm:
    part.entry.cost += width[0]
    return LayerNorm(part["gain"].numbers(width), part["bias"].numbers(width))


def _feed_forward(part: Field, width: Size) -> FeedForward:
    hidden = _linear(part["hidden"], width)
    inside = part["hidden"]["weight"].number_of("rows")
    return FeedForward(hidden, _linear(part["output"], inside, width))


def _multi_head(part: Field, width: Size) -> MultiHead:
    query = _linear(part["query"], width)
    weight, heads = part["query"]["weight"], part.entry.data["num_heads"]
    if len(weight) % heads:
        raise weight.fail(f"has {len(weight)} rows, no multiple of num_heads, {heads}")
    inside = weight.number_of("rows")
    key, value = (_linear(part[name], width, inside) for name in ("key", "value"))
    return MultiHead(query, key, value, _linear(part["output"], inside, width))


_OF_LAYER: dict[str, Callable[[Field, Size], Any]] = {
    "attention": _multi_head,
    "attention_norm": _layer_norm,
    "cross": _multi_head,
    "cross_norm": _layer_norm,
    "feed_forward": _feed_forward,
    "feed_forward_norm": _layer_norm,
}


def _layers(part: Field, width: Size) -> Any:
    """Layers of one width of heads."""
    first = part[0]["attention"]
    inside = len(first["query"]["bias"]), f"that of {first.place}"
    found = []
    for layer in part:
        parts = {name: _OF_LAYER[name](layer[name], width) for name in layer.data}
        found.append(DecoderLayer(**parts) if "cross" in parts else EncoderLayer(**parts))
    for layer in part:
        for name in ("attention", "cross"):
            if name in layer:
                layer[name]["query"]["weight"].check_count(inside, "rows")
    return tuple(found)


def _read_enclosed(part: Field, rows: Size, columns: Size) -> Enclosed:
    found = Enclosed(*(part[s].numbers(rows, columns, read=int) for s in ("lower", "upper")))
    for place, lower, upper in found.places():
        if lower > upper:
            raise part.fail("has a lower bound above the upper one", place)
    if found.uncertainty > LARGEST_UNCERTAINTY:
        raise part.fail("has bounds that are further apart than 2^-60")
    return found


def _eps(entry: Entry) -> Exact:
    if "eps" not in entry:
        return 0
    eps: Exact = entry["eps"].read(bf16)
    if eps <= 0:
        raise entry["eps"].fail("is not positive")
    return eps


def _mask(part: Field, rows: Size, keys: Size, kinds: Sequence[str]) -> Mask:
    """The mask, of one of these kinds."""
    kind = part.data["kind"]
    if kind not in kinds:
        raise part["kind"].fail(f"is {kind}, none of {', '.join(kinds)}")
    return part.mask(rows, keys)


def _decoder_mask(part: Field, rows: Size) -> Mask:
    mask = _mask(part, rows, rows, ("causal", "boolean"))
    if keys_of_decoder(mask, rows[0]) is None:
        raise part.fail("is not the causal one less some keys")
    return mask


def _check_affordable(entry: Entry, layers: Sequence[Any], rows: int) -> None:
    """Refuse a vector that takes long to compute; rows: queries and keys together."""
    width = sum(len(one.attention.query.bias) for one in layers)
    entry.affordable(rows, entry.cost + rows * width, _PRODUCTS)


_OF_KIND: dict[str, Callable[[Field, Size], Any]] = {
    "linear": _linear,
    "layer-norm": _layer_norm,
    "feed-forward": _feed_forward,
    "multi-head": _multi_head,
    "encoder": _layers,
    "decoder": _layers,
}


def _layer_masks(entry: Entry, rows: Size, keys: Size) -> dict[str, Any]:
    match entry.data["layer"]:
        case "multi-head":
            return {"mask": entry["mask"].mask(rows, keys)}
        case "encoder":
            return {"mask": _mask(entry["mask"], rows, rows, _PADDING)}
        case "decoder":
            context = _mask(entry["context_mask"], rows, keys, _PADDING)
            return {"mask": _decoder_mask(entry["mask"], rows), "context_mask": context}
    return {}


def layer(entry: Entry) -> LayerVector:
    """The vector. Raises VectorError as all readers do."""
    data, x, kind = entry.data, entry["x"], entry.data["layer"]
    width = len(data["x"][0]), "the width of x"
    keys = rows = x.number_of("rows")
    given: dict[str, Any] = {"x": x.numbers(None, width)}
    for name in ("context", "values"):
        if name in entry:
            given[name] = entry[name].numbers(None, width)
    if "context" in entry:
        keys = entry["context"].number_of("rows")
    if "values" in entry:
        if "context" not in entry:
            raise entry["values"].fail("is given, but no context")
        entry["values"].check_count(keys, "rows")
    parameters = _OF_KIND[kind](entry["parameters"], width)
    outputs = entry["parameters"]["weight"].number_of("rows") if kind == "linear" else width
    if "norm" in entry:
        if data["norm_first"]:
            raise entry["norm"].fail("is given, but norm_first is true")
        given["norm"] = _layer_norm(entry["norm"], width)
    _check_affordable(entry, parameters if isinstance(parameters, tuple) else (), rows[0] + keys[0])
    if isinstance(parameters, MultiHead):
        entry.affordable(rows[0] * keys[0], len(parameters.query.bias), _PRODUCTS)
    return LayerVector(
        **entry.plain(LayerVector),
        layer=kind,
        parameters=parameters,
        expected=_read_enclosed(entry["expected"], rows, outputs),
        scale=scale(entry) if "scale" in entry else None,
        eps=_eps(entry),
        **_layer_masks(entry, rows, keys),
        **given,
    )


def _tokens(part: Field, vocabulary: Size) -> tuple[int, ...]:
    for token in part:
        if token.data >= vocabulary[0]:
            raise token.fail(f"is {token.data}, but {vocabulary[1]} is {vocabulary[0]}")
    return tuple(part.data)


def _quarter_turns(part: Field, positions: Matrix) -> tuple[tuple[int, ...], ...]:
    """The quarter turns that the positions are made of."""
    part.check_count((len(positions), "the number of positions"), "rows")
    for p, (turns, row) in enumerate(zip(part.data, positions, strict=True)):
        # cos(a·π/2) is the sine of one turn more.
        made = [_SINES[(a + more) % 4] for more in (0, 1) for a in turns]
        if made != list(row):
            raise part.entry["positions"][p].fail(f"is not what quarter_turns[{p}] makes")
    return tuple(map(tuple, part.data))


def transformer(entry: Entry) -> TransformerVector:
    """The vector. Raises VectorError as all readers do."""
    data, part = entry.data, entry["parameters"]
    width = len(part.data["source"][0]), "the width of parameters.source"
    sources, targets = (part[name].number_of("rows") for name in ("source", "target"))
    parameters = Parameters(
        part["source"].numbers(None, width),
        part["target"].numbers(None, width),
        _layers(part["encoder"], width),
        _layers(part["decoder"], width),
        _linear(part["output"], width, targets),
    )
    if data["tied"]:
        for other, found in (
            (part["target"], parameters.target),
            (part["output"]["weight"], parameters.output.weight),
        ):
            if found != parameters.source:
                raise other.fail("is not parameters.source, but tied is true")
        if any(parameters.output.bias):
            raise part["output"]["bias"].fail("is not 0, but tied is true")
    source_tokens = _tokens(entry["source_tokens"], sources)
    target_tokens = _tokens(entry["target_tokens"], targets)
    s = len(source_tokens), "the number of source_tokens"
    t = len(target_tokens), "the number of target_tokens"
    positions = entry["positions"].numbers((max(s[0], t[0]), "the larger number of tokens"), width)
    entry["expected_tokens"].check_count(t, "tokens")
    _check_affordable(entry, (*parameters.encoder, *parameters.decoder), s[0] + t[0])
    turns = entry.get("quarter_turns")
    return TransformerVector(
        **entry.plain(TransformerVector),
        scale=scale(entry),
        eps=_eps(entry),
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        positions=positions,
        source_mask=_mask(entry["source_mask"], s, s, _PADDING),
        mask=_decoder_mask(entry["mask"], t),
        context_mask=_mask(entry["context_mask"], t, s, _PADDING),
        parameters=parameters,
        expected_logits=_read_enclosed(entry["expected_logits"], t, targets),
        expected_probabilities=_read_enclosed(entry["expected_probabilities"], t, targets),
        expected_tokens=_tokens(entry["expected_tokens"], targets),
        quarter_turns=None if turns is None else _quarter_turns(turns, positions),
    )
