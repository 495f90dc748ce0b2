"""Attention functions that are wrong only where small vectors do not reach: past a tile, in wide
heads, for masks that differ by head, for scores far above those that are seen, and for inputs that
a format of 16 bits does not hold.

Each is `_attend` with one fault, which `FAULTS` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

# By each fault, what it is and the family that shows it.
FAULTS = {
    "softcap_first_tile": ("caps the first 64 scores alone", "past-tiles-options"),
    "softcap_slope_first_tile": ("has softcap's slope for 64 keys alone", "gradient-past-tiles"),
    "distance_in_tile": ("counts distances from a tile's first key", "past-tiles-options"),
    "sink_each_tile": ("counts the sink once for each tile of 64", "past-tiles-options"),
    "grouped_modulo": ("takes head h % num_kv_heads in wide heads", "past-tiles"),
    "grouped_scale": ("squares a scale but ln 2, for shared keys", "past-tiles"),
    "causal_past_512": ("shows one key more from query 512 on", "past-tiles"),
    "keys_past_1100": ("leaves out the keys from 1100 on", "past-tiles"),
    "mask_of_first_head": ("takes the first head's mask for all", "past-tiles"),
    "keys_of_first_entry": ("takes the first entry's keys for all", "past-tiles"),
    "masked_by_ten_thousand": ("takes 10,000 from a masked score", "hidden-scores"),
    "overflow_times_zero": ("takes exp of hidden scores times 0", "hidden-scores"),
    "rounded_to_bf16": ("rounds its inputs to bfloat16", "past-tiles-options"),
    "rounded_to_tf32": ("rounds queries and keys as TF32 does", "past-tiles-options"),
    "values_rounded_to_bf16": ("rounds its values to bfloat16", "past-tiles"),
    "dq_first_tile": ("leaves out keys from 64 on in dQ", "gradient-past-tiles"),
    "dk_first_tile": ("leaves out queries from 64 on in dK", "gradient-past-tiles"),
    "dv_first_tile": ("leaves out queries from 64 on in dV", "gradient-past-tiles"),
    "gradients_off_diagonal": ("leaves out pairs both past 64", "gradient-past-tiles"),
    "gradients_past_128": ("leaves out keys from 128 on in dQ", "gradient-past-tiles"),
    "dk_of_64_columns": ("has no dK in columns past 64", "gradient-past-tiles"),
}  # fmt: skip


def _bits(x: Tensor, bits: int) -> Tensor:
    """Rounded to so many significant bits; gradients go through."""
    fraction, exponent = torch.frexp(x.detach())
    rounded = torch.ldexp(torch.round(fraction * 2**bits) / 2**bits, exponent)
    return x + (rounded - x.detach())


def _visible(mask: Tensor | None, fault: str) -> Tensor | None:
    boolean = mask is not None and mask.dtype == torch.bool
    return mask[:, :1] if mask is not None and boolean and fault == "mask_of_first_head" else mask


def _products(query: Tensor, key: Tensor, fault: str) -> Tensor:
    """⟨q, k⟩ of all pairs, with what is left out of the gradients detached."""
    if fault == "dk_of_64_columns":
        key = torch.cat((key[..., :64], key[..., 64:].detach()), -1)
    whole = query @ key.mT
    rows = torch.arange(whole.shape[-2])[:, None]
    columns = torch.arange(whole.shape[-1])
    left_out = {
        "dq_first_tile": (columns >= 64, query.detach() @ key.mT),
        "gradients_past_128": (columns >= 128, query.detach() @ key.mT),
        "dk_first_tile": (rows >= 64, query @ key.detach().mT),
        "gradients_off_diagonal": ((rows >= 64) & (columns >= 64), whole.detach()),
    }
    if fault not in left_out:
        return whole
    where, other = left_out[fault]
    return torch.where(where, other, whole)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    softcap: float | None = None,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    fault: str = "",
) -> Any:
    q_len, kv_len, heads = query.shape[-2], key.shape[-2], query.shape[1]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if fault == "keys_of_first_entry" and heads == key.shape[1] > 1:
        key, value = (x[:1].expand_as(x) for x in (key, value))
    group = heads // key.shape[1]
    if group > 1:
        places = torch.arange(heads) // group
        if fault == "grouped_modulo" and query.shape[-1] > 8:
            places = torch.arange(heads) % key.shape[1]
        if fault == "grouped_scale" and not query.requires_grad:
            scale = scale * scale / math.log(2.0)
        key, value = key[:, places], value[:, places]
    if fault in ("rounded_to_bf16", "rounded_to_tf32"):
        query, key = (_bits(x, 8 if fault == "rounded_to_bf16" else 11) for x in (query, key))
    if fault in ("rounded_to_bf16", "values_rounded_to_bf16"):
        value = _bits(value, 8)
    scores = _products(query, key, fault) * scale
    rows, columns = torch.arange(q_len)[:, None], torch.arange(kv_len)
    first = columns < 64
    if softcap is not None:
        capped = softcap * torch.tanh(scores / softcap)
        if fault == "softcap_first_tile":
            capped = torch.where(first, capped, scores)
        if fault == "softcap_slope_first_tile":
            capped = torch.where(first, capped, scores + (capped - scores).detach())
        scores = capped
    if alibi_slopes is not None:
        places = columns % 64 if fault == "distance_in_tile" else columns
        scores = scores - alibi_slopes.to(scores.dtype).view(-1, 1, 1) * (rows - places).abs()
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if is_causal:
        more = 1 if fault == "causal_past_512" else 0
        seen = columns <= rows + more * (rows >= 512)
    if fault == "keys_past_1100":
        seen = seen & (columns < 1100)
    attn_mask = _visible(attn_mask, fault)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    before = scores
    if fault == "masked_by_ten_thousand":
        scores = torch.where(seen, scores, scores - 1e4)
        scores = scores.masked_fill(~seen.any(-1, keepdim=True), -torch.inf)
    else:
        scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        times = -(-kv_len // 64) if fault == "sink_each_tile" else 1
        sink = sinks.to(scores.dtype).view(-1, 1, 1) + math.log(times)
        scores = torch.cat((scores, sink.expand(*scores.shape[:-1], 1)), -1)
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    alive = scores.masked_fill(dead, 0.0)
    weights = alive.softmax(-1).masked_fill(dead, 0.0)[..., :kv_len]
    if fault == "dv_first_tile":
        out = torch.where(rows < 64, weights @ value, weights @ value.detach())
    else:
        out = weights @ value
    if fault == "overflow_times_zero":
        out = out + 0.0 * torch.exp(before.masked_fill(seen, 0.0)).sum(-1, keepdim=True)
    if return_lse:
        return out, alive.logsumexp(-1).masked_fill(dead[..., 0], -torch.inf)
    return out


def function(fault: str) -> Callable[..., Any]:
    """The function with this fault of `FAULTS`; "" for none."""
    return partial(_attend, fault=fault)
