"""Adapters of PyTorch's other attentions: SDPA's backends for GPUs, and flex_attention."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from bridge.conformance.adapters import Adapter, Part, _Builtin, _sdpa
from bridge.conformance.batch import Batch, Outputs
from bridge.conformance.differentiate import ByAutograd, in_one_call
from bridge.conformance.profile import FLOAT32, FORMATS, WHOLE_ROW, Profile
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import AttentionVector
from bridge.vectors.operations import ComesToAttention, GroupedQueryVector


class _SdpaOnGpu(ByAutograd, _Builtin):
    """A backend of SDPA that PyTorch has on GPUs alone. Head sizes are padded with columns of zeros
    to multiples of 8, which the backends ask for in one way or another."""

    backend: SDPBackend
    takes = frozenset({"bias"})
    dtypes: tuple[str, ...] = ("float16", "bfloat16")

    def profile(self, dtype: str, device: str) -> Profile:
        return Profile.flash(dtype, truncating=True).with_name(f"{self.name}-{dtype}")

    def not_covered(
        self, vector: AttentionVector, dtype: str, device: str, part: Part
    ) -> str | None:
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
        return Outputs(_sdpa(whole, self.backend)[..., :value_dim])


class SdpaEfficient(_SdpaOnGpu):
    """PyTorch's memory-efficient backend."""

    name = "sdpa-efficient"
    backend = SDPBackend.EFFICIENT_ATTENTION
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")


class SdpaCudnn(_SdpaOnGpu):
    """PyTorch's cuDNN backend."""

    name = "sdpa-cudnn"
    backend = SDPBackend.CUDNN_ATTENTION


def grouped(
    vector: ComesToAttention, dtype: str, device: str, run: Callable[[Batch], Outputs]
) -> list[Outputs]:
    """The results of a vector of grouped heads by one call, with fewer heads in key and value than
    in query. Raises TypeError for a vector of another operation."""
    if not isinstance(vector, GroupedQueryVector):
        raise TypeError(f"there is no argument for {vector.operation}")
    group = vector.num_heads // vector.num_kv_heads
    out, lse = _outputs(run(in_one_call(vector.attentions(), group, dtype, device)))
    return [
        Outputs(out[:, h : h + 1], None if lse is None else lse[:, h : h + 1])
        for h in range(vector.num_heads)
    ]


def _outputs(found: Outputs) -> tuple[Tensor, Tensor | None]:
    return found.out, found.lse


class GroupedHeads:
    """What an adapter has whose function takes fewer heads of keys and values than of queries."""

    operations = frozenset({GroupedQueryVector.operation})

    def run_vector(self: Any, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        return grouped(vector, dtype, device, self.run)


class Flex(GroupedHeads, ByAutograd, _Builtin):
    """`torch.nn.attention.flex_attention`, not compiled: what its kernels are to compute. Softcap,
    ALiBi and bias are its score_mod, masks its block mask."""

    name = "flex"
    takes = frozenset({"softcap", "alibi", "bias"})

    def profile(self, dtype: str, device: str) -> Profile:
        base = Profile.widened(
            dtype, accumulator="float64" if dtype == "float64" else "float32", block_n=WHOLE_ROW
        )
        # The normalised weights are rounded to the format of the inputs.
        rounded = FORMATS[dtype] if base.accumulator == FLOAT32 else None
        return replace(base, name=f"flex-{dtype}", weights=rounded, weights_normalized=True)

    def no_gradients(self, vector: GradientVector, device: str) -> str | None:
        if device.startswith("cpu"):
            return "has no backward pass on a CPU"
        return super().no_gradients(vector, device)

    def run(self, batch: Batch) -> Outputs:
        flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
        seen = batch.boolean
        block_mask = None
        if seen is not None:
            shown = seen.expand(batch.query.shape[0], batch.query.shape[1], -1, -1)
            block_mask = flex.create_block_mask(
                lambda b, h, i, j: shown[b, h, i, j], *shown.shape, device=shown.device
            )
        # Traced for every call otherwise, half a second each, to compute the same.
        before = flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
        flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
        try:
            out, extra = flex.flex_attention(
                batch.query,
                batch.key,
                batch.value,
                score_mod=_score_mod(batch),
                block_mask=block_mask,
                scale=batch.given_scale,
                enable_gqa=batch.query.shape[1] != batch.key.shape[1],
                return_aux=flex.AuxRequest(lse=True),
            )
        finally:
            flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = before
        return Outputs(out, extra.lse)


def _score_mod(batch: Batch) -> Callable[..., Tensor] | None:
    if batch.softcap is None and batch.alibi is None and batch.bias is None:
        return None

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if batch.softcap is not None:
            score = batch.softcap * torch.tanh(score / batch.softcap)
        if batch.alibi is not None:
            score = score - float(batch.alibi.slope) * (i + batch.alibi.shift - j).abs()
        if batch.bias is not None:
            score = score + batch.bias[b, h, i, j]
        return score

    return score_mod


ADAPTERS: dict[str, Callable[[], Adapter]] = {
    "sdpa-efficient": SdpaEfficient,
    "sdpa-cudnn": SdpaCudnn,
    "flex": Flex,
}
