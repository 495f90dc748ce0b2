"""The vectors that `pyimpl.modules` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("cached-decoding", 9)
@dtypes
def test_cached_decoding(vector_id: str, dtype: torch.dtype) -> None:
    """Decoding row by row with a cache, computed with intervals over rows, rows of the encoder,
    parameters, ε and a scale that contain the true ones, contains the true rows, whatever natural
    exponential and whatever square root they are taken with.

    Theorem decode-cached-enclosed, `Spec.decodeCached`. Decoding row by row with a cache of keys
    and values in each layer: a row that is not appended, or appended before it is normalised, a
    cache that two layers share, keys and values of the context that are taken from the rows, or,
    from the second row on, a row before that is forgotten, show.
    """
    check(vector_id, dtype)


@vectors("decoder-layer", 16)
@dtypes
def test_decoder_layer(vector_id: str, dtype: torch.dtype) -> None:
    """So does a decoder layer, over rows of the encoder that contain the true ones.

    Theorem decoder-layer-enclosed, `Spec.DecoderLayer.preNorm`. A decoder layer, normalised before
    or after: without the causal mask, with the two masks exchanged, with a context that is
    normalised or attended to in another order, it shows.
    """
    check(vector_id, dtype)


@vectors("decoder-stack", 6)
@dtypes
def test_decoder_stack(vector_id: str, dtype: torch.dtype) -> None:
    """So does a decoder of any number of layers, over rows of the encoder that contain the true
    ones.

    Theorem decoder-enclosed, `Spec.decode`. Decoder layers one after another, each with the same
    context: one that attends to the rows of the layer before in the place of the context, or a mask
    that is used once, shows.
    """
    check(vector_id, dtype)


@vectors("encoder-layer", 18)
@dtypes
def test_encoder_layer(vector_id: str, dtype: torch.dtype) -> None:
    """An encoder layer, normalised before or after, computed with intervals over rows, parameters,
    ε and a scale that contain the true ones, contains the true rows, whatever natural exponential
    and whatever square root they are taken with.

    Theorem encoder-layer-enclosed, `Spec.EncoderLayer.postNorm`. An encoder layer, normalised
    before or after: the other order, a residual of the normalised row, the two normalisations
    exchanged, or a mask that is dropped shows.
    """
    check(vector_id, dtype)


@vectors("encoder-stack", 7)
@dtypes
def test_encoder_stack(vector_id: str, dtype: torch.dtype) -> None:
    """An encoder of any number of layers computed with intervals, over rows, parameters, ε and a
    scale that contain the true ones, contains the true rows: its layers normalised before, and
    normalised after with a normalisation at its end.

    Theorem encoder-enclosed, `Spec.encodePostNorm`. Encoder layers one after another: with the
    parameters of another layer, one layer left out, or the normalisation at the end left out or
    added, it shows.
    """
    check(vector_id, dtype)


@vectors("feed-forward", 11)
@dtypes
def test_feed_forward(vector_id: str, dtype: torch.dtype) -> None:
    """A feed-forward network computed with intervals, over rows and parameters that contain the
    true ones, contains the true result.

    Theorem feed-forward-enclosed, `Spec.FeedForward.rows`. W2 max(0, W1 x + b1) + b2: another
    function than the rectifier, one at another place, a bias left out, or a matrix transposed
    shows.
    """
    check(vector_id, dtype)


@vectors("layer-norm", 16)
@dtypes
def test_layer_norm(vector_id: str, dtype: torch.dtype) -> None:
    """Layer normalisation computed with intervals, over rows, ε and parameters that contain the
    true ones and with a root of intervals that contains the root, contains the true normalised
    rows.

    Theorem layer-norm-enclosed, `Spec.LayerNorm.rows`. ((x - mean) / sqrt(variance + eps)) * gain +
    bias: the divisor d - 1, eps beside the root, a variance by the difference of two large numbers,
    and statistics over another axis show.
    """
    check(vector_id, dtype)


@vectors("linear", 10)
@dtypes
def test_linear(vector_id: str, dtype: torch.dtype) -> None:
    """A linear layer computed with intervals, over rows and parameters that contain the true ones,
    contains the true result.

    Theorem linear-enclosed, `Spec.Linear.rows`. W x + b for each row: with W transposed, with b
    left out or added to another axis, it shows.
    """
    check(vector_id, dtype)


@vectors("multi-head-layer", 21)
@dtypes
def test_multi_head_layer(vector_id: str, dtype: torch.dtype) -> None:
    """Multi-head attention with its projections, computed with intervals over rows, a scale and
    parameters that contain the true ones and under any mask, contains the true attention, whatever
    natural exponential it is taken with.

    Theorem multi-head-enclosed, `Spec.MultiHead.rows`. Multi-head attention with its four
    projections: heads that are split or joined in another order, projections that are exchanged or
    transposed, a scale of another width, and masks that are dropped or turned around show.
    """
    check(vector_id, dtype)


@vectors("transformer", 12)
@dtypes
def test_transformer(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed, `Spec.Transformer.probabilities`. From tokens to probabilities:
    the tables of the two sides exchanged, a place that is not encoded or is counted from 1, padding
    that is attended to, or a softmax over the other axis shows.
    """
    check(vector_id, dtype)


@vectors("transformer-positions", 6)
@dtypes
def test_transformer_positions(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed, `Spec.Transformer.probabilities`. Places encoded by sines and
    cosines, here of quarter turns, so that they are 0, 1 and -1: sines and cosines in turn or
    exchanged, or places that are counted from 1, show.
    """
    check(vector_id, dtype)


@vectors("transformer-tied", 5)
@dtypes
def test_transformer_tied(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed, `Spec.Transformer.probabilities`. One table embeds the tokens of
    both sides and makes the logits, without a bias: the table transposed, multiplied by the root of
    d_model, or another one for the logits shows.
    """
    check(vector_id, dtype)
