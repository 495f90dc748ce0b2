"""Attention of sequences of different lengths, packed one after another without padding:
`Attention.Spec.attentionSliced`.

One program for each tile of queries of each head of each sequence; inside it is the forward kernel
of one sequence. Source: flash-attention's `flash_attn_varlen_func`.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl._implements import implements
from pyimpl._scores import ScoreOptions
from pyimpl.kernels import forward
from pyimpl.kernels._bounds import (
    first_key,
    stop_key,
    tile_row_first,
    tile_row_last,
    unmasked_tiles,
    visited_tiles,
)
from pyimpl.kernels._dropout import drop_of, dropout_arguments
from pyimpl.kernels._launch import (
    Launch,
    capability,
    check_block,
    check_indices,
    check_kind,
    check_length,
    check_programs,
    check_tensor,
    group_of,
    head_arguments,
    is_far,
    padded,
    score_arguments,
    strides_of,
    turned,
    window_arguments,
)
from pyimpl.kernels._loop import Keys, Rows, Scores, finish, log_sum_exp, over_tiles, start
from pyimpl.kernels._numerics import LOG2E, device_function, round_to, to_float32
from pyimpl.kernels.forward import kv_head_of


@implements("Attention.Spec.slice")
@device_function
def _slice(cu_ptr, stride, sequence, total):
    """(first row, number of rows) of a sequence; nothing outside of the `total` rows."""
    first = tl.load(cu_ptr + sequence * stride)
    stop = tl.load(cu_ptr + (sequence + 1) * stride)
    first = tl.minimum(tl.maximum(first, 0), total)
    stop = tl.minimum(tl.maximum(stop, first), total)
    return first, stop - first


@implements("Attention.Spec.attentionSliced")
@triton.jit(
    do_not_specialize=[
        "total_q", "total_k", "query_tiles", "left", "right", "shift", "keep_last"
    ]
)  # fmt: skip
def _varlen_kernel(
    query_ptr, key_ptr, value_ptr, slopes_ptr, sinks_ptr, seed_ptr, cu_q_ptr, cu_k_ptr, out_ptr,
    lse_ptr,
    stride_qm, stride_qh, stride_qd, stride_kn, stride_kh, stride_kd, stride_vn, stride_vh,
    stride_vd, stride_sb, stride_sh, stride_ih, stride_xb, stride_yb, stride_om, stride_oh,
    stride_od, stride_lm, stride_lh, num_heads, group, total_q, total_k, query_tiles, head_dim,
    value_dim, scale, cap, left, right, shift, keep_last, keep_scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, FAR: tl.constexpr, BOTTOM_RIGHT: tl.constexpr,
):  # fmt: skip
    # As in the forward kernel, the last tiles first.
    tile = query_tiles - 1 - tl.program_id(0) % query_tiles
    head = tl.program_id(0) // query_tiles
    sequence = (head // num_heads).to(tl.int64)
    head = (head % num_heads).to(tl.int64)
    kv_head = kv_head_of(head, group)
    q_first, q_len = _slice(cu_q_ptr, stride_xb, sequence, total_q)
    k_first, kv_len = _slice(cu_k_ptr, stride_yb, sequence, total_k)
    row_first = tile_row_first(BLOCK_M, tile)
    if row_first >= q_len:
        return
    if BOTTOM_RIGHT:
        shift = shift + kv_len - q_len

    # 64-bit offsets: an index times a stride can pass 2³¹.
    row_last = tile_row_last(q_len, BLOCK_M, tile)
    queries = row_first + tl.arange(0, BLOCK_M)
    packed = q_first.to(tl.int64) + queries
    inside = queries < q_len
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    query_ptrs = query_ptr + head * stride_qh + packed[:, None] * stride_qm
    query_ptrs = query_ptrs + dims[None, :] * stride_qd
    q = tl.load(query_ptrs, mask=inside[:, None] & (dims[None, :] < head_dim), other=0.0)

    slopes = None
    sinks = None
    zeros = tl.zeros([BLOCK_M], tl.float32)
    if slopes_ptr is not None:
        slope = tl.load(slopes_ptr + sequence * stride_sb + head * stride_sh)
        slopes = zeros + to_float32(slope) * LOG2E
    if sinks_ptr is not None:
        sinks = zeros + to_float32(tl.load(sinks_ptr + head * stride_ih)) * LOG2E
    rows = Rows(q, queries + shift, inside, slopes, None, None)
    keys = Keys(
        key_ptr + kv_head * stride_kh + k_first.to(tl.int64) * stride_kn,
        value_ptr + kv_head * stride_vh + k_first.to(tl.int64) * stride_vn,
        stride_kn, stride_kd, stride_vn, stride_vd, None, None,
        first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len),
        None, None, None, None, None,
    )  # fmt: skip
    first, stop = visited_tiles(keys.first, keys.stop, BLOCK_N)
    whole_first, whole_stop = unmasked_tiles(
        row_first, row_last, shift, left, right, kv_len, BLOCK_N
    )

    drop = drop_of(
        seed_ptr,
        cu_q_ptr,
        sequence,
        num_heads,
        head,
        keep_last,
        keep_scale,
        shift,
    )
    m, l, o = start(sinks, BLOCK_M, BLOCK_V)
    m, l, o = over_tiles(
        m, l, o, first, stop, whole_first, whole_stop, kv_len, rows, keys,
        Scores(scale, cap, left, right, drop, q_first, k_first), head_dim, value_dim,
        BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, None, FAR,
    )  # fmt: skip

    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    out_ptrs = out_ptr + head * stride_oh + packed[:, None] * stride_om
    out_ptrs = out_ptrs + value_dims[None, :] * stride_od
    stored = inside[:, None] & (value_dims[None, :] < value_dim)
    tl.store(out_ptrs, round_to(finish(l, o, keep_scale), out_ptr.dtype.element_ty), mask=stored)
    lse_ptrs = lse_ptr + head * stride_lh + packed * stride_lm
    tl.store(lse_ptrs, log_sum_exp(m, l), mask=inside)


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, options: ScoreOptions, capability: int
) -> dict[str, int]:
    """Those of the forward kernel, with smaller tiles or more warps where that would spill: where a
    sequence starts takes registers too."""
    dim = padded(max(head_dim, value_dim))
    chosen = forward.launch_options(dtype, head_dim, value_dim, options, capability)
    if dtype == torch.float32:
        if dim > 128:
            # So do the words that dropout goes by, and what a second stage loads ahead.
            fewer = {} if options.dropout is None else {"num_stages": 1}
            return chosen | {"block_m": 16} | fewer
        return chosen | ({"block_n": 16} if options.dropout is not None else {})
    if head_dim % 16 or value_dim % 16:
        smaller = {"block_m": 32} if dim <= 128 else {"block_m": 16, "block_n": 16}
        return chosen | smaller | {"num_warps": 8}
    return chosen | ({"num_warps": 8} if dim <= 64 else {})


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
    *,
    max_q_len: int,
    bottom_right: bool,
    capability: int,
    block_m: int | None = None,
    block_n: int | None = None,
) -> Launch:
    """The launch of `varlen` on a device of this compute capability; raises as it does."""
    total_q, num_heads, head_dim = query.shape
    total_k, num_kv_heads, _ = key.shape
    value_dim = value.shape[-1]
    group = group_of(num_heads, num_kv_heads)
    check_tensor("key", key, query, (total_k, num_kv_heads, head_dim))
    check_tensor("value", value, query, (total_k, num_kv_heads, value_dim))
    batch = cu_seqlens_q.numel() - 1
    for name, cu_seqlens in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        check_indices(name, cu_seqlens, query, (max(1, batch + 1),))
    for name, tensor in (("mask", options.mask), ("bias", options.bias)):
        if tensor is not None:
            raise ValueError(f"{name} must be None for packed sequences, not a tensor")
    check_length("the number of packed queries", total_q)
    check_length("the number of packed keys", total_k)
    chosen = launch_options(query.dtype, head_dim, value_dim, options, capability)
    block_m = chosen["block_m"] if block_m is None else block_m
    block_n = chosen["block_n"] if block_n is None else block_n
    check_block("block_m", block_m)
    check_block("block_n", block_n)
    query_tiles = triton.cdiv(min(max_q_len, total_q), block_m)
    programs = query_tiles * batch * num_heads
    check_programs("sequences × heads × query tiles", programs)
    shift = options.shift
    shifts = (shift - total_q, shift + total_k) if bottom_right else (shift, shift)
    key, value = key.resolve_neg(), value.resolve_neg()
    query, options = turned(query, options)
    return Launch(
        _varlen_kernel,
        programs,
        {
            "query_ptr": query, "key_ptr": key, "value_ptr": value, "cu_q_ptr": cu_seqlens_q,
            "cu_k_ptr": cu_seqlens_k, "out_ptr": out, "lse_ptr": lse,
            **strides_of("q", "mhd", query.stride()),
            **strides_of("k", "nhd", key.stride()),
            **strides_of("v", "nhd", value.stride()),
            **strides_of("x", "b", cu_seqlens_q.stride()),
            **strides_of("y", "b", cu_seqlens_k.stride()),
            **strides_of("o", "mhd", out.stride()),
            **strides_of("l", "mh", lse.stride()),
            "num_heads": num_heads, "group": group, "total_q": total_q, "total_k": total_k,
            "query_tiles": query_tiles, "head_dim": head_dim, "value_dim": value_dim,
            "shift": shift,
            **head_arguments(options, batch, num_heads, query.device),
            **score_arguments(options),
            **window_arguments(options, total_q, total_k, shifts),
            **dropout_arguments(options.dropout, query.device),
        },
        {
            "BLOCK_M": block_m, "BLOCK_N": block_n,
            "BLOCK_D": padded(head_dim), "BLOCK_V": padded(value_dim),
            "EVEN_D": padded(head_dim) == head_dim, "EVEN_V": padded(value_dim) == value_dim,
            "FAR": is_far(block_n, key.stride()[::2], value.stride()[::2]),
            "BOTTOM_RIGHT": bottom_right,
        },
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip


def varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    options: ScoreOptions,
    *,
    max_q_len: int | None = None,
    bottom_right: bool = False,
    block_m: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in float32, newly allocated:
    `[total_q, heads, value_dim]` and `[heads, total_q]`.

    `query` `[total_q, heads, head_dim]`, `key` `[total_k, kv_heads, head_dim]`, `value` `[total_k,
    kv_heads, value_dim]`: the sequences one after another, of any strides; dtypes, head sizes and
    heads as in `pyimpl.kernels.forward.forward`. cu_seqlens_q and cu_seqlens_k, int32
    `[batch + 1]`, are the prefix sums of the lengths, from 0 on: sequence b has the rows from entry
    b to entry b + 1 (of entries outside of 0 … total the nearest of these counts). Rows of no
    sequence have output 0 and log-sum-exp −∞.

    `options` apply to each sequence, its positions counted from 0; mask and bias must be None.
    bottom_right: query 0 stands at options.shift + (number of keys) − (number of queries) of its
    sequence, so that the last query stands at the last key, and not at options.shift. max_q_len: at
    least the largest number of queries of a sequence (of a longer one the rest counts as of no
    sequence); None to have it looked up, which waits for the device. block_m, block_n: as in
    `forward`.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see
            `_launch.why_not`), a length, a number of `options`, a block size or the number of
            tiles is outside what the kernel takes; there is a mask or a bias.
    """
    check_kind(query, value)
    if max_q_len is None:
        lengths = cu_seqlens_q.diff()
        max_q_len = max(0, int(lengths.max())) if len(lengths) else 0
    out = query.new_zeros(*query.shape[:-1], value.shape[-1])
    lse = query.new_full((query.shape[1], query.shape[0]), -torch.inf, dtype=torch.float32)
    launch(
        query, key, value, cu_seqlens_q, cu_seqlens_k, out, lse.transpose(0, 1), options,
        max_q_len=max_q_len, bottom_right=bottom_right, capability=capability(query.device),
        block_m=block_m, block_n=block_n,
    ).run(query.device)  # fmt: skip
    return out, lse
