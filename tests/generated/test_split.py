"""The vectors that `pyimpl.attention` and `pyimpl.merge_states` runs.

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
    """The keys in splits of 16 keys: attention over each, and the parts merged."""
    vector = vector_of(vector_id)
    query = tensor(vector.q, dtype)[None, None]
    parts = [range(first, min(first + 16, vector.kv_len)) for first in range(0, vector.kv_len, 16)]
    results = [
        pyimpl.attention(
            query,
            tensor(vector.k, dtype)[None, None, part],
            tensor(vector.v, dtype)[None, None, part],
            scale=scale_of(vector),
            attn_mask=visible(vector)[:, part],
            return_lse=True,
            backend="tiled",
        )
        for part in map(list, parts)
    ]
    outs, lses = zip(*results, strict=True)
    judge(vector, dtype, pyimpl.merge_states(torch.stack(outs), torch.stack(lses)))


@vectors("split-kv", 15)
@dtypes
def test_split_kv(vector_id: str, dtype: torch.dtype) -> None:
    """Split-KV decoding (flash-decoding): for all sizes, splits and tiles of at least one key
    (ragged last ones included) and every mask or score transformation, merging the states of the
    splits computes attention.

    Theorem split-kv-eq-attention, `Spec.splitKV`. Few queries and many keys, split and merged
    again, as decoding does it; some splits are masked entirely: an empty split must have no
    influence.
    """
    check(vector_id, dtype)
