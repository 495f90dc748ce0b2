"""The shapes of the vectors of layers and of a transformer."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bridge.vectors.format.shapes import (
    ROWS,
    SOME,
    Count,
    FilledMatrix,
    IntegerMatrix,
    Length,
    Mask,
    Number,
    Numbers,
    Scale,
    Shape,
    Vector,
)

Tokens = Annotated[list[Count], ROWS, SOME]
_STACK = Meta(min_length=1, max_length=64)


class EnclosedMatrix(Shape):
    lower: IntegerMatrix
    upper: IntegerMatrix


class LinearMap(Shape):
    weight: FilledMatrix
    bias: Numbers


class Normalisation(Shape):
    gain: Numbers
    bias: Numbers


class FeedForward(Shape):
    hidden: LinearMap
    output: LinearMap


class MultiHead(Shape):
    query: LinearMap
    key: LinearMap
    value: LinearMap
    output: LinearMap


class EncoderParameters(Shape):
    attention: MultiHead
    attention_norm: Normalisation
    feed_forward: FeedForward
    feed_forward_norm: Normalisation


class DecoderParameters(EncoderParameters):
    cross: MultiHead
    cross_norm: Normalisation


class Layer(Vector, tag_field="layer"):
    x: FilledMatrix
    expected: EnclosedMatrix


class LinearLayer(Layer, tag="linear"):
    parameters: LinearMap


class LayerNormLayer(Layer, tag="layer-norm"):
    eps: Number
    parameters: Normalisation


class FeedForwardLayer(Layer, tag="feed-forward"):
    parameters: FeedForward


class MultiHeadLayer(Layer, tag="multi-head", kw_only=True):
    num_heads: Length
    scale: Scale
    context: FilledMatrix | UnsetType = UNSET
    values: FilledMatrix | UnsetType = UNSET
    mask: Mask
    parameters: MultiHead


class Stack(Layer, tag="stack", kw_only=True):
    """Layers one after another; with norm_first false there may be a normalisation behind them."""

    norm_first: bool
    num_heads: Length
    scale: Scale
    eps: Number
    mask: Mask
    norm: Normalisation | UnsetType = UNSET


class EncoderLayer(Stack, tag="encoder"):
    parameters: Annotated[list[EncoderParameters], _STACK]


class DecoderLayer(Stack, tag="decoder"):
    context: FilledMatrix
    context_mask: Mask
    parameters: Annotated[list[DecoderParameters], _STACK]


AnyLayer = (
    LinearLayer | LayerNormLayer | FeedForwardLayer | MultiHeadLayer | EncoderLayer | DecoderLayer
)


class TransformerParameters(Shape):
    source: FilledMatrix
    target: FilledMatrix
    encoder: Annotated[list[EncoderParameters], _STACK]
    decoder: Annotated[list[DecoderParameters], _STACK]
    output: LinearMap


class Transformer(Vector, kw_only=True):
    num_heads: Length
    scale: Scale
    eps: Number
    source_tokens: Tokens
    target_tokens: Tokens
    tied: bool
    quarter_turns: (
        Annotated[
            list[
                Annotated[list[Annotated[int, Meta(ge=-1000000, le=1000000)]], Meta(max_length=512)]
            ],
            ROWS,
            Meta(
                description="multiples of π/2: positions are the sines of each row, then its "
                "cosines"
            ),
        ]
        | UnsetType
    ) = UNSET
    positions: FilledMatrix
    source_mask: Mask
    mask: Mask
    context_mask: Mask
    parameters: TransformerParameters
    expected_logits: EnclosedMatrix
    expected_probabilities: EnclosedMatrix
    expected_tokens: Tokens
