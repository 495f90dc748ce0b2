"""Adapters of other packages' attentions. None of the packages is needed until its adapter runs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import replace
from typing import ClassVar

import torch

from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters import flex, sdpa_on_gpu
from bridge.conformance.adapters.adapter import About, Adapter, Builtin
from bridge.conformance.adapters.differentiate import ByAutograd
from bridge.conformance.adapters.grouped_heads import GroupedHeads
from bridge.conformance.adapters.sdpa import largest_score
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import FORMATS, WHOLE_ROW, RoundingModel
from bridge.vectors.model.attention import AttentionVector, Window


class FlashAttn(ByAutograd, Builtin):
    """`flash_attn.flash_attn_func`: windows and slopes aligned bottom-right, no other masks."""

    name = "flash-attn"
    packages: ClassVar = {"flash_attn": "flash-attn"}
    foreign = "flash_attn"
    about = About(
        "flash-attn",
        "`flash_attn.flash_attn_func`",
        "Causal masks and windows as `causal` and `window_size`.",
        "masks but windows; windows and slopes not aligned bottom-right; sinks, biases. Not yet "
        "run on a GPU",
        on_gpu=True,
        packages=("flash-attn", "torch"),
    )
    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    takes = frozenset({"softcap", "alibi"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.flash(dtype, truncating=True).with_name(f"flash-attn-{dtype}")

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
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
        inputs = (torch.nn.functional.pad(x, (0, width - x.shape[-1])) for x in batch.qkv)
        out, lse = self.call(
            *inputs,
            window=tuple((batch.window or Window(None, None, 0))[:2]),
            softcap=batch.softcap,
            alibi_slope=None if batch.alibi is None else float(batch.alibi.slope),
            scale=batch.scale,
        )
        return Outputs(out[..., :value_dim], lse)


class Jax(GroupedHeads, Builtin):
    """`jax.nn.dot_product_attention`, by XLA. Its softmax is in float32, for float64 too."""

    name = "jax"
    packages: ClassVar = {"jax": "jax"}
    foreign = "jax"
    about = About(
        "JAX",
        "`jax.nn.dot_product_attention`, compiled by XLA",
        "With `jax_enable_x64`. Causal masks are given as `is_causal`, windows as "
        "`local_window_size` where that can say them, other masks as Booleans, a bias as `bias`. "
        "XLA compiles each shape for a second or so, so it is run in float32 alone.",
        "softcap, slopes, sinks, gradients; the log-sum-exp in 16 bits, in which it is rounded. "
        "XLA compiles each shape, some 5 minutes of processor time for all vectors in one dtype: "
        "choose by `--family` and `--dtype`",
        packages=("jax", "jaxlib"),
        dtypes=("float32",),
    )
    takes = frozenset({"bias"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        base = RoundingModel.widened(dtype, accumulator="float32", block_n=WHOLE_ROW)
        return replace(base, name=f"jax-{dtype}", weights=FORMATS[dtype], weights_normalized=True)

    def no_log_sum_exp(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if dtype in ("float16", "bfloat16"):
            return f"rounds the log-sum-exp to {dtype}"
        return None

    def run(self, batch: Batch) -> Outputs:
        window, masked, sides = batch.window, batch.mask, None
        if window is not None and not batch.is_causal:
            if window.shift == 0 and None not in window:
                sides = tuple(window[:2])
            else:
                masked = batch.boolean
        out, lse = self.call(
            *batch.qkv,
            attn_mask=masked,
            bias=batch.bias,
            is_causal=batch.is_causal,
            window=sides,
            scale=batch.scale,
        )
        return Outputs(out, lse)


class OnnxRuntime(GroupedHeads, Builtin):
    """The operator Attention of ONNX (operator set 23), by ONNX Runtime on a CPU."""

    name = "onnxruntime"
    packages: ClassVar = {"onnxruntime": "onnxruntime", "onnx": "onnx"}
    foreign = "onnxruntime"
    about = About(
        "ONNX Runtime",
        "the operator Attention of ONNX, operator set 23, by ONNX Runtime's CPU provider",
        "Causal masks are given as `is_causal`, others as Booleans, or as numbers to add where "
        "there is a bias.",
        "a scale that is not positive (refused), softcap in 16 bits, slopes, sinks, gradients; CPU "
        "alone",
        packages=("onnxruntime", "onnx"),
    )
    dtypes: tuple[str, ...] = ("float32", "float16")
    takes = frozenset({"softcap", "bias"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        low = FORMATS[dtype]
        base = replace(RoundingModel.float32(WHOLE_ROW), input=low, output=low)
        if dtype == "float16":
            base = replace(base, operands=low, scores=low, weights=low, weights_normalized=True)
        return base.with_name(f"onnxruntime-{dtype}")

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if not device.startswith("cpu"):
            return "run on a CPU alone"
        if self.declared and vector.natural_scale <= 0:
            return "refuses a scale that is not positive"
        if vector.softcap is not None and dtype == "float16":
            return (
                "the steps of its softcap are rounded to float16, which no rounding model describes"
            )
        return None

    def run(self, batch: Batch) -> Outputs:
        causal = batch.is_causal and batch.bias is None
        mask = None if causal else batch.boolean if batch.bias is None else batch.added
        return Outputs(
            self.call(
                *batch.qkv,
                attn_mask=mask,
                is_causal=causal,
                softcap=batch.softcap,
                scale=batch.scale,
            )
        )


class HfEager(GroupedHeads, ByAutograd, Builtin):
    """The eager attention of Hugging Face transformers, as in its Gemma 2. A masked pair gets the
    lowest finite number added, as the masks made there have it."""

    name = "hf-eager"
    packages: ClassVar = {"transformers": "transformers"}
    foreign = "hf_eager"
    about = About(
        "HF eager",
        "`eager_attention_forward` of transformers' Gemma 2",
        "A masked pair gets the lowest finite number added, as in the masks that transformers "
        "makes.",
        "slopes, sinks; softcap in 16 bits",
        packages=("transformers", "torch"),
    )
    by_bias = True
    takes = frozenset({"softcap", "bias"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        if dtype in ("float64", "float32"):
            # The softmax is in float32 for float64 too.
            return RoundingModel.widened(dtype, block_n=WHOLE_ROW).with_name(f"hf-eager-{dtype}")
        base = RoundingModel.sdpa_math(dtype, reduced=True)
        return replace(base, name=f"hf-eager-{dtype}", denominator="unrounded")

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if dtype not in ("float64", "float32"):
            if vector.softcap is not None:
                return (
                    f"rounds each step of the softcap to {dtype}, which no rounding model describes"
                )
            if dtype == "float16" and largest_score(vector) > 60000:
                return "a score is beyond the largest float16, in which scores are stored"
        return None

    def run(self, batch: Batch) -> Outputs:
        mask = batch.added
        if mask is not None:
            mask = mask.clamp_min(torch.finfo(mask.dtype).min)
        return Outputs(
            self.call(
                *batch.qkv,
                attn_mask=mask,
                softcap=batch.softcap,
                scale=batch.scale,
            )
        )


FOREIGN = adapters.adapters_of(sdpa_on_gpu, flex, sys.modules[__name__])


def names() -> tuple[str, ...]:
    """All names that `find` knows."""
    return (*adapters.BUILTIN, *adapters.NAMED, *FOREIGN)


def find(name: str) -> Adapter:
    """The adapter of that name. Raises KeyError where there is none."""
    return FOREIGN[name]() if name in FOREIGN else adapters.builtin(name)


def missing_packages(name: str) -> str | None:
    """The packages to install for that adapter, by pip's names; None if there are none."""
    packages = getattr(FOREIGN.get(name), "packages", {})
    absent = [pip for module, pip in packages.items() if not importlib.util.find_spec(module)]
    return " ".join(absent) or None
