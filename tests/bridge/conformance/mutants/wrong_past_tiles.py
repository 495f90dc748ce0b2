"""Attention functions that are wrong only where small vectors do not reach: past a tile, in wide
heads, by a bias, for masks that differ by head, for several sequences, for scores far above those
that are seen, and for inputs that a format of 16 bits does not hold.

Each is `_attend` with one bug: of `MUTANTS`, or right forwards with one of `BACKWARD`, where the
backward pass computes the scores and the weights again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

# By the name of each mutant, its description and the family that shows it.
MUTANTS = {
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
# By the name of each mutant, its description for the backward pass.
BACKWARD = {
    "bias_first_tile": "leaves out the bias of keys from 64 on",
    "bias_of_rows_in_tile": "takes the bias of a query's place in its tile of 64",
    "bias_off_diagonal": "leaves out the bias where query and key are both past 64",
    "mask_of_first_head": "takes the first head's mask for all",
    "mask_of_first_entry": "takes the first sequence's masks for all",
    "weights_of_first_entry": "takes the first sequence's keys for all",
    "sums_over_entries": "gives every sequence the sum of the gradients by the keys of all",
    "causal_past_64": "shows one key more from query 64 on",
    "softcap_first_rows": "leaves out softcap's slope from query 64 on",
    "lse_first_rows": "leaves out the gradient by the log-sum-exp from query 128 on",
    "first_head_of_group": "sums keys from 64 on over the first head of a group alone",
    "keys_past_1024": "leaves out the gradients by keys from 1,024 on",
    "key_columns_past_tiles": "leaves out columns from 32 on of keys from 64 on",
    "query_columns_past_tiles": "leaves out columns from 32 on of queries from 64 on",
    "value_columns_past_tiles": "leaves out columns from 32 on of values from 128 on",
}


def _bits(x: Tensor, bits: int) -> Tensor:
    """Rounded to so many significant bits; gradients go through."""
    fraction, exponent = torch.frexp(x.detach())
    rounded = torch.ldexp(torch.round(fraction * 2**bits) / 2**bits, exponent)
    return x + (rounded - x.detach())


def _detach(x: Tensor, where: Tensor) -> Tensor:
    """No gradient at these places."""
    return torch.where(where, x.detach(), x)


def _inputs(query: Tensor, key: Tensor, value: Tensor, mutant: str) -> tuple[Tensor, ...]:
    """Queries, keys and values, with an error in their gradients alone."""
    rows, keys = (torch.arange(x.shape[-2])[:, None] for x in (query, key))
    if mutant == "weights_of_first_entry":
        key = key + (key[:1] - key).detach()
    if mutant == "sums_over_entries":
        total = key.sum(0, keepdim=True)
        key = key.detach() + total - total.detach()
    if mutant == "keys_past_1024":
        key, value = (_detach(x, keys >= 1024) for x in (key, value))
    if mutant == "key_columns_past_tiles":
        key = _detach(key, (keys >= 64) & (torch.arange(key.shape[-1]) >= 32))
    if mutant == "query_columns_past_tiles":
        query = _detach(query, (rows >= 64) & (torch.arange(query.shape[-1]) >= 32))
    if mutant == "value_columns_past_tiles":
        value = _detach(value, (keys >= 128) & (torch.arange(value.shape[-1]) >= 32))
    return query, key, value


def _bias_of(bias: Tensor, rows: Tensor, columns: Tensor, mutant: str) -> Tensor:
    if mutant == "bias_of_rows_in_tile":
        bias = bias.expand(*bias.shape[:-2], len(rows), -1)[..., rows[:, 0] % 64, :]
    left_out = {
        "bias_first_tile": columns >= 64,
        "bias_off_diagonal": (rows >= 64) & (columns >= 64),
    }
    return torch.where(left_out[mutant], bias - bias.detach(), bias) if mutant in left_out else bias


def _products(query: Tensor, key: Tensor, mutant: str) -> Tensor:
    """⟨q, k⟩ of all pairs, with the terms that the gradients leave out detached."""
    if mutant == "dk_of_64_columns":
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
    if mutant not in left_out:
        return whole
    where, other = left_out[mutant]
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
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
    return_lse: bool = False,
    mutant: str = "",
) -> Any:
    q_len, kv_len, heads = query.shape[-2], key.shape[-2], query.shape[1]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    query, key, value = _inputs(query, key, value, mutant)
    if mutant == "keys_of_first_entry" and heads == key.shape[1] > 1:
        key, value = (x[:1].expand_as(x) for x in (key, value))
    group = heads // key.shape[1]
    if group > 1:
        places = torch.arange(heads) // group
        if mutant == "grouped_modulo" and query.shape[-1] > 8:
            places = torch.arange(heads) % key.shape[1]
        if mutant == "grouped_scale" and not query.requires_grad:
            scale = scale * scale / math.log(2.0)
        key, value = key[:, places], value[:, places]
    if mutant == "first_head_of_group":
        others = (torch.arange(heads) % group > 0)[:, None, None]
        late = torch.arange(kv_len)[:, None] >= 64
        key, value = (_detach(x, late & others) for x in (key, value))
    if mutant in ("rounded_to_bf16", "rounded_to_tf32"):
        query, key = (_bits(x, 8 if mutant == "rounded_to_bf16" else 11) for x in (query, key))
    if mutant in ("rounded_to_bf16", "values_rounded_to_bf16"):
        value = _bits(value, 8)
    scores = _products(query, key, mutant) * scale
    rows, columns = torch.arange(q_len)[:, None], torch.arange(kv_len)
    first = columns < 64
    if softcap is not None:
        capped = softcap * torch.tanh(scores / softcap)
        if mutant == "softcap_first_tile":
            capped = torch.where(first, capped, scores)
        if mutant == "softcap_slope_first_tile":
            capped = torch.where(first, capped, scores + (capped - scores).detach())
        if mutant == "softcap_first_rows":
            capped = torch.where(rows >= 64, scores + (capped - scores).detach(), capped)
        scores = capped
    if alibi_slopes is not None:
        places = columns % 64 if mutant == "distance_in_tile" else columns
        scores = scores - alibi_slopes.to(scores.dtype).view(-1, 1, 1) * (rows - places).abs()
    if bias is not None:
        scores = scores + _bias_of(bias, rows, columns, mutant)
    seen = torch.ones(q_len, kv_len, dtype=torch.bool)
    if is_causal:
        last = {"causal_past_512": 512, "causal_past_64": 64}.get(mutant, q_len)
        seen = columns <= rows + 1 * (rows >= last)
    if mutant == "keys_past_1100":
        seen = seen & (columns < 1100)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = attn_mask[:, :1] if mutant == "mask_of_first_head" else attn_mask
        seen = seen & (attn_mask[:1] if mutant == "mask_of_first_entry" else attn_mask)
    elif attn_mask is not None:
        scores = scores + attn_mask
    before = scores
    if mutant == "masked_by_ten_thousand":
        scores = torch.where(seen, scores, scores - 1e4)
        scores = scores.masked_fill(~seen.any(-1, keepdim=True), -torch.inf)
    else:
        scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        times = -(-kv_len // 64) if mutant == "sink_each_tile" else 1
        sink = sinks.to(scores.dtype).view(-1, 1, 1) + math.log(times)
        scores = torch.cat((scores, sink.expand(*scores.shape[:-1], 1)), -1)
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    alive = scores.masked_fill(dead, 0.0)
    weights = alive.softmax(-1).masked_fill(dead, 0.0)[..., :kv_len]
    if mutant == "dv_first_tile":
        out = torch.where(rows < 64, weights @ value, weights @ value.detach())
    else:
        out = weights @ value
    if mutant == "overflow_times_zero":
        out = out + 0.0 * torch.exp(before.masked_fill(seen, 0.0)).sum(-1, keepdim=True)
    lse = alive.logsumexp(-1)
    if mutant == "lse_first_rows":
        lse = _detach(lse, rows[:, 0] >= 128)
    return (out, lse.masked_fill(dead[..., 0], -torch.inf)) if return_lse else out


def function(mutant: str) -> Callable[..., Any]:
    """The function with this mutant of `MUTANTS`; "" for none."""
    return partial(_attend, mutant=mutant)


def function_backwards(mutant: str) -> Callable[..., Any]:
    """The function that is right forwards, with this mutant of `BACKWARD`; "" for none."""

    @wraps(_attend)
    def call(*given: Any, return_lse: bool = False, **options: Any) -> Any:
        wrong = _attend(*given, **options, return_lse=True, mutant=mutant)
        with torch.no_grad():
            right = _attend(*given, **options, return_lse=True)
        # Minus infinity less itself is no number.
        out, lse = (
            torch.where(x.isfinite(), x - x.detach() + y, y)
            for x, y in zip(wrong, right, strict=True)
        )
        return (out, lse) if return_lse else out

    return call
