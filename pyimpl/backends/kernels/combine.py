"""The outputs of splits of the keys combined by their log-sum-exps: `Attention.Spec.combine`.

Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference".
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.parts import kept
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    are_aligned,
    check_kind,
    check_outputs,
    padded_size,
    strides_of,
)
from pyimpl.backends.kernels.parts.numerics import (
    LOG2E,
    device_function,
    head_of,
    kernel,
    offsets,
    or_one,
    round_to,
    within,
)
from pyimpl.internal.implements import implements

BLOCK_M = 16


@implements("Attention.Spec.rescale")
@device_function
def _rescale(s, m):
    """exp(s − m), natural; 0 where s is −∞."""
    return tl.exp2((s - tl.where(m == float("-inf"), 0.0, m)) * LOG2E)


@implements("Attention.Spec.combine")
@kernel
def _combine_kernel(
    parts_ptr, lses_ptr, out_ptr, lse_ptr,
    stride_pp, stride_pb, stride_ph, stride_pm, stride_pd, stride_sp, stride_sb, stride_sh,
    stride_sm, stride_ob, stride_oh, stride_om, stride_od, stride_lb, stride_lh, stride_lm,
    num_parts, num_rows, num_heads, q_len, value_dim,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = rows < num_rows
    query = rows % q_len
    head = rows // q_len % num_heads
    batch = rows // q_len // num_heads
    dims = tl.arange(0, BLOCK_V).to(tl.int64)
    stored = inside[:, None] & within(dims, value_dim, ALIGNED)[None, :]
    lse_ptrs = lses_ptr + batch * stride_sb + head * stride_sh + query * or_one(stride_sm)
    part_rows = head_of(parts_ptr, batch, stride_pb, head, stride_ph, None, None, ALIGNED)
    part_rows = part_rows + offsets(query, stride_pm, ALIGNED)
    part_ptrs = part_rows[:, None] + dims[None, :] * or_one(stride_pd)

    # The log-sum-exp of the log-sum-exps: a part without a key has −∞, and weighs nothing.
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    at = lse_ptrs
    for _ in range(num_parts):
        part_lse = tl.load(at, mask=inside, other=float("-inf"))
        at += stride_sp
        m_new = tl.maximum(m, part_lse)
        l = _rescale(m, m_new) * l + _rescale(part_lse, m_new)
        m = m_new
    # Not 0 but where no part has a key. The weights are taken against m and divided by their sum:
    # the log-sum-exp of all is rounded, and where it is large exp(Lₖ − L) would be off by as much.
    total = tl.where(l == 0.0, 1.0, l)

    o = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)
    at = lse_ptrs
    for part in range(num_parts):
        part_lse = tl.load(at, mask=inside, other=float("-inf"))
        ahead = offsets(tl.cast(part, tl.int64), stride_pp, ALIGNED)
        part_o = tl.load(part_ptrs + ahead, mask=stored, other=0.0)
        at += stride_sp
        o = o + _rescale(part_lse, m)[:, None] * part_o
    o = o / total[:, None]

    out_rows = head_of(out_ptr, batch, stride_ob, head, stride_oh, None, None, ALIGNED)
    out_rows = out_rows + offsets(query, stride_om, ALIGNED)
    out_ptrs = out_rows[:, None] + dims[None, :] * or_one(stride_od)
    tl.store(out_ptrs, round_to(o, out_ptr.dtype.element_ty), mask=stored)
    lse_ptrs = lse_ptr + batch * stride_lb + head * stride_lh + query * or_one(stride_lm)
    tl.store(lse_ptrs, m + tl.log(total), mask=inside)


# The kernel's parameters for the tensors that each call has.
TENSORS = ("parts_ptr", "lses_ptr", "out_ptr", "lse_ptr")


def launch(parts: Tensor, lses: Tensor, out: Tensor, lse: Tensor) -> Launch:
    """The launch of `combine_into`; raises as it does."""
    num_parts, batch, num_heads, q_len, value_dim = parts.shape
    for name, tensor, shape in (
        ("parts", parts, (num_parts, batch, num_heads, q_len, value_dim)),
        ("lses", lses, (num_parts, batch, num_heads, q_len)),
    ):
        if tensor.shape != shape or tensor.dtype != torch.float32 or tensor.device != out.device:
            raise ValueError(
                f"{name} must be torch.float32 {list(shape)} on {out.device}, "
                f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
            )
    check_outputs(out, lse, parts.shape[1:])
    num_rows = batch * num_heads * q_len
    return Launch(
        _combine_kernel,
        triton.cdiv(num_rows, BLOCK_M) if value_dim else 0,
        {
            "parts_ptr": parts, "lses_ptr": lses, "out_ptr": out, "lse_ptr": lse,
            **strides_of("p", "pbhmd", parts.stride()),
            **strides_of("s", "pbhm", lses.stride()),
            **strides_of("o", "bhmd", out.stride()),
            **strides_of("l", "bhm", lse.stride()),
            "num_parts": num_parts, "num_rows": num_rows, "num_heads": num_heads, "q_len": q_len,
            "value_dim": value_dim,
        },
        {
            "BLOCK_M": BLOCK_M, "BLOCK_V": padded_size(value_dim),
            "ALIGNED": are_aligned(value_dim, *parts.stride()[:-1], *out.stride()[:-1]),
        },
        num_warps=4,
        num_stages=2,
    )  # fmt: skip


def combine_into(parts: Tensor, lses: Tensor, out: Tensor, lse: Tensor) -> None:
    """Write Σₖ exp(lsesₖ − L) · partsₖ into `out`, of any dtype out of `launch.DTYPES`, and
    L = ln Σₖ exp(lsesₖ) into `lse`, float32.

    `parts` `[parts, batch, heads, q_len, value_dim]` and `lses` `[parts, batch, heads, q_len]`,
    float32: attention of the same queries to different keys, and its natural log-sum-exp, −∞ where
    there was no key. `out` and `lse` have the shapes without the first dimension. Any strides.

    Raises:
        ValueError: a tensor has the wrong dtype, device or shape, or `why_not` refuses it.
    """

    def make() -> tuple[kept.Named]:
        check_kind(out, out)
        return ((launch(parts, lses, out, lse), TENSORS),)

    kept.start(make, out.device, (parts, lses, out, lse), (), ("combine",))
