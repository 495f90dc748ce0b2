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
    """Blocks of 4 keys, the output divided after each."""
    vector = vector_of(vector_id)
    scores = scale_of(vector) * (tensor(vector.q, dtype) @ tensor(vector.k, dtype).mT)
    scores = scores.masked_fill(~visible(vector), -torch.inf)
    values = tensor(vector.v, dtype)
    device = torch.device("cpu")
    divided = state.empty((vector.q_len,), vector.value_dim, dtype=dtype, device=device)
    for block in torch.arange(vector.kv_len).split(4):
        divided = state.step_block_divided(divided, scores[:, block], values[block])
    judge(vector, dtype, (divided.o[None, None], state.log_sum_exp(divided)[None, None]))


@vectors("divided-updates", 13)
@dtypes
def test_divided_updates(vector_id: str, dtype: torch.dtype) -> None:
    """An update that divides inside the loop and multiplies back, as FlashAttention-1's does,
    computes attention too, with the weights of a block against the new maximum.

    Theorem flash-1-divided, `Spec.Online.stepBlockDivided`. FlashAttention-1's update, which holds
    the output divided: multiplied back by another denominator than it was divided by, or not at
    all, it shows from the second tile on.
    """
    check(vector_id, dtype)
