"""`Attention.Spec.DecoderLayer.preNorm` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("decoder-layer", 16)
@dtypes
def test_decoder_layer(vector_id: str, dtype: torch.dtype) -> None:
    """So does a decoder layer, over rows of the encoder that contain the true ones.

    Theorem decoder-layer-enclosed. A decoder layer, normalised before or after: without the causal
    mask, with the two masks exchanged, with a context that is normalised or attended to in another
    order, it shows.
    """
    check(vector_id, dtype)
