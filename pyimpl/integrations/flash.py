"""This attention as a flash-attention implementation of PyTorch, from version 2.11 on.

```python
import torch
from pyimpl.integrations import flash

torch.nn.attention.activate_flash_attention_impl(flash.register())
```

From then on, in every thread and until `torch.nn.attention.restore_flash_attention_impl()`, the two
operators that `scaled_dot_product_attention` (SDPA) calls for its flash backend are these.
PyTorch's C++ decides as before which calls go there: on a GPU, in 16 bits, without a mask, where
nothing else is preferred or required; other calls go where they went. `pyimpl.integrations.sdpa`
replaces all of them, for a while and in one thread.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from pyimpl.attention import attention
from pyimpl.backends.dispatch import Backend, backward
from pyimpl.internal import arguments as check
from pyimpl.internal.dropout import checked_dropout
from pyimpl.internal.entries import is_entry_of
from pyimpl.internal.gradients import Wanted
from pyimpl.internal.scores import checked_options

Device = Literal["cuda", "cpu"]
_FORWARD = "_scaled_dot_product_flash_attention"
_BACKWARD = f"{_FORWARD}_backward"


def register(name: str = "pyimpl", *, backend: Backend = "auto", device: Device = "cuda") -> str:
    """Enter this attention in PyTorch's table of flash-attention implementations; nothing changes
    before it is activated.

    Args:
        name: by which it is activated, none of PyTorch's own, nor another's. Given again, it
            is entered anew.
        backend: as for `pyimpl.attention`.
        device: whose operators are replaced. On a CPU, SDPA calls another operator: there
            `torch.ops.aten._scaled_dot_product_flash_attention` alone is this attention, to be
            tried without a GPU.

    Returns:
        The name.

    Raises:
        ImportError: PyTorch has no such table, before version 2.11.
        ValueError: a name that is taken, or no such backend or device.
    """
    try:
        from torch.nn.attention import _registry, register_flash_attention_impl
    except ImportError as error:
        raise ImportError(
            f"flash-attention implementations are registered from torch 2.11 on, and "
            f"{torch.__version__} is installed"
        ) from error
    check.check_one_of("backend", backend, Backend)
    check.check_one_of("device", device, Device)
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a string that is not empty, not {check.describe(name)}")
    # PyTorch publishes the names of this table alone.
    entry = _registry._FLASH_ATTENTION_IMPLS.get(name)
    if entry is not None and not is_entry_of(entry, _Activated):
        raise ValueError(f"name must be none that PyTorch has already, not {name!r}")
    register_flash_attention_impl(name, register_fn=partial(_Activated, backend, device))
    return name


class _Activated:
    """The handle that PyTorch keeps while an implementation is active."""

    def __init__(self, backend: Backend, device: Device) -> None:
        operators = _Operators(backend)
        # PyTorch does not annotate it.
        library: Any = torch.library.Library
        self._library = library("aten", "IMPL")
        self._library.impl(_FORWARD, operators.forward, device.upper())
        self._library.impl(_BACKWARD, operators.backward, device.upper())

    def remove(self) -> None:
        """PyTorch's own operators again: they are, once the library is gone."""
        self._library = None


class _Operators:
    """The two operators, with PyTorch's arguments in PyTorch's order."""

    def __init__(self, backend: Backend) -> None:
        self.backend: Backend = backend

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        return_debug_mask: bool = False,
        *,
        scale: float | None = None,
    ) -> tuple[Any, ...]:
        """Output and log-sum-exp; no prefix sums; the lengths; the dropout's seed, for the
        backward pass. `[batch, heads, length, head_dim]`, aligned top-left."""
        if return_debug_mask:
            raise NotImplementedError(
                "return_debug_mask must be False: the weights are never formed"
            )
        dropout = checked_dropout(dropout_p, None, query)
        seed = torch.zeros((), dtype=torch.int64, device=query.device)
        if dropout is not None:
            seed = dropout.seed
        out, lse = attention(
            query, key, value, is_causal=is_causal, scale=scale, dropout_p=dropout_p,
            dropout_seed=seed, enable_gqa=True, return_lse=True, backend=self.backend,
        )  # fmt: skip
        # PyTorch keeps two numbers without a sign.
        state = torch.stack([seed, torch.zeros_like(seed)]).view(torch.uint64)
        unused, no_mask = state.new_zeros(()), query.new_empty(0)
        return out, lse, None, None, query.shape[2], key.shape[2], state, unused, no_mask

    def backward(
        self,
        grad_out: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        out: Tensor,
        logsumexp: Tensor,
        cum_seq_q: Tensor | None,
        cum_seq_k: Tensor | None,
        max_q: int,
        max_k: int,
        dropout_p: float,
        is_causal: bool,
        philox_seed: Tensor,
        philox_offset: Tensor,
        *,
        scale: float | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of query, key and value."""
        options = checked_options(
            query, *query.shape[:2], is_causal=is_causal, window=(None, None), scale=scale
        )
        seed = philox_seed.view(torch.int64)[0]
        options = replace(options, dropout=checked_dropout(dropout_p, seed, query))
        found = backward(
            query, key, value, out, logsumexp, grad_out, None, options,
            Wanted(), self.backend,
        )  # fmt: skip
        rounded = found.round_to_inputs(query, key, value, options)
        return rounded.query, rounded.key, rounded.value
