"""`Attention.Spec.decodeCached` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
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

    Theorem decode-cached-enclosed. Decoding row by row with a cache of keys and values in each
    layer: a row that is not appended, or appended before it is normalised, a cache that two layers
    share, keys and values of the context that are taken from the rows, or, from the second row on,
    a row before that is forgotten, show.
    """
    check(vector_id, dtype)
