"""Attention functions that treat inputs that do not fill their memory in different ways."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def _as_if_contiguous(x: Tensor) -> Tensor:
    strides = torch.empty(x.shape, device="meta").stride()
    return torch.as_strided(x, x.shape, strides)


def right(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    return scaled_dot_product_attention(query, key, value, scale=scale)


def ignores_strides(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Reads its inputs as if they filled their memory."""
    return right(*map(_as_if_contiguous, (query, key, value)), scale=scale)


def reads_past_the_rows(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Where there is more memory behind the last key, adds 0 times the numbers there."""
    found = right(query, key, value, scale)
    storage = key.untyped_storage().nbytes() // key.element_size()
    last = key.storage_offset() + sum(
        (size - 1) * stride for size, stride in zip(key.shape, key.stride(), strict=True)
    )
    if last + 1 >= storage:
        return found
    return found + 0.0 * torch.as_strided(key, (1,), (1,), last + 1)


def refuses_strides(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Takes contiguous inputs alone."""
    if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
        raise ValueError("contiguous inputs are accepted")
    return right(query, key, value, scale)
