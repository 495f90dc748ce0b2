"""Attention's backward pass for Hopper GPUs, in Gluon: dK and dV of a tile of keys, and with SUMS
what the tile adds to dQ.

A program has one tile of 128 keys of one head, half of it for each of two warp groups that compute
(`_consume`); one more warp brings the tiles of queries and of the output's gradient into shared
memory, up to STAGES ahead (`_produce`). Scores and their gradients are computed with keys as rows,
so that they are operands of the products for dV and dK as they lie in the registers. For dQ the two
halves exchange the gradients through shared memory; the tensor memory accelerator adds the product
to the sums, in no fixed order.
With AHEAD the scores of a tile are computed while the score gradients of the tile before are
multiplied with its queries (`_over_ahead`).
With ITEMS a program has several tiles of keys, those first that under causality have the most
queries (`_tile`). The next one's keys and queries come while this one's sums are stored.
With heads of 256, whose two sums no group can hold, a program has 64 keys, of which one group sums
dV and the other dK (`_consume_wide`).
Sources: Dao 2023, "FlashAttention-2", algorithm 2; Shah et al. 2024, "FlashAttention-3", section 3.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# Those names of its own stay as they are: what was seen on a device is of that file's very text.
from pyimpl.backends.kernels.hopper.forward_kernel import _item, _rounds, kernel, next_buffer

# Keys of one warp group.
HALF = gl.constexpr(64)


@builtin
def add_shared_to_global(tensor_desc, coord, src, _semantic=None):
    """Add a tile of shared memory to one of global memory, by the tensor memory accelerator: what
    `tma.async_copy_shared_to_global` is to storing. Triton has the operation and Gluon no name for
    it."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(
        ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle
    )


@gluon.jit
def _visiting(k_first, sizes, window, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """The tiles of queries that see some key of the tile that begins with `k_first`: from the first
    number to before the last; from the second to before the third every query sees every key."""
    _, q_len, kv_len, shift = sizes
    left, right = window
    k_last = gl.minimum(k_first + BLOCK_N, kv_len) - 1
    first = 0
    stop = gl.cdiv(q_len, BLOCK_M)
    whole_first = 0
    whole_stop = stop
    if right is not None:
        first = gl.maximum(0, k_first - shift - right) // BLOCK_M
        whole_first = gl.cdiv(gl.maximum(0, k_last - shift - right), BLOCK_M)
    if left is not None:
        seen = gl.maximum(0, gl.minimum(q_len, k_last - shift + left + 1))
        stop = gl.minimum(stop, gl.cdiv(seen, BLOCK_M))
        whole_stop = gl.maximum(0, k_first - shift + left + 1) // BLOCK_M
    first = gl.minimum(first, stop)
    # The last keys of a ragged tile are none.
    whole_stop = gl.where(k_first + BLOCK_N > kv_len, first, gl.minimum(whole_stop, stop))
    whole_first = gl.minimum(gl.maximum(whole_first, first), stop)
    return first, whole_first, gl.maximum(whole_stop, whole_first), stop


@gluon.jit
def _tile(number, sizes, window, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, ITEMS: gl.constexpr):
    """Of the tile of keys that falls to this program in the round `number`: batch, head, first key,
    the tiles of queries that see it, its buffer, and the parity of that one's phase.

    The forward kernel's order of tiles of queries, from the other end, since under causality the
    first keys have the most queries; and of all heads at once, since the shares of fewer, one after
    the other, do not even out.
    """
    heads, num_kv_heads, q_len, kv_len, shift = sizes
    batch, kv_head, from_last = _item(
        number, (heads, num_kv_heads, kv_len, kv_len, shift), heads, BLOCK_N
    )
    k_first = (gl.cdiv(kv_len, BLOCK_N) - 1) * BLOCK_N - from_last
    tiles = _visiting(k_first, (num_kv_heads, q_len, kv_len, shift), window, BLOCK_M, BLOCK_N)
    return batch, kv_head, k_first, tiles, number % ITEMS, number // ITEMS & 1


@gluon.jit
def _bring(
    rows_desc, numbers_desc, rows_bufs, numbers_bufs, full, empty, batch, head, row, slot, phase
):
    """A tile of rows and their numbers, into buffers that have been read."""
    mbarrier.wait(empty.index(slot), phase ^ 1)
    mbarrier.expect(full.index(slot), rows_desc.block_type.nbytes + numbers_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(
        rows_desc, [batch, head, row, 0], full.index(slot), rows_bufs.index(slot)
    )
    tma.async_copy_global_to_shared(
        numbers_desc, [batch, head, row], full.index(slot), numbers_bufs.index(slot)
    )


@gluon.jit
def _bring_tile(
    from_slot, from_phase, q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers,
    batch, kv_head, group, k_first, tiles, place, parity,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """Bring keys and values, and of each head of queries that shares them the visiting tiles."""
    q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs, _, _ = buffers
    q_full, q_empty, g_full, g_empty, kv_full, kv_empty, _ = barriers
    first, _, _, stop = tiles
    PARTS: gl.constexpr = BLOCK_N // HALF
    full = kv_full.index(place)
    if ITEMS:
        mbarrier.wait(kv_empty.index(place), parity ^ 1)
    mbarrier.expect(full, PARTS * (k_desc.block_type.nbytes + v_desc.block_type.nbytes))
    for w in gl.static_range(PARTS):
        at = [batch, kv_head, k_first + w * HALF, 0]
        tma.async_copy_global_to_shared(k_desc, at, full, k_bufs.index(place * PARTS + w))
        tma.async_copy_global_to_shared(v_desc, at, full, v_bufs.index(place * PARTS + w))
    slot = from_slot
    phase = from_phase
    for member in range(group):
        head = kv_head * group + member
        for i in range(first, stop):
            _bring(
                q_desc, lse_desc, q_bufs, lse_bufs, q_full, q_empty,
                batch, head, i * BLOCK_M, slot, phase,
            )  # fmt: skip
            _bring(
                g_desc, delta_desc, g_bufs, delta_bufs, g_full, g_empty,
                batch, head, i * BLOCK_M, slot, phase,
            )  # fmt: skip
            slot, phase = next_buffer(slot, phase, STAGES)
    return slot, phase


@gluon.jit
def _produce(
    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers, work, left, right,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """Bring what the program's tiles of keys need, in their order."""
    if ITEMS:
        slot = 0
        phase = 0
        sizes, group, rounds, _ = work
        for number in range(rounds):
            batch, kv_head, k_first, tiles, place, parity = _tile(
                number, sizes, (left, right), BLOCK_M, BLOCK_N, ITEMS
            )
            slot, phase = _bring_tile(
                slot, phase, q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers,
                barriers, batch, kv_head, group, k_first, tiles, place, parity, BLOCK_M, BLOCK_N,
                STAGES, ITEMS,
            )  # fmt: skip
    else:
        batch, kv_head, group, k_first, tiles = work
        _bring_tile(
            0, 0, q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers,
            batch, kv_head, group, k_first, tiles, 0, 0, BLOCK_M, BLOCK_N, STAGES, ITEMS,
        )  # fmt: skip


@gluon.jit
def _probabilities(
    s, lse, scale, i, keys, kv_len, shift, left, right, BLOCK_M: gl.constexpr,
    MASKED: gl.constexpr,
):  # fmt: skip
    """The weights of a tile of scores, with keys as rows. MASKED: some pair may be hidden."""
    exponents = s * scale - lse[None, :]
    if MASKED:
        rows = i * BLOCK_M + shift + gl.arange(0, BLOCK_M, lse.type.layout)
        seen = (keys < kv_len)[:, None]
        if right is not None:
            seen = seen & (keys[:, None] <= (rows + right)[None, :])
        if left is not None:
            seen = seen & (keys[:, None] >= (rows - left)[None, :])
        exponents = gl.where(seen, exponents, float("-inf"))
    return gl.exp2(exponents)


@gluon.jit
def _score_gradients(p, dp, delta, MASKED: gl.constexpr):
    ds = p * (dp - delta[None, :])
    if MASKED:
        # A weight 0 would not silence what is not finite.
        ds = gl.where(p > 0.0, ds, 0.0)
    return ds


@gluon.jit
def _over(
    dk, dv, slot, phase, turn, begin, end, batch, head, place, sums_desc, buffers, barriers, scale,
    keys, kv_len, shift, left, right, W: gl.constexpr, BLOCK_M: gl.constexpr,
    HEAD_DIM: gl.constexpr, STAGES: gl.constexpr, SUMS: gl.constexpr, MASKED: gl.constexpr,
    s_layout: gl.constexpr,
):  # fmt: skip
    """dK / scale and dV with what the tiles of queries from `begin` to `end` add; to the sums they
    add their dQ / scale. MASKED: some pair may be hidden."""
    q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs, ds_bufs, dq_bufs = buffers
    q_full, q_empty, g_full, g_empty, _, _, ds_full = barriers
    operand: gl.constexpr = gl.DotOperandLayout(0, dk.type.layout, 2)
    dq_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HALF, 16])
    COLUMNS: gl.constexpr = HEAD_DIM // HALF
    row_layout: gl.constexpr = gl.SliceLayout(0, s_layout)
    zero = gl.zeros([HALF, BLOCK_M], gl.float32, s_layout)
    k = k_bufs.index(2 * place + W).reshape([HALF, HEAD_DIM])
    v = v_bufs.index(2 * place + W).reshape([HALF, HEAD_DIM])
    for i in range(begin, end):
        q = q_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        g = g_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        mbarrier.wait(q_full.index(slot), phase)
        s_later = warpgroup_mma(k, q.permute([1, 0]), zero, use_acc=False, is_async=True)
        mbarrier.wait(g_full.index(slot), phase)
        dp_later = warpgroup_mma(v, g.permute([1, 0]), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(1, deps=[s_later])
        lse = lse_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
        p = _probabilities(s, lse, scale, i, keys, kv_len, shift, left, right, BLOCK_M, MASKED)
        p_operand = gl.convert_layout(p.to(q.dtype), operand)
        dv_later = warpgroup_mma(p_operand, g, dv, is_async=True)
        dp = warpgroup_mma_wait(1, deps=[dp_later])
        delta = delta_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
        ds = _score_gradients(p, dp, delta, MASKED).to(q.dtype)
        ds_operand = gl.convert_layout(ds, operand)
        dk_later = warpgroup_mma(ds_operand, q, dk, is_async=True)
        if SUMS:
            # Two of them in turns: to write one, this group has waited for the other's writing of
            # the one between, which follows its reading.
            ds_bufs.index(2 * (turn & 1) + W).store(ds)
            fence_async_shared()
            mbarrier.arrive(ds_full.index(turn & 1), count=1)
            dv, p_operand = warpgroup_mma_wait(1, deps=[dv_later, p_operand])
            mbarrier.arrive(g_empty.index(slot), count=1)
            mbarrier.wait(ds_full.index(turn & 1), turn >> 1 & 1)
            dk, ds_operand = warpgroup_mma_wait(0, deps=[dk_later, ds_operand])
            mbarrier.arrive(q_empty.index(slot), count=1)
            if turn & 1 == W:
                tma.store_wait(pendings=0)
                for c in gl.static_range(COLUMNS):
                    dq = gl.zeros([BLOCK_M, HALF], gl.float32, dq_layout)
                    for w in gl.static_range(2):
                        of_w = ds_bufs.index(2 * (turn & 1) + w).permute([1, 0])
                        keys_of_w = k_bufs.index(2 * place + w).reshape([HALF, HEAD_DIM])
                        some = keys_of_w.slice(c * HALF, HALF, dim=1)
                        dq = warpgroup_mma(of_w, some, dq, is_async=True)
                    dq = warpgroup_mma_wait(0, deps=[dq])
                    dq_buf = dq_bufs.index(W * COLUMNS + c)
                    dq_buf.reshape([BLOCK_M, HALF]).store(dq)
                    fence_async_shared()
                    add_shared_to_global(sums_desc, [batch, head, i * BLOCK_M, c * HALF], dq_buf)
            turn = turn + 1
        else:
            dv, p_operand = warpgroup_mma_wait(1, deps=[dv_later, p_operand])
            mbarrier.arrive(g_empty.index(slot), count=1)
            dk, ds_operand = warpgroup_mma_wait(0, deps=[dk_later, ds_operand])
            mbarrier.arrive(q_empty.index(slot), count=1)
        slot, phase = next_buffer(slot, phase, STAGES)
    return dk, dv, slot, phase, turn


@gluon.jit
def _first_tile(
    dv, i, slot, phase, k, v, buffers, barriers, scale, keys, kv_len, shift, left, right,
    BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr, s_layout: gl.constexpr, operand: gl.constexpr,
):  # fmt: skip
    """dV with what the tile of queries `i` adds, and the tile's score gradients."""
    q_bufs, g_bufs, _, _, lse_bufs, delta_bufs, _, _ = buffers
    q_full, _, g_full, g_empty, _, _, _ = barriers
    row_layout: gl.constexpr = gl.SliceLayout(0, s_layout)
    zero = gl.zeros([HALF, BLOCK_M], gl.float32, s_layout)
    q = q_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
    g = g_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
    mbarrier.wait(q_full.index(slot), phase)
    s_later = warpgroup_mma(k, q.permute([1, 0]), zero, use_acc=False, is_async=True)
    mbarrier.wait(g_full.index(slot), phase)
    dp_later = warpgroup_mma(v, g.permute([1, 0]), zero, use_acc=False, is_async=True)
    s = warpgroup_mma_wait(1, deps=[s_later])
    lse = lse_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
    p = _probabilities(s, lse, scale, i, keys, kv_len, shift, left, right, BLOCK_M, True)
    p_operand = gl.convert_layout(p.to(q.dtype), operand)
    dv_later = warpgroup_mma(p_operand, g, dv, is_async=True)
    dp = warpgroup_mma_wait(1, deps=[dp_later])
    delta = delta_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
    ds = gl.convert_layout(_score_gradients(p, dp, delta, True).to(q.dtype), operand)
    dv, p_operand = warpgroup_mma_wait(0, deps=[dv_later, p_operand])
    mbarrier.arrive(g_empty.index(slot), count=1)
    return dv, ds


@gluon.jit
def _over_ahead(
    dk, dv, ds, before, slot, phase, begin, end, k, v, buffers, barriers, scale, keys, kv_len,
    shift, left, right, BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr,
    MASKED: gl.constexpr, s_layout: gl.constexpr, operand: gl.constexpr,
):  # fmt: skip
    """dK / scale and dV with what the tiles of queries from `begin` to `end` add: each one's scores
    are computed while `ds`, the score gradients of the tile before, are multiplied with its
    queries, which are in the buffer `before`. MASKED: some pair may be hidden."""
    q_bufs, g_bufs, _, _, lse_bufs, delta_bufs, _, _ = buffers
    q_full, q_empty, g_full, g_empty, _, _, _ = barriers
    row_layout: gl.constexpr = gl.SliceLayout(0, s_layout)
    zero = gl.zeros([HALF, BLOCK_M], gl.float32, s_layout)
    for i in range(begin, end):
        q = q_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        g = g_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        mbarrier.wait(q_full.index(slot), phase)
        s_later = warpgroup_mma(k, q.permute([1, 0]), zero, use_acc=False, is_async=True)
        q_before = q_bufs.index(before).reshape([BLOCK_M, HEAD_DIM])
        dk_later = warpgroup_mma(ds, q_before, dk, is_async=True)
        mbarrier.wait(g_full.index(slot), phase)
        dp_later = warpgroup_mma(v, g.permute([1, 0]), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(2, deps=[s_later])
        lse = lse_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
        p = _probabilities(s, lse, scale, i, keys, kv_len, shift, left, right, BLOCK_M, MASKED)
        p_operand = gl.convert_layout(p.to(q.dtype), operand)
        dk, ds = warpgroup_mma_wait(1, deps=[dk_later, ds])
        mbarrier.arrive(q_empty.index(before), count=1)
        dv_later = warpgroup_mma(p_operand, g, dv, is_async=True)
        dp = warpgroup_mma_wait(1, deps=[dp_later])
        delta = delta_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
        ds = gl.convert_layout(_score_gradients(p, dp, delta, MASKED).to(q.dtype), operand)
        dv, p_operand = warpgroup_mma_wait(0, deps=[dv_later, p_operand])
        mbarrier.arrive(g_empty.index(slot), count=1)
        before = slot
        slot, phase = next_buffer(slot, phase, STAGES)
    return dk, dv, ds, before, slot, phase


@gluon.jit
def _over_wide(
    sums, slot, phase, begin, end, place, buffers, barriers, scale, keys, kv_len, shift, left,
    right, W: gl.constexpr, BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr,
    MASKED: gl.constexpr, s_layout: gl.constexpr,
):  # fmt: skip
    """Of heads too wide for one group to hold both: dV (W = 0) or dK / scale (W = 1) of the same 64
    keys, with what the tiles of queries from `begin` to `end` add."""
    q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs, _, _ = buffers
    q_full, q_empty, g_full, g_empty, _, _, _ = barriers
    operand_layout: gl.constexpr = gl.DotOperandLayout(0, sums.type.layout, 2)
    row_layout: gl.constexpr = gl.SliceLayout(0, s_layout)
    zero = gl.zeros([HALF, BLOCK_M], gl.float32, s_layout)
    k = k_bufs.index(place).reshape([HALF, HEAD_DIM])
    v = v_bufs.index(place).reshape([HALF, HEAD_DIM])
    for i in range(begin, end):
        q = q_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        g = g_bufs.index(slot).reshape([BLOCK_M, HEAD_DIM])
        mbarrier.wait(q_full.index(slot), phase)
        s_later = warpgroup_mma(k, q.permute([1, 0]), zero, use_acc=False, is_async=True)
        mbarrier.wait(g_full.index(slot), phase)
        if W == 1:
            dp_later = warpgroup_mma(v, g.permute([1, 0]), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(W, deps=[s_later])
        lse = lse_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
        p = _probabilities(s, lse, scale, i, keys, kv_len, shift, left, right, BLOCK_M, MASKED)
        if W == 0:
            operand = gl.convert_layout(p.to(q.dtype), operand_layout)
            later = warpgroup_mma(operand, g, sums, is_async=True)
        else:
            dp = warpgroup_mma_wait(0, deps=[dp_later])
            delta = delta_bufs.index(slot).reshape([BLOCK_M]).load(row_layout)
            ds = _score_gradients(p, dp, delta, MASKED)
            operand = gl.convert_layout(ds.to(q.dtype), operand_layout)
            later = warpgroup_mma(operand, q, sums, is_async=True)
        sums, operand = warpgroup_mma_wait(0, deps=[later, operand])
        mbarrier.arrive(q_empty.index(slot), count=1)
        mbarrier.arrive(g_empty.index(slot), count=1)
        slot, phase = next_buffer(slot, phase, STAGES)
    return sums, slot, phase


@gluon.jit
def _of_head(dk_ptr, dv_ptr, strides, batch, kv_head):
    """Where the gradients of a head's keys and values begin."""
    stride_cb, stride_ch, stride_eb, stride_eh = strides
    # 64-bit offsets: an index times a stride can pass 2³¹.
    batch, kv_head = batch.to(gl.int64), kv_head.to(gl.int64)
    dk_ptr += batch * stride_cb + kv_head * stride_ch
    return dk_ptr, dv_ptr + batch * stride_eb + kv_head * stride_eh


@gluon.jit
def _store(ptr, stride_n, sums, k_first, kv_len):
    """Rows of 64 keys from `k_first` on, as far as there are keys."""
    layout: gl.constexpr = sums.type.layout
    own = k_first + gl.arange(0, HALF, gl.SliceLayout(1, layout))
    dims = gl.arange(0, sums.shape[1], gl.SliceLayout(0, layout))
    # 64-bit offsets: an index times a stride can pass 2³¹.
    ptrs = ptr + own.to(gl.int64)[:, None] * stride_n + dims[None, :]
    gl.store(ptrs, sums.to(ptr.dtype.element_ty), mask=(own < kv_len)[:, None])


@gluon.jit
def _sum_wide(
    from_slot, from_phase, dk_ptr, dv_ptr, stride_n, stride_en, buffers, barriers, group, k_first,
    tiles, place, parity, kv_len, shift, left, right, scale, grad_scale, W: gl.constexpr,
    BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """dV (W = 0) or dK (W = 1) of a tile of keys."""
    kv_full, kv_empty = barriers[4], barriers[5]
    first, whole_first, whole_stop, stop = tiles
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    keys = k_first + gl.arange(0, HALF, gl.SliceLayout(1, s_layout))
    sums = gl.zeros([HALF, HEAD_DIM], gl.float32, layout)
    mbarrier.wait(kv_full.index(place), parity)
    slot = from_slot
    phase = from_phase
    for _member in range(group):
        sums, slot, phase = _over_wide(
            sums, slot, phase, first, whole_first, place, buffers, barriers, scale, keys, kv_len,
            shift, left, right, W, BLOCK_M, HEAD_DIM, STAGES, True, s_layout,
        )  # fmt: skip
        sums, slot, phase = _over_wide(
            sums, slot, phase, whole_first, whole_stop, place, buffers, barriers, scale, keys,
            kv_len, shift, left, right, W, BLOCK_M, HEAD_DIM, STAGES, False, s_layout,
        )  # fmt: skip
        sums, slot, phase = _over_wide(
            sums, slot, phase, whole_stop, stop, place, buffers, barriers, scale, keys, kv_len,
            shift, left, right, W, BLOCK_M, HEAD_DIM, STAGES, True, s_layout,
        )  # fmt: skip
    if ITEMS:
        mbarrier.arrive(kv_empty.index(place), count=1)
    if W == 0:
        _store(dv_ptr, stride_en, sums, k_first, kv_len)
    else:
        _store(dk_ptr, stride_n, sums * grad_scale, k_first, kv_len)
    return slot, phase


@gluon.jit
def _consume_wide(
    W: gl.constexpr, dk_ptr, dv_ptr, stride_n, stride_en, buffers, barriers, work, kv_len, shift,
    left, right, scale, grad_scale, BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr,
    STAGES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """dV (W = 0) or dK (W = 1) of the program's tiles of keys."""
    if ITEMS:
        slot = 0
        phase = 0
        sizes, group, rounds, strides = work
        for number in range(rounds):
            batch, kv_head, k_first, tiles, place, parity = _tile(
                number, sizes, (left, right), BLOCK_M, HALF, ITEMS
            )
            dk_of_head, dv_of_head = _of_head(dk_ptr, dv_ptr, strides, batch, kv_head)
            slot, phase = _sum_wide(
                slot, phase, dk_of_head, dv_of_head, stride_n, stride_en, buffers, barriers, group,
                k_first, tiles, place, parity, kv_len, shift, left, right, scale, grad_scale, W,
                BLOCK_M, HEAD_DIM, STAGES, ITEMS,
            )  # fmt: skip
    else:
        _, _, group, k_first, tiles = work
        _sum_wide(
            0, 0, dk_ptr, dv_ptr, stride_n, stride_en, buffers, barriers, group, k_first,
            tiles, 0, 0, kv_len, shift, left, right, scale, grad_scale, W, BLOCK_M, HEAD_DIM,
            STAGES, ITEMS,
        )  # fmt: skip


@gluon.jit
def _sum_half(
    from_slot, from_phase, from_turn, sums_desc, dk_ptr, dv_ptr, stride_n, stride_en, buffers,
    barriers, batch, kv_head, group, k_first, tiles, place, parity, kv_len, shift, left, right,
    scale, grad_scale, W: gl.constexpr, BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr,
    STAGES: gl.constexpr, SUMS: gl.constexpr, AHEAD: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """dK and dV of half W of a tile of keys."""
    kv_full, kv_empty = barriers[4], barriers[5]
    first, whole_first, whole_stop, stop = tiles
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    keys = k_first + W * HALF + gl.arange(0, HALF, gl.SliceLayout(1, s_layout))
    dk = gl.zeros([HALF, HEAD_DIM], gl.float32, layout)
    dv = gl.zeros([HALF, HEAD_DIM], gl.float32, layout)
    mbarrier.wait(kv_full.index(place), parity)
    if AHEAD and not SUMS:
        operand: gl.constexpr = gl.DotOperandLayout(0, layout, 2)
        k = buffers[2].index(2 * place + W).reshape([HALF, HEAD_DIM])
        v = buffers[3].index(2 * place + W).reshape([HALF, HEAD_DIM])
        turn = from_turn
        if ITEMS:
            slot = from_slot
            phase = from_phase
        if first < stop:
            dv, ds = _first_tile(
                dv, first, from_slot, from_phase, k, v, buffers, barriers, scale, keys, kv_len,
                shift, left, right, BLOCK_M, HEAD_DIM, s_layout, operand,
            )  # fmt: skip
            before = from_slot
            slot, phase = next_buffer(from_slot, from_phase, STAGES)
            # Of the heads after the first it is all of them.
            begin = first + 1
            for _member in range(group):
                whole_begin = gl.maximum(begin, whole_first)
                whole_end = gl.maximum(begin, whole_stop)
                dk, dv, ds, before, slot, phase = _over_ahead(
                    dk, dv, ds, before, slot, phase, begin, whole_begin, k, v, buffers, barriers,
                    scale, keys, kv_len, shift, left, right, BLOCK_M, HEAD_DIM, STAGES, True,
                    s_layout, operand,
                )  # fmt: skip
                dk, dv, ds, before, slot, phase = _over_ahead(
                    dk, dv, ds, before, slot, phase, whole_begin, whole_end, k, v, buffers,
                    barriers, scale, keys, kv_len, shift, left, right, BLOCK_M, HEAD_DIM, STAGES,
                    False, s_layout, operand,
                )  # fmt: skip
                dk, dv, ds, before, slot, phase = _over_ahead(
                    dk, dv, ds, before, slot, phase, whole_end, stop, k, v, buffers, barriers,
                    scale, keys, kv_len, shift, left, right, BLOCK_M, HEAD_DIM, STAGES, True,
                    s_layout, operand,
                )  # fmt: skip
                begin = first
            q_before = buffers[0].index(before).reshape([BLOCK_M, HEAD_DIM])
            dk_later = warpgroup_mma(ds, q_before, dk, is_async=True)
            dk, ds = warpgroup_mma_wait(0, deps=[dk_later, ds])
            mbarrier.arrive(barriers[1].index(before), count=1)
        if ITEMS == 0:
            # Of one tile nobody asks where its buffers end.
            slot = from_slot
            phase = from_phase
    else:
        slot = from_slot
        phase = from_phase
        turn = from_turn
        for member in range(group):
            head = kv_head * group + member
            dk, dv, slot, phase, turn = _over(
                dk, dv, slot, phase, turn, first, whole_first, batch, head, place, sums_desc,
                buffers, barriers, scale, keys, kv_len, shift, left, right, W, BLOCK_M, HEAD_DIM,
                STAGES, SUMS, True, s_layout,
            )  # fmt: skip
            dk, dv, slot, phase, turn = _over(
                dk, dv, slot, phase, turn, whole_first, whole_stop, batch, head, place, sums_desc,
                buffers, barriers, scale, keys, kv_len, shift, left, right, W, BLOCK_M, HEAD_DIM,
                STAGES, SUMS, False, s_layout,
            )  # fmt: skip
            dk, dv, slot, phase, turn = _over(
                dk, dv, slot, phase, turn, whole_stop, stop, batch, head, place, sums_desc,
                buffers, barriers, scale, keys, kv_len, shift, left, right, W, BLOCK_M, HEAD_DIM,
                STAGES, SUMS, True, s_layout,
            )  # fmt: skip
    if ITEMS:
        # Before the sums are stored, so that the next tile's keys come meanwhile.
        mbarrier.arrive(kv_empty.index(place), count=1)
    _store(dk_ptr, stride_n, dk * grad_scale, k_first + W * HALF, kv_len)
    _store(dv_ptr, stride_en, dv, k_first + W * HALF, kv_len)
    if SUMS:
        tma.store_wait(pendings=0)
    return slot, phase, turn


@gluon.jit
def _consume(
    W: gl.constexpr, sums_desc, dk_ptr, dv_ptr, stride_n, stride_en, buffers, barriers, work,
    kv_len, shift, left, right, scale, grad_scale, BLOCK_M: gl.constexpr, HEAD_DIM: gl.constexpr,
    STAGES: gl.constexpr, SUMS: gl.constexpr, AHEAD: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """dK and dV of half W of the program's tiles of keys."""
    if ITEMS:
        slot = 0
        phase = 0
        turn = 0
        sizes, group, rounds, strides = work
        for number in range(rounds):
            batch, kv_head, k_first, tiles, place, parity = _tile(
                number, sizes, (left, right), BLOCK_M, 2 * HALF, ITEMS
            )
            dk_of_head, dv_of_head = _of_head(dk_ptr, dv_ptr, strides, batch, kv_head)
            slot, phase, turn = _sum_half(
                slot, phase, turn, sums_desc, dk_of_head, dv_of_head, stride_n, stride_en, buffers,
                barriers, batch, kv_head, group, k_first, tiles, place, parity, kv_len, shift, left,
                right, scale, grad_scale, W, BLOCK_M, HEAD_DIM, STAGES, SUMS, AHEAD, ITEMS,
            )  # fmt: skip
    else:
        batch, kv_head, group, k_first, tiles = work
        _sum_half(
            0, 0, 0, sums_desc, dk_ptr, dv_ptr, stride_n, stride_en, buffers, barriers,
            batch, kv_head, group, k_first, tiles, 0, 0, kv_len, shift, left, right, scale,
            grad_scale, W, BLOCK_M, HEAD_DIM, STAGES, SUMS, AHEAD, ITEMS,
        )  # fmt: skip


@kernel
def backward_kernel(
    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, sums_desc, dk_ptr, dv_ptr,
    stride_cb, stride_ch, stride_cn, stride_eb, stride_eh, stride_en,
    num_kv_heads, group, q_len, kv_len, shift, left, right, scale, grad_scale, num_batches,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr,
    SUMS: gl.constexpr, AHEAD: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    # ITEMS: of how many tiles of keys a program has buffers for keys and values; 0: each program
    # has one tile, and `num_batches` is None.
    # A tile's queries are multiplied once more beside the scores of the tile after it.
    gl.static_assert(STAGES >= 2 or not AHEAD)
    dtype: gl.constexpr = q_desc.dtype
    # Under causality the first tiles of keys have the most queries.
    key_tiles = gl.cdiv(kv_len, BLOCK_N)
    if ITEMS == 0:
        k_first = gl.program_id(0) % key_tiles * BLOCK_N
        head = gl.program_id(0) // key_tiles
        batch = head // num_kv_heads
        kv_head = head % num_kv_heads
        tiles = _visiting(
            k_first, (num_kv_heads, q_len, kv_len, shift), (left, right), BLOCK_M, BLOCK_N
        )

    barrier: gl.constexpr = mbarrier.MBarrierLayout()
    q_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_M, HEAD_DIM], q_desc.layout)
    g_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_M, HEAD_DIM], g_desc.layout)
    KEYS: gl.constexpr = ITEMS if ITEMS else 1
    keys_shape: gl.constexpr = [KEYS * BLOCK_N // HALF, 1, 1, HALF, HEAD_DIM]
    k_bufs = gl.allocate_shared_memory(dtype, keys_shape, k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, keys_shape, v_desc.layout)
    lse_bufs = gl.allocate_shared_memory(gl.float32, [STAGES, 1, 1, BLOCK_M], lse_desc.layout)
    delta_bufs = gl.allocate_shared_memory(gl.float32, [STAGES, 1, 1, BLOCK_M], delta_desc.layout)
    ds_layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    ds_bufs = gl.allocate_shared_memory(dtype, [4 if SUMS else 1, HALF, BLOCK_M], ds_layout)
    dq_bufs = gl.allocate_shared_memory(
        gl.float32, [2 * HEAD_DIM // HALF if SUMS else 1, 1, 1, BLOCK_M, HALF], sums_desc.layout
    )
    q_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    q_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    g_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    g_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    kv_full = gl.allocate_shared_memory(gl.int64, [KEYS, 1], barrier)
    ds_full = gl.allocate_shared_memory(gl.int64, [2, 1], barrier)
    # Of one tile nobody has to say that it has been read.
    kv_empty = kv_full
    if ITEMS:
        kv_empty = gl.allocate_shared_memory(gl.int64, [ITEMS, 1], barrier)
    for i in gl.static_range(ITEMS):
        mbarrier.init(kv_empty.index(i), count=2)
    for i in gl.static_range(KEYS):
        mbarrier.init(kv_full.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.init(ds_full.index(i), count=2)
    for i in gl.static_range(STAGES):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(g_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=2)
        mbarrier.init(g_empty.index(i), count=2)
    fence_async_shared()

    # 16 divides the gradients' strides, which is said so that several elements are stored at a
    # time. 64-bit offsets: an index times a stride can pass 2³¹.
    if ITEMS:
        sizes = (num_batches * num_kv_heads, num_kv_heads, q_len, kv_len, shift)
        strides = (
            stride_cb // 16 * 16, stride_ch // 16 * 16, stride_eb // 16 * 16, stride_eh // 16 * 16,
        )  # fmt: skip
        rounds = _rounds(num_batches * num_kv_heads * key_tiles)
        work = (sizes, group, rounds, strides)
    else:
        dk_ptr += batch.to(gl.int64) * (stride_cb // 16 * 16)
        dk_ptr += kv_head.to(gl.int64) * (stride_ch // 16 * 16)
        dv_ptr += batch.to(gl.int64) * (stride_eb // 16 * 16)
        dv_ptr += kv_head.to(gl.int64) * (stride_eh // 16 * 16)
        # Of another type than above: Triton compiles one of the two.
        work = (batch, kv_head, group, k_first, tiles)  # type: ignore[assignment]
    stride_cn = stride_cn // 16 * 16
    stride_en = stride_en // 16 * 16
    buffers = (q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs, ds_bufs, dq_bufs)
    barriers = (q_full, q_empty, g_full, g_empty, kv_full, kv_empty, ds_full)
    # Spelled out, since Triton takes no constants out of a tuple that has a name.
    if BLOCK_N == 2 * HALF:
        gl.warp_specialize(
            [
                (_consume, (
                    0, sums_desc, dk_ptr, dv_ptr, stride_cn, stride_en, buffers, barriers, work,
                    kv_len, shift, left, right, scale, grad_scale, BLOCK_M, HEAD_DIM, STAGES, SUMS,
                    AHEAD, ITEMS,
                )),
                (_consume, (
                    1, sums_desc, dk_ptr, dv_ptr, stride_cn, stride_en, buffers, barriers, work,
                    kv_len, shift, left, right, scale, grad_scale, BLOCK_M, HEAD_DIM, STAGES, SUMS,
                    AHEAD, ITEMS,
                )),
                (_produce, (
                    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers, work,
                    left, right, BLOCK_M, BLOCK_N, STAGES, ITEMS,
                )),
            ],
            [4, 1],
            [240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (_consume_wide, (
                    0, dk_ptr, dv_ptr, stride_cn, stride_en, buffers, barriers, work, kv_len,
                    shift, left, right, scale, grad_scale, BLOCK_M, HEAD_DIM, STAGES, ITEMS,
                )),
                (_consume_wide, (
                    1, dk_ptr, dv_ptr, stride_cn, stride_en, buffers, barriers, work, kv_len,
                    shift, left, right, scale, grad_scale, BLOCK_M, HEAD_DIM, STAGES, ITEMS,
                )),
                (_produce, (
                    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers, work,
                    left, right, BLOCK_M, BLOCK_N, STAGES, ITEMS,
                )),
            ],
            [4, 1],
            [240, 24],
        )  # fmt: skip
