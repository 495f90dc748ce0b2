"""`Attention.Spec.decode` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("decoder-stack", 6)
@dtypes
def test_decoder_stack(vector_id: str, dtype: torch.dtype) -> None:
    """So does a decoder of any number of layers, over rows of the encoder that contain the true
    ones.

    Theorem decoder-enclosed. Decoder layers one after another, each with the same context: one that
    attends to the rows of the layer before in the place of the context, or a mask that is used
    once, shows.
    """
    check(vector_id, dtype)
