"""`Attention.Spec.EncoderLayer.postNorm` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("encoder-layer", 18)
@dtypes
def test_encoder_layer(vector_id: str, dtype: torch.dtype) -> None:
    """An encoder layer, normalised before or after, computed with intervals over rows, parameters,
    ε and a scale that contain the true ones, contains the true rows, whatever natural exponential
    and whatever square root they are taken with.

    Theorem encoder-layer-enclosed. An encoder layer, normalised before or after: the other order, a
    residual of the normalised row, the two normalisations exchanged, or a mask that is dropped
    shows.
    """
    check(vector_id, dtype)
