"""Adapters of the backends of PyTorch's SDPA that it has on GPUs alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from bridge.conformance.adapters.adapter import About
from bridge.conformance.adapters.sdpa import Sdpa
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector

_HOW = "By SDPA within `sdpa_kernel` of the backend."
_UNSUPPORTED = (
    "scores changed by more than a bias; deviations that [tolerances.md](tolerances.md) lists. "
    "Written for PyTorch's documentation, not yet run on a GPU"
)


class _OnGpu(Sdpa):
    """A backend of SDPA. Head sizes are padded with columns of zeros
    to multiples of 8, which the backends ask for in one way or another."""

    takes = frozenset({"bias"})
    dtypes: tuple[str, ...] = ("float16", "bfloat16")

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.flash(dtype, truncating=True).with_name(f"{self.name}-{dtype}")

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        return None if device.startswith("cuda") else "PyTorch has this backend on GPUs alone"

    def run(self, batch: Batch) -> Outputs:
        value_dim = batch.value.shape[-1]
        width = -(-max(batch.query.shape[-1], value_dim) // 8) * 8
        named = {"query": batch.query, "key": batch.key, "value": batch.value}
        padded: dict[str, Any] = {
            name: torch.nn.functional.pad(x, (0, width - x.shape[-1])) for name, x in named.items()
        }
        # The default scale of the padded head_dim would be another.
        whole = replace(batch, default_scale=False, **padded)
        return Outputs(self.sdpa(whole)[..., :value_dim])


class SdpaEfficient(_OnGpu):
    """PyTorch's memory-efficient backend."""

    name = "sdpa-efficient"
    backend = "EFFICIENT_ATTENTION"
    about = About("SDPA efficient", "PyTorch's memory-efficient backend", _HOW, _UNSUPPORTED, True)
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")


class SdpaCudnn(_OnGpu):
    """PyTorch's cuDNN backend."""

    name = "sdpa-cudnn"
    backend = "CUDNN_ATTENTION"
    about = About("SDPA cuDNN", "PyTorch's cuDNN backend", _HOW, _UNSUPPORTED, True)
