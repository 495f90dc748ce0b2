"""The rounding of a flash kernel, emulated in PyTorch: correct, and as imprecise as real ones.

Scores, maxima and sums are float32; the weights are rounded to the inputs' format before the
product with v. Whether the denominator adds rounded weights is a choice that kernels make
differently.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import Builtin
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import Denominator, RoundingModel


def flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
    block_n: int,
    denominator_rounded: bool,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and log-sum-exp (base e) in float32.

    query [..., q_len, head_dim], key [..., kv_len, head_dim], value [..., kv_len, value_dim]; mask
    [..., q_len, kv_len] booleans or None; block_n: keys in one tile.
    """
    q, k, v = query.float(), key.float(), value.float()
    q_len, kv_len = q.shape[-2], k.shape[-2]
    visible = torch.ones(q_len, kv_len, dtype=torch.bool, device=q.device)
    if is_causal:
        visible = visible.tril()
    if mask is not None:
        visible = visible & mask
    m = q.new_full(q.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = q.new_zeros(*q.shape[:-1], v.shape[-1])
    log2_scale = scale / math.log(2.0)
    for start in range(0, kv_len, block_n):
        part = slice(start, start + block_n)
        scores = (q @ k[..., part, :].transpose(-1, -2)) * log2_scale
        scores = scores.masked_fill(~visible[..., part], -math.inf)
        m_new = torch.maximum(m, scores.amax(-1))
        anchor = torch.where(torch.isneginf(m_new), 0.0, m_new)
        alpha = torch.exp2(m - anchor)
        weights = torch.exp2(scores - anchor[..., None])
        rounded = weights.to(query.dtype).float()
        l = l * alpha + (rounded if denominator_rounded else weights).sum(-1)
        o = o * alpha[..., None] + rounded @ v[..., part, :]
        m = m_new
    empty = torch.isneginf(m)
    total = torch.where(empty, 1.0, l)
    out = (o / total[..., None]).to(query.dtype)
    return out, m * math.log(2.0) + torch.log(total)


class FlashEmulated(Builtin):
    """A flash kernel's rounding, step by step."""

    name = "flash-emulated"
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")

    def __init__(self, block_n: int = 16, denominator: Denominator = "unrounded") -> None:
        self.block_n, self.denominator = block_n, denominator

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.flash(dtype, block_n=self.block_n, denominator=self.denominator)

    def run(self, batch: Batch) -> Outputs:
        out, lse = flash(
            batch.query,
            batch.key,
            batch.value,
            mask=None if batch.is_causal else batch.boolean,
            is_causal=batch.is_causal,
            scale=batch.scale,
            block_n=self.block_n,
            denominator_rounded=self.denominator == "rounded",
        )
        return Outputs(out, lse)
