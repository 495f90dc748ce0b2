"""The gradient of a bias, dS summed over the broadcast dimensions: one program for each
tile of the bias itself, which goes over all pairs that share it, in a fixed order, and computes
their weights anew. No memory beside the gradient; little at a time where the bias is small.

Source: Dao 2023, "FlashAttention-2", algorithm 2, lines 11 to 14.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.forward import kv_head_of
from pyimpl.backends.kernels.parts.backward_launch import (
    Chosen,
    Given,
    check_given,
    shared_arguments,
    tile_constants,
)
from pyimpl.backends.kernels.parts.bounds import (
    first_key,
    stop_key,
    tile_row_first,
    tile_row_last,
    visited_tiles,
)
from pyimpl.backends.kernels.parts.dropout import drop_of, kept_pairs
from pyimpl.backends.kernels.parts.gradient import (
    Pairs,
    head_of_pairs,
    load_numbers,
    load_rows,
    raw_gradient,
    slope_of,
    weights,
)
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    by_size,
    check_programs,
    padded_size,
    strides_of,
)
from pyimpl.backends.kernels.parts.loop import Scores
from pyimpl.backends.kernels.parts.numerics import dot, head_of, kernel, or_one, row_pointers
from pyimpl.internal.scores import ScoreOptions


@kernel
def bias_kernel(
    query_ptr, key_ptr, value_ptr, grad_out_ptr, lse_ptr, delta_ptr, mask_ptr, bias_ptr,
    slopes_ptr, seed_ptr, grad_bias_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_gb, stride_gh, stride_gm, stride_gd,
    stride_lb, stride_lh, stride_lm, stride_tb, stride_th, stride_tm,
    stride_mb, stride_mh, stride_mm, stride_mn, stride_bb, stride_bh, stride_bm, stride_bn,
    stride_sb, stride_sh, stride_cb, stride_ch, stride_cm, stride_cn,
    group, q_len, kv_len, head_dim, value_dim, own_heads, own_m, own_n, over_batch, over_heads,
    over_m, over_n, scale, cap, left, right, shift, keep_last, keep_scale, drop_head, drop_heads,
    drop_query, drop_key,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    ALIGNED: tl.constexpr, PAIRS_ALIGNED: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    # Of each axis the bias has its own (own_… of tiles or heads) or is broadcast over it (over_…;
    # None: over one).
    tile_n = tl.program_id(0) % own_n
    rest = tl.program_id(0) // own_n
    tile_m = rest % own_m
    rest = rest // own_m
    own_head = rest % own_heads
    own_batch = rest // own_heads
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    grad = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for b in range(or_one(over_batch)):
        batch = (own_batch + b).to(tl.int64)
        for h in range(or_one(over_heads)):
            head = (own_head + h).to(tl.int64)
            kv_head = kv_head_of(head, group)
            drop = drop_of(
                seed_ptr, None, batch, own_heads * or_one(over_heads), head, keep_last, keep_scale,
                shift, drop_head, drop_heads,
            )  # fmt: skip
            scores = Scores(scale, cap, left, right, drop, drop_query, drop_key)
            slope = slope_of(slopes_ptr, batch, stride_sb, head, stride_sh)
            for m in range(tile_m, tile_m + or_one(over_m)):
                row_first = tile_row_first(BLOCK_M, m)
                row_last = tile_row_last(q_len, BLOCK_M, m)
                queries = row_first + tl.arange(0, BLOCK_M)
                inside_m = queries < q_len
                # 64-bit offsets: an index times a stride can pass 2³¹.
                rows = queries.to(tl.int64)
                q = load_rows(
                    head_of(query_ptr, batch, stride_qb, head, stride_qh, None, None, ALIGNED),
                    rows, dims, stride_qm, or_one(stride_qd), inside_m, head_dim, ALIGNED, True,
                )  # fmt: skip
                grad_o = load_rows(
                    head_of(grad_out_ptr, batch, stride_gb, head, stride_gh, None, None, ALIGNED),
                    rows, value_dims, stride_gm, or_one(stride_gd), inside_m, value_dim, ALIGNED,
                    True,
                )  # fmt: skip
                lse = load_numbers(
                    lse_ptr + batch * stride_lb + head * stride_lh,
                    rows, or_one(stride_lm), inside_m, float("inf"), True,
                )  # fmt: skip
                delta = load_numbers(
                    delta_ptr + batch * stride_tb + head * stride_th,
                    rows, or_one(stride_tm), inside_m, 0.0, True,
                )  # fmt: skip
                first, stop = visited_tiles(
                    first_key(row_first, shift, left),
                    stop_key(row_last, shift, right, kv_len),
                    BLOCK_N,
                )
                stop = tl.minimum(stop, tile_n + or_one(over_n))
                for n in range(tl.maximum(first, tile_n), stop):
                    keys = n * BLOCK_N + tl.arange(0, BLOCK_N)
                    inside_n = keys < kv_len
                    keys64 = keys.to(tl.int64)
                    k = load_rows(
                        head_of(key_ptr, batch, stride_kb, kv_head, stride_kh, None, None, ALIGNED),
                        keys64, dims, stride_kn, or_one(stride_kd), inside_n, head_dim, ALIGNED,
                        True,
                    )  # fmt: skip
                    v = load_rows(
                        head_of(
                            value_ptr, batch, stride_vb, kv_head, stride_vh, None, None, ALIGNED
                        ),
                        keys64, value_dims, stride_vn, or_one(stride_vd), inside_n, value_dim,
                        ALIGNED, True,
                    )  # fmt: skip
                    bias = head_of(
                        bias_ptr, batch, stride_bb, head, stride_bh, None, None, PAIRS_ALIGNED
                    )  # fmt: skip
                    bias = row_pointers(
                        bias, rows, keys64, stride_bm, or_one(stride_bn), PAIRS_ALIGNED
                    )  # fmt: skip
                    mask = head_of_pairs(
                        mask_ptr, batch, stride_mb, head, stride_mh, PAIRS_ALIGNED
                    )  # fmt: skip
                    if mask is not None:
                        mask = row_pointers(
                            mask, rows, keys64, stride_mm, or_one(stride_mn), PAIRS_ALIGNED
                        )  # fmt: skip
                    kept = None
                    if scores.drop is not None:
                        kept = kept_pairs(scores, queries + shift, n * BLOCK_N, mask_ptr, BLOCK_N)
                    pairs = Pairs(
                        (queries + shift)[:, None], keys[None, :],
                        inside_m[:, None] & inside_n[None, :], lse[:, None], delta[:, None],
                        slope, mask, bias, kept,
                    )  # fmt: skip
                    found = weights(dot(q, tl.trans(k)), pairs, scores, True)
                    grad_p = dot(grad_o, tl.trans(v))
                    grad_s, _ = raw_gradient(found, grad_p, pairs, scores, True)
                    grad += grad_s

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    keys = tile_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    base = grad_bias_ptr + own_batch.to(tl.int64) * stride_cb + own_head.to(tl.int64) * stride_ch
    if ROWS and KEYS:
        ptrs = base + rows[:, None] * stride_cm + keys[None, :] * or_one(stride_cn)
        tl.store(ptrs, grad, mask=(rows < q_len)[:, None] & (keys < kv_len)[None, :])
    elif ROWS:
        tl.store(base + rows * stride_cm, tl.sum(grad, 1), mask=rows < q_len)
    elif KEYS:
        tl.store(base + keys * or_one(stride_cn), tl.sum(grad, 0), mask=keys < kv_len)
    else:
        tl.store(base, tl.sum(tl.sum(grad, 1), 0))


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, options: ScoreOptions, capability: int
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for `launch`; chosen as
    `pyimpl.backends.kernels.forward.launch_options` says."""
    dim = padded_size(max(head_dim, value_dim))
    if dtype == torch.float32:
        return by_size(dim, (16, 16, 4, 1), (16, 16, 8, 1), (16, 16, 8, 1))
    return by_size(dim, (32, 32, 8, 1), (32, 32, 8, 1), (16, 32, 8, 1))


def launch(given: Given, grad_bias: Tensor, *, capability: int, chosen: Chosen = None) -> Launch:
    """The launch that writes the gradient of `options.bias` into a float32 tensor of four
    dimensions, each of them that of the bias or 1 where it has none.

    chosen: None for `launch_options`. Raises ValueError as `backward` does.
    """
    check_given(given)
    bias = given.options.bias
    if bias is None or grad_bias.shape != (1,) * (4 - bias.dim()) + bias.shape:
        raise ValueError(
            f"grad_bias must be of the shape of bias, with dimensions of 1 before, "
            f"not {list(grad_bias.shape)}"
        )
    sizes = (given.query.dtype, given.query.shape[-1], given.value.shape[-1])
    chosen = chosen or launch_options(*sizes, given.options, capability)
    constants = tile_constants(given, chosen)
    for name in ("EVEN_D", "EVEN_V", "FAR", "WHOLE"):
        del constants[name]
    batch, num_heads, q_len, _ = given.query.shape
    # A length of 1 is its own: there is nothing to sum.
    has = [size == full for size, full in zip(grad_bias.shape, given.query.shape[:3], strict=False)]
    has.append(grad_bias.shape[3] == given.key.shape[2])
    tiles_m = triton.cdiv(q_len, chosen["block_m"])
    tiles_n = triton.cdiv(given.key.shape[2], chosen["block_n"])
    full = (batch, num_heads, tiles_m, tiles_n)
    own = [n if mine else 1 for n, mine in zip(full, has, strict=True)]
    over = [None if mine or n == 1 else n for n, mine in zip(full, has, strict=True)]
    programs = math.prod(own)
    check_programs("batch × heads × tiles of the bias", programs)
    arguments = shared_arguments(given)
    del arguments["grad_scale"]
    return Launch(
        bias_kernel,
        programs,
        {
            **arguments,
            "grad_bias_ptr": grad_bias,
            **strides_of("c", "bhmn", grad_bias.stride()),
            "own_heads": own[1], "own_m": own[2], "own_n": own[3],
            "over_batch": over[0], "over_heads": over[1], "over_m": over[2], "over_n": over[3],
        },
        constants | {"ROWS": has[2], "KEYS": has[3]},
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip
