"""Attention's backward pass for Hopper GPUs, in Gluon: dQ of tiles of queries.

A program has one head and CONSUMERS tiles of queries, as the forward kernel has, and goes over its
items in the same order; one more warp brings the queries with their gradients and numbers, and
tiles of keys and values (`_produce`). While a group computes the weights of a tile of keys, its
product of the score gradients before with their keys is under way, and so are its product of the
output's gradient with the values, and the other group's products (`_over`). With heads of 256 a
group has no registers for two tiles at once, and takes each to its end (`_over_wide`).
Each tile of queries is summed by one group in a fixed order: the same inputs give the same bits.
Sources: Dao 2023, "FlashAttention-2", algorithm 2; Shah et al. 2024, "FlashAttention-3", section 3.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# Those names of its own stay as they are: what was seen on a device is of that file's very text.
from pyimpl.backends.kernels.hopper.forward_kernel import (
    CONSUMERS,
    _item,
    _queries_of,
    _rounds,
    kernel,
    next_buffer,
    visited,
)

# Gives 16 numbers of a thread, $16 to $31, back as they are, and stores them if $32 is below 0.
_COPIES = " ".join(f"mov.f32 ${n}, ${n + 16};" for n in range(16))
_STORES = " ".join(
    f"@never st.volatile.shared.v4.f32 [at], {{${n}, ${n + 1}, ${n + 2}, ${n + 3}}};"
    for n in range(16, 32, 4)
)
_HOLD = gl.constexpr(
    "{ .reg .pred never; .reg .b32 at; mov.b32 at, 0; setp.lt.s32 never, $32, 0; "
    f"{_STORES} {_COPIES} }}"
)
_HELD = gl.constexpr(",".join(["=f"] * 16 + ["f"] * 16 + ["r"] * 16))


@gluon.jit
def _produce(
    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers, rounds, sizes,
    heads_at_once, window, group, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, KEYS: gl.constexpr,
    VALUES: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """Bring what is of the queries of each item, and the tiles of keys and values that they
    visit."""
    q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty, _ = barriers
    TENSORS: gl.constexpr = q_desc.block_type.nbytes + g_desc.block_type.nbytes
    NUMBERS: gl.constexpr = lse_desc.block_type.nbytes + delta_desc.block_type.nbytes
    k_slot = 0
    k_phase = 0
    v_slot = 0
    v_phase = 0
    for number in range(rounds):
        batch, head, q_first = _item(number, sizes, heads_at_once, CONSUMERS * BLOCK_M)
        last, tiles, _masked, _whole = visited(q_first, sizes, window, BLOCK_N, CONSUMERS * BLOCK_M)
        for w in gl.static_range(CONSUMERS):
            row = q_first + w * BLOCK_M
            at = [batch, head, row, 0]
            place, parity = _queries_of(w, number, ITEMS)
            full = q_full.index(place)
            mbarrier.wait(q_empty.index(place), parity ^ 1)
            mbarrier.expect(full, TENSORS + NUMBERS)
            tma.async_copy_global_to_shared(q_desc, at, full, q_bufs.index(place))
            tma.async_copy_global_to_shared(g_desc, at, full, g_bufs.index(place))
            numbers_at = [batch, head, row]
            tma.async_copy_global_to_shared(lse_desc, numbers_at, full, lse_bufs.index(place))
            tma.async_copy_global_to_shared(delta_desc, numbers_at, full, delta_bufs.index(place))
        for i in range(tiles):
            at = [batch, head // group, (last - i) * BLOCK_N, 0]
            mbarrier.wait(k_empty.index(k_slot), k_phase ^ 1)
            mbarrier.expect(k_full.index(k_slot), k_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(k_desc, at, k_full.index(k_slot), k_bufs.index(k_slot))
            mbarrier.wait(v_empty.index(v_slot), v_phase ^ 1)
            mbarrier.expect(v_full.index(v_slot), v_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(v_desc, at, v_full.index(v_slot), v_bufs.index(v_slot))
            k_slot, k_phase = next_buffer(k_slot, k_phase, KEYS)
            v_slot, v_phase = next_buffer(v_slot, v_phase, VALUES)


@gluon.jit
def _probabilities(
    s, lse, scale, tile, rows, kv_len, left, right, BLOCK_N: gl.constexpr, MASKED: gl.constexpr
):
    """The weights of a tile of scores. MASKED: some pair may be hidden."""
    exponents = s * scale - lse[:, None]
    if MASKED:
        keys = tile * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s.type.layout))
        seen = (keys < kv_len)[None, :]
        if right is not None:
            seen = seen & (keys[None, :] <= (rows + right)[:, None])
        if left is not None:
            seen = seen & (keys[None, :] >= (rows - left)[:, None])
        exponents = gl.where(seen, exponents, float("-inf"))
    return gl.exp2(exponents)


@gluon.jit
def _held(p, kv_len):
    """`p` as it is. Left alone, the assembler moves its exponentials behind the waits that follow,
    as in the forward kernel; a store of all of it that never happens, since `kv_len` is not
    negative, holds them before those."""
    return gl.inline_asm_elementwise(
        _HOLD, _HELD, [p, kv_len], dtype=gl.float32, is_pure=False, pack=16
    )


@gluon.jit
def _score_gradients(p, dp, delta, MASKED: gl.constexpr):
    ds = p * (dp - delta[:, None])
    if MASKED:
        # A weight 0 would not silence what is not finite.
        ds = gl.where(p > 0.0, ds, 0.0)
    return ds


@gluon.jit
def _tile(
    k_slot, k_phase, v_slot, v_phase, turn, tile, q, g, lse, delta, buffers, barriers, scale, rows,
    kv_len, left, right, W: gl.constexpr, BLOCK_N: gl.constexpr, IN_TURNS: gl.constexpr,
    MASKED: gl.constexpr, s_layout: gl.constexpr, operand: gl.constexpr,
):  # fmt: skip
    """The score gradients of a tile of keys, whose values are released, and the turn after it."""
    _, _, k_bufs, v_bufs, _, _ = buffers
    _, _, k_full, _, v_full, v_empty, turns = barriers
    BLOCK_M: gl.constexpr = q.shape[0]
    HEAD_DIM: gl.constexpr = q.shape[1]
    zero = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, s_layout)
    if IN_TURNS:
        # After the other group; the first, after the other's products of the tile before.
        mbarrier.wait(turns.index(W), turn if W else turn ^ 1)
        turn = turn ^ 1
    mbarrier.wait(k_full.index(k_slot), k_phase)
    keys = k_bufs.index(k_slot).reshape([BLOCK_N, HEAD_DIM]).permute([1, 0])
    s_later = warpgroup_mma(q, keys, zero, use_acc=False, is_async=True)
    mbarrier.wait(v_full.index(v_slot), v_phase)
    values = v_bufs.index(v_slot).reshape([BLOCK_N, HEAD_DIM]).permute([1, 0])
    dp_later = warpgroup_mma(g, values, zero, use_acc=False, is_async=True)
    if IN_TURNS:
        mbarrier.arrive(turns.index(1 - W), count=1)
    s = warpgroup_mma_wait(1, deps=[s_later])
    p = _probabilities(s, lse, scale, tile, rows, kv_len, left, right, BLOCK_N, MASKED)
    dp = warpgroup_mma_wait(0, deps=[dp_later])
    mbarrier.arrive(v_empty.index(v_slot), count=1)
    ds = _score_gradients(p, dp, delta, MASKED)
    return gl.convert_layout(ds.to(q.dtype), operand), turn


@gluon.jit
def _over_wide(
    dq, k_slot, k_phase, v_slot, v_phase, turn, begin, end, last, q, g, lse, delta, buffers,
    barriers, scale, rows, kv_len, left, right, W: gl.constexpr, BLOCK_N: gl.constexpr,
    KEYS: gl.constexpr, VALUES: gl.constexpr, IN_TURNS: gl.constexpr, MASKED: gl.constexpr,
    s_layout: gl.constexpr, operand: gl.constexpr,
):  # fmt: skip
    """As `_over`, of heads for which a group has no registers for two tiles at once: each tile to
    its end. The other group's products are under way meanwhile."""
    _, _, k_bufs, _, _, _ = buffers
    _, _, _, k_empty, _, _, _ = barriers
    for i in range(begin, end):
        ds, turn = _tile(
            k_slot, k_phase, v_slot, v_phase, turn, last - i, q, g, lse, delta, buffers, barriers,
            scale, rows, kv_len, left, right, W, BLOCK_N, IN_TURNS, MASKED, s_layout, operand,
        )  # fmt: skip
        keys = k_bufs.index(k_slot).reshape([BLOCK_N, q.shape[1]])
        dq_later = warpgroup_mma(ds, keys, dq, is_async=True)
        dq, ds = warpgroup_mma_wait(0, deps=[dq_later, ds])
        mbarrier.arrive(k_empty.index(k_slot), count=1)
        k_slot, k_phase = next_buffer(k_slot, k_phase, KEYS)
        v_slot, v_phase = next_buffer(v_slot, v_phase, VALUES)
    return dq, k_slot, k_phase, v_slot, v_phase, turn


@gluon.jit
def _over(
    dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn, begin, end, last, q, g, lse, delta,
    buffers, barriers, scale, rows, kv_len, left, right, W: gl.constexpr, BLOCK_N: gl.constexpr,
    KEYS: gl.constexpr, VALUES: gl.constexpr, IN_TURNS: gl.constexpr, MASKED: gl.constexpr,
    s_layout: gl.constexpr,
):  # fmt: skip
    """The tiles with the numbers from `begin` to `end`, counted from the tile `last` downwards:
    each one's scores are computed while `ds`, the score gradients of the one before, are multiplied
    with its keys, which are in the buffer `before`."""
    _, _, k_bufs, v_bufs, _, _ = buffers
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
        keys_before = k_bufs.index(before).reshape([BLOCK_N, HEAD_DIM])
        dq_later = warpgroup_mma(ds, keys_before, dq, is_async=True)
        mbarrier.wait(v_full.index(v_slot), v_phase)
        values = v_bufs.index(v_slot).reshape([BLOCK_N, HEAD_DIM]).permute([1, 0])
        dp_later = warpgroup_mma(g, values, zero, use_acc=False, is_async=True)
        if IN_TURNS:
            mbarrier.arrive(turns.index(1 - W), count=1)
        s = warpgroup_mma_wait(2, deps=[s_later])
        p = _probabilities(s, lse, scale, last - i, rows, kv_len, left, right, BLOCK_N, MASKED)
        p = _held(p, kv_len)
        dq, ds = warpgroup_mma_wait(1, deps=[dq_later, ds])
        mbarrier.arrive(k_empty.index(before), count=1)
        dp = warpgroup_mma_wait(0, deps=[dp_later])
        mbarrier.arrive(v_empty.index(v_slot), count=1)
        ds = gl.convert_layout(_score_gradients(p, dp, delta, MASKED).to(ds.dtype), ds.type.layout)
        before = k_slot
        k_slot, k_phase = next_buffer(k_slot, k_phase, KEYS)
        v_slot, v_phase = next_buffer(v_slot, v_phase, VALUES)
    return dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn


@gluon.jit
def _consume(
    W: gl.constexpr, dq_desc, buffers, barriers, rounds, sizes, heads_at_once, window, scale,
    grad_scale, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr,
    KEYS: gl.constexpr, VALUES: gl.constexpr, IN_TURNS: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    """dQ of tile W of each item."""
    q_bufs, g_bufs, k_bufs, _, lse_bufs, delta_bufs = buffers
    q_full, q_empty, _, k_empty, _, _, _ = barriers
    _, _, _, kv_len, shift = sizes
    left, right = window
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    dq_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, dq_layout, 2)
    row_layout: gl.constexpr = gl.SliceLayout(1, s_layout)
    k_slot = 0
    k_phase = 0
    v_slot = 0
    v_phase = 0
    turn = 0
    for number in range(rounds):
        batch, head, q_first = _item(number, sizes, heads_at_once, CONSUMERS * BLOCK_M)
        last, tiles, masked, whole = visited(q_first, sizes, window, BLOCK_N, CONSUMERS * BLOCK_M)
        row = q_first + W * BLOCK_M
        rows = row + shift + gl.arange(0, BLOCK_M, row_layout)
        dq = gl.zeros([BLOCK_M, HEAD_DIM], gl.float32, dq_layout)

        place, parity = _queries_of(W, number, ITEMS)
        q_buf = q_bufs.index(place)
        q = q_buf.reshape([BLOCK_M, HEAD_DIM])
        g = g_bufs.index(place).reshape([BLOCK_M, HEAD_DIM])
        mbarrier.wait(q_full.index(place), parity)
        lse = lse_bufs.index(place).reshape([BLOCK_M]).load(row_layout)
        delta = delta_bufs.index(place).reshape([BLOCK_M]).load(row_layout)
        ds, turn = _tile(
            k_slot, k_phase, v_slot, v_phase, turn, last, q, g, lse, delta, buffers, barriers,
            scale, rows, kv_len, left, right, W, BLOCK_N, False, True, s_layout, operand,
        )  # fmt: skip
        if HEAD_DIM == 256:
            keys = k_bufs.index(k_slot).reshape([BLOCK_N, HEAD_DIM])
            dq_later = warpgroup_mma(ds, keys, dq, is_async=True)
            dq, ds = warpgroup_mma_wait(0, deps=[dq_later, ds])
            mbarrier.arrive(k_empty.index(k_slot), count=1)
            k_slot, k_phase = next_buffer(k_slot, k_phase, KEYS)
            v_slot, v_phase = next_buffer(v_slot, v_phase, VALUES)
            # One loop, with masks if some tile may need them: of several the compiler spills.
            dq, k_slot, k_phase, v_slot, v_phase, turn = _over_wide(
                dq, k_slot, k_phase, v_slot, v_phase, turn, 1, tiles, last, q, g, lse, delta,
                buffers, barriers, scale, rows, kv_len, left, right, W, BLOCK_N, KEYS, VALUES,
                IN_TURNS, right is not None or left is not None, s_layout, operand,
            )  # fmt: skip
        else:
            before = k_slot
            k_slot, k_phase = next_buffer(k_slot, k_phase, KEYS)
            v_slot, v_phase = next_buffer(v_slot, v_phase, VALUES)
            if right is not None:
                dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn = _over(
                    dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn, 1, masked, last,
                    q, g, lse, delta, buffers, barriers, scale, rows, kv_len, left, right, W,
                    BLOCK_N, KEYS, VALUES, IN_TURNS, True, s_layout,
                )  # fmt: skip
            dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn = _over(
                dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn, masked, whole, last,
                q, g, lse, delta, buffers, barriers, scale, rows, kv_len, left, right, W,
                BLOCK_N, KEYS, VALUES, IN_TURNS, False, s_layout,
            )  # fmt: skip
            if left is not None:
                dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn = _over(
                    dq, ds, k_slot, k_phase, before, v_slot, v_phase, turn, whole, tiles, last,
                    q, g, lse, delta, buffers, barriers, scale, rows, kv_len, left, right, W,
                    BLOCK_N, KEYS, VALUES, IN_TURNS, True, s_layout,
                )  # fmt: skip
            keys_before = k_bufs.index(before).reshape([BLOCK_N, HEAD_DIM])
            dq_later = warpgroup_mma(ds, keys_before, dq, is_async=True)
            dq, ds = warpgroup_mma_wait(0, deps=[dq_later, ds])
            mbarrier.arrive(k_empty.index(before), count=1)

        # From the buffer that the queries came in. Rows past the last are not written.
        q.store((dq * grad_scale).to(q.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(dq_desc, [batch, head, row, 0], q_buf)
        tma.store_wait(pendings=0)
        mbarrier.arrive(q_empty.index(place), count=1)


@kernel
def queries_kernel(
    q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, dq_desc,
    num_batches, num_heads, group, q_len, kv_len, shift, left, right, scale, grad_scale,
    heads_at_once,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr, KEYS: gl.constexpr,
    VALUES: gl.constexpr, IN_TURNS: gl.constexpr, ITEMS: gl.constexpr,
):  # fmt: skip
    # So many buffers for tiles of keys and of values. Of keys there are at least two: one tile's
    # are multiplied once more beside the next one's scores.
    gl.static_assert(KEYS >= 2)
    dtype: gl.constexpr = q_desc.dtype
    barrier: gl.constexpr = mbarrier.MBarrierLayout()
    QUERIES: gl.constexpr = ITEMS * CONSUMERS
    q_bufs = gl.allocate_shared_memory(dtype, [QUERIES, 1, 1, BLOCK_M, HEAD_DIM], q_desc.layout)
    g_bufs = gl.allocate_shared_memory(dtype, [QUERIES, 1, 1, BLOCK_M, HEAD_DIM], g_desc.layout)
    k_bufs = gl.allocate_shared_memory(dtype, [KEYS, 1, 1, BLOCK_N, HEAD_DIM], k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, [VALUES, 1, 1, BLOCK_N, HEAD_DIM], v_desc.layout)
    lse_bufs = gl.allocate_shared_memory(gl.float32, [QUERIES, 1, 1, BLOCK_M], lse_desc.layout)
    delta_bufs = gl.allocate_shared_memory(gl.float32, [QUERIES, 1, 1, BLOCK_M], delta_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [QUERIES, 1], barrier)
    q_empty = gl.allocate_shared_memory(gl.int64, [QUERIES, 1], barrier)
    k_full = gl.allocate_shared_memory(gl.int64, [KEYS, 1], barrier)
    k_empty = gl.allocate_shared_memory(gl.int64, [KEYS, 1], barrier)
    v_full = gl.allocate_shared_memory(gl.int64, [VALUES, 1], barrier)
    v_empty = gl.allocate_shared_memory(gl.int64, [VALUES, 1], barrier)
    turns = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], barrier)
    for i in gl.static_range(QUERIES):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(CONSUMERS):
        mbarrier.init(turns.index(i), count=1)
    for i in gl.static_range(KEYS):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=CONSUMERS)
    for i in gl.static_range(VALUES):
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=CONSUMERS)
    fence_async_shared()

    buffers = (q_bufs, g_bufs, k_bufs, v_bufs, lse_bufs, delta_bufs)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty, turns)
    sizes = (num_batches * num_heads, num_heads, q_len, kv_len, shift)
    rounds = _rounds(num_batches * num_heads * gl.cdiv(q_len, CONSUMERS * BLOCK_M))
    # Spelled out, since Triton takes no constants out of a tuple that has a name.
    gl.warp_specialize(
        [
            (_consume, (
                0, dq_desc, buffers, barriers, rounds, sizes, heads_at_once, (left, right), scale,
                grad_scale, BLOCK_M, BLOCK_N, HEAD_DIM, KEYS, VALUES, IN_TURNS, ITEMS,
            )),
            (_consume, (
                1, dq_desc, buffers, barriers, rounds, sizes, heads_at_once, (left, right), scale,
                grad_scale, BLOCK_M, BLOCK_N, HEAD_DIM, KEYS, VALUES, IN_TURNS, ITEMS,
            )),
            (_produce, (
                q_desc, g_desc, k_desc, v_desc, lse_desc, delta_desc, buffers, barriers, rounds,
                sizes, heads_at_once, (left, right), group, BLOCK_M, BLOCK_N, KEYS, VALUES, ITEMS,
            )),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
