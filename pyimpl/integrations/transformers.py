"""This attention in models of Hugging Face's transformers, from version 5 on.

```python
from pyimpl.integrations.transformers import register

model.set_attn_implementation(register())
```

transformers keeps two tables, of attention functions and of functions that make their masks.
`register` enters both: for a name that only the first table has, transformers hands over no masks
at all, padding and windows included, and says nothing.

Of each argument that a model passes one of three things is true: it is used, it has no say in
attention (`HARMLESS`), or it is refused in a sentence.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyimpl.attention import attention
from pyimpl.backends.dispatch import Backend
from pyimpl.internal import arguments as check
from pyimpl.internal.entries import is_entry_of
from pyimpl.varlen import attention_varlen

# Arguments that models hand over for other purposes: positions are in queries and keys already, or
# in the mask; lengths are known from the prefix sums; the rest is for losses, routers and outputs.
HARMLESS = frozenset({
    "cache_position", "deterministic", "labels", "max_length_k", "max_length_q",
    "num_items_in_batch", "output_hidden_states", "output_router_logits", "past_key_values",
    "position_embeddings", "position_ids", "return_dict", "seq_idx", "use_cache",
})  # fmt: skip


def register(name: str = "pyimpl", *, backend: Backend = "auto") -> str:
    """Enter this attention, and the masks that it takes, in the tables of transformers.

    Args:
        name: by which models are asked for it, `attn_implementation=name`; none of transformers'
            own, nor another's. Given again, it is entered anew.
        backend: as for `pyimpl.attention`.

    Returns:
        The name.

    Raises:
        ImportError: transformers is not installed, or older than version 5.
        ValueError: a name that is taken, or no backend.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    check.check_one_of("backend", backend, Backend)
    if not isinstance(name, str) or name == "eager":
        raise ValueError(f"name must be a string other than 'eager', not {check.describe(name)}")
    table = AttentionInterface()
    if name in table and not is_entry_of(table[name], attention_forward):
        raise ValueError(f"name must be none that transformers has already, not {name!r}")
    AttentionInterface.register(name, partial(attention_forward, backend=backend))
    AttentionMaskInterface.register(name, sdpa_mask)
    return name


def attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    cu_seq_lens_q: Tensor | None = None,
    cu_seq_lens_k: Tensor | None = None,
    backend: Backend = "auto",
    **others: Any,
) -> tuple[Tensor, None]:
    """The attention of a layer, as transformers calls it.

    Args:
        module: the layer; its `is_causal` counts where that is not given, and is True where it has
            none.
        query: `[batch, heads, q_len, head_dim]`, its batch that of the keys or 1.
        key, value: `[batch, kv_heads, kv_len, head_dim]`, `[batch, kv_heads, kv_len, value_dim]`.
        attention_mask: as the function registered with this one makes it, booleans with causality,
            window and padding in it; or floating, added to the scores. None: the keys from q_len on
            are hidden from causal layers, as an empty static cache requires (aligned top-left),
            and one query sees every key.
        sliding_window: how many keys a query sees, its own among them; it is in the mask already
            if there is one.
        softcap, s_aux: `softcap` and `sinks` of `pyimpl.attention`.
        position_bias: added to the scores, broadcastable to `[batch, heads, q_len, kv_len]`.
        cu_seq_lens_q, cu_seq_lens_k: prefix sums of packed sequences, for a batch of 1 without
            mask (`pyimpl.attention_varlen`), causal aligned bottom-right.

    Returns:
        `[batch, q_len, heads, value_dim]`, and None for the weights, which are never formed. A
        query that is padding gives 0, where eager gives the mean of the values.

    Raises:
        ValueError, TypeError: as `pyimpl.attention`, and for arguments that are not taken.
    """
    _check_others(others)
    packed = cu_seq_lens_q is not None or cu_seq_lens_k is not None
    q_len, kv_len = query.shape[2], key.shape[2]
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    causal = bool(causal) and attention_mask is None and (packed or q_len > 1)
    left = None
    if attention_mask is None and sliding_window is not None and kv_len > sliding_window:
        if not causal:
            raise ValueError(
                f"attention_mask must hold the sliding_window of {sliding_window} where a layer is "
                f"not causal or has one query, and there are {kv_len} keys: it is None"
            )
        left = sliding_window - 1
    options: dict[str, Any] = {
        "is_causal": causal, "window": (left, None), "softcap": softcap, "sinks": s_aux,
        "scale": scaling, "dropout_p": dropout, "enable_gqa": True, "backend": backend,
    }  # fmt: skip
    if packed:
        for name, given in (("attention_mask", attention_mask), ("position_bias", position_bias)):
            if given is not None:
                raise ValueError(f"{name} must be None where cu_seq_lens_q is given")
        return _attend_packed(query, key, value, cu_seq_lens_q, cu_seq_lens_k, options), None
    bias, mask = position_bias, attention_mask
    if bias is not None and mask is not None and mask.dtype != torch.bool:
        bias, mask = bias + mask, None
    query = query.expand(key.shape[0], -1, -1, -1)
    out = attention(query, key, value, attn_mask=mask, bias=bias, **options)
    assert isinstance(out, Tensor)
    return out.transpose(1, 2).contiguous(), None


def _attend_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sums_q: Tensor | None,
    sums_k: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    """`[1, total, heads, value_dim]` of packed sequences."""
    if sums_q is None or sums_k is None:
        lacking = "cu_seq_lens_q" if sums_q is None else "cu_seq_lens_k"
        raise ValueError(f"{lacking} must be given where the other prefix sums are")
    if query.shape[0] != 1:
        raise ValueError(
            f"query must have a batch of 1 where cu_seq_lens_q is given, not {query.shape[0]}"
        )
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    out = attention_varlen(q, k, v, sums_q, sums_k, causal_alignment="bottom-right", **options)
    assert isinstance(out, Tensor)
    return out[None]


def _check_others(others: dict[str, Any]) -> None:
    """Raises ValueError for an argument that would change attention and is not supported."""
    if others.get("output_attentions"):
        raise ValueError(
            "output_attentions must be False: the weights are never formed (attn_implementation "
            "'eager' returns them)"
        )
    for name, given in others.items():
        if name not in HARMLESS | {"output_attentions"} and given is not None:
            raise ValueError(
                f"{name} must be None: this attention does not take it, and it might change the "
                f"result; given is {check.describe(given)}"
            )
