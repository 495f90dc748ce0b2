"""The vectors that `pyimpl.state` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors, visible

from pyimpl import state


def check(vector_id: str, dtype: torch.dtype) -> None:
    """Blocks of 4 keys, from the state of the sink."""
    vector = vector_of(vector_id)
    scores = scale_of(vector) * (tensor(vector.q, dtype) @ tensor(vector.k, dtype).mT)
    scores = scores.masked_fill(~visible(vector), -torch.inf)
    values = tensor(vector.v, dtype)
    sinks = torch.full((vector.q_len,), float(vector.sink), dtype=dtype)
    blocks = [(scores[:, b], values[b]) for b in torch.arange(vector.kv_len).split(4)]
    found = state.online(state.sink_state(sinks, vector.value_dim), blocks)
    judge(vector, dtype, (state.finish(found)[None, None], state.log_sum_exp(found)[None, None]))


@vectors("sink-online", 14)
@dtypes
def test_sink_online(vector_id: str, dtype: torch.dtype) -> None:
    """Online softmax that starts from the state (sink, 1, 0) computes attention with the sink, over
    any partition into consecutive blocks.

    Theorem sink-online, `Spec.onlineSink`. A sink with score 0, from which online softmax starts:
    counted again with each tile, or not rescaled when the maximum rises above it, it shows.
    """
    check(vector_id, dtype)
