"""Attention with the inputs of FlashInfer-Bench's definitions: right, and wrong in ways that
kernels are. `bench_files.py` makes definitions and solutions of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Parts = tuple[Tensor, Tensor]


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Parts:
    """The last tokens to all: q [tokens, heads, dim], k and v [length, kv_heads, dim]."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) * scale
    n, m = scores.shape[-2:]
    scores = scores.masked_fill(~torch.ones(n, m, dtype=torch.bool).tril(m - n), -torch.inf)
    out = torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1), v)
    return out.to(q.dtype), (scores.logsumexp(-1) / math.log(2.0)).mT


def gather(cache: Tensor, pages: Tensor, last: int | None) -> Tensor:
    rows = cache[pages.long()].flatten(0, 1)
    return rows if last is None else rows[: len(rows) - cache.shape[1] + last]


def paged(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, bounds: list[int], kv_indptr: Tensor,
    kv_indices: Tensor, last: Tensor | None, scale: float,
) -> Parts:  # fmt: skip
    out, lse = torch.zeros_like(q), torch.full(q.shape[:2], -torch.inf)
    pages = kv_indptr.tolist()
    for b in range(len(bounds) - 1):
        rows, some = slice(bounds[b], bounds[b + 1]), kv_indices[pages[b] : pages[b + 1]]
        if len(some):
            filled = None if last is None else int(last[b])
            k, v = gather(k_cache, some, filled), gather(v_cache, some, filled)
            out[rows], lse[rows] = attend(q[rows], k, v, scale)
    return out, lse


def decode(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, kv_indptr: Tensor, kv_indices: Tensor,
    kv_last_page_len: Tensor, sm_scale: float,
) -> Parts:  # fmt: skip
    bounds = list(range(len(q) + 1))
    return paged(q, k_cache, v_cache, bounds, kv_indptr, kv_indices, kv_last_page_len, sm_scale)


def decode_to(*given: Any) -> None:
    """Writes to the outputs that it is given."""
    found = decode(*given[:-2])
    for to, x in zip(given[-2:], found, strict=True):
        to.copy_(x)


def decode_single(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, kv_indptr: Tensor, kv_indices: Tensor,
    sm_scale: float,
) -> Parts:  # fmt: skip
    """Pages of one row each."""
    bounds = list(range(len(q) + 1))
    return paged(q, k_cache, v_cache, bounds, kv_indptr, kv_indices, None, sm_scale)


def prefill(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, qo_indptr: Tensor, kv_indptr: Tensor,
    kv_indices: Tensor, kv_last_page_len: Tensor, sm_scale: float,
) -> Parts:  # fmt: skip
    bounds, last = qo_indptr.tolist(), kv_last_page_len
    return paged(q, k_cache, v_cache, bounds, kv_indptr, kv_indices, last, sm_scale)


def ragged(
    q: Tensor, k: Tensor, v: Tensor, qo_indptr: Tensor, kv_indptr: Tensor, sm_scale: float
) -> Parts:
    out, lse = torch.zeros_like(q), torch.full(q.shape[:2], -torch.inf)
    a, b = qo_indptr.tolist(), kv_indptr.tolist()
    for n in range(len(a) - 1):
        rows, keys = slice(a[n], a[n + 1]), slice(b[n], b[n + 1])
        out[rows], lse[rows] = attend(q[rows], k[keys], v[keys], sm_scale)
    return out, lse


# Wrong decoders.


def reads_whole_pages(*given: Any) -> Parts:
    """Rows of the last page that are not filled, too."""
    last = torch.full_like(given[5], given[1].shape[1])
    return decode(*given[:5], last, given[6])


def reads_pages_in_order(*given: Any) -> Parts:
    pages = torch.arange(len(given[4]), dtype=torch.int32)
    return decode(*given[:4], pages, *given[5:])


def shares_heads_in_turns(*given: Any) -> Parts:
    """Head h reads head h % kv_heads."""
    q, kv_heads = given[0], given[1].shape[2]
    order = torch.arange(q.shape[1]).view(-1, kv_heads).mT.flatten()
    out, lse = decode(q[:, order], *given[1:])
    back = order.argsort()
    return out[:, back], lse[:, back]


def leaves_the_scale_out(*given: Any) -> Parts:
    return decode(*given[:-1], 1.0)


def gives_the_natural_logarithm(*given: Any) -> Parts:
    out, lse = decode(*given)
    return out, lse * math.log(2.0)


def returns_zeros(*given: Any) -> Parts:
    out, lse = decode(*given)
    return out * 0, lse


def returns_float32(*given: Any) -> Parts:
    out, lse = decode(*given)
    return out.float(), lse


def returns_one_head(*given: Any) -> Parts:
    out, lse = decode(*given)
    return out[:, :1], lse


def raises(*given: Any) -> Parts:
    raise RuntimeError("no kernel image is available")


def writes_no_lse(*given: Any) -> None:
    given[-2].copy_(decode(*given[:-2])[0])


def aligns_top_left(
    q: Tensor, k: Tensor, v: Tensor, qo_indptr: Tensor, kv_indptr: Tensor, sm_scale: float
) -> Parts:
    """Causal from the first key on, whatever came before the queries."""
    out, lse = torch.zeros_like(q), torch.full(q.shape[:2], -torch.inf)
    a, b = qo_indptr.tolist(), kv_indptr.tolist()
    for n in range(len(a) - 1):
        for i in range(a[n], a[n + 1]):
            keys = slice(b[n], b[n] + i - a[n] + 1)
            out[i], lse[i] = (x[0] for x in attend(q[i : i + 1], k[keys], v[keys], sm_scale))
    return out, lse


Function = Callable[..., Any]
