"""Sequences that lie packed in each head, with gradients, through `pyimpl.attention_varlen`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pyimpl
from bridge.conformance.tensors.batch import DTYPES
from bridge.conformance.tensors.gradient_inputs import inputs_of
from bridge.vectors.model.sampled import Packed, SampledGradientVector
from pyimpl.backends.dispatch import Backend


def attend(
    query: Tensor, key: Tensor, value: Tensor, packed: Packed, **options: Any
) -> tuple[Tensor, Tensor]:
    """The output `[1, heads, total_q, value_dim]` and the log-sum-exp `[1, heads, total_q]` of
    query `[1, heads, total_q, head_dim]`, key and value `[1, kv_heads, total_k, …]`."""
    cu_q, cu_k = (
        torch.tensor(sums, dtype=torch.int32, device=query.device)
        for sums in (packed.cu_seqlens_q, packed.cu_seqlens_k)
    )
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    out, lse = pyimpl.attention_varlen(
        q, k, v, cu_q, cu_k,
        window=packed.bounds, causal_alignment=packed.alignment,
        enable_gqa=query.shape[1] != key.shape[1], return_lse=True, **options,
    )  # fmt: skip
    return out.transpose(0, 1)[None], lse[None]


def gradients(
    vector: SampledGradientVector, packed: Packed, dtype: str, device: str, backend: Backend
) -> dict[str, Tensor]:
    """The gradients by query, key and value, by autograd."""
    given = inputs_of(vector, DTYPES[dtype], device=device, zero_bias=False, requires_grad=True)
    inputs = {"q": given.query, "k": given.key, "v": given.value}
    scale = given.options.scale
    outputs = attend(*given[:3], packed, scale=scale, backend=backend)
    found = torch.autograd.grad(
        outputs, list(inputs.values()), (given.grad_out, given.grad_lse.to(outputs[1].dtype))
    )
    return dict(zip(inputs, found, strict=True))
