"""`Attention.Spec.cascade` on its vectors, through `pyimpl.attention` and `pyimpl.merge_states`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

from typing import Any

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors
from torch import Tensor

import pyimpl
from bridge.vectors.model import Matrix


def check(vector_id: str, dtype: torch.dtype) -> None:
    """One pass over the prefix for all queries, one over each suffix, and the two merged."""
    vector = vector_of(vector_id)
    query = tensor(vector.q, dtype)[None, None]
    out, lse = attend(vector, query, vector.prefix_k, vector.prefix_v)
    results = []
    for b, (k, v) in enumerate(zip(vector.suffix_k, vector.suffix_v, strict=True)):
        own_out, own_lse = attend(vector, query[:, :, b : b + 1], k, v)
        outs = torch.stack([out[:, :, b : b + 1], own_out])
        results.append(pyimpl.merge_states(outs, torch.stack([lse[:, :, b : b + 1], own_lse])))
    judge(vector, dtype, *results)


def attend(vector: Any, query: Tensor, k: Matrix, v: Matrix) -> tuple[Tensor, Tensor]:
    return pyimpl.attention(
        query,
        tensor(k, query.dtype, vector.head_dim)[None, None],
        tensor(v, query.dtype, vector.value_dim)[None, None],
        scale=scale_of(vector),
        return_lse=True,
        backend="tiled",
    )


@vectors("cascade", 11)
@dtypes
def test_cascade(vector_id: str, dtype: torch.dtype) -> None:
    """A prefix that several queries share, computed for all of them in one pass of tiles and merged
    with each query's own suffix, gives each query its attention over the prefix followed by its
    suffix.

    Theorem cascade. Queries of several requests with a shared prefix of keys, computed once, and a
    suffix for each: the two states of a query are merged, each with its own maximum.
    """
    check(vector_id, dtype)
