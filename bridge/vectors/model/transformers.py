"""The vectors of a transformer: its layers, and the whole.

Parameters are nested as the structures of the Spec are. A weight has a row for each output, as that
of `torch.nn.Linear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from bridge.vectors.model.attention import BOUNDS_UNIT, Exact, Mask, Matrix, Vector

Numbers = tuple[Exact, ...]
Integers = tuple[tuple[int, ...], ...]
Kind = Literal["linear", "layer-norm", "feed-forward", "multi-head", "encoder", "decoder"]
_ALL = Mask("none")


@dataclass(frozen=True)
class Linear:
    """x ↦ W x + b. weight: [outputs][inputs]; bias: [outputs]."""

    weight: Matrix
    bias: Numbers


@dataclass(frozen=True)
class LayerNorm:
    """(x − μ) / √(σ² + ε) · gain + bias, component by component."""

    gain: Numbers
    bias: Numbers


@dataclass(frozen=True)
class FeedForward:
    """W₂ max(0, W₁ x + b₁) + b₂."""

    hidden: Linear
    output: Linear


@dataclass(frozen=True)
class MultiHead:
    """The projections of multi-head attention; those of queries, keys and values have
    num_heads · head_dim outputs, of which head h has those from h · head_dim on."""

    query: Linear
    key: Linear
    value: Linear
    output: Linear


@dataclass(frozen=True)
class EncoderLayer:
    """Self-attention and feed-forward network, each with the normalisation that goes with it."""

    attention: MultiHead
    attention_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm


@dataclass(frozen=True)
class DecoderLayer:
    """The parameters of an encoder layer, and of attention to the output of the encoder."""

    attention: MultiHead
    attention_norm: LayerNorm
    cross: MultiHead
    cross_norm: LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: LayerNorm


@dataclass(frozen=True)
class Parameters:
    """The parameters of a transformer. source, target: the embedding of each token,
    [tokens][d_model]; output: the linear map to the logits."""

    source: Matrix
    target: Matrix
    encoder: tuple[EncoderLayer, ...]
    decoder: tuple[DecoderLayer, ...]
    output: Linear


AnyParameters = (
    Linear
    | LayerNorm
    | FeedForward
    | MultiHead
    | tuple[EncoderLayer, ...]
    | tuple[DecoderLayer, ...]
)


@dataclass(frozen=True)
class Enclosed:
    """Bounds of a matrix: integers over 2^128."""

    lower: Integers
    upper: Integers

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Every entry with its place, as in `[0][1]`: the lower and the upper bound."""
        for i, rows in enumerate(zip(self.lower, self.upper, strict=True)):
            for j, (lower, upper) in enumerate(zip(*rows, strict=True)):
                yield f"[{i}][{j}]", lower, upper

    @cached_property
    def middle(self) -> tuple[tuple[Fraction, ...], ...]:
        """The middle between the bounds of each entry."""
        return tuple(
            tuple(Fraction(lo + hi, 2 * BOUNDS_UNIT) for lo, hi in zip(*rows, strict=True))
            for rows in zip(self.lower, self.upper, strict=True)
        )

    @cached_property
    def uncertainty(self) -> Fraction:
        """By how much an entry may differ from the middle between its bounds."""
        widths = (upper - lower for _, lower, upper in self.places())
        return Fraction(max(widths, default=0), 2 * BOUNDS_UNIT)


def _head_dim(parts: Sequence[object], num_heads: int) -> int | None:
    """The width of a head of the first part, a layer or its attention; None without attention."""
    part = parts[0]
    if isinstance(part, (EncoderLayer, DecoderLayer)):
        part = part.attention
    return len(part.query.bias) // num_heads if isinstance(part, MultiHead) else None


@dataclass(frozen=True)
class LayerVector(Vector):
    """One input of a layer, or of layers one after another, with its result.

    layer: which. x: [rows][width], the rows that it is given. parameters: its own; a tuple of
    layers for "encoder" and "decoder". num_heads, scale, mask: where there is attention; a scale of
    None is 1/√head_dim. eps: where there are normalisations. norm_first: of "encoder" and
    "decoder": whether the inputs of attention and feed-forward network are normalised, or each sum.
    norm: of the same, behind the last layer. context: of "decoder" the output of the encoder, of
    "multi-head" the rows from which keys and values are made if they are not x; values: the rows
    from which values alone are made. context_mask: which rows of the context a "decoder" may attend
    to. expected: [rows][…].
    """

    operation: ClassVar[str] = "layer"
    layer: Kind
    x: Matrix
    parameters: AnyParameters
    expected: Enclosed
    norm_first: bool = True
    num_heads: int = 1
    scale: Exact | None = None
    eps: Exact = 0
    context: Matrix | None = None
    values: Matrix | None = None
    mask: Mask = _ALL
    context_mask: Mask = _ALL
    norm: LayerNorm | None = None

    @property
    def layers(self) -> Sequence[EncoderLayer | DecoderLayer]:
        """The layers of "encoder" and "decoder"; otherwise none."""
        return self.parameters if isinstance(self.parameters, tuple) else ()

    @property
    def head_dim(self) -> int | None:
        """The width of a head; None where there is no attention."""
        return _head_dim(self.layers or (self.parameters,), self.num_heads)


@dataclass(frozen=True)
class TransformerVector(Vector):
    """Tokens, and a transformer's result for them: layers that are normalised before, no
    normalisation behind them, and embeddings that are not scaled.

    source_tokens: [source_len]; target_tokens: [target_len]. positions: the vector added to the
    embedding of the token at each place, of source and target alike. quarter_turns: where the
    positions are sines and cosines: row p are those of these multiples of π/2, all sines before all
    cosines; None: they are given alone. tied: both embeddings and the weight of the output are one
    matrix, and the bias of the output is 0. source_mask: of the encoder; mask: of the decoder's
    self-attention; context_mask: of its attention to the encoder's output. expected_logits,
    expected_probabilities: [target_len][tokens]; expected_tokens: the place of the largest logit of
    each row.
    """

    operation: ClassVar[str] = "transformer"
    num_heads: int
    scale: Exact | None
    eps: Exact
    source_tokens: tuple[int, ...]
    target_tokens: tuple[int, ...]
    tied: bool
    positions: Matrix
    source_mask: Mask
    mask: Mask
    context_mask: Mask
    parameters: Parameters
    expected_logits: Enclosed
    expected_probabilities: Enclosed
    expected_tokens: tuple[int, ...]
    quarter_turns: Integers | None = None

    @property
    def head_dim(self) -> int | None:
        """The width of a head."""
        return _head_dim(self.parameters.encoder, self.num_heads)


def keys_of_decoder(mask: Mask, length: int) -> tuple[bool, ...] | None:
    """Which keys of its own a decoder may attend to beside causality; None where the mask is no
    causal one less some keys."""
    if mask.kind == "causal":
        return (True,) * length
    kept = tuple(mask.visible(j, j) for j in range(length))
    causal = all(
        mask.visible(i, j) == (j <= i and kept[j]) for i in range(length) for j in range(length)
    )
    return kept if causal else None
