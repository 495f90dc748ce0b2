"""The public function: checks its arguments and picks an implementation.

Names follow `torch.nn.functional.scaled_dot_product_attention` (SDPA). What differs from it:
`attn_mask` and `is_causal` may be given together and then both apply; a query that may attend to no
key gives 0 (and log-sum-exp −∞), on every backend; a mask is boolean, never numbers to add.
"""

from __future__ import annotations

import importlib.util
import numbers
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.autograd import forward_ad

from pyimpl import reference, tiled
from pyimpl._arguments import resolve_scale
from pyimpl._scores import ScoreOptions

Backend = Literal["auto", "triton", "tiled", "reference"]
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
    backend: Backend = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale · query keyᵀ) value, over the keys that each query may attend to
    (`Attention.Spec.attention`).

    Args:
        query: `[batch, heads, q_len, head_dim]`, float64, float32, float16 or bfloat16.
        key: `[batch, heads, kv_len, head_dim]`, of the dtype and device of `query`.
        value: `[batch, heads, kv_len, value_dim]`, likewise. batch, heads, q_len and kv_len may be
            0.
        attn_mask: boolean, True = may attend, broadcastable to `[batch, heads, q_len, kv_len]`.
        is_causal: key j is visible to query i if and only if j ≤ i (top-left alignment, as in
            SDPA).
        scale: factor on the scores, finite in float32 (float64 for float64 inputs); 1/√head_dim if
            None.
        return_lse: also return the natural log-sum-exp of each query's scores.
        backend: "triton" (float32, float16, bfloat16; head sizes up to 256), "tiled" (PyTorch,
            memory linear in the lengths), "reference" (float64 inside, materialises the scores), or
            "auto": triton on CUDA where it can, otherwise tiled.

    Returns:
        `[batch, heads, q_len, value_dim]` in the dtype of `query`; with `return_lse` also `[batch,
        heads, q_len]`, float64 for float64 inputs and otherwise float32. A query with no key to
        attend to gives 0 and −∞.

    A key that no query may attend to has no influence, whatever it holds, NaN included. The value
    row of a key that some query may attend to must be finite, even where another query may not: on
    a tile they share, its product with the weight 0 is NaN if it is not. `torch.autocast` has no
    effect.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: shapes, devices or options that do not fit together, or that the backend does
            not take.
        NotImplementedError: gradients or forward-mode derivatives are asked for; there are none
            yet.
        ImportError: backend "triton" where Triton is not installed.
    """
    _check_tensors(query, key, value)
    _check_mask(attn_mask, query, key)
    _check_scale(scale, query)
    _check_options(is_causal, backend)
    if backend == "auto":
        wanted = query.is_cuda and _triton_installed() and _triton_takes(query, value)
        backend = "triton" if wanted else "tiled"
    if backend == "triton":
        if not _triton_installed():
            raise ImportError("backend 'triton' needs the package triton, which is not installed")
        from pyimpl.kernels.forward import forward

        factor = resolve_scale(scale, query.shape[-1])
        options = ScoreOptions(factor, mask=attn_mask, right=0 if is_causal else None)
        out, lse = forward(query, key, value, options)
    elif backend == "tiled":
        out, lse = tiled.flash(query, key, value, mask=attn_mask, is_causal=is_causal, scale=scale)
    else:
        out, lse = reference.attention(
            query, key, value, mask=attn_mask, is_causal=is_causal, scale=scale
        )
        out, lse = out.to(query.dtype), lse.to(tiled.compute_dtype(query.dtype))
    return (out, lse) if return_lse else out


def _check_tensors(query: Tensor, key: Tensor, value: Tensor) -> None:
    named = {"query": query, "key": key, "value": value}
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        if tensor.layout != torch.strided or tensor.is_nested:
            raise TypeError(f"{name} must be a dense tensor, neither sparse nor nested")
        if tensor.dtype not in DTYPES:
            raise TypeError(
                f"{name} must be float64, float32, float16 or bfloat16, not {tensor.dtype}"
            )
        if tensor.dim() != 4:
            raise ValueError(
                f"{name} must be [batch, heads, length, head_dim], not of shape {_shape(tensor)}"
            )
    for name, tensor in named.items():
        if tensor.dtype != query.dtype:
            raise TypeError(
                f"{name} must have the dtype of query, {query.dtype}, not {tensor.dtype}"
            )
        if tensor.device != query.device:
            raise ValueError(
                f"{name} must be on the device of query, {query.device}, not on {tensor.device}"
            )
        if tensor.shape[:2] != query.shape[:2]:
            raise ValueError(
                f"{name} must have the batch and heads of query, {_shape(query)[:2]}, "
                f"not {_shape(tensor)[:2]}"
            )
        if tensor.shape[3] == 0:
            raise ValueError(
                f"the last dimension of {name} must be at least 1, not of shape {_shape(tensor)}"
            )
    if key.shape[3] != query.shape[3]:
        raise ValueError(
            f"key must have the head_dim of query, {query.shape[3]}, not {key.shape[3]}"
        )
    if value.shape[2] != key.shape[2]:
        raise ValueError(f"value must have the length of key, {key.shape[2]}, not {value.shape[2]}")
    for name, tensor in named.items():
        if tensor.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                f"{name} requires a gradient, and there is no backward pass yet: "
                f"use torch.no_grad() or {name}.detach()"
            )
        # PyTorch does not annotate unpack_dual.
        if forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
            raise NotImplementedError(
                f"{name} carries a tangent, and there is no forward-mode derivative"
            )


def _check_mask(attn_mask: Tensor | None, query: Tensor, key: Tensor) -> None:
    if attn_mask is None:
        return
    if not isinstance(attn_mask, Tensor):
        raise TypeError(f"attn_mask must be a torch.Tensor or None, not {type(attn_mask).__name__}")
    if attn_mask.dtype != torch.bool:
        raise TypeError(f"attn_mask must be boolean (True = may attend), not {attn_mask.dtype}")
    if attn_mask.device != query.device:
        raise ValueError(
            f"attn_mask must be on the device of query, {query.device}, not on {attn_mask.device}"
        )
    scores = (*query.shape[:3], key.shape[2])
    sizes = zip(reversed(attn_mask.shape), reversed(scores), strict=False)
    if attn_mask.dim() > 4 or any(size not in (1, full) for size, full in sizes):
        raise ValueError(
            "attn_mask must be broadcastable to [batch, heads, q_len, kv_len] = "
            f"{list(scores)}, not of shape {_shape(attn_mask)}"
        )


def _check_scale(scale: float | None, query: Tensor) -> None:
    if scale is None:
        return
    # NumPy's scalars are such numbers too.
    if isinstance(scale, bool) or not isinstance(scale, numbers.Real):
        raise TypeError(f"scale must be a number or None, not {scale!r}")
    dtype = tiled.compute_dtype(query.dtype)
    if not abs(float(scale)) <= torch.finfo(dtype).max:
        raise ValueError(f"scale must be finite in {dtype}, not {scale}")


def _check_options(is_causal: bool, backend: str) -> None:
    if not isinstance(is_causal, bool):
        raise TypeError(f"is_causal must be True or False, not {is_causal!r}")
    if backend not in get_args(Backend):
        accepted = ", ".join(repr(name) for name in get_args(Backend))
        raise ValueError(f"backend must be one of {accepted}, not {backend!r}")


def _triton_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def _triton_takes(query: Tensor, value: Tensor) -> bool:
    from pyimpl.kernels.forward import why_not

    return why_not(query, value) is None


def _shape(tensor: Tensor) -> list[int]:
    return list(tensor.shape)
