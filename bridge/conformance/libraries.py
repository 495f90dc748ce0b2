"""Adapters of other packages' attentions. None of the packages is needed until its adapter runs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance import adapters
from bridge.conformance.adapter import Adapter, Builtin, Part
from bridge.conformance.batch import Batch, Outputs
from bridge.conformance.differentiate import ByAutograd
from bridge.conformance.flex import Flex
from bridge.conformance.grouped_heads import GroupedHeads
from bridge.conformance.profile import FORMATS, WHOLE_ROW, Profile
from bridge.conformance.sdpa import SdpaCudnn, SdpaEfficient, largest_score
from bridge.vectors.model import AttentionVector, Window


class FlashAttn(ByAutograd, Builtin):
    """`flash_attn.flash_attn_func`: windows and slopes aligned bottom-right, no other masks."""

    name = "flash-attn"
    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    takes = frozenset({"softcap", "alibi"})

    def profile(self, dtype: str, device: str) -> Profile:
        return Profile.flash(dtype, truncating=True).with_name(f"flash-attn-{dtype}")

    def not_covered(
        self, vector: AttentionVector, dtype: str, device: str, part: Part
    ) -> str | None:
        if not device.startswith("cuda"):
            return "flash-attn runs on GPUs alone"
        last = vector.kv_len - vector.q_len
        window = vector.mask.window
        if vector.mask.kind != "none" and window is None:
            return "takes no masks but windows"
        if window is not None and window.shift != last:
            return "aligns windows bottom-right"
        if vector.alibi is not None and vector.alibi.shift != last:
            return "aligns slopes bottom-right"
        return None

    def run(self, batch: Batch) -> Outputs:
        value_dim = batch.value.shape[-1]
        width = -(-max(batch.query.shape[-1], value_dim) // 8) * 8
        inputs = (
            torch.nn.functional.pad(x, (0, width - x.shape[-1])).transpose(1, 2).contiguous()
            for x in (batch.query, batch.key, batch.value)
        )
        window = batch.window or Window(None, None, 0)
        slopes = None
        if batch.alibi is not None:
            slopes = torch.full(
                (batch.query.shape[1],), float(batch.alibi.slope), device=batch.query.device
            )
        out, lse, _ = importlib.import_module("flash_attn").flash_attn_func(
            *inputs,
            softmax_scale=batch.scale,
            window_size=tuple(-1 if x is None else x for x in window[:2]),
            softcap=batch.softcap or 0.0,
            alibi_slopes=slopes,
            return_attn_probs=True,
        )
        return Outputs(out.transpose(1, 2)[..., :value_dim], lse)


class Jax(GroupedHeads, Builtin):
    """`jax.nn.dot_product_attention`, by XLA. Its softmax is in float32, for float64 too."""

    name = "jax"
    takes = frozenset({"bias"})

    def profile(self, dtype: str, device: str) -> Profile:
        base = Profile.widened(dtype, accumulator="float32", block_n=WHOLE_ROW)
        return replace(base, name=f"jax-{dtype}", weights=FORMATS[dtype], weights_normalized=True)

    def not_covered(
        self, vector: AttentionVector, dtype: str, device: str, part: Part
    ) -> str | None:
        if part == "lse" and dtype in ("float16", "bfloat16"):
            return f"rounds the log-sum-exp to {dtype}"
        return None

    def run(self, batch: Batch) -> Outputs:
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)

        def to_jax(tensor: Tensor | None) -> Any:
            if tensor is None:
                return None
            # DLPack has Booleans in some versions of either package only.
            if tensor.dtype == torch.bool:
                return jax.numpy.asarray(tensor.cpu().numpy())
            return jax.dlpack.from_dlpack(tensor.contiguous())

        query, key, value = (
            to_jax(x.transpose(1, 2)) for x in (batch.query, batch.key, batch.value)
        )
        # Values may have another size than keys here, but not there.
        width = max(query.shape[-1], value.shape[-1])
        query, key, value = (
            jax.numpy.pad(x, ((0, 0),) * 3 + ((0, width - x.shape[-1]),))
            for x in (query, key, value)
        )
        window, masked = batch.window, batch.mask
        sides = None
        if window is not None and not batch.is_causal:
            if window.shift == 0 and None not in window:
                sides = window[:2]
            else:
                masked = batch.boolean
        out, lse = _compiled()(
            query,
            key,
            value,
            bias=to_jax(batch.bias),
            mask=to_jax(masked),
            scale=batch.scale,
            is_causal=batch.is_causal,
            local_window_size=sides,
            return_residual=True,
        )
        found = torch.utils.dlpack.from_dlpack(out)[..., : batch.value.shape[-1]].transpose(1, 2)
        return Outputs(
            found.contiguous(), torch.utils.dlpack.from_dlpack(lse).transpose(1, 2).contiguous()
        )


@cache
def _compiled() -> Any:
    """The function as users have it run: compiled as a whole for each shape, which also takes a
    fraction of the time that compiling each of its steps does."""
    jax: Any = importlib.import_module("jax")
    options = ("scale", "is_causal", "local_window_size", "return_residual")
    return jax.jit(jax.nn.dot_product_attention, static_argnames=options)


# Names of the types of ONNX tensors.
_ONNX = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}


class OnnxRuntime(GroupedHeads, Builtin):
    """The operator Attention of ONNX (operator set 23), by ONNX Runtime on a CPU."""

    name = "onnxruntime"
    dtypes: tuple[str, ...] = ("float32", "float16")
    takes = frozenset({"softcap", "bias"})

    def profile(self, dtype: str, device: str) -> Profile:
        low = FORMATS[dtype]
        base = replace(Profile.float32(WHOLE_ROW), input=low, output=low)
        if dtype == "float16":
            base = replace(base, operands=low, scores=low, weights=low, weights_normalized=True)
        return base.with_name(f"onnxruntime-{dtype}")

    def not_covered(
        self, vector: AttentionVector, dtype: str, device: str, part: Part
    ) -> str | None:
        if not device.startswith("cpu"):
            return "run on a CPU alone"
        if self.declared and vector.natural_scale <= 0:
            return "refuses a scale that is not positive"
        if vector.softcap is not None and dtype == "float16":
            return "the steps of its softcap are rounded to float16, for which there is no profile"
        return None

    def run(self, batch: Batch) -> Outputs:
        runtime: Any = importlib.import_module("onnxruntime")
        inputs = {"Q": batch.query, "K": batch.key, "V": batch.value}
        causal = batch.is_causal and batch.bias is None
        mask = None if causal else batch.boolean if batch.bias is None else batch.added
        if mask is not None:
            inputs["attn_mask"] = mask
        options: dict[str, Any] = {"scale": batch.scale, "is_causal": int(causal)}
        if batch.softcap is not None:
            options["softcap"] = batch.softcap
        settings = runtime.SessionOptions()
        settings.log_severity_level = 4
        model = _onnx_model(inputs, options)
        session = runtime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        given = {name: np.ascontiguousarray(x.numpy()) for name, x in inputs.items()}
        return Outputs(torch.from_numpy(session.run(None, given)[0]))


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


class HfEager(GroupedHeads, ByAutograd, Builtin):
    """The eager attention of Hugging Face transformers, as in its Gemma 2. A masked pair gets the
    lowest finite number added, as the masks made there have it."""

    name = "hf-eager"
    by_bias = True
    takes = frozenset({"softcap", "bias"})

    def profile(self, dtype: str, device: str) -> Profile:
        if dtype in ("float64", "float32"):
            # The softmax is in float32 for float64 too.
            return Profile.widened(dtype, block_n=WHOLE_ROW).with_name(f"hf-eager-{dtype}")
        base = Profile.sdpa_math(dtype, reduced=True)
        return replace(base, name=f"hf-eager-{dtype}", denominator="unrounded")

    def not_covered(
        self, vector: AttentionVector, dtype: str, device: str, part: Part
    ) -> str | None:
        if dtype not in ("float64", "float32"):
            if vector.softcap is not None:
                return f"rounds each step of the softcap to {dtype}, for which there is no profile"
            if dtype == "float16" and largest_score(vector) > 60000:
                return "a score is beyond the largest float16, in which scores are stored"
        return None

    def run(self, batch: Batch) -> Outputs:
        module = "transformers.models.gemma2.modeling_gemma2"
        eager = importlib.import_module(module).eager_attention_forward
        groups = batch.query.shape[1] // batch.key.shape[1]
        mask = batch.added
        if mask is not None:
            mask = mask.clamp_min(torch.finfo(mask.dtype).min)
        out, _ = eager(
            SimpleNamespace(num_key_value_groups=groups, training=False),
            batch.query,
            batch.key,
            batch.value,
            mask,
            scaling=batch.scale,
            softcap=batch.softcap,
        )
        return Outputs(out.transpose(1, 2))


# Beside the adapters of PyTorch: the packages that each needs, as they are imported and installed.
PACKAGES = {
    "flash-attn": {"flash_attn": "flash-attn"},
    "jax": {"jax": "jax"},
    "onnxruntime": {"onnxruntime": "onnxruntime", "onnx": "onnx"},
    "hf-eager": {"transformers": "transformers"},
}
FOREIGN: dict[str, Callable[[], Adapter]] = {
    "sdpa-efficient": SdpaEfficient,
    "sdpa-cudnn": SdpaCudnn,
    "flex": Flex,
    "flash-attn": FlashAttn,
    "jax": Jax,
    "onnxruntime": OnnxRuntime,
    "hf-eager": HfEager,
}


def names() -> tuple[str, ...]:
    """All names that `find` knows."""
    return (*adapters.BUILTIN, *FOREIGN)


def find(name: str) -> Adapter:
    """The adapter of that name. Raises KeyError where there is none."""
    return FOREIGN[name]() if name in FOREIGN else adapters.builtin(name)


def missing(name: str) -> str | None:
    """What has to be installed for that adapter, as pip names it; None if nothing has."""
    packages = PACKAGES.get(name, {})
    absent = [pip for module, pip in packages.items() if not importlib.util.find_spec(module)]
    return " ".join(absent) or None
