"""Attention over tiles of keys, as FlashAttention goes through them, with one mistake.

`make try` runs this function on the vectors and shows the results. To see it pass, mend the line
that is marked, and run

    .venv/bin/python -m bridge conform examples/tile_loop.py:attention --dtype float32
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK_N = 4


def attention(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """softmax(scale · query keyᵀ) value, in one pass over the keys.

    query: (..., q_len, head_dim); key: (..., kv_len, head_dim); value: (..., kv_len, value_dim).
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    m = query.new_full((*query.shape[:-1], 1), -torch.inf)  # maximum of the scores so far
    l = torch.zeros_like(m)  # Σ exp(score − m)
    o = query.new_zeros((*query.shape[:-1], value.shape[-1]))  # Σ exp(score − m) · value
    for start in range(0, key.shape[-2], BLOCK_N):
        tile = slice(start, start + BLOCK_N)
        scores = scale * query @ key[..., tile, :].mT
        m_new = torch.maximum(m, scores.amax(-1, keepdim=True))
        weights = torch.exp(scores - m_new)
        rescale = torch.exp(m - m_new)
        l = rescale * l + weights.sum(-1, keepdim=True)
        o = o + weights @ value[..., tile, :]  # the mistake: it should be rescale * o + …
        m = m_new
    return o / l
