"""`Attention.Spec.flash` on its vectors, through `pyimpl.attention`.

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


@vectors("tile-loop", 10)
@dtypes
def test_tile_loop(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention. The tile loop with tiles from one query and one key to more than
    there are: the result is the same.
    """
    check(vector_id, dtype)
