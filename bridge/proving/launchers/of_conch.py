"""conch-triton-kernels' attention of packed queries over a cache in pages: `[batch, length, heads,
dim]`, packed one sequence after another, and keys copied to pages."""

from __future__ import annotations

import torch
from conch.ops.attention.varlen_attention import varlen_attention as _varlen_attention
from torch import Tensor

_PAGE = 16


def _as_pages(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """`[batch, length, heads, dim]` in pages, in an order that is not theirs, and their numbers."""
    batch, length, heads, dim = tensor.shape
    count = -(-length // _PAGE)
    cache = torch.empty((batch * count, _PAGE, heads, dim), dtype=tensor.dtype, device="cuda")
    table = torch.arange(batch * count - 1, -1, -1, dtype=torch.int32).reshape(batch, count)
    for b in range(batch):
        for i, page in enumerate(table[b].tolist()):
            part = tensor[b, i * _PAGE : (i + 1) * _PAGE]
            cache[page, : part.shape[0]].copy_(part)
    return cache, table.cuda()


def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
) -> Tensor:
    batch, q_len, heads, dim = query.shape
    kv_len = key.shape[1]
    keys, table = _as_pages(key)
    values, _ = _as_pages(value)
    begins = torch.arange(batch + 1, dtype=torch.int32, device="cuda") * q_len
    lengths = torch.full((batch,), kv_len, dtype=torch.int32, device="cuda")
    out: Tensor = _varlen_attention(
        query.reshape(batch * q_len, heads, dim), keys, values, begins, q_len, lengths, kv_len,
        table, causal=is_causal, scale=scale,
    )  # fmt: skip
    return out.reshape(query.shape)
