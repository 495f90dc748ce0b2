"""Adapters of the backends of PyTorch's scaled_dot_product_attention (SDPA)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import About, Builtin
from bridge.conformance.adapters.differentiate import ByAutograd
from bridge.conformance.adapters.forward_mode import Tangents, by_jvp
from bridge.conformance.tensors.batch import Batch, Outputs, array
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.tangents import TangentVector

_UNSUPPORTED = (
    "scores changed by more than a bias; deviations that [tolerances.md](tolerances.md) lists"
)


def _causal_alone(batch: Batch) -> bool:
    """SDPA takes is_causal or a mask, not both."""
    return batch.is_causal and batch.bias is None


def _attn_mask(batch: Batch) -> Tensor | None:
    """The mask as SDPA takes it: booleans, or numbers to add where there is a bias."""
    if _causal_alone(batch):
        return None
    return batch.boolean if batch.bias is None else batch.added


class Sdpa(ByAutograd, Builtin):
    """One backend of SDPA, by its name in `SDPBackend`."""

    foreign = "sdpa"
    backend = ""

    def sdpa(self, batch: Batch, **more: Any) -> Any:
        return self.call(
            *batch.qkv,
            attn_mask=_attn_mask(batch),
            is_causal=_causal_alone(batch),
            scale=batch.given_scale,
            backend=self.backend,
            **more,
        )


class SdpaFlash(ByAutograd, Builtin):
    """PyTorch's flash backend; on a CPU through the operator below SDPA, which returns the
    log-sum-exp too.

    The backend needs value_dim = head_dim: the shorter is padded with zero columns, which leaves
    scores and the other output columns as they are, and the output is cut back.
    """

    name = "sdpa-flash"
    foreign = "sdpa_flash"
    about = About(
        "SDPA flash",
        "PyTorch's flash backend for CPUs",
        "By `torch.ops.aten._scaled_dot_product_flash_attention_for_cpu`, the operator below SDPA, "
        "which returns the log-sum-exp too. Causal masks are given as `is_causal`, others as "
        "numbers to add. A head_dim other than value_dim is padded with zeros.",
        _UNSUPPORTED,
    )
    takes = frozenset({"bias"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.sdpa_flash(dtype)

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if not device.startswith("cpu"):
            if dtype not in ("float16", "bfloat16"):
                return f"takes float16 and bfloat16 on a GPU, not {dtype}"
            if vector.mask.kind not in ("none", "causal"):
                return "takes no mask on a GPU"
            if vector.mask.kind == "causal" and vector.q_len > vector.kv_len:
                return "may refuse a causal mask with more queries than keys on a GPU"
            return None
        if not self.declared:
            return None
        if vector.mask.kind == "causal" and vector.natural_scale <= 0:
            return "gives NaN for a causal mask with a scale that is not positive"
        return None

    def no_log_sum_exp(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        declared = self.declared and device.startswith("cpu")
        if declared and any(row.masked for row in vector.expected):
            return "returns 0 instead of −∞ as log-sum-exp of a row with every key masked"
        return None

    def run(self, batch: Batch) -> Outputs:
        value_dim = batch.value.shape[-1]
        width = max(batch.query.shape[-1], value_dim)
        query, key, value = (
            torch.nn.functional.pad(x, (0, width - x.shape[-1])) for x in batch.qkv
        )
        causal = _causal_alone(batch)
        # The default scale of the padded head_dim would be another.
        out, lse = self.call(
            query,
            key,
            value,
            attn_mask=None if causal else batch.added,
            is_causal=causal,
            scale=batch.scale,
        )
        return Outputs(out[..., :value_dim], lse)


class SdpaMath(Sdpa):
    """PyTorch's math backend, as it is by default."""

    name = "sdpa-math"
    backend = "MATH"
    about = About(
        "SDPA math",
        "PyTorch's math backend",
        "By SDPA within `sdpa_kernel([SDPBackend.MATH])`. Causal masks are given as `is_causal`, "
        "others as Booleans, or as numbers to add where there is a bias.",
        _UNSUPPORTED,
    )
    takes = frozenset({"bias"})
    by_bias = True
    reduced = False

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.sdpa_math(dtype, reduced=self.reduced)

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if self.reduced and dtype == "float16" and largest_score(vector) > 60000:
            return "a score is beyond the largest float16, in which this backend stores scores"
        return None

    def run(self, batch: Batch) -> Outputs:
        return Outputs(self.sdpa(batch, reduced=self.reduced))

    def tangents(self, vector: TangentVector, dtype: str, device: str) -> Tangents:
        return by_jvp(vector, dtype, device, lambda batch, _: self.run(batch))


class SdpaMathReduced(SdpaMath):
    """SDPA's math backend with reduced-precision products allowed."""

    name = "sdpa-math-reduced"
    dtypes = ("float16", "bfloat16")
    reduced = True
    about = About(
        "SDPA math, reduced",
        "PyTorch's math backend in 16 bits, after `allow_fp16_bf16_reduction_math_sdp(True)`",
        "As the math backend.",
        _UNSUPPORTED,
    )


def largest_score(vector: AttentionVector) -> float:
    products = np.abs(array(vector.q) @ array(vector.k).T)
    return abs(vector.natural_scale) * float(products.max())
