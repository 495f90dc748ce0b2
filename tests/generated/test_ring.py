"""`Attention.Spec.ring` on its vectors, through `pyimpl.attention` and `pyimpl.merge_states`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors, visible

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    """The keys in four devices, striped: attention over each, and the parts merged."""
    vector = vector_of(vector_id)
    query = tensor(vector.q, dtype)[None, None]
    parts = [range(device, vector.kv_len, 4) for device in range(4)]
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


@vectors("ring", 13)
@dtypes
def test_ring(vector_id: str, dtype: torch.dtype) -> None:
    """Ring attention: if every key is on exactly one device of the ring, each device ends with the
    attention of its queries over all keys, whatever the layout, the mask and the number of devices.

    Theorem ring. Queries and keys spread over a ring of devices, contiguous or striped, with and
    without the causal mask: each device sees every key once, in its own order.
    """
    check(vector_id, dtype)
