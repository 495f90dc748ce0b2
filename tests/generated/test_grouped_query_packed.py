"""`Attention.Spec.groupedQueryPacked` on its vectors, through `pyimpl.attention` with `enable_gqa`.

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


@vectors("grouped-query-packed", 11)
@dtypes
def test_grouped_query_packed(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention may be computed with the queries of the heads that share a key-value
    head stacked in one matrix, one attention for each key-value head.

    Theorem gqa-packed. The queries of all heads that share keys and values as one matrix, as
    decoding packs them: masks go by the query's own position, and rows return to their heads.
    """
    check(vector_id, dtype)
