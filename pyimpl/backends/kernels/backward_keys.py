"""dK and dV by tiles of keys: one program for each tile of each head of keys, over the tiles of
queries that see some of it, of all the heads that share it; and, if asked for, each tile's part of
dQ, by atomic additions, in no fixed order.

Source: Dao 2023, "FlashAttention-2", algorithm 2; line 15 is that of dQ.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

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
    dropped,
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
    check_programs,
    check_tensor,
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


class Sums(NamedTuple):
    """Where dQ / scale of the queries of one head is added up, float32: a pointer to the first
    element, and its strides."""

    base: Any
    stride_m: Any
    stride_d: Any


@implements("Attention.Spec.stepKeys")
@implements("Attention.Spec.stepWritten")
@device_function
def _over_query_tiles(
    grad_k, grad_v, sums, first, stop, k, v, key_first, keys, keys_inside, slope, shift, at, scores,
    head_dim, value_dim, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_V: tl.constexpr, EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr,
    PAIRS_ALIGNED: tl.constexpr, FAR: tl.constexpr, SINKS: tl.constexpr, CHECKED: tl.constexpr,
):  # fmt: skip
    """(dK / scale, dV) with what the tiles of queries first, …, stop − 1 of one head add; to `sums`
    (None: to nothing) they add their dQ / scale.

    CHECKED as in `weights`; a query of these tiles may then be outside `at.first` …
    `at.stop` − 1 too.
    """
    dims = indices(BLOCK_D, FAR)
    value_dims = indices(BLOCK_V, FAR)
    rows = indices(BLOCK_M, FAR)
    own = indices(BLOCK_N, FAR)
    for tile in range(first, stop):
        queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
        inside = (queries >= at.first) & (queries < at.stop)
        begin = tl.cast(tile * BLOCK_M, tl.int64)
        lse = load_numbers(at.lse + begin * at.lse_n, rows, at.lse_n, inside, float("inf"), CHECKED)
        delta = load_numbers(at.delta + begin * at.delta_n, rows, at.delta_n, inside, 0.0, CHECKED)
        some = inside
        if CHECKED:
            # A weight 0 would not silence a NaN: queries that see no key are not read.
            some = inside & (lse != float("inf"))
        q = load_rows(
            at.a + begin * at.stride_an, rows, dims, at.stride_an, at.stride_ad, some, head_dim,
            ALIGNED, CHECKED or not EVEN_D,
        )  # fmt: skip
        grad_o = load_rows(
            at.b + begin * at.stride_bn, rows, value_dims, at.stride_bn, at.stride_bd, some,
            value_dim, ALIGNED, CHECKED or not EVEN_V,
        )  # fmt: skip
        mask = None
        bias = None
        if at.mask is not None:
            across = own[:, None] * at.mask_n + offsets(rows, at.mask_m, PAIRS_ALIGNED)[None, :]
            mask = at.mask + begin * at.mask_m + across
        if at.bias is not None:
            across = own[:, None] * at.bias_n + offsets(rows, at.bias_m, PAIRS_ALIGNED)[None, :]
            bias = at.bias + begin * at.bias_m + across
        kept = None
        if scores.drop is not None:
            kept = tl.trans(kept_pairs(scores, queries + shift, key_first, at.mask, BLOCK_N))
        pairs = Pairs(
            (queries + shift)[None, :], keys[:, None], keys_inside[:, None] & inside[None, :],
            lse[None, :], delta[None, :], slope, mask, bias, kept,
        )  # fmt: skip
        # One product after the other: both at once would take twice the registers.
        found = weights(dot(k, tl.trans(q)), pairs, scores, CHECKED)
        if CHECKED and SINKS:
            # With a sink a query that sees no key has a log-sum-exp all the same.
            seeing = tl.max(found.visible.to(tl.int32), 0) > 0
            q = tl.where(seeing[:, None], q, 0.0)
            grad_o = tl.where(seeing[:, None], grad_o, 0.0)
        grad_v += dot(round_to(dropped(found.p, pairs), grad_o.dtype), grad_o)
        grad_p = dot(v, tl.trans(grad_o))
        _, grad_x = raw_gradient(found, grad_p, pairs, scores, CHECKED)
        grad_x = round_to(grad_x, q.dtype)
        grad_k += dot(grad_x, q)
        if sums is not None:
            of_k = k
            if CHECKED:
                # A gradient 0 would not silence a NaN: keys that no query sees go.
                seen = tl.max(found.visible.to(tl.int32), 1) > 0
                of_k = tl.where(seen[:, None], k, 0.0)
            sum_ptrs = sums.base + begin * sums.stride_m
            sum_ptrs = row_pointers(sum_ptrs, rows, dims, sums.stride_m, sums.stride_d, ALIGNED)
            added = inside[:, None] & within(dims, head_dim, ALIGNED)[None, :]
            tl.atomic_add(sum_ptrs, dot(tl.trans(grad_x), of_k), mask=added, sem="relaxed")
    return grad_k, grad_v


@kernel
def keys_kernel(
    query_ptr, key_ptr, value_ptr, grad_out_ptr, lse_ptr, delta_ptr, mask_ptr, bias_ptr,
    slopes_ptr, seed_ptr, cu_q_ptr, cu_k_ptr, grad_key_ptr, grad_value_ptr, sums_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_gb, stride_gh, stride_gm, stride_gd,
    stride_lb, stride_lh, stride_lm, stride_tb, stride_th, stride_tm,
    stride_mb, stride_mh, stride_mm, stride_mn, stride_bb, stride_bh, stride_bm, stride_bn,
    stride_sb, stride_sh, stride_xb, stride_yb,
    stride_cb, stride_ch, stride_cn, stride_cd, stride_eb, stride_eh, stride_en, stride_ed,
    stride_ub, stride_uh, stride_um, stride_ud,
    num_kv_heads, group, q_len, kv_len, key_tiles, head_dim, value_dim, scale, cap, grad_scale,
    left, right, shift, keep_last, keep_scale, drop_head, drop_heads, drop_query, drop_key,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAIRS_ALIGNED: tl.constexpr,
    FAR: tl.constexpr, BOTTOM_RIGHT: tl.constexpr,
    WHOLE: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    # Under causality the first tiles of keys have the most queries.
    tile = tl.program_id(0) % key_tiles
    head = tl.program_id(0) // key_tiles
    batch = (head // num_kv_heads).to(tl.int64)
    kv_head = (head % num_kv_heads).to(tl.int64)
    q_first = None
    k_first = None
    if cu_q_ptr is not None:
        q_first, q_len = sequence_slice(cu_q_ptr, stride_xb, batch, q_len)
        k_first, kv_len = sequence_slice(cu_k_ptr, stride_yb, batch, kv_len)
        if BOTTOM_RIGHT:
            shift = shift + kv_len - q_len
    key_first = tile_row_first(BLOCK_N, tile)
    if key_first >= kv_len:
        return
    key_last = tile_row_last(kv_len, BLOCK_N, tile)
    keys = key_first + tl.arange(0, BLOCK_N)
    inside = keys < kv_len
    keys64 = keys.to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    k_base = head_of(key_ptr, batch, stride_kb, kv_head, stride_kh, k_first, stride_kn, ALIGNED)
    v_base = head_of(value_ptr, batch, stride_vb, kv_head, stride_vh, k_first, stride_vn, ALIGNED)
    k = load_rows(
        k_base, keys64, dims, stride_kn, or_one(stride_kd), inside, head_dim, ALIGNED, True
    )  # fmt: skip
    v = load_rows(
        v_base, keys64, value_dims, stride_vn, or_one(stride_vd), inside, value_dim, ALIGNED, True
    )  # fmt: skip

    # Seen from the keys, the queries are a window too: key j stands at j − shift on the axis of the
    # queries, and what is left for them is right for it.
    query_first = first_key(key_first, -shift, right)
    query_stop = stop_key(key_last, -shift, left, q_len)
    first, stop = visited_tiles(query_first, query_stop, BLOCK_M)
    whole_first, whole_stop = unmasked_tiles(
        key_first, key_last, -shift, right, left, q_len, BLOCK_M
    )
    whole_first, whole_stop = whole_tiles(whole_first, whole_stop, first, stop, q_len, BLOCK_M)
    # A ragged tile of keys is checked too: the scores of its padding, 0, may be above the
    # log-sum-exp.
    whole_stop = tl.where(key_last - key_first + 1 < BLOCK_N, whole_first, whole_stop)
    if not WHOLE:
        whole_first = stop
        whole_stop = stop

    grad_k = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    grad_v = tl.zeros([BLOCK_N, BLOCK_V], tl.float32)
    for member in range(group):
        q_head = kv_head * group + member
        drop = drop_of(
            seed_ptr, cu_q_ptr, batch, num_kv_heads * group, q_head, keep_last, keep_scale, shift,
            drop_head, drop_heads,
        )  # fmt: skip
        numbered_q = numbered_from(q_first, drop_query)
        numbered_k = numbered_from(k_first, drop_key)
        scores = Scores(scale, cap, left, right, drop, numbered_q, numbered_k)
        slope = slope_of(slopes_ptr, batch, stride_sb, q_head, stride_sh)
        mask = head_of_pairs(mask_ptr, batch, stride_mb, q_head, stride_mh, PAIRS_ALIGNED)
        bias = head_of_pairs(bias_ptr, batch, stride_bb, q_head, stride_bh, PAIRS_ALIGNED)
        if mask is not None:
            mask = mask + tl.cast(key_first, tl.int64) * or_one(stride_mn)
        if bias is not None:
            bias = bias + tl.cast(key_first, tl.int64) * or_one(stride_bn)
        lse_n = or_one(stride_lm)
        delta_n = or_one(stride_tm)
        at = Side(
            head_of(query_ptr, batch, stride_qb, q_head, stride_qh, q_first, stride_qm, ALIGNED),
            head_of(grad_out_ptr, batch, stride_gb, q_head, stride_gh, q_first, stride_gm, ALIGNED),
            head_of(lse_ptr, batch, stride_lb, q_head, stride_lh, q_first, lse_n, False),
            head_of(delta_ptr, batch, stride_tb, q_head, stride_th, q_first, delta_n, False),
            mask, bias, stride_qm, or_one(stride_qd), stride_gm, or_one(stride_gd), lse_n, delta_n,
            stride_mm, or_one(stride_mn), stride_bm, or_one(stride_bn), query_first, query_stop,
        )  # fmt: skip
        sums = None
        if sums_ptr is not None:
            sums = Sums(
                head_of(sums_ptr, batch, stride_ub, q_head, stride_uh, q_first, stride_um, ALIGNED),
                stride_um, or_one(stride_ud),
            )  # fmt: skip
        if not WHOLE or right is not None:
            grad_k, grad_v = _over_query_tiles(
                grad_k, grad_v, sums, first, whole_first, k, v, key_first, keys, inside, slope,
                shift, at, scores, head_dim, value_dim, BLOCK_M, BLOCK_N, BLOCK_D, BLOCK_V,
                EVEN_D, EVEN_V, ALIGNED, PAIRS_ALIGNED, FAR, SINKS, True,
            )  # fmt: skip
        if WHOLE:
            grad_k, grad_v = _over_query_tiles(
                grad_k, grad_v, sums, whole_first, whole_stop, k, v, key_first, keys, inside, slope,
                shift, at, scores, head_dim, value_dim, BLOCK_M, BLOCK_N, BLOCK_D, BLOCK_V,
                EVEN_D, EVEN_V, ALIGNED, PAIRS_ALIGNED, FAR, SINKS, False,
            )  # fmt: skip
            grad_k, grad_v = _over_query_tiles(
                grad_k, grad_v, sums, whole_stop, stop, k, v, key_first, keys, inside, slope,
                shift, at, scores, head_dim, value_dim, BLOCK_M, BLOCK_N, BLOCK_D, BLOCK_V,
                EVEN_D, EVEN_V, ALIGNED, PAIRS_ALIGNED, FAR, SINKS, True,
            )  # fmt: skip

    grad_k = grad_k * grad_scale
    if keep_scale is not None:
        grad_v = grad_v * keep_scale
    k_base = head_of(
        grad_key_ptr, batch, stride_cb, kv_head, stride_ch, k_first, stride_cn, ALIGNED
    )  # fmt: skip
    key_ptrs = row_pointers(k_base, keys64, dims, stride_cn, or_one(stride_cd), ALIGNED)
    stored = inside[:, None] & within(dims, head_dim, ALIGNED)[None, :]
    tl.store(key_ptrs, round_to(grad_k, grad_key_ptr.dtype.element_ty), mask=stored)
    v_base = head_of(
        grad_value_ptr, batch, stride_eb, kv_head, stride_eh, k_first, stride_en, ALIGNED
    )  # fmt: skip
    value_ptrs = row_pointers(v_base, keys64, value_dims, stride_en, or_one(stride_ed), ALIGNED)
    stored = inside[:, None] & within(value_dims, value_dim, ALIGNED)[None, :]
    tl.store(value_ptrs, round_to(grad_v, grad_value_ptr.dtype.element_ty), mask=stored)


def launch_options(
    dtype: torch.dtype,
    head_dim: int,
    value_dim: int,
    options: ScoreOptions,
    capability: int,
    sums: bool = False,
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for `launch`; chosen as
    `pyimpl.backends.kernels.forward.launch_options` says. sums: dQ is added too."""
    dim = padded_size(max(head_dim, value_dim))
    wide = has_warpgroups(capability)
    if dtype == torch.float32:
        # IEEE products run on the scalar units, whose operands all live in registers.
        warps = 4 if options.dropout is None else 8
        return by_size(dim, (16, 16, warps, 1), (16, 16, 8, 1), (16, 16, 8, 1))
    # The words that dropout goes by take registers, and so do the addresses of a mask's or a bias's
    # elements.
    pairs = options.mask is not None or options.bias is not None
    if options.dropout is not None or (pairs and not wide):
        return by_size(dim, (32, 32, 4, 1), (32, 32, 8, 1), (16, 16, 8, 1))
    if pairs:
        return by_size(dim, (32, 64, 4, 1), (32, 32, 4, 1), (16, 16, 8, 1))
    more = options.softcap is not None or options.alibi_slopes is not None
    if is_hopper(capability):
        # With 64 queries at 128 Triton 3.6 spills in the loop.
        return by_size(dim, (64, 128, 8, 3), (32, 128, 8, 3), (32, 64, 8, 2))
    if wide:
        # More keys at 256, or at 128 more queries with a fifth product, would take more tensor
        # memory than there is.
        middle = (32, 128, 8, 2) if more or sums else (64, 128, 8, 2)
        return by_size(dim, (64, 128, 8, 3), middle, (32, 32, 4, 2))
    if options.sinks is not None:
        # Choosing the queries that see a key takes registers too.
        return by_size(dim, (32, 128, 8, 2), (32, 64, 4, 2), (32, 32, 4, 1))
    middle = (32, 64, 8, 2) if sums else (16 if more else 32, 128, 8, 2)
    return by_size(dim, (32, 128, 8, 2), middle, (32, 32, 4, 2))


def launch(
    given: Given,
    grad_key: Tensor,
    grad_value: Tensor,
    sums: Tensor | None = None,
    *,
    capability: int,
    chosen: Chosen = None,
) -> Launch:
    """The launch that writes dK and dV, of the shapes and dtype of key and value, of any strides,
    and adds dQ / scale to `sums`, of the shape of query, float32, contiguous; None: to nothing.

    chosen: None for `launch_options`. Raises ValueError as `backward` does.
    """
    check_given(given)
    check_gradient("grad_key", grad_key, given.key)
    check_gradient("grad_value", grad_value, given.value)
    sum_strides: tuple[int | None, ...] = (None,) * 4
    if sums is not None:
        check_tensor("sums", sums, given.lse, tuple(given.query.shape))
        if not sums.is_contiguous():
            raise ValueError(f"sums must be contiguous, not of strides {sums.stride()}")
        sum_strides = strides_in_sequences(sums, given.sequences)
    sizes = (given.query.dtype, given.query.shape[-1], given.value.shape[-1])
    chosen = chosen or launch_options(*sizes, given.options, capability, sums is not None)
    constants = tile_constants(given, chosen, grad_key, grad_value) | {
        "BOTTOM_RIGHT": given.sequences is not None and given.sequences.bottom_right,
        "SINKS": given.options.sinks is not None,
    }
    batch, num_kv_heads, kv_len, _ = given.key.shape
    if given.sequences is not None:
        batch = given.sequences.number
        kv_len = min(kv_len, given.sequences.max_kv_len)
    key_tiles = triton.cdiv(kv_len, chosen["block_n"])
    programs = key_tiles * batch * num_kv_heads
    check_programs("batch × heads × key tiles", programs)
    return Launch(
        keys_kernel,
        programs,
        {
            **shared_arguments(given),
            **sequence_arguments(given.sequences),
            "grad_key_ptr": grad_key, "grad_value_ptr": grad_value, "sums_ptr": sums,
            **strides_of("c", "bhnd", strides_in_sequences(grad_key, given.sequences)),
            **strides_of("e", "bhnd", strides_in_sequences(grad_value, given.sequences)),
            **strides_of("u", "bhmd", sum_strides),
            "num_kv_heads": num_kv_heads, "key_tiles": key_tiles,
        },
        constants,
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip
