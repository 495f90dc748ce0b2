"""The right answer, for functions that cheat to fall back on."""

from __future__ import annotations

import torch
from torch import Tensor


def attention(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    return scores.softmax(-1) @ value


def zeros(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
