"""flash-linear-attention's softmax attention: `[batch, length, heads, dim]`, causal alone."""

from __future__ import annotations

from fla.ops.attn.parallel import parallel_attn as _parallel_attn
from torch import Tensor


def parallel_attn(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
) -> Tensor:
    if not is_causal or query.shape[1] != key.shape[1]:
        raise ValueError("causal attention of as many keys as queries is computed")
    out: Tensor = _parallel_attn(query, key, value, scale=scale)
    return out
