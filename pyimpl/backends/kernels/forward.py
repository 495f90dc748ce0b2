"""Attention's forward pass in one Triton kernel: the tile loop of `Attention.Spec.flash`.

One program for each tile of queries of each head; the keys go by in tiles (`loop`), of which those
that the window hides are skipped and those that it shows in full need no mask code (`bounds`).
Source: Dao 2023, "FlashAttention-2", algorithm 1.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.parts import kept, tuning
from pyimpl.backends.kernels.parts.bounds import (
    first_key,
    num_tiles,
    stop_key,
    tile_row_first,
    tile_row_last,
    unmasked_tiles,
    visited_tiles,
)
from pyimpl.backends.kernels.parts.dropout import drop_of, dropout_arguments, numbered_from
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    are_aligned,
    by_size,
    capability,
    check_block,
    check_kind,
    check_length,
    check_outputs,
    check_programs,
    check_tensor,
    group_of,
    has_warpgroups,
    head_arguments,
    is_far,
    is_hopper,
    padded_size,
    pair_arguments,
    pairs_are_aligned,
    score_arguments,
    strides_of,
    why_not,
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
    row_pointers,
    to_float32,
    within,
)
from pyimpl.backends.kernels.parts.sequences import (
    Sequences,
    check_sequences,
    sequence_arguments,
    sequence_slice,
    shifts_of,
    strides_in_sequences,
)
from pyimpl.internal.arguments import empty_output
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query

__all__ = ["forward", "forward_into", "launch", "launch_options", "why_not"]


@implements("Attention.Spec.kvHead")
@device_function
def kv_head_of(head, group):
    """The head of keys and values that query head `head` uses, `group` in a row sharing one."""
    return head // group


@implements("Attention.Spec.flash")
@implements("Attention.Spec.flashSink")
@implements("Attention.Spec.flashWindow")
@implements("Attention.Spec.groupedQuery")
@implements("Attention.Spec.attentionPadded")
@implements("Attention.Spec.attentionSliced")
@kernel
def _forward_kernel(
    query_ptr, key_ptr, value_ptr, mask_ptr, bias_ptr, slopes_ptr, sinks_ptr, seed_ptr, cu_q_ptr,
    cu_k_ptr, out_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_mb, stride_mh, stride_mm, stride_mn,
    stride_bb, stride_bh, stride_bm, stride_bn, stride_sb, stride_sh, stride_ih, stride_xb,
    stride_yb, stride_ob, stride_oh, stride_om, stride_od, stride_lb, stride_lh, stride_lm,
    num_heads, group, q_len, kv_len, max_q_len, head_dim, value_dim, scale, cap, left, right, shift,
    keep_last, keep_scale, drop_head, drop_heads, drop_query, drop_key,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAIRS_ALIGNED: tl.constexpr,
    FAR: tl.constexpr, BOTTOM_RIGHT: tl.constexpr,
):  # fmt: skip
    # One grid dimension: the second and third end at 65,535. Under causality the last tiles have
    # the most keys; started first, they do not finish last. Of packed sequences the longest, of
    # `max_q_len`, says how many tiles each has.
    query_tiles = num_tiles(q_len if cu_q_ptr is None else max_q_len, BLOCK_M)
    tile = query_tiles - 1 - tl.program_id(0) % query_tiles
    head = tl.program_id(0) // query_tiles
    batch = (head // num_heads).to(tl.int64)
    head = (head % num_heads).to(tl.int64)
    kv_head = kv_head_of(head, group)
    row_first = tile_row_first(BLOCK_M, tile)
    q_first = None
    k_first = None
    if cu_q_ptr is not None:
        q_first, q_len = sequence_slice(cu_q_ptr, stride_xb, batch, q_len)
        k_first, kv_len = sequence_slice(cu_k_ptr, stride_yb, batch, kv_len)
        if row_first >= q_len:
            return
        if BOTTOM_RIGHT:
            shift = shift + kv_len - q_len

    # 64-bit offsets: an index times a stride can pass 2³¹.
    row_last = tile_row_last(q_len, BLOCK_M, tile)
    queries = row_first + tl.arange(0, BLOCK_M)
    inside = queries < q_len
    queries64 = queries.to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    query_base = head_of(query_ptr, batch, stride_qb, head, stride_qh, q_first, stride_qm, ALIGNED)
    query_ptrs = row_pointers(query_base, queries64, dims, stride_qm, or_one(stride_qd), ALIGNED)
    loaded = inside[:, None] & within(dims, head_dim, ALIGNED)[None, :]
    q = tl.load(query_ptrs, mask=loaded, other=0.0)

    slopes = None
    sinks = None
    mask_rows = None
    bias_rows = None
    zeros = tl.zeros([BLOCK_M], tl.float32)
    if slopes_ptr is not None:
        slope = tl.load(slopes_ptr + batch * stride_sb + head * stride_sh)
        slopes = zeros + to_float32(slope) * LOG2E
    if sinks_ptr is not None:
        sinks = zeros + to_float32(tl.load(sinks_ptr + head * stride_ih)) * LOG2E
    if mask_ptr is not None:
        mask = head_of(mask_ptr, batch, stride_mb, head, stride_mh, None, None, PAIRS_ALIGNED)
        mask_rows = mask + offsets(queries64, stride_mm, PAIRS_ALIGNED)
    if bias_ptr is not None:
        bias = head_of(bias_ptr, batch, stride_bb, head, stride_bh, None, None, PAIRS_ALIGNED)
        bias_rows = bias + offsets(queries64, stride_bm, PAIRS_ALIGNED)
    rows = Rows(q, queries + shift, inside, slopes, mask_rows, bias_rows)
    keys = Keys(
        head_of(key_ptr, batch, stride_kb, kv_head, stride_kh, k_first, stride_kn, ALIGNED),
        head_of(value_ptr, batch, stride_vb, kv_head, stride_vh, k_first, stride_vn, ALIGNED),
        stride_kn, or_one(stride_kd), stride_vn, or_one(stride_vd),
        or_one(stride_mn), or_one(stride_bn),
        first_key(row_first, shift, left), stop_key(row_last, shift, right, kv_len),
        None, None, None, None, None,
    )  # fmt: skip
    first, stop = visited_tiles(keys.first, keys.stop, BLOCK_N)
    whole_first, whole_stop = unmasked_tiles(
        row_first, row_last, shift, left, right, kv_len, BLOCK_N
    )

    drop = drop_of(
        seed_ptr, cu_q_ptr, batch, num_heads, head, keep_last, keep_scale, shift, drop_head,
        drop_heads,
    )  # fmt: skip
    numbered_q = numbered_from(q_first, drop_query)
    numbered_k = numbered_from(k_first, drop_key)
    m, l, o = start(sinks, BLOCK_M, BLOCK_V)
    m, l, o = over_tiles(
        m, l, o, first, stop, whole_first, whole_stop, kv_len, rows, keys,
        Scores(scale, cap, left, right, drop, numbered_q, numbered_k), head_dim, value_dim,
        BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, None, FAR,
    )  # fmt: skip

    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    out_base = head_of(out_ptr, batch, stride_ob, head, stride_oh, q_first, stride_om, ALIGNED)
    out_ptrs = row_pointers(out_base, queries64, value_dims, stride_om, or_one(stride_od), ALIGNED)
    stored = inside[:, None] & within(value_dims, value_dim, ALIGNED)[None, :]
    tl.store(out_ptrs, round_to(finish(l, o, keep_scale), out_ptr.dtype.element_ty), mask=stored)
    lse_m = or_one(stride_lm)
    lse_base = head_of(lse_ptr, batch, stride_lb, head, stride_lh, q_first, lse_m, False)
    tl.store(lse_base + queries64 * lse_m, log_sum_exp(m, l), mask=inside)


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, options: ScoreOptions, capability: int
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for a launch.

    `capability` is 10 × major + minor of the device's compute capability. Chosen from the offline
    compilation (`offline.compile`): few instructions for each score, next to no
    spilled registers in the loop over keys, and tiles that fit into the devices' shared memory.
    Timed are those for Hopper in bfloat16, full and causal, beside some neighbours, on one H100 and
    one H200 (docs/performance.md); no others.
    """
    dim = padded_size(max(head_dim, value_dim))
    before_hopper = capability < 90
    # The addresses of a mask's or a bias's elements take registers.
    pairs = options.mask is not None or options.bias is not None
    tight = pairs and options.dropout is not None and before_hopper
    if dtype == torch.float32:
        # IEEE products run on the scalar units, whose operands all live in registers.
        return by_size(dim, (32, 32, 4, 2), (32, 16, 8, 2), (32, 16, 8, 1 if pairs else 2))
    if head_dim % 16 or value_dim % 16:
        # Such rows are loaded element by element, and the addresses of all take registers.
        rows = 32 if tight else 64
        middle = (rows, 16 if pairs and before_hopper else 32, 8, 2)
        return by_size(dim, (rows, 32, 4, 2), middle, (32, 16, 8, 2))
    large = (32 if tight else 64, 32, 8, 1 if before_hopper else 2)
    if pairs:
        # Before Hopper the operands of the products come from registers too.
        return by_size(dim, (128, 32, 8, 2), (64 if before_hopper else 128, 32, 8, 2), large)
    more = (options.softcap, options.alibi_slopes, options.dropout)
    if any(option is not None for option in more):
        tile = (128, 32 if options.dropout is not None and before_hopper else 64, 8, 2)
        return by_size(dim, tile, tile, large)
    if is_hopper(capability):
        # Small tiles leave room for a second program, which computes while the first waits.
        return by_size(dim, (64, 64, 4, 3), (64, 64, 4, 3), (128, 64, 8, 2))
    if has_warpgroups(capability):
        return by_size(dim, (128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 2))
    return by_size(dim, (128, 64, 4, 3), (128, 64, 8, 3), (64, 32, 4, 2))


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
    *,
    capability: int,
    sequences: Sequences | None = None,
    chosen: dict[str, int] | None = None,
    block_m: int | None = None,
    block_n: int | None = None,
) -> Launch:
    """The launch of `forward_into` on a device of this compute capability; raises as it does.

    chosen: None for `launch_options`; block_m and block_n, if given, come before it. Of packed
    `sequences` the tensors are those of one batch; there is neither mask nor bias.
    """
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads = key.shape[1]
    kv_len, value_dim = value.shape[-2:]
    group = group_of(num_heads, num_kv_heads)
    check_tensor("key", key, query, (batch, num_kv_heads, kv_len, head_dim))
    check_tensor("value", value, query, (batch, num_kv_heads, kv_len, value_dim))
    check_outputs(out, lse, (batch, num_heads, q_len, value_dim))
    check_length("q_len", q_len)
    check_length("kv_len", kv_len)
    max_q_len = None
    if sequences is not None:
        check_sequences(sequences, query)
        batch, max_q_len = sequences.number, min(q_len, sequences.max_q_len)
        for name, tensor in (("mask", options.mask), ("bias", options.bias)):
            if tensor is not None:
                raise ValueError(f"{name} must be None for packed sequences, not a tensor")
    if chosen is None:
        chosen = launch_options(query.dtype, head_dim, value_dim, options, capability)
    block_m = chosen["block_m"] if block_m is None else block_m
    block_n = chosen["block_n"] if block_n is None else block_n
    check_block("block_m", block_m)
    check_block("block_n", block_n)
    query_tiles = triton.cdiv(q_len if max_q_len is None else max_q_len, block_m)
    programs = query_tiles * batch * num_heads
    check_programs("batch × heads × query tiles", programs)
    # The kernel reads memory as it lies, where a negation may still be due (`z.conj().imag`).
    key, value = key.resolve_neg(), value.resolve_neg()
    query, options = with_nonnegative_scale(query, options)
    strides = {
        letter: strides_in_sequences(tensor, sequences)
        for letter, tensor in zip("qkvol", (query, key, value, out, lse), strict=True)
    }
    sizes = (head_dim, value_dim)
    pairs = pair_arguments(options, query, kv_len)
    return Launch(
        _forward_kernel,
        programs,
        {
            "query_ptr": query, "key_ptr": key, "value_ptr": value, "out_ptr": out, "lse_ptr": lse,
            **strides_of("q", "bhmd", strides["q"]),
            **strides_of("k", "bhnd", strides["k"]),
            **strides_of("v", "bhnd", strides["v"]),
            **strides_of("o", "bhmd", strides["o"]),
            **strides_of("l", "bhm", strides["l"]),
            "num_heads": num_heads, "group": group, "q_len": q_len, "kv_len": kv_len,
            "max_q_len": max_q_len, "head_dim": head_dim, "value_dim": value_dim,
            "shift": options.shift,
            **pairs,
            **sequence_arguments(sequences),
            **head_arguments(options, batch, num_heads, query.device),
            **score_arguments(options),
            **window_arguments(
                options, q_len, kv_len, shifts_of(sequences, options.shift, q_len, kv_len)
            ),
            **dropout_arguments(options.dropout, num_heads, query.device),
        },
        {
            "BLOCK_M": block_m, "BLOCK_N": block_n,
            "BLOCK_D": padded_size(head_dim), "BLOCK_V": padded_size(value_dim),
            "EVEN_D": padded_size(head_dim) == head_dim,
            "EVEN_V": padded_size(value_dim) == value_dim,
            "ALIGNED": are_aligned(*sizes, *(n for x in "qkvo" for n in strides[x][:-1])),
            "PAIRS_ALIGNED": pairs_are_aligned(pairs),
            "FAR": is_far(block_n, key.stride()[2:], value.stride()[2:]),
            "BOTTOM_RIGHT": sequences is not None and sequences.bottom_right,
        },
        chosen["num_warps"],
        chosen["num_stages"],
    )  # fmt: skip


# The kernel's parameters for the tensors that each call has.
TENSORS = ("query_ptr", "key_ptr", "value_ptr", "out_ptr", "lse_ptr")
_NAMES = (*TENSORS, *kept.OPTIONS)


@folds_into_query
def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    *,
    wide: bool = False,
    block_m: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` (wide: in float32) and natural log-sum-exp in float32, both
    newly allocated: `[batch, heads, q_len, value_dim]`, laid out as `empty_output` does, and
    `[batch, heads, q_len]`.

    `query` `[batch, heads, q_len, head_dim]`, `key` `[batch, kv_heads, kv_len, head_dim]`, `value`
    `[batch, kv_heads, kv_len, value_dim]`, of one dtype out of `launch.DTYPES`, with any strides;
    head sizes from 1 to 256; heads a multiple of kv_heads, consecutive heads sharing one of keys
    and values. A query without a key to attend to gives 0, and its log-sum-exp is −∞ or that of its
    sink. See `forward_into` for the rest.
    """
    out = empty_output(query, value.shape[-1], wide=wide)
    lse = query.new_empty(*query.shape[:-1], dtype=torch.float32)
    forward_into(query, key, value, out, lse, options, block_m=block_m, block_n=block_n)
    return out, lse


def forward_into(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
    *,
    block_m: int | None = None,
    block_n: int | None = None,
) -> None:
    """Write the output into `out` and the log-sum-exp into `lse`, of any strides.

    `block_m` and `block_n` (powers of two ≥ 16) default to `launch_options`, or to the fastest if
    ATTENTION_TUNE=1 asks for it (`tuning`). A key masked for every
    query of a tile has no influence on that tile, whatever its key and value rows hold, NaN
    included; the value row of a key that some query of the tile may attend to must be finite.
    The tensors are checked so far that the kernel reads nothing outside of them; the messages of
    `pyimpl.attention` are clearer.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see `why_not`), a
            block size, a length, a number of `options` or the number of tiles is outside the
            kernel's range.
    """
    tuned = block_m is None and block_n is None and tuning.is_wanted(query.device)

    def make() -> tuple[kept.Named]:
        check_kind(query, value)
        found = capability(query.device)
        if not tuned:
            made = launch(
                query, key, value, out, lse, options,
                capability=found, block_m=block_m, block_n=block_n,
            )  # fmt: skip
            return ((made, _NAMES),)

        def with_options(chosen: dict[str, int]) -> Launch:
            return launch(query, key, value, out, lse, options, capability=found, chosen=chosen)

        sizes = (query.dtype, query.shape[-1], value.shape[-1])
        default = launch_options(*sizes, options, found)
        return ((tuning.fastest(with_options, default, query.device), _NAMES),)

    kept.start(
        make, query.device, (query, key, value, out, lse, *kept.tensors_of(options)), (),
        ("forward", block_m, block_n, tuned, *kept.numbers_of(options)),
    )  # fmt: skip
