"""A kernel to be judged; yours stands here."""

import torch
from torch import Tensor

BLOCK_N = 16


def attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(scale · query keyᵀ) value, by blocks of keys; query (..., q_len, head_dim)."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    rows = torch.arange(query.shape[-2], device=query.device)[:, None]
    m = query.new_full((*query.shape[:-1], 1), -torch.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], BLOCK_N):
        block = slice(start, start + BLOCK_N)
        scores = scale * query @ key[..., block, :].mT
        if is_causal:
            keys = start + torch.arange(scores.shape[-1], device=query.device)
            scores = scores.masked_fill(keys > rows, -torch.inf)
        m_new = torch.maximum(m, scores.amax(-1, keepdim=True))  # finite: key 0 comes first
        weights, rescale = torch.exp(scores - m_new), torch.exp(m - m_new)
        l = rescale * l + weights.sum(-1, keepdim=True)
        o = rescale * o + weights @ value[..., block, :]
        m = m_new
    return o / l
