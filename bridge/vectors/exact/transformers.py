"""A transformer's layers from their mathematical definitions: a second derivation, to 80 digits.

Nothing here knows of intervals, caches, or of heads that are split and joined: the heads share
three matrices, of which each has some rows, and a head's result is added to the output by some
columns of a fourth. The variance is the mean of the squares less the square of the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import zip_longest

from bridge.vectors.exact.decimals import between, decimal_of
from bridge.vectors.model.attention import Exact, Mask
from bridge.vectors.model.transformers import (
    DecoderLayer,
    Enclosed,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    LayerVector,
    Linear,
    MultiHead,
    TransformerVector,
)

_DIGITS = 80

Row = list[Decimal]
Rows = list[Row]


def _rows(matrix: Sequence[Sequence[Exact]]) -> Rows:
    return [[decimal_of(x) for x in row] for row in matrix]


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def linear(part: Linear, x: Rows) -> Rows:
    weight, bias = _rows(part.weight), [decimal_of(b) for b in part.bias]
    return [[_dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in x]


def layer_norm(part: LayerNorm, eps: Exact, x: Rows) -> Rows:
    found = []
    for row in x:
        mean = sum(row) / Decimal(len(row))
        variance = _dot(row, row) / len(row) - mean * mean
        deviation = (variance + decimal_of(eps)).sqrt()
        scaled = [(a - mean) / deviation for a in row]
        terms = zip(scaled, part.gain, part.bias, strict=True)
        found.append([a * decimal_of(gain) + decimal_of(bias) for a, gain, bias in terms])
    return found


def feed_forward(part: FeedForward, x: Rows) -> Rows:
    hidden = [[max(a, Decimal(0)) for a in row] for row in linear(part.hidden, x)]
    return linear(part.output, hidden)


def multi_head(
    part: MultiHead,
    num_heads: int,
    scale: Exact | None,
    mask: Mask,
    x: Rows,
    keys: Rows,
    values: Rows,
) -> Rows:
    """Multi-head attention. A query that sees no key gets the bias of the output."""
    width = len(part.query.bias) // num_heads
    factor = 1 / Decimal(width).sqrt() if scale is None else decimal_of(scale)
    q, k, v = linear(part.query, x), linear(part.key, keys), linear(part.value, values)
    output = _rows(part.output.weight)
    found = []
    for i, query in enumerate(q):
        out = [decimal_of(b) for b in part.output.bias]
        seen = [j for j in range(len(k)) if mask.visible(i, j)]
        for h in range(num_heads if seen else 0):
            own = slice(h * width, (h + 1) * width)
            weights = [(factor * _dot(query[own], k[j][own])).exp() for j in seen]
            total = sum(weights)
            for c in range(own.start, own.stop):
                mean = _dot(weights, [v[j][c] for j in seen]) / total
                for n, row in enumerate(output):
                    out[n] += row[c] * mean
        found.append(out)
    return found


def _sum(x: Rows, y: Rows) -> Rows:
    return [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(x, y, strict=True)]


class _Layers:
    """The sizes and options that all layers of a vector share."""

    def __init__(self, vector: LayerVector | TransformerVector, *, norm_first: bool) -> None:
        self.num_heads, self.scale, self.eps = vector.num_heads, vector.scale, vector.eps
        self.norm_first = norm_first

    def attention(self, part: MultiHead, mask: Mask, x: Rows, context: Rows) -> Rows:
        return multi_head(part, self.num_heads, self.scale, mask, x, context, context)

    def norm(self, part: LayerNorm, x: Rows) -> Rows:
        return layer_norm(part, self.eps, x)

    def add_attention(self, part: MultiHead, norm: LayerNorm, mask: Mask, x: Rows) -> Rows:
        if self.norm_first:
            inside = self.norm(norm, x)
            return _sum(x, self.attention(part, mask, inside, inside))
        return self.norm(norm, _sum(x, self.attention(part, mask, x, x)))

    def add_cross_attention(self, part: DecoderLayer, mask: Mask, x: Rows, context: Rows) -> Rows:
        if self.norm_first:
            inside = self.norm(part.cross_norm, x)
            return _sum(x, self.attention(part.cross, mask, inside, context))
        return self.norm(part.cross_norm, _sum(x, self.attention(part.cross, mask, x, context)))

    def add_feed_forward(self, part: EncoderLayer | DecoderLayer, x: Rows) -> Rows:
        if self.norm_first:
            return _sum(x, feed_forward(part.feed_forward, self.norm(part.feed_forward_norm, x)))
        return self.norm(part.feed_forward_norm, _sum(x, feed_forward(part.feed_forward, x)))

    def encode(self, layers: Sequence[EncoderLayer], mask: Mask, x: Rows) -> Rows:
        for layer in layers:
            x = self.add_attention(layer.attention, layer.attention_norm, mask, x)
            x = self.add_feed_forward(layer, x)
        return x

    def decode(
        self, layers: Sequence[DecoderLayer], mask: Mask, cross: Mask, x: Rows, context: Rows
    ) -> Rows:
        for layer in layers:
            x = self.add_attention(layer.attention, layer.attention_norm, mask, x)
            x = self.add_cross_attention(layer, cross, x, context)
            x = self.add_feed_forward(layer, x)
        return x


def layer(vector: LayerVector) -> Rows:
    """The result from the inputs alone, to about 75 digits."""
    with localcontext(prec=_DIGITS):
        x, part = _rows(vector.x), vector.parameters
        match part:
            case Linear():
                return linear(part, x)
            case LayerNorm():
                return layer_norm(part, vector.eps, x)
            case FeedForward():
                return feed_forward(part, x)
            case MultiHead():
                keys = x if vector.context is None else _rows(vector.context)
                values = keys if vector.values is None else _rows(vector.values)
                options = (vector.num_heads, vector.scale, vector.mask)
                return multi_head(part, *options, x, keys, values)
        layers = _Layers(vector, norm_first=vector.norm_first)
        encoders = [one for one in vector.layers if isinstance(one, EncoderLayer)]
        decoders = [one for one in vector.layers if isinstance(one, DecoderLayer)]
        x = layers.encode(encoders, vector.mask, x)
        context = _rows(vector.context or ())
        x = layers.decode(decoders, vector.mask, vector.context_mask, x, context)
        return x if vector.norm is None else layer_norm(vector.norm, vector.eps, x)


def logits(vector: TransformerVector) -> Rows:
    """The logits from the tokens and parameters alone, to about 75 digits."""
    with localcontext(prec=_DIGITS):
        positions, given = _rows(vector.positions), vector.parameters
        layers = _Layers(vector, norm_first=True)
        source, target = (
            _sum(_rows([table[token] for token in tokens]), positions[: len(tokens)])
            for table, tokens in (
                (given.source, vector.source_tokens),
                (given.target, vector.target_tokens),
            )
        )
        context = layers.encode(given.encoder, vector.source_mask, source)
        masks = (vector.mask, vector.context_mask)
        return linear(given.output, layers.decode(given.decoder, *masks, target, context))


def probabilities(of: Rows) -> Rows:
    """The shares of the exponentials of each row."""
    with localcontext(prec=_DIGITS):
        weights = [[a.exp() for a in row] for row in of]
        return [[w / sum(row, Decimal(0)) for w in row] for row in weights]


def outside(name: str, enclosed: Enclosed, right: Rows) -> list[str]:
    """A clause for each number that is not between its bounds; `name` is that of the field."""
    with localcontext(prec=_DIGITS):
        numbers = (x for row in right for x in row)
        return [
            f"{name}{place} is not between its bounds: it is {x:.30f}"
            for (place, lower, upper), x in zip(enclosed.places(), numbers, strict=True)
            if not between(lower, x, upper)
        ]


def wrong_layer(vector: LayerVector | TransformerVector) -> list[str]:
    """A sentence for each number of the vector that differs from the definitions'."""
    if isinstance(vector, LayerVector):
        found = outside("expected", vector.expected, layer(vector))
    else:
        right = logits(vector)
        found = outside("expected_logits", vector.expected_logits, right)
        shares = probabilities(right)
        found += outside("expected_probabilities", vector.expected_probabilities, shares)
        likeliest = [row.index(max(row)) for row in right]
        for i, (token, best) in enumerate(zip_longest(vector.expected_tokens, likeliest)):
            if token != best:
                found.append(f"expected_tokens[{i}] is {token}, should be {best}")
    return [f"{vector.id}: {clause}." for clause in found]
