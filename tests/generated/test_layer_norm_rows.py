"""`Attention.Spec.LayerNorm.rows` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("layer-norm", 16)
@dtypes
def test_layer_norm(vector_id: str, dtype: torch.dtype) -> None:
    """Layer normalisation computed with intervals, over rows, ε and parameters that contain the
    true ones and with a root of intervals that contains the root, contains the true normalised
    rows.

    Theorem layer-norm-enclosed. ((x - mean) / sqrt(variance + eps)) * gain + bias: the divisor d -
    1, eps beside the root, a variance by the difference of two large numbers, and statistics over
    another axis show.
    """
    check(vector_id, dtype)
