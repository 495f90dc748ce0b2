"""`Attention.Spec.Transformer.probabilities` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("transformer", 12)
@dtypes
def test_transformer(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed. From tokens to probabilities: the tables of the two sides
    exchanged, a place that is not encoded or is counted from 1, padding that is attended to, or a
    softmax over the other axis shows.
    """
    check(vector_id, dtype)


@vectors("transformer-positions", 6)
@dtypes
def test_transformer_positions(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed. Places encoded by sines and cosines, here of quarter turns, so
    that they are 0, 1 and -1: sines and cosines in turn or exchanged, or places that are counted
    from 1, show.
    """
    check(vector_id, dtype)


@vectors("transformer-tied", 5)
@dtypes
def test_transformer_tied(vector_id: str, dtype: torch.dtype) -> None:
    """A transformer computed with intervals, its parameters, the encodings of the places, ε and the
    scale containing the true ones, contains the true logits and probabilities, whatever natural
    exponential and whatever square root they are taken with.

    Theorem transformer-enclosed. One table embeds the tokens of both sides and makes the logits,
    without a bias: the table transposed, multiplied by the root of d_model, or another one for the
    logits shows.
    """
    check(vector_id, dtype)
