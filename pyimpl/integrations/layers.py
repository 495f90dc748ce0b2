"""The `torch.nn.MultiheadAttention` of a model, by this attention from now on.

```python
from pyimpl.integrations.layers import swap_attention

swapped = swap_attention(model)
```

Parameters, their names and the optimiser that has them stay. For a while rather than from now on,
and for models that call `scaled_dot_product_attention`: `pyimpl.integrations.sdpa`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from pyimpl.backends.dispatch import Backend
from pyimpl.integrations.sdpa import sdpa_replaced
from pyimpl.internal import arguments as check


class SwappedMultiheadAttention(nn.MultiheadAttention):
    """`swap_attention`'s replacement of a `torch.nn.MultiheadAttention`: the same, attending by
    `pyimpl.attention`, but that no weights are returned."""

    _backend: Backend = "auto"
    _hook: Any = None

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As PyTorch's, with `need_weights=False`.

        Raises:
            ValueError: `need_weights` is True, PyTorch's default; or as `pyimpl.attention`.
        """
        if need_weights:
            raise ValueError(
                "need_weights must be False in a swapped MultiheadAttention: the weights are never "
                "formed"
            )
        with sdpa_replaced(self._backend):
            out, _ = super().forward(
                query, key, value, key_padding_mask=key_padding_mask, need_weights=False,
                attn_mask=attn_mask, is_causal=is_causal,
            )  # fmt: skip
        return out, None


def swap_attention(model: nn.Module, *, backend: Backend = "auto") -> int:
    """Have every `torch.nn.MultiheadAttention` in the model attend by `pyimpl.attention`.

    PyTorch's Transformer layers compute in C++ where they can, without calling their attention;
    they do not where it has a hook, so each gets one. A `TransformerEncoder` does not make nested
    tensors of padded ones any more. Subclasses of others are left as they are.

    Args:
        model: changed in place; the layer itself counts too.
        backend: as for `pyimpl.attention`.

    Returns:
        How many layers attend so now that did not.

    Raises:
        ValueError: no backend.
    """
    check.check_one_of("backend", backend, Backend)
    swapped = 0
    for module in model.modules():
        # PyTorch does not annotate the attributes that are set here.
        changed: Any = module
        if type(module) is nn.MultiheadAttention:
            changed.__class__ = SwappedMultiheadAttention
            changed._hook = changed.register_forward_pre_hook(_nothing)
            swapped += 1
        if isinstance(module, SwappedMultiheadAttention):
            changed._backend = backend
        if isinstance(module, nn.TransformerEncoder) and module.use_nested_tensor:
            changed.use_nested_tensor = False
            changed._nested_before = True
    return swapped


def swap_back(model: nn.Module) -> int:
    """Undo `swap_attention`; returns how many layers are PyTorch's again. A `TransformerEncoder`
    makes nested tensors again where it was made to."""
    restored = 0
    for module in model.modules():
        changed: Any = module
        if isinstance(module, SwappedMultiheadAttention):
            changed._hook.remove()
            del changed._hook, changed._backend
            changed.__class__ = nn.MultiheadAttention
            restored += 1
        if isinstance(module, nn.TransformerEncoder) and hasattr(module, "_nested_before"):
            changed.use_nested_tensor = True
            del changed._nested_before
    return restored


def _nothing(module: nn.Module, inputs: Any) -> None:
    """A hook."""
