"""dQ by tiles of queries, and each query's part of the gradient of ALiBi's slope: one program
for each tile of each head, over the tiles of keys that the forward kernel goes over.

Source: Dao 2023, "FlashAttention-2", algorithm 2, line 15, with the loops exchanged.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

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
    unmasked_tiles,
    visited_tiles,
    whole_tiles,
)
from pyimpl.backends.kernels.parts.dropout import drop_of, kept_pairs, numbered_from
from pyimpl.backends.kernels.parts.gradient import (
    Pairs,
    Side,
    distances,
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
    check_gradient,
    check_outputs,
    check_programs,
    has_warpgroups,
    is_hopper,
    padded_size,
    strides_of,
)
from pyimpl.backends.kernels.parts.loop import Scores
from pyimpl.backends.kernels.parts.numerics import (
    device_function,
    dot,
    head_of,
    indices,
    kernel,
    offsets,
    or_one,
    round_to,
    row_pointers,
    within,
)
from pyimpl.backends.kernels.parts.sequences import (
    sequence_arguments,
    sequence_slice,
    strides_in_sequences,
)
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions


@implements("Attention.Spec.stepQueries")
@implements("Attention.Spec.slopeTerm")
@implements("Attention.Spec.stepSlopes")
@device_function
def _over_key_tiles(
    grad_q, grad_slope, first, stop, q, grad_o, lse, delta, queries, rows_inside, slope, shift, at,
    scores, head_dim, value_dim, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_V: tl.constexpr, EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr,
    FAR: tl.constexpr, SLOPES: tl.constexpr, CHECKED: tl.constexpr,
):  # fmt: skip
    """(dQ / scale, −the gradient of the slope by each query) with what the tiles of keys first, …,
    stop − 1 add. CHECKED as in `_over_query_tiles`."""
    dims = indices(BLOCK_D, FAR)
    value_dims = indices(BLOCK_V, FAR)
    rows = indices(BLOCK_N, FAR)
    for tile in range(first, stop):
        keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = (keys >= at.first) & (keys < at.stop)
        begin = tl.cast(tile * BLOCK_N, tl.int64)
        k = load_rows(
            at.a + begin * at.stride_an, rows, dims, at.stride_an, at.stride_ad, inside, head_dim,
            ALIGNED, CHECKED or not EVEN_D,
        )  # fmt: skip
        v = load_rows(
            at.b + begin * at.stride_bn, rows, value_dims, at.stride_bn, at.stride_bd, inside,
            value_dim, ALIGNED, CHECKED or not EVEN_V,
        )  # fmt: skip
        mask = None
        bias = None
        if at.mask is not None:
            mask = (at.mask + begin * at.mask_n)[:, None] + rows[None, :] * at.mask_n
        if at.bias is not None:
            bias = (at.bias + begin * at.bias_n)[:, None] + rows[None, :] * at.bias_n
        kept = None
        if scores.drop is not None:
            kept = kept_pairs(scores, queries + shift, tile * BLOCK_N, at.mask, BLOCK_N)
        pairs = Pairs(
            (queries + shift)[:, None], keys[None, :], rows_inside[:, None] & inside[None, :],
            lse[:, None], delta[:, None], slope, mask, bias, kept,
        )  # fmt: skip
        found = weights(dot(q, tl.trans(k)), pairs, scores, CHECKED)
        grad_p = dot(grad_o, tl.trans(v))
        grad_s, grad_x = raw_gradient(found, grad_p, pairs, scores, CHECKED)
        if at.mask is not None or at.bias is not None:
            # A gradient 0 would not silence a NaN: keys that no query sees go.
            seen = tl.max(found.visible.to(tl.int32), 0) > 0
            k = tl.where(seen[:, None], k, 0.0)
        if SLOPES:
            # A bare product is fused with the sum in which the next thread's is added, and threads
            # that hold the same row would differ in its last bits.
            terms = tl.where(found.visible, grad_s * distances(pairs), 0.0)
            grad_slope += tl.sum(terms, 1)
        grad_q += dot(round_to(grad_x, k.dtype), k)
    return grad_q, grad_slope


@kernel
def queries_kernel(
    query_ptr, key_ptr, value_ptr, grad_out_ptr, lse_ptr, delta_ptr, mask_ptr, bias_ptr,
    slopes_ptr, seed_ptr, cu_q_ptr, cu_k_ptr, grad_query_ptr, grad_slopes_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_gb, stride_gh, stride_gm, stride_gd,
    stride_lb, stride_lh, stride_lm, stride_tb, stride_th, stride_tm,
    stride_mb, stride_mh, stride_mm, stride_mn, stride_bb, stride_bh, stride_bm, stride_bn,
    stride_sb, stride_sh, stride_xb, stride_yb,
    stride_cb, stride_ch, stride_cm, stride_cd, stride_eb, stride_eh, stride_em,
    num_heads, group, q_len, kv_len, query_tiles, head_dim, value_dim, scale, cap, grad_scale,
    left, right, shift, keep_last, keep_scale, drop_head, drop_heads, drop_query, drop_key,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAIRS_ALIGNED: tl.constexpr,
    FAR: tl.constexpr, BOTTOM_RIGHT: tl.constexpr,
    WHOLE: tl.constexpr, SLOPES: tl.constexpr,
):  # fmt: skip
    # As in the forward kernel, the last tiles first.
    tile = query_tiles - 1 - tl.program_id(0) % query_tiles
    head = tl.program_id(0) // query_tiles
    batch = (head // num_heads).to(tl.int64)
    head = (head % num_heads).to(tl.int64)
    kv_head = kv_head_of(head, group)
    q_first = None
    k_first = None
    if cu_q_ptr is not None:
        q_first, q_len = sequence_slice(cu_q_ptr, stride_xb, batch, q_len)
        k_first, kv_len = sequence_slice(cu_k_ptr, stride_yb, batch, kv_len)
        if BOTTOM_RIGHT:
            shift = shift + kv_len - q_len
    row_first = tile_row_first(BLOCK_M, tile)
    if row_first >= q_len:
        return
    row_last = tile_row_last(q_len, BLOCK_M, tile)
    queries = row_first + tl.arange(0, BLOCK_M)
    inside = queries < q_len
    rows = queries.to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    q_base = head_of(query_ptr, batch, stride_qb, head, stride_qh, q_first, stride_qm, ALIGNED)
    g_base = head_of(grad_out_ptr, batch, stride_gb, head, stride_gh, q_first, stride_gm, ALIGNED)
    q = load_rows(q_base, rows, dims, stride_qm, or_one(stride_qd), inside, head_dim, ALIGNED, True)
    grad_o = load_rows(
        g_base, rows, value_dims, stride_gm, or_one(stride_gd), inside, value_dim, ALIGNED, True
    )  # fmt: skip
    lse_n = or_one(stride_lm)
    delta_n = or_one(stride_tm)
    lse_base = head_of(lse_ptr, batch, stride_lb, head, stride_lh, q_first, lse_n, False)
    delta_base = head_of(delta_ptr, batch, stride_tb, head, stride_th, q_first, delta_n, False)
    lse = load_numbers(lse_base, rows, lse_n, inside, float("inf"), True)
    delta = load_numbers(delta_base, rows, delta_n, inside, 0.0, True)
    slope = slope_of(slopes_ptr, batch, stride_sb, head, stride_sh)
    mask = head_of_pairs(mask_ptr, batch, stride_mb, head, stride_mh, PAIRS_ALIGNED)
    bias = head_of_pairs(bias_ptr, batch, stride_bb, head, stride_bh, PAIRS_ALIGNED)
    if mask is not None:
        mask = mask + offsets(rows, stride_mm, PAIRS_ALIGNED)
    if bias is not None:
        bias = bias + offsets(rows, stride_bm, PAIRS_ALIGNED)
    at = Side(
        head_of(key_ptr, batch, stride_kb, kv_head, stride_kh, k_first, stride_kn, ALIGNED),
        head_of(value_ptr, batch, stride_vb, kv_head, stride_vh, k_first, stride_vn, ALIGNED),
        None, None, mask, bias, stride_kn, or_one(stride_kd), stride_vn, or_one(stride_vd),
        None, None, stride_mm, or_one(stride_mn), stride_bm, or_one(stride_bn),
        first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len),
    )  # fmt: skip
    first, stop = visited_tiles(at.first, at.stop, BLOCK_N)
    whole_first, whole_stop = unmasked_tiles(
        row_first, row_last, shift, left, right, kv_len, BLOCK_N
    )
    whole_first, whole_stop = whole_tiles(whole_first, whole_stop, first, stop, kv_len, BLOCK_N)
    if not WHOLE:
        whole_first = stop
        whole_stop = stop

    grad_q = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    grad_slope = tl.zeros([BLOCK_M], tl.float32)
    drop = drop_of(
        seed_ptr, cu_q_ptr, batch, num_heads, head, keep_last, keep_scale, shift, drop_head,
        drop_heads,
    )  # fmt: skip
    numbered_q = numbered_from(q_first, drop_query)
    numbered_k = numbered_from(k_first, drop_key)
    scores = Scores(scale, cap, left, right, drop, numbered_q, numbered_k)
    if not WHOLE or left is not None:
        grad_q, grad_slope = _over_key_tiles(
            grad_q, grad_slope, first, whole_first, q, grad_o, lse, delta, queries, inside, slope,
            shift, at, scores, head_dim, value_dim, BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V,
            ALIGNED, FAR, SLOPES, True,
        )  # fmt: skip
    if WHOLE:
        grad_q, grad_slope = _over_key_tiles(
            grad_q, grad_slope, whole_first, whole_stop, q, grad_o, lse, delta, queries, inside,
            slope, shift, at, scores, head_dim, value_dim, BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D,
            EVEN_V, ALIGNED, FAR, SLOPES, False,
        )  # fmt: skip
        grad_q, grad_slope = _over_key_tiles(
            grad_q, grad_slope, whole_stop, stop, q, grad_o, lse, delta, queries, inside, slope,
            shift, at, scores, head_dim, value_dim, BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V,
            ALIGNED, FAR, SLOPES, True,
        )  # fmt: skip

    grad_q = grad_q * grad_scale
    grad_base = head_of(
        grad_query_ptr, batch, stride_cb, head, stride_ch, q_first, stride_cm, ALIGNED
    )  # fmt: skip
    grad_ptrs = row_pointers(grad_base, rows, dims, stride_cm, or_one(stride_cd), ALIGNED)
    stored = inside[:, None] & within(dims, head_dim, ALIGNED)[None, :]
    tl.store(grad_ptrs, round_to(grad_q, grad_query_ptr.dtype.element_ty), mask=stored)
    if SLOPES:
        slope_n = or_one(stride_em)
        slope_ptrs = head_of(
            grad_slopes_ptr, batch, stride_eb, head, stride_eh, q_first, slope_n, False
        )  # fmt: skip
        slope_ptrs = slope_ptrs + rows * slope_n
        tl.store(slope_ptrs, -grad_slope, mask=inside)


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, options: ScoreOptions, capability: int
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for `launch`; chosen as
    `pyimpl.backends.kernels.forward.launch_options` says."""
    dim = padded_size(max(head_dim, value_dim))
    wide = has_warpgroups(capability)
    if dtype == torch.float32:
        # IEEE products run on the scalar units, whose operands all live in registers.
        return by_size(dim, (16, 16, 4, 1), (16, 16, 8, 1), (16, 16, 8, 1))
    # As in `backward_keys`.
    pairs = options.mask is not None or options.bias is not None
    if options.dropout is not None or (pairs and not wide):
        return by_size(dim, (64, 32, 4, 1), (64, 32, 8, 1), (32, 32, 8, 1))
    if pairs:
        return by_size(dim, (128, 32, 8, 1), (128, 32, 8, 1), (32, 32, 8, 1))
    if is_hopper(capability):
        return by_size(dim, (64, 64, 4, 3), (128, 64, 8, 3), (128, 32, 8, 3))
    if wide:
        return by_size(dim, (128, 64, 8, 3), (128, 64, 8, 3), (128, 32, 8, 2))
    return by_size(dim, (64, 64, 4, 2), (64, 64, 4, 2), (32, 32, 4, 2))


def launch(
    given: Given,
    grad_query: Tensor,
    grad_slopes: Tensor | None,
    *,
    capability: int,
    chosen: Chosen = None,
) -> Launch:
    """The launch that writes dQ, of the shape and dtype of query, and, unless it is None, each
    query's part of the gradient of its slope, `[batch, heads, q_len]`, float32; of any strides.

    chosen: None for `launch_options`. Raises ValueError as `backward` does.
    """
    check_given(given)
    check_gradient("grad_query", grad_query, given.query)
    slope_strides: tuple[int | None, ...] = (None,) * 3
    if grad_slopes is not None:
        check_outputs(grad_query, grad_slopes, grad_query.shape)
        slope_strides = strides_in_sequences(grad_slopes, given.sequences)
    sizes = (given.query.dtype, given.query.shape[-1], given.value.shape[-1])
    chosen = chosen or launch_options(*sizes, given.options, capability)
    constants = tile_constants(given, chosen, grad_query)
    batch, num_heads, q_len, _ = given.query.shape
    if given.sequences is not None:
        batch = given.sequences.number
        q_len = min(q_len, given.sequences.max_q_len)
    query_tiles = triton.cdiv(q_len, chosen["block_m"])
    programs = query_tiles * batch * num_heads
    check_programs("batch × heads × query tiles", programs)
    constants |= {
        "BOTTOM_RIGHT": given.sequences is not None and given.sequences.bottom_right,
        "SLOPES": grad_slopes is not None,
    }
    return Launch(
        queries_kernel,
        programs,
        {
            **shared_arguments(given),
            **sequence_arguments(given.sequences),
            "grad_query_ptr": grad_query, "grad_slopes_ptr": grad_slopes,
            **strides_of("c", "bhmd", strides_in_sequences(grad_query, given.sequences)),
            **strides_of("e", "bhm", slope_strides),
            "num_heads": num_heads, "query_tiles": query_tiles,
        },
        constants,
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip
