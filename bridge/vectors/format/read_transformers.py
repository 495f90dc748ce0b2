"""From the fields of an entry to vectors of layers and of a transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bridge.vectors.format.fields import LARGEST_UNCERTAINTY, Fields
from bridge.vectors.format.read_options import header
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

T = TypeVar("T")
# sin(a·π/2) for a = 0, …, 3.
_SINES = (0, 1, 0, -1)
_PRODUCTS = "a number and a parameter, or a query and a column of a key"
Size = tuple[int, str]
"""A number and what it is that number of."""


class _Reader:
    """The parameters of one entry, their sizes checked against each other. Each reading adds to
    `cost` how many products one row takes."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.cost = 0

    def numbers(self, data: list[str], field: str, size: Size) -> tuple[Exact, ...]:
        return self.fields.vector(data, field, *size)

    def table(self, data: list[list[str]], field: str, columns: Size) -> Matrix:
        """A matrix with at least one row."""
        return self.fields.rows_of(data, field, *columns)

    def linear(self, data: Any, field: str, inputs: Size, outputs: Size | None = None) -> Linear:
        """outputs: None for any number of them."""
        weight = data["weight"]
        if outputs is None:
            outputs = len(weight), f"the number of rows of {field}.weight"
        else:
            self.fields.counted(weight, f"{field}.weight", *outputs, "rows")
        self.cost += inputs[0] * outputs[0]
        return Linear(
            self.table(weight, f"{field}.weight", inputs),
            self.numbers(data["bias"], f"{field}.bias", outputs),
        )

    def layer_norm(self, data: Any, field: str, width: Size) -> LayerNorm:
        self.cost += width[0]
        gain, bias = (
            self.numbers(data[name], f"{field}.{name}", width) for name in ("gain", "bias")
        )
        return LayerNorm(gain, bias)

    def feed_forward(self, data: Any, field: str, width: Size) -> FeedForward:
        hidden = self.linear(data["hidden"], f"{field}.hidden", width)
        inside = len(hidden.bias), f"the number of rows of {field}.hidden.weight"
        return FeedForward(hidden, self.linear(data["output"], f"{field}.output", inside, width))

    def multi_head(self, data: Any, field: str, width: Size) -> MultiHead:
        query = self.linear(data["query"], f"{field}.query", width)
        heads, inside = self.fields.entry["num_heads"], len(query.bias)
        if inside % heads:
            raise self.fields.fail(
                f"{field}.query.weight", f"has {inside} rows, no multiple of num_heads, {heads}"
            )
        all_heads = inside, f"the number of rows of {field}.query.weight"
        key, value = (
            self.linear(data[name], f"{field}.{name}", width, all_heads)
            for name in ("key", "value")
        )
        output = self.linear(data["output"], f"{field}.output", all_heads, width)
        return MultiHead(query, key, value, output)

    def _norms(self, data: Any, field: str, width: Size, *names: str) -> list[LayerNorm]:
        return [self.layer_norm(data[name], f"{field}.{name}", width) for name in names]

    def encoder_layer(self, data: Any, field: str, width: Size) -> EncoderLayer:
        first, second = self._norms(data, field, width, "attention_norm", "feed_forward_norm")
        return EncoderLayer(
            self.multi_head(data["attention"], f"{field}.attention", width),
            first,
            self.feed_forward(data["feed_forward"], f"{field}.feed_forward", width),
            second,
        )

    def decoder_layer(self, data: Any, field: str, width: Size) -> DecoderLayer:
        names = ("attention_norm", "cross_norm", "feed_forward_norm")
        first, second, third = self._norms(data, field, width, *names)
        return DecoderLayer(
            self.multi_head(data["attention"], f"{field}.attention", width),
            first,
            self.multi_head(data["cross"], f"{field}.cross", width),
            second,
            self.feed_forward(data["feed_forward"], f"{field}.feed_forward", width),
            third,
        )

    def layers(
        self, data: Any, field: str, width: Size, read: Callable[[Any, str, Size], T]
    ) -> tuple[T, ...]:
        """Layers of one width of heads."""
        found = tuple(read(one, f"{field}[{n}]", width) for n, one in enumerate(data))
        widths = [len(one["attention"]["query"]["bias"]) for one in data]
        for n, one in enumerate(data):
            for part in ("attention", "cross"):
                inside = len(one[part]["query"]["bias"]) if part in one else widths[0]
                if inside != widths[0]:
                    raise self.fields.fail(
                        f"{field}[{n}].{part}.query.weight",
                        f"has {inside} rows, but that of {field}[0].attention is {widths[0]}",
                    )
        return found


def _enclosed(fields: Fields, field: str, rows: Size, columns: Size) -> Enclosed:
    data = fields.entry[field]
    sides = []
    for side in ("lower", "upper"):
        place = f"{field}.{side}"
        fields.counted(data[side], place, *rows, "rows")
        for i, row in enumerate(data[side]):
            fields.counted(row, f"{place}[{i}]", *columns, "numbers")
        sides.append(tuple(tuple(map(int, row)) for row in data[side]))
    found = Enclosed(*sides)
    for place, lower, upper in found.places():
        if lower > upper:
            raise fields.fail(f"{field}{place}", "has a lower bound above the upper one")
    if found.uncertainty > LARGEST_UNCERTAINTY:
        raise fields.fail(field, "has bounds that are further apart than 2^-60")
    return found


def _eps(fields: Fields) -> Exact:
    if "eps" not in fields.entry:
        return 0
    eps = fields.bf16(fields.entry["eps"], "eps")
    if eps <= 0:
        raise fields.fail("eps", "is not positive")
    return eps


def _mask(fields: Fields, field: str, rows: Size, keys: Size, kinds: Sequence[str] = ()) -> Mask:
    """The mask of this field, of one of these kinds if there are any."""
    kind = fields.entry[field]["kind"]
    if kinds and kind not in kinds:
        raise fields.fail(f"{field}.kind", f"is {kind}, none of {', '.join(kinds)}")
    return fields.mask(rows[0], keys[0], field, (rows[1], keys[1]))


_PADDING = ("none", "key-padding", "key-length")


def _decoder_mask(fields: Fields, rows: Size) -> Mask:
    mask = _mask(fields, "mask", rows, rows, ("causal", "boolean"))
    if keys_of_decoder(mask, rows[0]) is None:
        raise fields.fail("mask", "is not the causal one less some keys")
    return mask


def _affordable(fields: Fields, reader: _Reader, layers: Sequence[Any], rows: int) -> None:
    """Refuse what takes long to compute; rows: queries and keys together."""
    width = sum(len(one.attention.query.bias) for one in layers)
    fields.affordable(rows, reader.cost + rows * width, _PRODUCTS)


def _parameters(reader: _Reader, data: Any, width: Size) -> tuple[Any, Size]:
    """The parameters of the entry's kind of layer, and the width of the result."""
    match reader.fields.entry["layer"]:
        case "linear":
            found = reader.linear(data, "parameters", width)
            return found, (len(found.bias), "the number of rows of parameters.weight")
        case "layer-norm":
            return reader.layer_norm(data, "parameters", width), width
        case "feed-forward":
            return reader.feed_forward(data, "parameters", width), width
        case "multi-head":
            return reader.multi_head(data, "parameters", width), width
        case "encoder":
            return reader.layers(data, "parameters", width, reader.encoder_layer), width
    return reader.layers(data, "parameters", width, reader.decoder_layer), width


def _layer_masks(fields: Fields, rows: Size, keys: Size) -> dict[str, Any]:
    match fields.entry["layer"]:
        case "multi-head":
            return {"mask": _mask(fields, "mask", rows, keys)}
        case "encoder":
            return {"mask": _mask(fields, "mask", rows, rows, _PADDING)}
        case "decoder":
            return {
                "mask": _decoder_mask(fields, rows),
                "context_mask": _mask(fields, "context_mask", rows, keys, _PADDING),
            }
    return {}


def layer(fields: Fields) -> LayerVector:
    """The vector. Raises VectorError as all readers do."""
    entry, reader = fields.entry, _Reader(fields)
    width = len(entry["x"][0]), "the width of x"
    x = reader.table(entry["x"], "x", width)
    keys = rows = len(x), "the number of rows of x"
    given: dict[str, Any] = {}
    for name in ("context", "values"):
        if name in entry:
            given[name] = reader.table(entry[name], name, width)
    if "context" in given:
        keys = len(given["context"]), "the number of rows of context"
    if "values" in given:
        if "context" not in given:
            raise fields.fail("values", "is given, but no context")
        fields.counted(entry["values"], "values", *keys, "rows")
    parameters, outputs = _parameters(reader, entry["parameters"], width)
    if "norm" in entry:
        if entry["norm_first"]:
            raise fields.fail("norm", "is given, but norm_first is true")
        given["norm"] = reader.layer_norm(entry["norm"], "norm", width)
    layers = parameters if isinstance(parameters, tuple) else ()
    _affordable(fields, reader, layers, rows[0] + keys[0])
    if isinstance(parameters, MultiHead):
        fields.affordable(rows[0] * keys[0], len(parameters.query.bias), _PRODUCTS)
    return LayerVector(
        **header(fields),
        layer=entry["layer"],
        x=x,
        parameters=parameters,
        expected=_enclosed(fields, "expected", rows, outputs),
        norm_first=entry.get("norm_first", True),
        num_heads=entry.get("num_heads", 1),
        scale=fields.scale() if "scale" in entry else None,
        eps=_eps(fields),
        **_layer_masks(fields, rows, keys),
        **given,
    )


def _tokens(fields: Fields, field: str, vocabulary: Size) -> tuple[int, ...]:
    for n, token in enumerate(fields.entry[field]):
        if token >= vocabulary[0]:
            raise fields.fail(
                f"{field}[{n}]", f"is {token}, but {vocabulary[1]} is {vocabulary[0]}"
            )
    return tuple(fields.entry[field])


def _quarter_turns(fields: Fields, positions: Matrix) -> tuple[tuple[int, ...], ...]:
    """Those that the positions are made of."""
    data = fields.entry["quarter_turns"]
    fields.counted(data, "quarter_turns", len(positions), "the number of positions", "rows")
    for p, (turns, row) in enumerate(zip(data, positions, strict=True)):
        # cos(a·π/2) is the sine of one turn more.
        made = [_SINES[(a + more) % 4] for more in (0, 1) for a in turns]
        if made != list(row):
            raise fields.fail(f"positions[{p}]", f"is not what quarter_turns[{p}] makes")
    return tuple(map(tuple, data))


def transformer(fields: Fields) -> TransformerVector:
    """The vector. Raises VectorError as all readers do."""
    entry, reader = fields.entry, _Reader(fields)
    data = entry["parameters"]
    width = len(data["source"][0]), "the width of parameters.source"
    source, target = (
        reader.table(data[name], f"parameters.{name}", width) for name in ("source", "target")
    )
    output_size = len(target), "the number of rows of parameters.target"
    parameters = Parameters(
        source,
        target,
        reader.layers(data["encoder"], "parameters.encoder", width, reader.encoder_layer),
        reader.layers(data["decoder"], "parameters.decoder", width, reader.decoder_layer),
        reader.linear(data["output"], "parameters.output", width, output_size),
    )
    if entry["tied"]:
        for name, part in (("target", target), ("output.weight", parameters.output.weight)):
            if part != source:
                raise fields.fail(
                    f"parameters.{name}", "is not parameters.source, but tied is true"
                )
        if any(parameters.output.bias):
            raise fields.fail("parameters.output.bias", "is not 0, but tied is true")
    sources = len(source), "the number of rows of parameters.source"
    source_tokens = _tokens(fields, "source_tokens", sources)
    target_tokens = _tokens(fields, "target_tokens", output_size)
    s = len(source_tokens), "the number of source_tokens"
    t = len(target_tokens), "the number of target_tokens"
    longest = max(s[0], t[0]), "the larger number of tokens"
    fields.counted(entry["positions"], "positions", *longest, "rows")
    positions = reader.table(entry["positions"], "positions", width)
    fields.counted(entry["expected_tokens"], "expected_tokens", *t, "tokens")
    layers = (*parameters.encoder, *parameters.decoder)
    _affordable(fields, reader, layers, s[0] + t[0])
    return TransformerVector(
        **header(fields),
        num_heads=entry["num_heads"],
        scale=fields.scale(),
        eps=_eps(fields),
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        tied=entry["tied"],
        positions=positions,
        source_mask=_mask(fields, "source_mask", s, s, _PADDING),
        mask=_decoder_mask(fields, t),
        context_mask=_mask(fields, "context_mask", t, s, _PADDING),
        parameters=parameters,
        expected_logits=_enclosed(fields, "expected_logits", t, output_size),
        expected_probabilities=_enclosed(fields, "expected_probabilities", t, output_size),
        expected_tokens=_tokens(fields, "expected_tokens", output_size),
        quarter_turns=_quarter_turns(fields, positions) if "quarter_turns" in entry else None,
    )
