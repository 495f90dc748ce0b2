"""Attention's forward pass for Hopper GPUs, in Gluon: each warp group has its part.

A program has one head and CONSUMERS tiles of queries, one for each of the warp groups that compute
(`_consume`); one more warp brings keys and values into shared memory by the tensor memory
accelerator, up to STAGES tiles ahead (`_produce`). While a group computes the weights of a tile of
keys, its product of the weights before with their values is under way, and so are the other groups'
products.
Source: Shah et al. 2024, "FlashAttention-3", algorithms 1 and 2.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import math

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from pyimpl.backends.kernels.parts.numerics import numbers_of

LN2 = gl.constexpr(math.log(2.0))
# The warp groups that compute.
CONSUMERS = gl.constexpr(2)
# How the output leaves: by each thread's own stores, or by the tensor memory accelerator, from the
# buffers that the queries came in, which take no others before that, or from buffers of its own.
BY_THREADS = gl.constexpr(0)
FROM_QUERIES = gl.constexpr(1)
FROM_ITS_OWN = gl.constexpr(2)


def kernel(function):
    """`gluon.jit` for a kernel whose text does not depend on the numbers that it is given, as
    `numerics.kernel` is for Triton's."""
    return gluon.jit(function, do_not_specialize=numbers_of(function))


@gluon.jit
def next_buffer(slot, phase, STAGES: gl.constexpr):
    """The buffer after this one, and the parity of its barriers' phase."""
    last = slot == STAGES - 1
    return gl.where(last, 0, slot + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def _queries_of(w, number, ITEMS: gl.constexpr):
    """The buffer of the queries of group `w` in the round `number`, of ITEMS for each, and the
    parity of its barriers' phase."""
    return number % ITEMS * CONSUMERS + w, number // ITEMS & 1


@gluon.jit
def _rounds(items):
    """How many of the items fall to this program."""
    programs = gl.num_programs(0)
    whole = items // programs
    place = gl.program_id(0)
    place = gl.where(whole % 2 == 0, place, programs - 1 - place)
    return whole + gl.where(whole * programs + place < items, 1, 0)


@gluon.jit
def _item(number, sizes, heads_at_once, ROWS: gl.constexpr):
    """Batch, head and first query of the item that falls to this program in the round `number`.

    Of `heads_at_once` heads, whose keys and values the level-2 cache can hold, the last tiles of
    queries come first: under causality they have the most keys. Every other round goes backwards
    over the programs, so that each has as much to do as the others.
    """
    heads, num_heads, q_len, _, _ = sizes
    programs = gl.num_programs(0)
    place = gl.program_id(0)
    place = gl.where(number % 2 == 0, place, programs - 1 - place) + number * programs
    tiles = gl.cdiv(q_len, ROWS)
    some = place // (heads_at_once * tiles) * heads_at_once
    place = place - some * tiles
    width = gl.minimum(heads_at_once, heads - some)
    head = some + place % width
    return head // num_heads, head % num_heads, (tiles - 1 - place // width) * ROWS


@gluon.jit
def visited(q_first, sizes, window, BLOCK_N: gl.constexpr, ROWS: gl.constexpr):
    """The tiles of keys that `ROWS` rows from `q_first` on visit, as four numbers: the last one,
    from which they are counted downwards; how many there are, at least one; from which number on
    every row sees every key, and from which on not any more. The first is never among those."""
    _, _, q_len, kv_len, shift = sizes
    left, right = window
    q_last = gl.minimum(q_first + ROWS, q_len) - 1
    first = 0
    stop = kv_len
    whole_first = 0
    whole_stop = kv_len // BLOCK_N
    if right is not None:
        stop = gl.maximum(0, gl.minimum(kv_len, q_last + shift + right + 1))
        seen = gl.maximum(0, q_first + shift + right + 1)
        whole_stop = gl.minimum(whole_stop, seen // BLOCK_N)
    if left is not None:
        first = gl.maximum(0, gl.minimum(stop, q_first + shift - left))
        whole_first = gl.cdiv(gl.maximum(0, q_last + shift - left), BLOCK_N)
    last = gl.maximum(0, gl.cdiv(stop, BLOCK_N) - 1)
    tiles = gl.maximum(1, last + 1 - first // BLOCK_N)
    masked = gl.minimum(tiles, gl.maximum(1, last + 1 - whole_stop))
    whole = gl.maximum(masked, gl.minimum(tiles, last + 1 - whole_first))
    return last, tiles, masked, whole


@gluon.jit
def _produce(
    q_desc, k_desc, v_desc, buffers, barriers, rounds, sizes, heads_at_once, window, group,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """Bring the queries of each item, and the tiles of keys and values that they visit."""
    q_bufs, k_bufs, v_bufs, _ = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty, _ = barriers
    slot = 0
    phase = 0
    for number in range(rounds):
        batch, head, q_first = _item(number, sizes, heads_at_once, CONSUMERS * BLOCK_M)
        last, tiles, _masked, _whole = visited(q_first, sizes, window, BLOCK_N, CONSUMERS * BLOCK_M)
        for w in gl.static_range(CONSUMERS):
            at = [batch, head, q_first + w * BLOCK_M, 0]
            place, parity = _queries_of(w, number, ITEMS)
            mbarrier.wait(q_empty.index(place), parity ^ 1)
            mbarrier.expect(q_full.index(place), q_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(q_desc, at, q_full.index(place), q_bufs.index(place))
        for i in range(tiles):
            at = [batch, head // group, (last - i) * BLOCK_N, 0]
            mbarrier.wait(k_empty.index(slot), phase ^ 1)
            mbarrier.expect(k_full.index(slot), k_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(k_desc, at, k_full.index(slot), k_bufs.index(slot))
            mbarrier.wait(v_empty.index(slot), phase ^ 1)
            mbarrier.expect(v_full.index(slot), v_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(v_desc, at, v_full.index(slot), v_bufs.index(slot))
            slot, phase = next_buffer(slot, phase, STAGES)


@gluon.jit
def _weights(
    s, m, l, scale, tile, rows, kv_len, left, right, BLOCK_N: gl.constexpr, MASKED: gl.constexpr
):
    """The weights of a tile of scores, not yet rounded; the new maximum and denominator, and the
    factor for what was summed before. MASKED: some pair may be hidden."""
    if MASKED:
        keys = tile * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s.type.layout))
        seen = (keys < kv_len)[None, :]
        if right is not None:
            seen = seen & (keys[None, :] <= (rows + right)[:, None])
        if left is not None:
            seen = seen & (keys[None, :] >= (rows - left)[:, None])
        s = gl.where(seen, s, float("-inf"))
    m_new = gl.maximum(m, gl.max(s, 1) * scale)
    shift = gl.where(m_new == float("-inf"), 0.0, m_new) if MASKED else m_new
    alpha = gl.exp2(m - shift)
    p = gl.exp2(s * scale - shift[:, None])
    return p, m_new, l * alpha + gl.sum(p, 1), alpha


@gluon.jit
def _held(l):
    """`l`, which is at least 0, as it is. Left alone, the assembler moves the exponentials behind
    the wait that follows, and the matrix unit has nothing to do meanwhile. A store that depends on
    their sum, and that never happens, holds them before it."""
    return gl.inline_asm_elementwise(
        "{ .reg .pred never; .reg .b32 at; mov.b32 at, 0; setp.lt.f32 never, $1, 0f00000000;"
        " @never st.volatile.shared.f32 [at], $1; mov.b32 $0, $1; }",
        "=r,r",
        [l],
        dtype=gl.float32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def _over(
    o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn, begin, end, last,
    q, buffers, barriers, scale, rows, kv_len, left, right, W: gl.constexpr,
    BLOCK_N: gl.constexpr, STAGES: gl.constexpr, IN_TURNS: gl.constexpr,
    MASKED: gl.constexpr, s_layout: gl.constexpr,
):  # fmt: skip
    """The tiles with the numbers from `begin` to `end`, counted from the tile `last` downwards:
    each one's scores are computed while `p`, the weights of the one before, are multiplied with its
    values."""
    _, k_bufs, v_bufs, _ = buffers
    _, _, k_full, k_empty, v_full, v_empty, turns = barriers
    BLOCK_M: gl.constexpr = q.shape[0]
    HEAD_DIM: gl.constexpr = q.shape[1]
    zero = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, s_layout)
    for i in range(begin, end):
        if IN_TURNS:
            # After the other group; the first, after the other's products of the tile before.
            mbarrier.wait(turns.index(W), turn if W else turn ^ 1)
            turn = turn ^ 1
        mbarrier.wait(k_full.index(k_slot), k_phase)
        keys = k_bufs.index(k_slot).reshape([BLOCK_N, HEAD_DIM]).permute([1, 0])
        s_later = warpgroup_mma(q, keys, zero, use_acc=False, is_async=True)
        mbarrier.wait(v_full.index(v_slot), v_phase)
        values = v_bufs.index(v_slot).reshape([BLOCK_N, HEAD_DIM])
        o_later = warpgroup_mma(p, values, o, is_async=True)
        if IN_TURNS:
            mbarrier.arrive(turns.index(1 - W), count=1)
        s = warpgroup_mma_wait(1, deps=[s_later])
        mbarrier.arrive(k_empty.index(k_slot), count=1)
        weights, m, l, alpha = _weights(
            s, m, l, scale, last - i, rows, kv_len, left, right, BLOCK_N, MASKED
        )
        p_next = gl.convert_layout(weights.to(p.dtype), p.type.layout)
        l = _held(l)
        o, p, p_next = warpgroup_mma_wait(0, deps=[o_later, p, p_next])
        mbarrier.arrive(v_empty.index(v_slot), count=1)
        o = o * gl.convert_layout(alpha, gl.SliceLayout(1, o.type.layout))[:, None]
        p = p_next
        v_slot = k_slot
        v_phase = k_phase
        k_slot, k_phase = next_buffer(k_slot, k_phase, STAGES)
    return o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn


@gluon.jit
def _consume(
    W: gl.constexpr, buffers, barriers, out, lse_ptr, out_strides, lse_strides,
    rounds, sizes, heads_at_once, window, scale,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr,
    IN_TURNS: gl.constexpr, ITEMS: gl.constexpr, OUT: gl.constexpr,
):  # fmt: skip
    """Attention of the queries of tile W of each item."""
    q_bufs, k_bufs, v_bufs, o_bufs = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty, _ = barriers
    _, _, q_len, kv_len, shift = sizes
    left, right = window
    dtype: gl.constexpr = q_bufs.dtype
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    row_layout: gl.constexpr = gl.SliceLayout(1, s_layout)
    o_row_layout: gl.constexpr = gl.SliceLayout(1, o_layout)
    zero = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, s_layout)
    k_slot = 0
    k_phase = 0
    turn = 0
    for number in range(rounds):
        batch, head, q_first = _item(number, sizes, heads_at_once, CONSUMERS * BLOCK_M)
        last, tiles, masked, whole = visited(q_first, sizes, window, BLOCK_N, CONSUMERS * BLOCK_M)
        tile_rows = q_first + W * BLOCK_M + gl.arange(0, BLOCK_M, row_layout)
        rows = tile_rows + shift
        m = gl.full([BLOCK_M], float("-inf"), gl.float32, row_layout)
        l = gl.full([BLOCK_M], 0.0, gl.float32, row_layout)
        o = gl.zeros([BLOCK_M, HEAD_DIM], gl.float32, o_layout)

        place, parity = _queries_of(W, number, ITEMS)
        q = q_bufs.index(place).reshape([BLOCK_M, HEAD_DIM])
        mbarrier.wait(q_full.index(place), parity)
        mbarrier.wait(k_full.index(k_slot), k_phase)
        keys = k_bufs.index(k_slot).reshape([BLOCK_N, HEAD_DIM]).permute([1, 0])
        s_later = warpgroup_mma(q, keys, zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, deps=[s_later])
        mbarrier.arrive(k_empty.index(k_slot), count=1)
        weights, m, l, _alpha = _weights(
            s, m, l, scale, last, rows, kv_len, left, right, BLOCK_N, True
        )
        p = gl.convert_layout(weights.to(dtype), p_layout)

        v_slot = k_slot
        v_phase = k_phase
        k_slot, k_phase = next_buffer(k_slot, k_phase, STAGES)
        if right is not None:
            o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn = _over(
                o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn, 1, masked, last,
                q, buffers, barriers, scale, rows, kv_len, left, right, W,
                BLOCK_N, STAGES, IN_TURNS, True, s_layout,
            )  # fmt: skip
        o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn = _over(
            o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn, masked, whole, last,
            q, buffers, barriers, scale, rows, kv_len, left, right, W,
            BLOCK_N, STAGES, IN_TURNS, False, s_layout,
        )  # fmt: skip
        if left is not None:
            o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn = _over(
                o, p, m, l, k_slot, k_phase, v_slot, v_phase, turn, whole, tiles, last,
                q, buffers, barriers, scale, rows, kv_len, left, right, W,
                BLOCK_N, STAGES, IN_TURNS, True, s_layout,
            )  # fmt: skip
        if OUT != FROM_QUERIES:
            mbarrier.arrive(q_empty.index(place), count=1)
        mbarrier.wait(v_full.index(v_slot), v_phase)
        values = v_bufs.index(v_slot).reshape([BLOCK_N, HEAD_DIM])
        o_later = warpgroup_mma(p, values, o, is_async=True)
        o, p = warpgroup_mma_wait(0, deps=[o_later, p])
        mbarrier.arrive(v_empty.index(v_slot), count=1)

        none = l == 0.0
        o = o * gl.convert_layout(1.0 / gl.where(none, 1.0, l), o_row_layout)[:, None]
        o_first = q_first + W * BLOCK_M
        if OUT == BY_THREADS:
            # 64-bit offsets: an index times a stride can pass 2³¹.
            o_rows = o_first + gl.arange(0, BLOCK_M, o_row_layout)
            dims = gl.arange(0, HEAD_DIM, gl.SliceLayout(0, o_layout))
            stride_b, stride_h, stride_m = out_strides
            head_ptr = out + batch.to(gl.int64) * stride_b + head.to(gl.int64) * stride_h
            out_ptrs = head_ptr + o_rows.to(gl.int64)[:, None] * stride_m + dims[None, :]
            gl.store(out_ptrs, o.to(dtype), mask=(o_rows < q_len)[:, None])
        else:
            o_buf = q_bufs.index(place) if OUT == FROM_QUERIES else o_bufs.index(W)
            if OUT == FROM_ITS_OWN:
                # The output of the item before has been read.
                tma.store_wait(pendings=0)
            o_buf.reshape([BLOCK_M, HEAD_DIM]).store(o.to(dtype))
            fence_async_shared()
            # Rows past the last are not written.
            tma.async_copy_shared_to_global(out, [batch, head, o_first, 0], o_buf)
            if OUT == FROM_QUERIES:
                tma.store_wait(pendings=0)
                mbarrier.arrive(q_empty.index(place), count=1)
        stride_b, stride_h, stride_m = lse_strides
        head_ptr = lse_ptr + batch.to(gl.int64) * stride_b + head.to(gl.int64) * stride_h
        lse = m * LN2 + gl.log(gl.where(none, 1.0, l))
        gl.store(head_ptr + tile_rows.to(gl.int64) * stride_m, lse, mask=tile_rows < q_len)
    if OUT == FROM_ITS_OWN:
        tma.store_wait(pendings=0)


@kernel
def forward_kernel(
    q_desc, k_desc, v_desc, out, lse_ptr,
    stride_ob, stride_oh, stride_om, stride_lb, stride_lh, stride_lm,
    num_batches, num_heads, group, q_len, kv_len, shift, left, right, scale, heads_at_once,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr, STAGES: gl.constexpr,
    IN_TURNS: gl.constexpr, ITEMS: gl.constexpr, OUT: gl.constexpr,
):  # fmt: skip
    # `out` is a pointer, or a descriptor of what the tensor memory accelerator writes.
    dtype: gl.constexpr = q_desc.dtype
    barrier: gl.constexpr = mbarrier.MBarrierLayout()
    QUERIES: gl.constexpr = ITEMS * CONSUMERS
    q_bufs = gl.allocate_shared_memory(dtype, [QUERIES, 1, 1, BLOCK_M, HEAD_DIM], q_desc.layout)
    o_bufs = q_bufs
    if OUT == FROM_ITS_OWN:
        shape: gl.constexpr = [CONSUMERS, 1, 1, BLOCK_M, HEAD_DIM]
        o_bufs = gl.allocate_shared_memory(dtype, shape, q_desc.layout)
    k_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, HEAD_DIM], k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, HEAD_DIM], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [QUERIES, 1], barrier)
    q_empty = gl.allocate_shared_memory(gl.int64, [QUERIES, 1], barrier)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], barrier)
    turns = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], barrier)
    for i in gl.static_range(QUERIES):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(CONSUMERS):
        mbarrier.init(turns.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=CONSUMERS)
        mbarrier.init(v_empty.index(i), count=CONSUMERS)
    fence_async_shared()

    buffers = (q_bufs, k_bufs, v_bufs, o_bufs)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty, turns)
    sizes = (num_batches * num_heads, num_heads, q_len, kv_len, shift)
    rounds = _rounds(num_batches * num_heads * gl.cdiv(q_len, CONSUMERS * BLOCK_M))
    # 16 divides the output's strides, which is said so that several elements are stored at a time.
    out_strides = (stride_ob // 16 * 16, stride_oh // 16 * 16, stride_om // 16 * 16)
    lse_strides = (stride_lb, stride_lh, stride_lm)
    # Spelled out, since Triton takes no constants out of a tuple that has a name.
    gl.warp_specialize(
        [
            (_consume, (
                0, buffers, barriers, out, lse_ptr, out_strides, lse_strides,
                rounds, sizes, heads_at_once, (left, right), scale,
                BLOCK_M, BLOCK_N, HEAD_DIM, STAGES, IN_TURNS, ITEMS, OUT,
            )),
            (_consume, (
                1, buffers, barriers, out, lse_ptr, out_strides, lse_strides,
                rounds, sizes, heads_at_once, (left, right), scale,
                BLOCK_M, BLOCK_N, HEAD_DIM, STAGES, IN_TURNS, ITEMS, OUT,
            )),
            (_produce, (
                q_desc, k_desc, v_desc, buffers, barriers, rounds, sizes, heads_at_once,
                (left, right), group, BLOCK_M, BLOCK_N, STAGES, ITEMS,
            )),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
