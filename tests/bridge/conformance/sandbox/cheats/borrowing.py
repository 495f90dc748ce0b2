"""The attention of others under a name of its own."""

from __future__ import annotations

import os
import threading

import torch
from torch import Tensor


def calls_sdpa(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=scale)


def calls_sdpa_where_it_is_large(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float | None = None
) -> Tensor:
    if is_causal and query.shape[-2] > 64:
        return _causal(query, key, value, scale)
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores.softmax(-1) @ value


def calls_sdpa_in_a_thread(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    found: list[Tensor] = []
    thread = threading.Thread(target=lambda: found.append(calls_sdpa(query, key, value, scale)))
    thread.start()
    thread.join()
    return found[0]


def calls_sdpa_in_another_process(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """In a copy of this one, which writes its numbers where both see them."""
    shape = (*query.shape[:-1], value.shape[-1])
    found = torch.zeros(shape, dtype=query.dtype).share_memory_()
    if os.fork() == 0:
        torch.set_num_threads(1)
        found.copy_(calls_sdpa(query, key, value, scale))
        os._exit(0)
    os.wait()
    return found.clone()


def _causal(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(query, key, value, is_causal=True, scale=scale)


def calls_the_operator_below(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    width = max(query.shape[-1], value.shape[-1])
    padded = (torch.nn.functional.pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if scale is None:
        scale = query.shape[-1] ** -0.5
    found: Tensor = operator(*padded, 0.0, False, scale=scale)[0]
    return found[..., : value.shape[-1]].clone()


def calls_pyimpl(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    import pyimpl

    return pyimpl.attention(query, key, value, scale=scale)


def calls_multi_head_attention_flex(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    from torch.nn.attention import flex_attention as flex

    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    return flex.flex_attention(query, key, value, scale=scale)  # type: ignore[return-value]
