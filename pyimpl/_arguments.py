"""What the implementations share about their arguments: the default scale and the shape of a
mask."""

from __future__ import annotations

import math

from torch import Tensor


def resolve_scale(scale: float | None, head_dim: int) -> float:
    """The factor on ⟨q, k⟩: `scale`, or 1/√head_dim when it is None, as in PyTorch's SDPA."""
    return 1.0 / math.sqrt(head_dim) if scale is None else float(scale)


def mask_as_4d(mask: Tensor, q_len: int, kv_len: int) -> Tensor:
    """A view of a boolean mask as `[batch|1, heads|1, q_len, kv_len]`.

    Only the last two dimensions are expanded: batch and heads stay 1 where the mask does not depend
    on them, so that work done on the mask alone is not repeated for every head.
    """
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask.expand(-1, -1, q_len, kv_len)
