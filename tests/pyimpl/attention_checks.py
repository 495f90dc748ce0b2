"""Helpers of the implementations' tests: inputs, judging a result, padded buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance
from pyimpl.backends import products, reference, tiled
from pyimpl.internal.arguments import resolve_scale
from pyimpl.internal.scores import ScoreOptions

NAMES = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}


def inputs(
    shape: tuple[int, int, int, int, int, int],
    dtype: torch.dtype,
    *,
    seed: int = 0,
    masked: bool = False,
    group: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """query, key, value and, if asked for, a mask with holes and one fully masked row in four.

    `shape`: batch, heads of key and value, q_len, kv_len, head_dim, value_dim; the query has
    `group` times as many heads.
    """
    batch, kv_heads, q_len, kv_len, head_dim, value_dim = shape
    heads = group * kv_heads
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    query = normal(batch, heads, q_len, head_dim)
    key = normal(batch, kv_heads, kv_len, head_dim)
    value = normal(batch, kv_heads, kv_len, value_dim)
    if not masked:
        return query, key, value, None
    mask = torch.rand(batch, heads, q_len, kv_len, generator=generator) < 0.6
    mask[:, :, ::4] = False
    return query, key, value, mask


@contextmanager
def products_by_onednn(all_sizes: bool = False) -> Iterator[None]:
    """oneDNN computes products of the tile loops on this processor too, where there is oneDNN;
    all_sizes: also of small matrices."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("PyTorch has no oneDNN here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "is_onednn_faster", lambda: True)
        if all_sizes:
            patch.setattr(products, "LEAST_WORK", 1)
            patch.setattr(products, "LEAST_ROWS", 1)
            patch.setattr(tiled, "SCORES_ALONE", 0)
        yield


def kernel_rounding(dtype: torch.dtype, block_n: int | None = None) -> RoundingModel:
    """The Triton kernel's roundings: everything in float32, the weights in the input's dtype."""
    return RoundingModel.flash(NAMES[dtype], block_n=block_n, denominator="unrounded")


def tiled_rounding(dtype: torch.dtype, block_n: int | None = None) -> RoundingModel:
    """The tile loop's roundings: the output alone, and its arithmetic."""
    if dtype == torch.float64:
        return RoundingModel.float64(block_n)
    low = kernel_rounding(dtype)
    return replace(RoundingModel.float32(block_n), input=low.input, output=low.output)


def score_options(query: Tensor, **options: Any) -> ScoreOptions:
    """`ScoreOptions` with the default scale and the name `is_causal` for right = 0."""
    scale = resolve_scale(options.pop("scale", None), query.shape[-1])
    if options.pop("is_causal", False):
        options["right"] = 0
    return ScoreOptions(scale=scale, **options)


def _as_products(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """query, key, value and mask of one query each, `[batch, heads, q_len, 1 or kv_len, …]`, whose
    plain attention at scale 1 is that of the arguments: the options' change of a score is one more
    product, 1 · (score − scale·⟨q, k⟩), a sink one more key with value 0, and dropout makes of a
    value v, seen by query i, M_ij·v / (1 − p)."""
    group = query.shape[1] // max(key.shape[1], 1)
    k, v = (x.double().repeat_interleave(group, 1).unsqueeze(2) for x in (key, value))
    q = options.scale * query.double().unsqueeze(3)
    scores = reference.scores(query, key, options)
    visible = ~torch.isneginf(scores)
    added = torch.where(visible, scores - (q @ k.mT).squeeze(3), 0.0)
    q = torch.cat((q, torch.ones_like(q[..., :1])), -1)
    k = torch.cat((k.expand(-1, -1, q.shape[2], -1, -1), added.unsqueeze(-1)), -1)
    visible = visible.unsqueeze(3)
    if options.dropout is not None:
        v = reference.drop(torch.ones_like(scores), options).unsqueeze(-1) * v
    if options.sinks is not None:
        sinks = options.sinks.double().view(1, -1, 1, 1).expand(*k.shape[:3], 1)
        sink = torch.cat((k.new_zeros(*k.shape[:3], k.shape[-1] - 1), sinks), -1)
        k = torch.cat((torch.nan_to_num(sink, neginf=0.0).unsqueeze(-2), k), -2)
        v = torch.cat((v.new_zeros(*v.shape[:-2], 1, v.shape[-1]), v), -2)
        visible = torch.cat((sinks.isfinite().unsqueeze(-1), visible), -1)
    return q, k, v, visible


def judge(
    result: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    rounding: RoundingModel,
    **options: Any,
) -> None:
    """Fail unless output and log-sum-exp are within the tolerance of the float64 reference.

    `options` as for `score_options`. The reference is rounded too: its own tolerance is added.
    """
    judge_options(result, query, key, value, score_options(query, **options), rounding)


def judge_options(
    result: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    rounding: RoundingModel,
) -> None:
    """`judge` with the options as the implementations take them."""
    out, lse = result
    expected_out, expected_lse = reference.attention(query, key, value, options)
    assert out.shape == expected_out.shape
    assert lse.shape == expected_lse.shape
    q, k, v, mask = (x.numpy() for x in _as_products(query, key, value, options))
    rounding_models = (rounding, RoundingModel.float64())
    allowed = sum(
        torch.from_numpy(attention_tolerance(q, k, v, scale=1.0, mask=mask, rounding=p))
        for p in rounding_models
    )
    if options.dropout is not None:
        # 1 / (1 − p) is rounded, and so is its product, with each weight or with their sum.
        size, _ = reference.attention(query, key, value.abs(), options)
        units = sum(p.accumulator.unit for p in rounding_models)
        allowed = allowed + 2 * units * size.unsqueeze(3)
    error = (out.double() - expected_out).abs().unsqueeze(3)
    assert bool((error <= allowed).all()), f"output: {(error - allowed).max()} over the tolerance"
    none = torch.isneginf(expected_lse)
    assert torch.equal(torch.isneginf(lse), none)
    allowed = sum(
        torch.from_numpy(lse_tolerance(q, k, scale=1.0, mask=mask, rounding=p))
        for p in rounding_models
    )
    error = torch.where(none, 0.0, lse.double() - torch.where(none, 0.0, expected_lse)).abs()
    error = error.unsqueeze(3)
    assert bool((error <= allowed).all()), f"lse: {(error - allowed).max()} over the tolerance"


def inside_buffer(tensor: Tensor, fill: float, margin: int = 16) -> tuple[Tensor, Tensor]:
    """(a copy of `tensor` in the middle of a larger buffer of `fill`, that buffer).

    Every dimension has `margin` elements on either side except batch and heads, which have one.
    """
    margins = [1 if i < 2 else margin for i in range(tensor.dim())]
    sizes = [n + 2 * m for n, m in zip(tensor.shape, margins, strict=True)]
    buffer = torch.full(sizes, fill, dtype=tensor.dtype)
    view = buffer
    for i, (n, m) in enumerate(zip(tensor.shape, margins, strict=True)):
        view = view.narrow(i, m, n)
    view.copy_(tensor)
    return view, buffer
