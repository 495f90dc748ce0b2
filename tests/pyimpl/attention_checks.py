"""What the tests of the implementations share: inputs, judging a result, padded buffers."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from bridge.conformance.allowance import attention_allowance, lse_allowance
from bridge.conformance.profile import Profile
from pyimpl import reference

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
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """query, key, value and, if asked for, a mask with holes and one fully masked row in four.

    `shape`: batch, heads, q_len, kv_len, head_dim, value_dim.
    """
    batch, heads, q_len, kv_len, head_dim, value_dim = shape
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    query = normal(batch, heads, q_len, head_dim)
    key = normal(batch, heads, kv_len, head_dim)
    value = normal(batch, heads, kv_len, value_dim)
    if not masked:
        return query, key, value, None
    mask = torch.rand(batch, heads, q_len, kv_len, generator=generator) < 0.6
    mask[:, :, ::4] = False
    return query, key, value, mask


def kernel_profile(dtype: torch.dtype, block_n: int | None = None) -> Profile:
    """What the Triton kernel rounds: everything in float32, the weights in the input's dtype."""
    return Profile.flash(NAMES[dtype], block_n=block_n, denominator="unrounded")


def tiled_profile(dtype: torch.dtype, block_n: int | None = None) -> Profile:
    """What the tile loop rounds: the output alone, and its arithmetic."""
    if dtype == torch.float64:
        return Profile.float64(block_n)
    low = kernel_profile(dtype)
    return replace(Profile.float32(block_n), input=low.input, output=low.output)


def judge(
    result: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    profile: Profile,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> None:
    """Fail unless output and log-sum-exp are within the allowance of the float64 reference.

    The reference is rounded too: its own allowance is added.
    """
    out, lse = result
    expected_out, expected_lse = reference.attention(
        query, key, value, mask=mask, is_causal=is_causal, scale=scale
    )
    assert out.shape == expected_out.shape
    assert lse.shape == expected_lse.shape
    q, k, v = (x.double().numpy() for x in (query, key, value))
    device = query.device
    visible = reference.visible_keys(mask, is_causal, q.shape[-2], k.shape[-2], device).numpy()
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    exact = Profile.float64()
    allowed = sum(
        torch.from_numpy(attention_allowance(q, k, v, scale=factor, mask=visible, profile=p))
        for p in (profile, exact)
    )
    error = (out.double() - expected_out).abs()
    assert bool((error <= allowed).all()), f"output: {(error - allowed).max()} over the allowance"
    none = torch.isneginf(expected_lse)
    assert torch.equal(torch.isneginf(lse), none)
    allowed = sum(
        torch.from_numpy(lse_allowance(q, k, scale=factor, mask=visible, profile=p))
        for p in (profile, exact)
    )
    error = torch.where(none, 0.0, lse.double() - torch.where(none, 0.0, expected_lse)).abs()
    assert bool((error <= allowed).all()), f"lse: {(error - allowed).max()} over the allowance"


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
