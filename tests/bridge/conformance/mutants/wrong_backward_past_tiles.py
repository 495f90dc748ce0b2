"""Attention functions that are right forwards, and whose backward pass computes the scores and the
weights again with one fault, which small vectors do not reach: past a tile, by a bias, for masks of
one's own for each head, for several sequences.

`FAULTS` says which; `right` has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

# By each fault, what the backward pass does.
FAULTS = {
    "bias_first_tile": "leaves out the bias of keys from 64 on",
    "bias_of_rows_in_tile": "takes the bias of a query's place in its tile of 64",
    "bias_off_diagonal": "leaves out the bias where query and key are both past 64",
    "mask_of_first_head": "takes the first head's mask for all",
    "mask_of_first_entry": "takes the first sequence's masks for all",
    "keys_of_first_entry": "takes the first sequence's keys for all",
    "sums_over_entries": "gives every sequence the sum of the gradients by the keys of all",
    "causal_past_64": "shows one key more from query 64 on",
    "softcap_first_rows": "leaves out softcap's slope from query 64 on",
    "lse_first_rows": "leaves out the gradient by the log-sum-exp from query 128 on",
    "first_head_of_group": "sums keys from 64 on over the first head of a group alone",
    "keys_past_1024": "leaves out the gradients by keys from 1,024 on",
    "key_columns_past_tiles": "leaves out columns from 32 on of keys from 64 on",
    "query_columns_past_tiles": "leaves out columns from 32 on of queries from 64 on",
    "value_columns_past_tiles": "leaves out columns from 32 on of values from 128 on",
}  # fmt: skip


def _detach(x: Tensor, where: Tensor) -> Tensor:
    """No gradient at these places."""
    return torch.where(where, x.detach(), x)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    scale: float,
    softcap: float | None,
    fault: str,
) -> tuple[Tensor, Tensor]:
    (batch, heads, q_len, dim), kv_len = query.shape, key.shape[-2]
    rows, columns = torch.arange(q_len)[:, None], torch.arange(kv_len)[:, None]
    if fault == "keys_of_first_entry":
        key = key + (key[:1] - key).detach()
    if fault == "sums_over_entries":
        total = key.sum(0, keepdim=True)
        key = key.detach() + total - total.detach()
    if fault == "keys_past_1024":
        key, value = (_detach(x, columns >= 1024) for x in (key, value))
    if fault == "key_columns_past_tiles":
        key = _detach(key, (columns >= 64) & (torch.arange(dim) >= 32))
    if fault == "query_columns_past_tiles":
        query = _detach(query, (rows >= 64) & (torch.arange(dim) >= 32))
    if fault == "value_columns_past_tiles":
        value = _detach(value, (columns >= 128) & (torch.arange(value.shape[-1]) >= 32))
    group = heads // key.shape[1]
    key, value = (x.repeat_interleave(group, 1) for x in (key, value))
    if fault == "first_head_of_group":
        others = (torch.arange(heads) % group > 0)[:, None, None]
        key, value = (_detach(x, (columns >= 64) & others) for x in (key, value))
    scores = query @ key.mT * scale
    columns = columns.T
    if softcap is not None:
        capped = softcap * torch.tanh(scores / softcap)
        if fault == "softcap_first_rows":
            capped = torch.where(rows >= 64, scores + (capped - scores).detach(), capped)
        scores = capped
    if bias is not None:
        if fault == "bias_of_rows_in_tile":
            bias = bias.expand(batch, heads, q_len, kv_len)[:, :, rows[:, 0] % 64]
        left_out = {
            "bias_first_tile": columns >= 64,
            "bias_off_diagonal": (rows >= 64) & (columns >= 64),
        }
        if fault in left_out:
            bias = torch.where(left_out[fault], bias - bias.detach(), bias)
        scores = scores + bias
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if is_causal:
        more = int(fault == "causal_past_64")
        seen = columns <= rows + more * (rows >= 64)
    if mask is not None:
        mask = mask[:, :1] if fault == "mask_of_first_head" else mask
        seen = seen & (mask[:1] if fault == "mask_of_first_entry" else mask)
    scores = scores.masked_fill(~seen, -torch.inf)
    # By a bias, too.
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    alive = scores.masked_fill(dead, 0.0)
    out = alive.softmax(-1).masked_fill(dead, 0.0) @ value
    lse = alive.logsumexp(-1)
    if fault == "lse_first_rows":
        lse = _detach(lse, rows[:, 0] >= 128)
    return out, lse.masked_fill(dead[..., 0], -torch.inf)


def right(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    softcap: float | None = None,
    bias: Tensor | None = None,
    return_lse: bool = False,
    fault: str = "",
) -> Any:
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    given = (query, key, value, attn_mask, bias, is_causal, scale, softcap)
    found = _attend(*given, fault)
    if fault:
        with torch.no_grad():
            values = _attend(*given, "")
        # Minus infinity less itself is no number.
        found = tuple(
            torch.where(x.isfinite(), x - x.detach() + y, y)
            for x, y in zip(found, values, strict=True)
        )
    return found if return_lse else found[0]


def function(fault: str) -> Callable[..., Any]:
    """The function with this fault of `FAULTS`; "" for `right`."""
    return partial(right, fault=fault)
