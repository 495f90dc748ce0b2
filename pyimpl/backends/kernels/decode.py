"""Attention of few queries to many keys: the keys are split, each split is taken by a program of
its own, and `combine` puts the splits together (`Attention.Spec.splitKV`).

One program for each split of each head of keys and values: the queries of all heads that share it
are its rows, query by query (`Attention.Spec.attentionPackedHeads`), so that keys and values are
read once. The same kernel reads keys and values in pages (`pyimpl.backends.kernels.paged`).
Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference".
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels import combine
from pyimpl.backends.kernels.forward import TENSORS
from pyimpl.backends.kernels.parts import kept
from pyimpl.backends.kernels.parts.bounds import (
    first_key,
    num_tiles,
    stop_key,
    tile_row_first,
    tile_row_last,
    unmasked_tiles,
    visited_tiles,
)
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    are_aligned,
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
    is_hopper,
    padded_size,
    pair_arguments,
    pairs_are_aligned,
    processors,
    score_arguments,
    strides_of,
    window_arguments,
    with_nonnegative_scale,
)
from pyimpl.backends.kernels.parts.loop import (
    Keys,
    Rows,
    Scores,
    finish,
    log_sum_exp,
    over_tiles,
    start,
)
from pyimpl.backends.kernels.parts.numerics import (
    LOG2E,
    device_function,
    head_of,
    kernel,
    offsets,
    or_one,
    round_to,
    to_float32,
    within,
)
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query

# A split has at least this many tiles of keys, so that its work outweighs that of combining.
MIN_TILES = 4
MAX_SPLITS = 128


@implements("Attention.Spec.packedQuery")
@device_function
def _packed_query(row, group):
    """The query of a row of the packed queries."""
    return row // group


@implements("Attention.Spec.packedHead")
@device_function
def _packed_head(kv_head, row, group):
    """The head of a row of the queries that are packed for the head `kv_head` of keys."""
    return kv_head * group + row % group


@implements("Attention.Spec.splitKV")
@implements("Attention.Spec.groupedQueryPacked")
@implements("Attention.Spec.attendPaged")
@kernel
def _decode_kernel(
    query_ptr, key_ptr, value_ptr, mask_ptr, bias_ptr, slopes_ptr, sinks_ptr, lens_ptr, table_ptr,
    out_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_mb, stride_mh, stride_mm, stride_mn,
    stride_bb, stride_bh, stride_bm, stride_bn, stride_sb, stride_sh, stride_ih, stride_nb,
    stride_tb, stride_tn,
    stride_op, stride_ob, stride_oh, stride_om, stride_od, stride_lp, stride_lb, stride_lh,
    stride_lm, num_kv_heads, group, q_len, kv_len, num_splits, row_tiles, num_pages, head_dim,
    value_dim, scale, cap, left, right, shift,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAIRS_ALIGNED: tl.constexpr,
    FAR: tl.constexpr, PAGE_SIZE: tl.constexpr, BOTTOM_RIGHT: tl.constexpr,
):  # fmt: skip
    # In pages, stride_kb and stride_vb lead from page to page.
    split = tl.program_id(0) % num_splits
    tile = tl.program_id(0) // num_splits % row_tiles
    kv_head = tl.program_id(0) // num_splits // row_tiles
    batch = (kv_head // num_kv_heads).to(tl.int64)
    kv_head = (kv_head % num_kv_heads).to(tl.int64)
    if lens_ptr is not None:
        given = tl.load(lens_ptr + batch * stride_nb)
        kv_len = tl.minimum(tl.maximum(given, 0), kv_len)
    if BOTTOM_RIGHT:
        shift = shift + kv_len - q_len

    # 64-bit offsets: an index times a stride can pass 2³¹.
    num_rows = q_len * group
    packed = tile_row_first(BLOCK_M, tile) + tl.arange(0, BLOCK_M)
    inside = packed < num_rows
    row_first = _packed_query(tile_row_first(BLOCK_M, tile), group)
    row_last = _packed_query(tile_row_last(num_rows, BLOCK_M, tile), group)
    queries = _packed_query(packed, group)
    queries64 = queries.to(tl.int64)
    heads = _packed_head(kv_head, packed, group)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    query_rows = head_of(query_ptr, batch, stride_qb, heads, stride_qh, None, None, ALIGNED)
    query_rows = query_rows + offsets(queries64, stride_qm, ALIGNED)
    query_ptrs = query_rows[:, None] + dims[None, :] * or_one(stride_qd)
    loaded = inside[:, None] & within(dims, head_dim, ALIGNED)[None, :]
    q = tl.load(query_ptrs, mask=loaded, other=0.0)

    slopes = None
    sinks = None
    mask_rows = None
    bias_rows = None
    if slopes_ptr is not None:
        slope_ptrs = slopes_ptr + batch * stride_sb + heads * stride_sh
        slopes = to_float32(tl.load(slope_ptrs, mask=inside, other=0.0)) * LOG2E
    if sinks_ptr is not None:
        # The sink is one key: of the first split.
        own = inside & (split == 0)
        sinks = tl.load(sinks_ptr + heads * stride_ih, mask=own, other=float("-inf"))
        sinks = to_float32(sinks) * LOG2E
    if mask_ptr is not None:
        mask = head_of(mask_ptr, batch, stride_mb, heads, stride_mh, None, None, PAIRS_ALIGNED)
        mask_rows = mask + offsets(queries64, stride_mm, PAIRS_ALIGNED)
    if bias_ptr is not None:
        bias = head_of(bias_ptr, batch, stride_bb, heads, stride_bh, None, None, PAIRS_ALIGNED)
        bias_rows = bias + offsets(queries64, stride_bm, PAIRS_ALIGNED)
    rows = Rows(q, queries + shift, inside, slopes, mask_rows, bias_rows)
    table = None
    if PAGE_SIZE is None:
        k_base = head_of(key_ptr, batch, stride_kb, kv_head, stride_kh, None, None, ALIGNED)
        v_base = head_of(value_ptr, batch, stride_vb, kv_head, stride_vh, None, None, ALIGNED)
    else:
        k_base = head_of(key_ptr, None, None, kv_head, stride_kh, None, None, ALIGNED)
        v_base = head_of(value_ptr, None, None, kv_head, stride_vh, None, None, ALIGNED)
        table = table_ptr + batch * stride_tb
    keys = Keys(
        k_base, v_base, stride_kn, or_one(stride_kd), stride_vn, or_one(stride_vd),
        or_one(stride_mn), or_one(stride_bn),
        first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len),
        table, or_one(stride_tn), stride_kb, stride_vb, num_pages,
    )  # fmt: skip
    first, stop = visited_tiles(keys.first, keys.stop, BLOCK_N)
    whole_first, whole_stop = unmasked_tiles(
        row_first, row_last, shift, left, right, kv_len, BLOCK_N
    )
    # The tiles that are visited are shared out evenly; the last splits may get none.
    split_tiles = num_tiles(stop - first, num_splits)
    first = tl.minimum(first + split * split_tiles, stop)
    stop = tl.minimum(first + split_tiles, stop)

    m, l, o = start(sinks, BLOCK_M, BLOCK_V)
    m, l, o = over_tiles(
        m, l, o, first, stop, whole_first, whole_stop, kv_len, rows, keys,
        Scores(scale, cap, left, right, None, None, None), head_dim, value_dim,
        BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, PAGE_SIZE, FAR,
    )  # fmt: skip

    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    split = split.to(tl.int64)
    out_part = out_ptr + offsets(split, stride_op, ALIGNED)
    out_rows = head_of(out_part, batch, stride_ob, heads, stride_oh, None, None, ALIGNED)
    out_rows = out_rows + offsets(queries64, stride_om, ALIGNED)
    out_ptrs = out_rows[:, None] + value_dims[None, :] * or_one(stride_od)
    stored = inside[:, None] & within(value_dims, value_dim, ALIGNED)[None, :]
    tl.store(out_ptrs, round_to(finish(l, o, None), out_ptr.dtype.element_ty), mask=stored)
    lse_ptrs = lse_ptr + split * stride_lp + batch * stride_lb
    lse_ptrs = lse_ptrs + heads * stride_lh + queries64 * or_one(stride_lm)
    tl.store(lse_ptrs, log_sum_exp(m, l), mask=inside)


def launch_options(
    dtype: torch.dtype,
    head_dim: int,
    value_dim: int,
    rows: int,
    capability: int,
    *,
    pairs: bool = False,
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for a launch; `rows`: q_len × group;
    pairs: whether there is a mask or a bias, whose addresses take registers.

    As in `forward.launch_options`; those for Hopper in bfloat16 are timed, on one H200.
    """
    dim = padded_size(max(head_dim, value_dim))
    block_m, num_stages = 16, 2
    if head_dim % 16 or value_dim % 16:
        # Such rows are loaded element by element, and the addresses of all take registers.
        block_n, num_warps = 16 if dtype == torch.float32 or dim > 128 else 32, 8
        num_stages = 1 if dim > 128 else 2
    elif dtype == torch.float32:
        block_n, num_warps = 32 if dim <= 64 else 16, 8
    else:
        if dim <= 128:
            block_m = min(padded_size(rows), 32)
        block_n = 64 if dim <= 128 else 32
        # Of programs so small a multiprocessor of Hopper has `programs_each` at once.
        small = is_hopper(capability) and block_m == 16 and not pairs
        num_warps = 2 if small else 4
        # Three are 1.03 times as fast as two at 64, and no faster at 128.
        num_stages = 3 if small and dim <= 64 else 2
    return {
        "block_m": block_m,
        "block_n": block_n,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


def programs_each(capability: int) -> int:
    """How many programs each multiprocessor of a device gets: on Hopper 2 have fewer bytes under
    way than an H200 can bring."""
    return 4 if is_hopper(capability) else 2


def split_count(programs: int, tiles: int, processors: int, each: int = 2) -> int:
    """How many splits: enough that each of the device's multiprocessors gets `each` programs, but
    none of fewer than `MIN_TILES` tiles of keys, and at most `MAX_SPLITS`.

    `programs`: without splits; `tiles`: of keys that a program may visit.
    """
    wanted = each * processors // max(1, programs)
    return max(1, min(wanted, tiles // MIN_TILES, MAX_SPLITS))


@lru_cache(1024)
def default_splits(
    device: torch.device, dtype: torch.dtype, head_dim: int, value_dim: int, batch: int,
    num_kv_heads: int, rows: int, visited: int, block_n: int | None,
) -> int:  # fmt: skip
    """The number of splits of a launch: `split_count` for this device; rows: as for
    `launch_options`; visited: `visited_keys`; block_n: None for `launch_options`' choice."""
    chosen = launch_options(dtype, head_dim, value_dim, rows, capability(device))
    programs = batch * num_kv_heads * triton.cdiv(rows, chosen["block_m"])
    tiles = triton.cdiv(visited, block_n or chosen["block_n"])
    return split_count(programs, tiles, processors(device), programs_each(capability(device)))


def visited_keys(options: ScoreOptions, q_len: int, kv_len: int) -> int:
    """An upper bound of how many keys the queries see together."""
    if options.left is None or options.right is None:
        return kv_len
    return min(kv_len, q_len + options.left + options.right)


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    parts: Tensor,
    lses: Tensor,
    options: ScoreOptions,
    *,
    kv_lens: Tensor | None = None,
    page_table: Tensor | None = None,
    bottom_right: bool = False,
    capability: int,
    chosen: dict[str, int] | None = None,
    block_n: int | None = None,
) -> Launch:
    """The launch that writes each split's output and log-sum-exp into `parts`
    `[splits, batch, heads, q_len, value_dim]` and `lses` `[splits, batch, heads, q_len]`.

    With a `page_table`, `key` and `value` are `[pages, kv_heads, page_size, …]`. chosen: None for
    `launch_options`; block_n, if given, comes before it. The rest is as in `decode`, and so are the
    errors.
    """
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len = key.shape[1:3]
    value_dim = value.shape[-1]
    group = group_of(num_heads, num_kv_heads)
    page_size = None
    num_caches = batch
    if page_table is not None:
        check_indices("page_table", page_table, query, (batch, page_table.shape[-1]))
        num_caches, page_size = key.shape[0], kv_len
        kv_len = page_table.shape[1] * page_size
    for name, tensor, dim in (("key", key, head_dim), ("value", value, value_dim)):
        check_tensor(name, tensor, query, (num_caches, num_kv_heads, key.shape[2], dim))
    if kv_lens is not None:
        check_indices("kv_lens", kv_lens, query, (batch,))
    check_length("q_len × heads / kv_heads", q_len * group)
    check_length("kv_len", kv_len)
    if chosen is None:
        chosen = launch_options(
            query.dtype, head_dim, value_dim, q_len * group, capability,
            pairs=options.mask is not None or options.bias is not None,
        )  # fmt: skip
    block_n = chosen["block_n"] if block_n is None else block_n
    check_block("block_m", chosen["block_m"])
    check_block("block_n", block_n)
    num_splits = parts.shape[0]
    row_tiles = triton.cdiv(q_len * group, chosen["block_m"])
    programs = num_splits * row_tiles * batch * num_kv_heads
    check_programs("batch × heads × splits", programs)
    shift = options.shift
    shifts = (shift - q_len, shift + kv_len - q_len) if bottom_right else (shift, shift)
    key, value = key.resolve_neg(), value.resolve_neg()
    query, options = with_nonnegative_scale(query, options)
    table_strides = (None, None) if page_table is None else page_table.stride()
    strides = (n for x in (query, key, value, parts) for n in x.stride()[:-1])
    pairs = pair_arguments(options, query, kv_len)
    return Launch(
        _decode_kernel,
        programs,
        {
            "query_ptr": query, "key_ptr": key, "value_ptr": value, "lens_ptr": kv_lens,
            "table_ptr": page_table, "out_ptr": parts, "lse_ptr": lses,
            **strides_of("q", "bhmd", query.stride()),
            **strides_of("k", "bhnd", key.stride()),
            **strides_of("v", "bhnd", value.stride()),
            **strides_of("t", "bn", table_strides),
            **strides_of("o", "pbhmd", parts.stride()),
            **strides_of("l", "pbhm", lses.stride()),
            "num_kv_heads": num_kv_heads, "group": group, "q_len": q_len, "kv_len": kv_len,
            "num_splits": num_splits, "row_tiles": row_tiles, "num_pages": key.shape[0],
            "head_dim": head_dim, "value_dim": value_dim, "shift": shift,
            "stride_nb": None if kv_lens is None else kv_lens.stride(0),
            **pairs,
            **head_arguments(options, batch, num_heads, query.device),
            **score_arguments(options),
            **window_arguments(options, q_len, kv_len, shifts),
        },
        {
            "BLOCK_M": chosen["block_m"], "BLOCK_N": block_n,
            "BLOCK_D": padded_size(head_dim), "BLOCK_V": padded_size(value_dim),
            "EVEN_D": padded_size(head_dim) == head_dim,
            "EVEN_V": padded_size(value_dim) == value_dim,
            "ALIGNED": are_aligned(head_dim, value_dim, *strides),
            "PAIRS_ALIGNED": pairs_are_aligned(pairs),
            "FAR": is_far(block_n, key.stride()[2:], value.stride()[2:]),
            "PAGE_SIZE": page_size, "BOTTOM_RIGHT": bottom_right,
        },
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip


# The kernels' parameters for the tensors that each call has, and for those that it makes: of the
# kernel over parts of the keys, and of that which combines these.
_SPLITS = (*TENSORS[:3], "lens_ptr", "table_ptr", *kept.OPTIONS, *TENSORS[3:], None, None)
_COMBINE = (*[None] * (5 + len(kept.OPTIONS)), *combine.TENSORS)


@folds_into_query
def split_and_combine(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    *,
    kv_lens: Tensor | None,
    page_table: Tensor | None,
    bottom_right: bool,
    num_splits: int | None,
    block_n: int | None,
) -> tuple[Tensor, Tensor]:
    """`decode`, with keys and values as in `launch`."""
    batch, num_heads, q_len, head_dim = query.shape
    _, num_kv_heads, kv_len, value_dim = value.shape
    if num_splits is None:
        capacity = kv_len * (1 if page_table is None else page_table.shape[-1])
        num_splits = default_splits(
            query.device, query.dtype, head_dim, value_dim, batch, num_kv_heads,
            q_len * group_of(num_heads, num_kv_heads), visited_keys(options, q_len, capacity),
            block_n,
        )  # fmt: skip
    if num_splits < 1:
        raise ValueError(f"num_splits must be None or at least 1, not {num_splits}")
    # PyTorch takes half of the time for a size that is numbers of its own, and no tuple.
    out = query.new_empty(batch, num_heads, q_len, value_dim)
    lse = query.new_empty(batch, num_heads, q_len, dtype=torch.float32)
    if num_splits == 1:
        parts, lses = out[None], lse[None]
    else:
        parts = lse.new_empty(num_splits, batch, num_heads, q_len, value_dim)
        lses = lse.new_empty(num_splits, batch, num_heads, q_len)

    def make() -> tuple[kept.Named, ...]:
        check_kind(query, value)
        splits = launch(
            query, key, value, parts, lses, options, kv_lens=kv_lens, page_table=page_table,
            bottom_right=bottom_right, capability=capability(query.device), block_n=block_n,
        )  # fmt: skip
        if num_splits == 1:
            return ((splits, _SPLITS),)
        return (splits, _SPLITS), (combine.launch(parts, lses, out, lse), _COMBINE)

    kept.start(
        make, query.device, (query, key, value, kv_lens, page_table, *kept.tensors_of(options)),
        (parts, lses, out, lse),
        ("decode", num_splits, bottom_right, block_n, *kept.numbers_of(options)),
    )  # fmt: skip
    return out, lse


def decode(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    *,
    kv_lens: Tensor | None = None,
    bottom_right: bool = False,
    num_splits: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in float32, newly allocated:
    `[batch, heads, q_len, value_dim]` and `[batch, heads, q_len]`.

    Made for few queries: the keys are read once for all heads that share them. Shapes, strides,
    dtypes and `options` as in `kernels.forward.forward`, and the same result up to rounding.

    kv_lens: int32 `[batch]`; the keys of a sequence from its length on are not read (a length
    outside of 0 … kv_len counts as the nearest of these). bottom_right: query 0 stands at
    options.shift + (length of the sequence) − q_len, so that the last query stands at the last key,
    and not at options.shift. num_splits: None for `split_count`'s choice. block_n: keys in a tile,
    a power of two ≥ 16, by default `launch_options`'.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see
            `launch.why_not`), a length, a number of `options`, num_splits, block_n or the number
            of programs is outside the kernel's range.
    """
    return split_and_combine(
        query, key, value, options, kv_lens=kv_lens, page_table=None,
        bottom_right=bottom_right, num_splits=num_splits, block_n=block_n,
    )  # fmt: skip
