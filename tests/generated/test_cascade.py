"""The vectors that `pyimpl.attention_cascade` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import pyimpl
from bridge.vectors.model.attention import Matrix


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    lens = torch.tensor([len(k) for k in vector.suffix_k])
    out, lse = pyimpl.attention_cascade(
        tensor(vector.q, dtype)[:, None, None],
        tensor(vector.prefix_k, dtype, vector.head_dim)[None],
        tensor(vector.prefix_v, dtype, vector.value_dim)[None],
        padded(vector.suffix_k, dtype, vector.head_dim),
        padded(vector.suffix_v, dtype, vector.value_dim),
        suffix_lens=lens,
        scale=scale_of(vector),
        return_lse=True,
        backend="tiled",
    )
    requests = [slice(b, b + 1) for b in range(len(vector.q))]
    judge(vector, dtype, *((out[b], lse[b]) for b in requests))


def padded(suffixes: tuple[Matrix, ...], dtype: torch.dtype, columns: int) -> Tensor:
    """The suffixes in one tensor, `[batch, 1, max_len, columns]`; NaN beyond the end of each."""
    rows = [tensor(suffix, dtype, columns) for suffix in suffixes]
    return pad_sequence(rows, batch_first=True, padding_value=torch.nan)[:, None]


@vectors("cascade", 11)
@dtypes
def test_cascade(vector_id: str, dtype: torch.dtype) -> None:
    """A prefix that several queries share, computed for all of them in one pass of tiles of at
    least one key and merged with each query's own suffix, gives each query its attention over the
    prefix followed by its suffix.

    Theorem cascade, `Spec.cascade`. Queries of several requests with a shared prefix of keys,
    computed once, and a suffix for each: the two states of a query are merged, each with its own
    maximum.
    """
    check(vector_id, dtype)
