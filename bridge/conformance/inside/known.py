"""Attention of other packages, called as their documentation says: the functions of the built-in
adapters.

query, key and value: [batch, heads, length, dim]. Where there is a mask it is Boolean, True = may
attend, or numbers to add. Each package is imported when its function is called.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

Window = tuple[int | None, int | None]


def sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    backend: str = "MATH",
    reduced: bool = False,
) -> Tensor:
    """PyTorch's, by one backend. reduced: products in reduced precision are allowed."""
    cuda: Any = torch.backends.cuda
    before = cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(reduced)
    try:
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            return torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=attn_mask, is_causal=is_causal, scale=scale
            )
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(before)


def sdpa_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """PyTorch's flash backend; on a CPU by the operator below SDPA, with its log-sum-exp."""
    if query.device.type != "cpu":
        return sdpa(query, key, value, attn_mask, is_causal, scale, "FLASH_ATTENTION"), None
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale
    )
    return out, lse


def flex(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    alibi: tuple[float, int] | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`flex_attention`, not compiled, with its log-sum-exp. attn_mask: Boolean; alibi: slope, and
    the key at which query 0 stands."""
    flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
    block_mask = None
    if attn_mask is not None:
        shown = attn_mask.expand(query.shape[0], query.shape[1], -1, -1)
        block_mask = flex.create_block_mask(
            lambda b, h, i, j: shown[b, h, i, j], *shown.shape, device=shown.device
        )

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if softcap is not None:
            score = softcap * torch.tanh(score / softcap)
        if alibi is not None:
            score = score - alibi[0] * (i + alibi[1] - j).abs()
        return score if bias is None else score + bias[b, h, i, j]

    changed = softcap is not None or alibi is not None or bias is not None
    # Traced for every call otherwise, half a second each, to compute the same.
    before = flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    try:
        out, extra = flex.flex_attention(
            query,
            key,
            value,
            score_mod=score_mod if changed else None,
            block_mask=block_mask,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
            return_aux=flex.AuxRequest(lse=True),
        )
    finally:
        flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = before
    return out, extra.lse


def flash_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: Window = (None, None),
    softcap: float | None = None,
    alibi_slope: float | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`flash_attn.flash_attn_func`, with its log-sum-exp."""
    slopes = None
    if alibi_slope is not None:
        slopes = torch.full((query.shape[1],), alibi_slope, device=query.device)
    out, lse, _ = importlib.import_module("flash_attn").flash_attn_func(
        *(x.transpose(1, 2).contiguous() for x in (query, key, value)),
        softmax_scale=scale,
        window_size=tuple(-1 if x is None else x for x in window),
        softcap=softcap or 0.0,
        alibi_slopes=slopes,
        return_attn_probs=True,
    )
    return out.transpose(1, 2), lse


def jax(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    window: Window | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`jax.nn.dot_product_attention`, with its log-sum-exp. window: both sides."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)

    def to_jax(tensor: Tensor | None) -> Any:
        if tensor is None:
            return None
        # DLPack has Booleans in some versions of either package only.
        if tensor.dtype == torch.bool:
            return jax.numpy.asarray(tensor.cpu().numpy())
        return jax.dlpack.from_dlpack(tensor.contiguous())

    given = [to_jax(x.transpose(1, 2)) for x in (query, key, value)]
    # Values may have another size than keys here, but not there.
    width = max(query.shape[-1], value.shape[-1])
    given = [jax.numpy.pad(x, ((0, 0),) * 3 + ((0, width - x.shape[-1]),)) for x in given]
    out, lse = _compile()(
        *given,
        bias=to_jax(bias),
        mask=to_jax(attn_mask),
        scale=scale,
        is_causal=is_causal,
        local_window_size=window,
        return_residual=True,
    )
    found = torch.utils.dlpack.from_dlpack(out)[..., : value.shape[-1]].transpose(1, 2)
    lses = torch.utils.dlpack.from_dlpack(lse).transpose(1, 2)
    return found.contiguous(), lses.contiguous()


@cache
def _compile() -> Any:
    """The function as users have it run: compiled as a whole for each shape, which also takes a
    fraction of the time that compiling each of its steps does."""
    jax: Any = importlib.import_module("jax")
    options = ("scale", "is_causal", "local_window_size", "return_residual")
    return jax.jit(jax.nn.dot_product_attention, static_argnames=options)


# Names of the types of ONNX tensors.
_ONNX = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}


def onnxruntime(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    softcap: float | None = None,
    scale: float | None = None,
) -> Tensor:
    """The operator Attention of ONNX (operator set 23), by ONNX Runtime on a CPU."""
    runtime: Any = importlib.import_module("onnxruntime")
    inputs = {"Q": query, "K": key, "V": value}
    if attn_mask is not None:
        inputs["attn_mask"] = attn_mask
    options: dict[str, Any] = {"scale": scale, "is_causal": int(is_causal)}
    if softcap is not None:
        options["softcap"] = softcap
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    model = _onnx_model(inputs, options)
    session = runtime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    given = {name: np.ascontiguousarray(x.numpy()) for name, x in inputs.items()}
    return torch.from_numpy(session.run(None, given)[0])


def _onnx_model(inputs: dict[str, Tensor], options: dict[str, Any]) -> bytes:
    helper: Any = importlib.import_module("onnx.helper")
    types: Any = importlib.import_module("onnx").TensorProto

    def kind(tensor: Tensor) -> int:
        name = str(tensor.dtype).removeprefix("torch.")
        return int(getattr(types, "BOOL" if name == "bool" else _ONNX[name]))

    node = helper.make_node("Attention", list(inputs), ["Y"], **options)
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(n, kind(x), list(x.shape)) for n, x in inputs.items()],
        [helper.make_tensor_value_info("Y", kind(inputs["Q"]), None)],
    )
    # The format's version 10 is the one of this operator set.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    found: bytes = model.SerializeToString()
    return found


def hf_eager(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    softcap: float | None = None,
    scale: float | None = None,
) -> Tensor:
    """The eager attention of Hugging Face transformers' Gemma 2. attn_mask: numbers to add."""
    module = "transformers.models.gemma2.modeling_gemma2"
    eager = importlib.import_module(module).eager_attention_forward
    groups = query.shape[1] // key.shape[1]
    about = SimpleNamespace(num_key_value_groups=groups, training=False)
    out: Tensor
    out, _ = eager(about, query, key, value, attn_mask, scaling=scale, softcap=softcap)
    return out.transpose(1, 2)
