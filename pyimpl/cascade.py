"""Attention of several requests that begin with the same keys: `Attention.Spec.cascade`.

One pass over the shared prefix serves the queries of all requests; each request goes on over its
own suffix; the two results of each query are merged by their log-sum-exps.
Source: Ye et al. 2025, "FlashInfer", section 3.1 (composable formats); Juravsky et al. 2024,
"Hydragen", section 3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyimpl.attention import attention
from pyimpl.backends.dispatch import Backend, choose_backend
from pyimpl.decode import attention_decode
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import compute_dtype, without_autocast
from pyimpl.internal.implements import implements
from pyimpl.merge import combine


@implements("Attention.Spec.cascade")
def attention_cascade(
    query: Tensor,
    prefix_key: Tensor,
    prefix_value: Tensor,
    suffix_key: Tensor,
    suffix_value: Tensor,
    *,
    suffix_lens: Tensor | None = None,
    is_causal: bool = False,
    softcap: float | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    backend: Backend = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """`pyimpl.attention` of each request over a prefix that all share, followed by its own suffix.

    The parts are computed in float32 (float64 for float64 inputs), whatever the dtype of the
    inputs, so that the output is rounded once.

    Args:
        query: `[batch, heads, q_len, head_dim]`, the last tokens of each request.
        prefix_key, prefix_value: `[kv_heads, prefix_len, head_dim]` and `[kv_heads, prefix_len,
            value_dim]`, held once for all requests; prefix_len may be 0.
        suffix_key, suffix_value: `[batch, kv_heads, max_len, head_dim]` and `[batch, kv_heads,
            max_len, value_dim]`, the keys of each request after the prefix; max_len may be 0.
        suffix_lens: `[batch]`, int32 or int64: how many of them each request has, at least 0; None:
            max_len. Tokens beyond have no influence, whatever they hold. Read by the host; a GPU
            is waited for.
        is_causal: query i of a request stands at key suffix_lens[b] − q_len + i of its suffix and
            sees nothing after it; each suffix must have at least q_len keys then.
        The rest as for `pyimpl.attention`.

    Returns:
        `[batch, heads, q_len, value_dim]` in the dtype of `query`; with `return_lse` also `[batch,
        heads, q_len]`, as `pyimpl.attention`.

    Raises:
        As `pyimpl.attention`; ValueError also for lengths beyond max_len, or too short for
        `is_causal`.
    """
    named = check.under_autocast(
        {
            "query": query,
            "prefix_key": prefix_key,
            "prefix_value": prefix_value,
            "suffix_key": suffix_key,
            "suffix_value": suffix_value,
        }
    )
    own = {name: named[name] for name in ("query", "suffix_key", "suffix_value")}
    check.check_floating(own, ("batch", "heads", "length", "head_dim"))
    check.check_attended(own, enable_gqa)
    shared = {name: named[name] for name in ("prefix_key", "prefix_value")}
    check.check_floating(shared, ("kv_heads", "prefix_len", "head_dim"))
    query, prefix_key, prefix_value, suffix_key, suffix_value = named.values()
    for name in ("key", "value"):
        _check_prefix(name, named[f"prefix_{name}"], named[f"suffix_{name}"])
    if prefix_value.shape[1] != prefix_key.shape[1]:
        raise ValueError(
            f"prefix_value must have the length of prefix_key, {prefix_key.shape[1]}, "
            f"not {prefix_value.shape[1]}"
        )
    choose_backend(backend, query, prefix_value)
    check.check_no_gradients("attention_cascade", named)
    check.check_reverse_mode(named)
    check.check_bool("is_causal", is_causal)
    check.check_bool("return_lse", return_lse)
    batch, heads, q_len, head_dim = query.shape
    max_len, value_dim = suffix_value.shape[2:]
    _check_lens(suffix_lens, batch, max_len, q_len if is_causal else 0)
    wide = compute_dtype(query.dtype)
    options: dict[str, Any] = {
        "softcap": softcap,
        "scale": scale,
        "enable_gqa": enable_gqa,
        "backend": backend,
    }
    with without_autocast(query.device):
        q = query.to(wide)
        # All queries as those of one request: the prefix is read once for all of them.
        together = q.transpose(0, 1).reshape(1, heads, batch * q_len, head_dim)
        k, v = (x.to(wide).unsqueeze(0) for x in (prefix_key, prefix_value))
        out, lse = attention(together, k, v, return_lse=True, **options)
        first = (
            out.view(heads, batch, q_len, value_dim).transpose(0, 1),
            lse.view(heads, batch, q_len).transpose(0, 1),
        )
        last = attention_decode(
            q, suffix_key.to(wide), suffix_value.to(wide),
            kv_lens=suffix_lens, is_causal=is_causal, return_lse=True, **options,
        )  # fmt: skip
    outs, lses = (torch.stack(pair) for pair in zip(first, last, strict=True))
    out, lse = combine(outs, lses)
    out = out.to(query.dtype)
    return (out, lse) if return_lse else out


def _check_prefix(name: str, prefix: Tensor, suffix: Tensor) -> None:
    """Raises unless keys or values of the prefix are like those of the suffixes."""
    if prefix.dtype != suffix.dtype:
        raise TypeError(
            f"prefix_{name} must have the dtype of suffix_{name}, {suffix.dtype}, "
            f"not {prefix.dtype}"
        )
    if prefix.device != suffix.device:
        raise ValueError(
            f"prefix_{name} must be on the device of suffix_{name}, {suffix.device}, "
            f"not on {prefix.device}"
        )
    for what, here, there in (("heads", 0, 1), ("last dimension", 2, 3)):
        if prefix.shape[here] != suffix.shape[there]:
            raise ValueError(
                f"prefix_{name} must have the {what} of suffix_{name}, {suffix.shape[there]}, "
                f"not {prefix.shape[here]}"
            )


def _check_lens(given: Tensor | None, batch: int, max_len: int, least: int) -> None:
    """Raises unless each length is from `least` to `max_len`."""
    lens = [max_len] * batch
    if given is not None:
        check.check_integers("suffix_lens", given)
        if check.shape(given) != [batch]:
            raise ValueError(f"suffix_lens must be of shape [{batch}], not {check.shape(given)}")
        lens = given.tolist()
    for n in lens:
        if n > max_len or n < 0:
            raise ValueError(f"suffix_lens must be from 0 to max_len, {max_len}, not {n}")
        if n < least:
            raise ValueError(
                f"each suffix must have at least q_len, {least}, keys with is_causal, not {n}"
            )
