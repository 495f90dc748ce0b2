"""`Attention.Spec.attentionPadded` on its vectors, through `pyimpl.attention`.

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


@vectors("padding", 11)
@dtypes
def test_padding(vector_id: str, dtype: torch.dtype) -> None:
    """The tile loop over queries, keys and values padded by any rows, with its output cut to the
    queries that were asked for, computes attention of what was padded.

    Theorem pad-tiles. Rows, keys and columns that a kernel adds to fill its tiles: whatever they
    hold, they have no influence.
    """
    check(vector_id, dtype)
