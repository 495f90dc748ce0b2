"""`scaled_dot_product_attention` with PyTorch's signature, and in its place.

```python
from pyimpl.integrations.sdpa import sdpa_replaced

with sdpa_replaced() as replaced:
    out = model(x)
assert replaced.calls > 0
```

The replacement is a mode of PyTorch (`TorchFunctionMode`), which belongs to the thread that entered
it and is undone where the block is left, by an exception too. A mode sees each call from Python, by
whichever name the caller imported the function. Two things hide calls from a plain mode:

- PyTorch hands some of its functions to the mode as a whole, and inside of them the mode is off:
  `multi_head_attention_forward`, and `backward`, in which checkpoints attend again. Here their
  bodies run with the mode on;
- the fast path of `torch.nn.MultiheadAttention` and `torch.nn.TransformerEncoderLayer` is one
  operator in C++: `torch.backends.mha` has it off while any thread is in such a block. The layers
  of other threads are then slower, and compute the same.

TorchScript and calls from C++ are out of reach, and so is code that never calls
`scaled_dot_product_attention`: `torch.nn.MultiheadAttention` multiplies the matrices itself unless
it is called with `need_weights=False`, as PyTorch's Transformer layers call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import FunctionType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pyimpl.attention import attention
from pyimpl.backends.dispatch import Backend
from pyimpl.internal import arguments as check
from pyimpl.varlen import attention_varlen

_REPLACED = (
    torch.nn.functional.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention.default,
)
# Functions in Python that PyTorch hands to a mode as a whole; by which names they ask for modes.
_WITH_BODIES = (
    F.multi_head_attention_forward,
    Tensor.backward,
    torch.autograd.backward,
    torch.autograd.grad,
)
# PyTorch does not annotate it.
_broadcast_shapes: Any = torch.broadcast_shapes
_ASKS_FOR_MODES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`pyimpl.attention`, called as `torch.nn.functional.scaled_dot_product_attention` is.

    Args:
        query: `[..., heads, q_len, head_dim]`, of two dimensions or more.
        key, value: `[..., kv_heads, kv_len, head_dim]` and `[..., kv_heads, kv_len, value_dim]`.
            All dimensions but the last two are broadcast, with `enable_gqa` all but the last three.
        attn_mask: broadcastable to `[..., heads, q_len, kv_len]`; boolean, True = may attend, or
            floating, added to the scores; or a `torch.nn.attention.bias.CausalBias`.
        dropout_p: applies whenever it is not 0. Which weights are dropped follows from a seed that
            PyTorch's default generator draws, so that `torch.manual_seed` reproduces them; they are
            others than PyTorch's own function drops.
        is_causal: aligned top-left; not together with `attn_mask`.
        scale, enable_gqa: as for `pyimpl.attention`.

    Three jagged tensors (`torch.nested`, layout `torch.jagged`) of `[batch, heads, length, dim]`
    are attended by `pyimpl.attention_varlen`, without mask.

    Returns:
        `[..., heads, q_len, value_dim]` in the dtype of `query`. A query that may attend to nothing
        gives 0.

    Raises:
        TypeError, ValueError, NotImplementedError: as `pyimpl.attention`; ValueError also for
            `attn_mask` with `is_causal`, and TypeError for nested tensors of another kind.
    """
    return _attend(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    backend: Backend = "auto",
) -> Tensor:
    """`scaled_dot_product_attention` on a backend."""
    named = {"query": query, "key": key, "value": value}
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
    if attn_mask is not None and is_causal:
        raise ValueError("is_causal must be False where attn_mask is given, as PyTorch has it")
    options: dict[str, Any] = {
        "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa, "dropout_p": dropout_p,
        "backend": backend,
    }  # fmt: skip
    if any(tensor.is_nested for tensor in named.values()):
        return _attend_jagged(named, attn_mask, options)
    if isinstance(attn_mask, Tensor) and type(attn_mask) is not Tensor:
        # Seconds, since it imports Dynamo, which whoever gives such a mask has done already.
        from torch.nn.attention.bias import CausalBias

        if isinstance(attn_mask, CausalBias):
            options |= _causal(attn_mask, query, key)
            attn_mask = None
    return _attend_dense(named, attn_mask, options)


def _causal(bias: Any, query: Tensor, key: Tensor) -> dict[str, Any]:
    """The options that PyTorch's description of a causal mask stands for."""
    sizes = (query.shape[-2], key.shape[-2])
    if (bias.seq_len_q, bias.seq_len_kv) != sizes:
        raise ValueError(
            f"attn_mask must be a causal bias of the lengths of query and key, {sizes}, "
            f"not {(bias.seq_len_q, bias.seq_len_kv)}"
        )
    lower = bias.variant.name == "LOWER_RIGHT"
    return {"is_causal": True, "causal_alignment": "bottom-right" if lower else "top-left"}


def _attend_dense(
    named: Mapping[str, Tensor], attn_mask: Tensor | None, options: Mapping[str, Any]
) -> Tensor:
    """Of dense tensors of any number of dimensions from two on."""
    for name, tensor in named.items():
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} must be [..., length, head_dim], not of shape {check.shape(tensor)}"
            )
    rank = max(tensor.dim() for tensor in named.values())
    tensors = {name: _with_rank(tensor, max(rank, 4)) for name, tensor in named.items()}
    # With grouped heads a head of the keys is not broadcast to those of the queries.
    fixed = 3 if options["enable_gqa"] else 2
    try:
        leading = _broadcast_shapes(*(x.shape[:-fixed] for x in tensors.values()))
    except RuntimeError:
        shapes = ", ".join(str(check.shape(tensor)) for tensor in named.values())
        raise ValueError(
            "the leading dimensions of query, key and value must be broadcastable, not those of "
            f"the shapes {shapes}"
        ) from None
    tensors = {name: x.expand(*leading, *x.shape[-fixed:]) for name, x in tensors.items()}
    batch = tensors["query"].shape[:-3]
    if isinstance(attn_mask, Tensor) and len(batch) > 1 and attn_mask.dim() > 3:
        attn_mask = _batch_flattened(attn_mask, batch)
    flat = [x.flatten(0, -4) for x in tensors.values()]
    out = attention(*flat, attn_mask=attn_mask, **options)
    assert isinstance(out, Tensor)
    if rank > 4:
        return out.reshape(*batch, *out.shape[1:])
    return out.reshape(out.shape[4 - rank :]) if rank < 4 else out


def _with_rank(tensor: Tensor, rank: int) -> Tensor:
    """A view with as many dimensions, those in front of size 1."""
    return tensor[(None,) * (rank - tensor.dim())]


def _batch_flattened(mask: Tensor, batch: torch.Size) -> Tensor:
    """A mask `[..., heads|1, q_len|1, kv_len|1]` with the leading dimensions of the batch made
    one."""
    rank = len(batch) + 3
    full = _with_rank(mask, rank)
    pairs = zip(full.shape[:-3], batch, strict=False)
    if full.dim() > rank or any(size not in (1, whole) for size, whole in pairs):
        raise ValueError(
            f"attn_mask must be broadcastable to the batch {list(batch)}, heads, q_len and kv_len, "
            f"not of shape {check.shape(mask)}"
        )
    return full.expand(*batch, *full.shape[-3:]).flatten(0, -4)


def _attend_jagged(
    named: Mapping[str, Tensor], attn_mask: Tensor | None, options: Mapping[str, Any]
) -> Tensor:
    """Of jagged tensors `[batch, heads, length, dim]`, each dense where its lengths change."""
    if attn_mask is not None:
        raise ValueError("attn_mask must be None where query, key and value are nested")
    packed, sums = [], []
    for name, tensor in named.items():
        # Attributes of jagged tensors alone are not annotated.
        by_token: Any = tensor
        if tensor.layout != torch.jagged or tensor.dim() != 4 or by_token._ragged_idx != 2:
            raise TypeError(
                f"{name} must be a jagged tensor [batch, heads, length, head_dim], as query, key "
                "and value are to be where one of them is nested"
            )
        by_token = tensor.transpose(1, 2)
        if by_token.lengths() is not None:
            raise TypeError(f"{name} must be a jagged tensor without gaps: call contiguous() on it")
        packed.append(by_token.values())
        sums.append(by_token.offsets())
    if named["key"].shape[2] != named["value"].shape[2]:
        raise ValueError("value must have the lengths of key, made from the same offsets")
    query, key, value = packed
    out = attention_varlen(query, key, value, sums[0], sums[1], **options)
    assert isinstance(out, Tensor)
    jagged: Tensor = torch.nested.nested_tensor_from_jagged(out, sums[0])
    return jagged.transpose(1, 2)


class sdpa_replaced(TorchFunctionMode):
    """Within this block, and in this thread, `torch.nn.functional.scaled_dot_product_attention` is
    `pyimpl.attention`; of nested blocks the inner one counts.

    `calls` is how many calls were replaced. A call that this attention does not take raises its
    sentence; it does not go to PyTorch's. A backward pass that attends again
    (`torch.utils.checkpoint`) belongs into the block too.

    `torch.compile` takes the block around a compiled function, and compiles anew for calls outside
    of it. It leaves callers of `multi_head_attention_forward` uncompiled.

    Args:
        backend: as for `pyimpl.attention`.
    """

    def __init__(self, backend: Backend = "auto") -> None:
        check.check_one_of("backend", backend, Backend)
        super().__init__()
        self.backend = backend
        self.calls = 0

    def __enter__(self) -> Self:
        # PyTorch does not annotate it.
        mode: Any = super()
        mode.__enter__()
        _FAST_PATH.switch_off()
        return self

    def __exit__(self, *raised: Any) -> None:
        _FAST_PATH.switch_back()
        mode: Any = super()
        mode.__exit__(*raised)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in _REPLACED:
            return self._attend(*args, **named)
        if func in _WITH_BODIES:
            return _run_body(self, func, args, named)
        return func(*args, **named)

    def _attend(self, *args: Any, **named: Any) -> Tensor:
        self.calls += 1
        return _attend(*args, **named, backend=self.backend)


def _run_body(
    mode: sdpa_replaced, function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    """The function with the mode on, and without handing itself to a mode once more. Dynamo does
    not follow a function that is made where it is called: this is not compiled."""
    names = function.__globals__ | dict.fromkeys(_ASKS_FOR_MODES, lambda *tensors: False)
    own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    own.__kwdefaults__ = function.__kwdefaults__
    with mode:
        return own(*args, **named)


class _FastPath:
    """The fast path of `torch.backends.mha`, off while any block is entered in any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks = 0
        self._before = True

    def switch_off(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._before = torch.backends.mha.get_fastpath_enabled()
                torch.backends.mha.set_fastpath_enabled(False)
            self._blocks += 1

    def switch_back(self) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                torch.backends.mha.set_fastpath_enabled(self._before)


_FAST_PATH = _FastPath()
