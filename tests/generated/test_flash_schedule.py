"""`Attention.Spec.flashSchedule` on its vectors, through `pyimpl.attention`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, options, scale_of, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    out, lse = pyimpl.attention(
        tensor(vector.q, dtype)[None, None],
        tensor(vector.k, dtype)[None, None],
        tensor(vector.v, dtype)[None, None],
        scale=scale_of(vector),
        **options(vector, dtype),
        return_lse=True,
        backend="tiled",
    )
    judge(vector, dtype, (out, lse))


@vectors("block-mask", 11)
@dtypes
def test_block_mask(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1 and masks, the tile loop that leaves out tiles masked
    entirely, and takes tiles not masked at all without mask code, computes attention.

    Theorem tile-schedule. Boolean masks of which whole tiles of 16 are masked, and whole tiles are
    not: skipped, and taken without mask code.
    """
    check(vector_id, dtype)
