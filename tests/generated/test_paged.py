"""The vectors that `pyimpl.attention_decode` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    longest = max(map(len, vector.tables))
    table = [[*pages, *[0] * (longest - len(pages))] for pages in vector.tables]
    out, lse = pyimpl.attention_decode(
        tensor(vector.q, dtype)[:, None, None],
        torch.stack([tensor(page, dtype) for page in vector.k])[:, None],
        torch.stack([tensor(page, dtype) for page in vector.v])[:, None],
        page_table=torch.tensor(table, dtype=torch.int32),
        kv_lens=torch.tensor(vector.lengths, dtype=torch.int32),
        scale=scale_of(vector),
        return_lse=True,
        backend="tiled",
    )
    sequences = [slice(b, b + 1) for b in range(len(vector.q))]
    judge(vector, dtype, *((out[b], lse[b]) for b in sequences))


@vectors("paged", 12)
@dtypes
def test_paged(vector_id: str, dtype: torch.dtype) -> None:
    """Keys and values stored in pages and read page by page through the page table, the slots
    beyond the length masked, give the output of attention, for every page size, every table that
    has room and no page twice, and whatever the pages held before.

    Theorem paged, `Spec.attendPaged`. Keys and values in pages of a pool, through a table for each
    sequence: a page in the wrong order, the slots beyond the length, or another sequence's page
    shows.
    """
    check(vector_id, dtype)


@vectors("paged-past-tiles", 2)
@dtypes
def test_paged_past_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """Keys and values stored in pages and read page by page through the page table, the slots
    beyond the length masked, give the output of attention, for every page size, every table that
    has room and no page twice, and whatever the pages held before.

    Theorem paged, `Spec.attendPaged`. More pages to a sequence than a tile of 64 or of 128 keys
    has: a table that is read no further, or from its beginning again, shows.
    """
    check(vector_id, dtype)


@vectors("paged-wide-heads", 3)
@dtypes
def test_paged_wide_heads(vector_id: str, dtype: torch.dtype) -> None:
    """Keys and values stored in pages and read page by page through the page table, the slots
    beyond the length masked, give the output of attention, for every page size, every table that
    has room and no page twice, and whatever the pages held before.

    Theorem paged, `Spec.attendPaged`. Pages with heads of 64, 128 and 256 columns, all of them in
    use, and more keys than a tile: columns past a tile that are left out, or slots that are read at
    the strides of narrower heads, show.
    """
    check(vector_id, dtype)
