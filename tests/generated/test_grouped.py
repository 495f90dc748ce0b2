"""The vectors that `pyimpl.attention` with `enable_gqa` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
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


@vectors("grouped-query", 12)
@dtypes
def test_grouped_query(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention, where query head h uses key-value head h / group, is multi-head
    attention with each key-value head repeated group times in a row.

    Theorem gqa-repeat, `Spec.groupedQuery`. Query head h uses head h / group of the keys and
    values: with h % num_kv_heads, or with the heads of K and V exchanged, it shows.
    """
    check(vector_id, dtype)


@vectors("grouped-query-drawn", 27)
@dtypes
def test_grouped_query_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention, where query head h uses key-value head h / group, is multi-head
    attention with each key-value head repeated group times in a row.

    Theorem gqa-repeat, `Spec.groupedQuery`. Numbers of heads, sizes and masks drawn at random.
    """
    check(vector_id, dtype)


@vectors("grouped-query-packed", 11)
@dtypes
def test_grouped_query_packed(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention may be computed with the queries of the heads that share a key-value
    head stacked in one matrix, one attention for each key-value head.

    Theorem gqa-packed, `Spec.groupedQueryPacked`. The queries of all heads that share keys and
    values as one matrix, as decoding packs them: masks go by the query's own position, and rows
    return to their heads.
    """
    check(vector_id, dtype)


@vectors("multi-head", 10)
@dtypes
def test_multi_head(vector_id: str, dtype: torch.dtype) -> None:
    """Grouped-query attention, where query head h uses key-value head h / group, is multi-head
    attention with each key-value head repeated group times in a row.

    Theorem gqa-repeat, `Spec.multiHead`. One attention for each head, over its own keys and values:
    heads that are exchanged, or that share keys or values, show.
    """
    check(vector_id, dtype)
