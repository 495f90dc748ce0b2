"""Attention functions that are wrong in one way each, for `likely` to say in which."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    factor: float | None = None,
    diagonal: int = 0,
    softcap: float | None = None,
) -> Tensor:
    """Right, but for what the arguments after scale are used for."""
    scores = (query @ key.mT) * _factor(query, scale) * (1.0 if factor is None else factor)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(diagonal)
        scores = scores.masked_fill(~seen, -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0) @ value


def _factor(query: Tensor, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else scale


def right(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    return _attend(query, key, value, attn_mask, is_causal, scale)


def scaled_twice(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    return _attend(query, key, value, attn_mask, is_causal, scale, factor=_factor(query, scale))


def without_scale(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    return _attend(query, key, value, attn_mask, is_causal, 1.0)


def causal_off_by_one(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    return _attend(query, key, value, attn_mask, is_causal, scale, diagonal=1)


def bottom_right(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    diagonal = key.shape[-2] - query.shape[-2]
    return _attend(query, key, value, attn_mask, is_causal, scale, diagonal=diagonal)


def without_softcap(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:  # fmt: skip
    return _attend(query, key, value, scale=scale)


def mask_inverted(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, scale: float | None = None
) -> Tensor:
    """Of a boolean mask alone."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = ~attn_mask
    return _attend(query, key, value, attn_mask, False, scale)


def with_log2(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    scores = (query @ key.mT) * _factor(query, scale)
    return scores.softmax(-1) @ value, scores.logsumexp(-1) / math.log(2.0)


def without_maximum(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    weights = torch.exp((query @ key.mT) * _factor(query, scale))
    return weights @ value / weights.sum(-1, keepdim=True)


def not_rescaled(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """In tiles of 16 keys, as an online softmax that forgets to rescale its output."""
    scores = (query @ key.mT) * _factor(query, scale)
    m = scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    l, o = torch.zeros_like(m), torch.zeros_like(query @ key.mT @ value)
    for first in range(0, scores.shape[-1], 16):
        tile = scores[..., first : first + 16]
        largest = torch.maximum(m, tile.amax(-1, keepdim=True))
        p = torch.exp(tile - largest)
        l = torch.exp(m - largest) * l + p.sum(-1, keepdim=True)
        o = o + p @ value[..., first : first + 16, :]
        m = largest
    return o / l


def no_known_fault(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    """A hundredth too large."""
    return 1.01 * _attend(query, key, value, attn_mask, is_causal, scale)


def wrong_in_one_dtype(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    twice = _factor(query, scale) if query.dtype == torch.float32 else None
    return _attend(query, key, value, scale=scale, factor=twice)


def refuses_long_keys(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    if key.shape[-2] > 16:
        raise OverflowError("more keys than a tile has")
    return _attend(query, key, value, scale=scale)
