"""Attention functions that are wrong in one way each, for `likely` to say in which."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor


def right(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal: bool = False,
    scale: float | None = None, *, power: int = 1, diagonal: int = 0, bottom_right: bool = False,
    times: float = 1.0,
) -> Tensor:  # fmt: skip
    """Right, but for the uses of the arguments after scale. power: of the scale; diagonal: of
    the causal mask, bottom_right: from the last query and key on; times: the output."""
    scores = (query @ key.mT) * _factor(query, scale) ** power
    if is_causal:
        shift = diagonal + (key.shape[-2] - query.shape[-2] if bottom_right else 0)
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(shift)
        scores = scores.masked_fill(~seen, -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    out = scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0) @ value
    return times * out


def _factor(query: Tensor, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else scale


scaled_twice = partial(right, power=2)
without_scale = partial(right, power=0)
causal_off_by_one = partial(right, diagonal=1)
bottom_right = partial(right, bottom_right=True)
# A hundredth too large.
no_known_fault = partial(right, times=1.01)


def without_softcap(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:  # fmt: skip
    return right(query, key, value, scale=scale)


def mask_inverted(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, scale: float | None = None
) -> Tensor:
    """Of a boolean mask alone."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = ~attn_mask
    return right(query, key, value, attn_mask, False, scale)


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


def wrong_in_one_dtype(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    power = 2 if query.dtype == torch.float32 else 1
    return right(query, key, value, scale=scale, power=power)


def refuses_long_keys(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    if key.shape[-2] > 16:
        raise OverflowError("more keys than a tile has")
    return right(query, key, value, scale=scale)
