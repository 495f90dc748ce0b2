"""The adapter of PyTorch's flex_attention."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapter import Builtin
from bridge.conformance.batch import Batch, Outputs
from bridge.conformance.differentiate import ByAutograd
from bridge.conformance.grouped_heads import GroupedHeads
from bridge.conformance.profile import FLOAT32, FORMATS, WHOLE_ROW, Profile
from bridge.vectors.gradients import GradientVector


class Flex(GroupedHeads, ByAutograd, Builtin):
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
