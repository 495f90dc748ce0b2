"""`Attention.Spec.encodePostNorm` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("encoder-stack", 7)
@dtypes
def test_encoder_stack(vector_id: str, dtype: torch.dtype) -> None:
    """An encoder of any number of layers computed with intervals, over rows, parameters, ε and a
    scale that contain the true ones, contains the true rows: its layers normalised before, and
    normalised after with a normalisation at its end.

    Theorem encoder-enclosed. Encoder layers one after another: with the parameters of another
    layer, one layer left out, or the normalisation at the end left out or added, it shows.
    """
    check(vector_id, dtype)
