"""The vectors that `pyimpl.simulate_ring` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors
from torch import Tensor

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    """Four devices, queries and keys striped."""
    vector = vector_of(vector_id)
    rows, cols = shards(vector.q_len), shards(vector.kv_len)
    outs, lses = pyimpl.simulate_ring(
        [tensor(vector.q, dtype)[None, None, part] for part in rows],
        [tensor(vector.k, dtype)[None, None, part] for part in cols],
        [tensor(vector.v, dtype)[None, None, part] for part in cols],
        is_causal=vector.mask.kind == "causal",
        query_positions=rows,
        key_positions=cols,
        scale=scale_of(vector),
        return_lse=True,
    )
    order = torch.cat(rows).argsort()
    judge(vector, dtype, (torch.cat(outs, 2)[:, :, order], torch.cat(lses, 2)[:, :, order]))


def shards(length: int) -> list[Tensor]:
    """The positions of each of four devices."""
    return [torch.arange(device, length, 4) for device in range(4)]


@vectors("ring", 13)
@dtypes
def test_ring(vector_id: str, dtype: torch.dtype) -> None:
    """Ring attention: if every key is on exactly one device of the ring, each device ends with the
    attention of its queries over all keys, whatever the layout, the mask and the number of devices.

    Theorem ring, `Spec.ring`. Queries and keys spread over a ring of devices, contiguous or
    striped, with and without the causal mask: each device sees every key once, in its own order.
    """
    check(vector_id, dtype)
