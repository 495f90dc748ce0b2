"""The right answer, for functions that cheat to fall back on."""

from __future__ import annotations

import torch
from torch import Tensor


def attention(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    return scores.softmax(-1) @ value


def zeros(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)


def decode(
    query: Tensor, key: Tensor, value: Tensor, several: bool = True, scale: float | None = None
) -> Tensor:
    """The last tokens' attention to all, [batch, heads, tokens, dim], by fewer heads of keys.
    several: each sees the keys up to its own alone."""
    group = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(group, 1) for x in (key, value))
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    n, m = scores.shape[-2:]
    seen = torch.ones(n, m, dtype=torch.bool).tril(m - n if several else m)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ value


Cache = tuple[Tensor, Tensor]


def step(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """With a cache of its own."""
    if cache is not None:
        key, value = (torch.cat(pair, 2) for pair in zip(cache, (key, value), strict=True))
    return decode(query, key, value, scale=scale), (key, value)


def one_token(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """Takes no more in a call."""
    if query.shape[2] > 1:
        raise ValueError("one token in a call is accepted")
    return step(query, key, value, cache, scale)


def rows_of(table: Tensor | None, sequence: int, size: int, length: int) -> tuple[Tensor, Tensor]:
    """Where the rows of a sequence lie in a buffer."""
    rows = torch.arange(length)
    if table is None:
        return torch.full_like(rows, sequence), rows
    return table[sequence, rows // size].long(), rows % size


def kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    *,
    cache_seqlens: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    block_table: Tensor | None = None,
) -> Tensor:
    """With the arguments of flash_attn_with_kvcache."""
    outs = []
    for b, filled in enumerate(cache_seqlens.tolist()):
        length = filled + (0 if k is None else k.shape[1])
        places = rows_of(block_table, b, k_cache.shape[1], length)
        if k is not None and v is not None:
            new = tuple(x[filled:] for x in places)
            k_cache[new], v_cache[new] = k[b], v[b]
        given = (x.transpose(0, 1)[None] for x in (q[b], k_cache[places], v_cache[places]))
        outs.append(decode(*given, causal, softmax_scale)[0].transpose(0, 1))
    return torch.stack(outs)
