"""`Attention.Spec.multiHead` on its vectors, through `pyimpl.attention` with `enable_gqa`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors, visible

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    out, lse = pyimpl.attention(
        torch.stack([tensor(rows, dtype) for rows in vector.q])[None],
        torch.stack([tensor(rows, dtype) for rows in vector.k])[None],
        torch.stack([tensor(rows, dtype) for rows in vector.v])[None],
        scale=scale_of(vector),
        attn_mask=visible(vector),
        enable_gqa=True,
        return_lse=True,
        backend="tiled",
    )
    heads = [slice(h, h + 1) for h in range(vector.num_heads)]
    judge(vector, dtype, *((out[:, h], lse[:, h]) for h in heads))


@vectors("multi-head", 10)
@dtypes
def test_multi_head(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention, where query head h uses key-value head h / group, is multi-head
    attention with each key-value head repeated group times in a row.

    Theorem gqa-repeat. One attention for each head, over its own keys and values: heads that are
    exchanged, or that share keys or values, show.
    """
    check(vector_id, dtype)
