"""Attention in float64 with the whole score matrix in memory: `Attention.Spec.Softmax` and
`.Attention`, line by line.

Slow and plain on purpose: it is what the other implementations are read against. Masked scores are
−∞, the floating-point stand-in for the Spec's `none`; a row without an unmasked key has weights 0,
output 0 and log-sum-exp −∞.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl._arguments import mask_as_4d, resolve_scale
from pyimpl._implements import implements


@implements("Attention.Spec.softmax")
def softmax(scores: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) over the last dimension; 0 where the score is −∞, and a row of −∞ alone is
    all 0.

    `scores`: `[..., n]`, floating point. Overflows where exp(s) does; `safe_softmax` does not.
    """
    weights = torch.exp(scores)
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total == 0, 0.0, weights / total)


@implements("Attention.Spec.safeSoftmax")
def safe_softmax(scores: Tensor) -> Tensor:
    """The same with the row's maximum m subtracted first, exp(s − m) / Σ exp(s − m), so that
    nothing overflows.

    `scores`: `[..., n]`, floating point, n ≥ 1.
    """
    m = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - torch.where(torch.isneginf(m), 0.0, m))
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total == 0, 0.0, weights / total)


def visible_keys(
    mask: Tensor | None, is_causal: bool, q_len: int, kv_len: int, device: torch.device
) -> Tensor:
    """Which key each query may attend to, `[batch|1, heads|1, q_len, kv_len]` boolean; mask and
    causality both apply."""
    visible = torch.ones(1, 1, q_len, kv_len, dtype=torch.bool, device=device)
    if mask is not None:
        visible = visible & mask_as_4d(mask, q_len, kv_len)
    if is_causal:
        visible = visible.tril()
    return visible


@implements("Attention.Spec.attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Output and natural log-sum-exp, both float64.

    `query` `[batch, heads, q_len, head_dim]`, `key` `[batch, heads, kv_len, head_dim]`, `value`
    `[batch, heads, kv_len, value_dim]`, any floating dtype; `mask` boolean, True = may attend,
    broadcastable to `[batch, heads, q_len, kv_len]`; `is_causal`: key j is visible to query i if
    and only if j ≤ i; `scale` defaults to 1/√head_dim. Arguments are not checked here:
    `pyimpl.attention` does. Returns `[batch, heads, q_len, value_dim]` and `[batch, heads, q_len]`.

    A key that no query may attend to has no influence, whatever its key and value rows hold, NaN
    included. The value row of a key that some query may attend to must be finite: its product with
    the weight 0 of another query would be NaN.
    """
    q, k, v = query.double(), key.double(), value.double()
    q_len, kv_len = q.shape[-2], k.shape[-2]
    if kv_len == 0:
        return v.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_full(q.shape[:-1], -torch.inf)
    scores = resolve_scale(scale, q.shape[-1]) * (q @ k.transpose(-1, -2))
    visible = visible_keys(mask, is_causal, q_len, kv_len, q.device)
    scores = torch.where(visible, scores, -torch.inf)
    v = torch.where(visible.any(dim=-2).unsqueeze(-1), v, 0.0)
    return safe_softmax(scores) @ v, torch.logsumexp(scores, dim=-1)
