"""The inner loop that the kernels share: online softmax over tiles of keys.

`step_block` is `Attention.Spec.Online.stepBlock`, in base 2: scores come multiplied by log₂e. A
kernel says which rows it has (`Rows`), where keys and values lie (`Keys`) and how the scores are
changed (`Scores`), takes its tiles from `bounds`, and calls `over_tiles`.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any, NamedTuple

import triton.language as tl

from pyimpl.backends.kernels.parts.bounds import whole_tiles
from pyimpl.backends.kernels.parts.dropout import kept_pairs
from pyimpl.backends.kernels.parts.numerics import (
    LN2,
    LOG2E,
    device_function,
    dot,
    indices,
    offsets,
    round_to,
    tanh,
    to_float32,
    within,
)
from pyimpl.internal.implements import implements


class Rows(NamedTuple):
    """The queries of a tile, one a row.

    q `[BLOCK_M, BLOCK_D]`; positions `[BLOCK_M]`: where each stands on the axis of the keys;
    inside `[BLOCK_M]`: which rows are queries and not padding; slopes `[BLOCK_M]`: of ALiBi, times
    log₂e; mask, bias `[BLOCK_M]`: pointers to the entries of key 0. None: there is none.
    """

    q: Any
    positions: Any
    inside: Any
    slopes: Any
    mask: Any
    bias: Any


class Keys(NamedTuple):
    """Where the keys and values of one head lie.

    key, value: pointers to the first element; stride_…n from key to key, …d along a vector, and to
    the next key of a mask (mask_n) and a bias (bias_n). first, stop: the keys that some query of
    the tile may see.

    In pages: table points to the sequence's page numbers, table_n apart; pages, of which there are
    num_pages, are stride_kp and stride_vp apart. Otherwise these are None.
    """

    key: Any
    value: Any
    stride_kn: Any
    stride_kd: Any
    stride_vn: Any
    stride_vd: Any
    mask_n: Any
    bias_n: Any
    first: Any
    stop: Any
    table: Any
    table_n: Any
    stride_kp: Any
    stride_vp: Any
    num_pages: Any


class Scores(NamedTuple):
    """The changes of ⟨q, k⟩, in base 2: cap None: times `scale`; else cap · tanh(scale · ⟨q, k⟩);
    scale ≥ 0 in the forward kernels (`with_nonnegative_scale`). left, right: of the window, as in
    `bounds`. drop: `dropout.Drop`; None: no dropout. first_query, first_key: the numbers of
    the first query and key, which dropout counts from; both None: 0. (Triton 3.6 takes no None
    further inside, of `drop`.)"""

    scale: Any
    cap: Any
    left: Any
    right: Any
    drop: Any
    first_query: Any
    first_key: Any


@implements("Attention.Spec.Online.empty")
@implements("Attention.Spec.sinkState")
@device_function
def start(sinks, BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr):
    """The state (m, l, o) before any key: empty, or of the sinks `[BLOCK_M]` (base 2; −∞: none)."""
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    o = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)
    if sinks is not None:
        m = sinks
        l = tl.where(m == float("-inf"), 0.0, 1.0)
    return m, l, o


@implements("Attention.Spec.ScoreMod.softcap")
@implements("Attention.Spec.ScoreMod.safeSoftcap")
@implements("Attention.Spec.ScoreMod.alibi")
@device_function
def score(products, keys, rows, scores):
    """The scores, base 2, of the products ⟨q, k⟩ `[BLOCK_M, BLOCK_N]`, before bias and masks."""
    s = products * scores.scale
    if scores.cap is not None:
        s = scores.cap * tanh(s)
    if rows.slopes is not None:
        distance = tl.abs(rows.positions[:, None] - keys[None, :])
        s = s - rows.slopes[:, None] * distance.to(tl.float32)
    return s


@implements("Attention.Spec.Mask.window")
@device_function
def in_window(keys, rows, at, scores):
    """Which keys a row sees if there is nothing but its window: `[BLOCK_M or 1, BLOCK_N]`."""
    visible = (keys < at.stop)[None, :]
    if scores.left is not None:
        visible = visible & (rows.positions[:, None] - scores.left <= keys[None, :])
    if scores.right is not None:
        visible = visible & (keys[None, :] <= rows.positions[:, None] + scores.right)
    return visible


@implements("Attention.Spec.ScoreMod.bias")
@implements("Attention.Spec.Mask.toScoreMod")
@device_function
def add_bias_and_mask(s, v, keys, begin, rows, at, scores, BLOCK_N: tl.constexpr):
    """(scores, −∞ where masked; values, 0 where no row sees the key) of the tile of keys that
    begins at `begin`, 64-bit."""
    visible = in_window(keys, rows, at, scores)
    if rows.mask is not None or rows.bias is not None:
        inside = rows.inside[:, None] & (keys < at.stop)[None, :]
        own = indices(BLOCK_N, True)[None, :]
        if rows.bias is not None:
            bias_ptrs = (rows.bias + begin * at.bias_n)[:, None] + own * at.bias_n
            bias = to_float32(tl.load(bias_ptrs, mask=inside, other=float("-inf")))
            visible = visible & (bias != float("-inf"))
            s = s + bias * LOG2E
        if rows.mask is not None:
            mask_ptrs = (rows.mask + begin * at.mask_n)[:, None] + own * at.mask_n
            visible = visible & (tl.load(mask_ptrs, mask=inside, other=0) != 0)
        # A weight 0 would not silence a NaN: the values of keys that no row sees go.
        seen = tl.max(visible.to(tl.int32), 0) > 0
        v = tl.where(seen[:, None], v, 0.0)
    return tl.where(visible, s, float("-inf")), v


@implements("Attention.Spec.Online.stepBlock")
@device_function
def step_block(m, l, o, s, factor, v, kept):
    """The state (m, l, o) after a block with scores s · factor (−∞: masked; base 2) and values v;
    with dropout o takes the weights `kept` alone.

    factor ≥ 0, or None for 1: a row's largest score is its largest s times the factor, so the
    scores themselves are never needed, and s · factor − m is one operation.
    """
    largest = tl.max(s, 1)
    if factor is not None:
        largest = largest * factor
        s = s * factor
    m_new = tl.maximum(m, largest)
    # exp2(s − m_new) has to be 0, not NaN, where both are −∞: no unmasked key so far.
    m_finite = tl.where(m_new == float("-inf"), 0.0, m_new)
    alpha = tl.exp2(m - m_finite)
    p = tl.exp2(s - m_finite[:, None])
    l = alpha * l + tl.sum(p, 1)
    o = alpha[:, None] * o
    if kept is not None:
        p = tl.where(kept, p, 0.0)
    o = o + dot(round_to(p, v.dtype), v)
    return m_new, l, o


@implements("Attention.Spec.Online.finish")
@device_function
def finish(l, o, keep_scale):
    """The output o / l, times 1 / (1 − p) with dropout (None: without), and 0 for a row where every
    key was masked and there was no sink."""
    # Otherwise 1 ≤ l; asked of m, which ignores NaN, a row of NaN scores would pass for masked.
    none = l == 0.0
    if keep_scale is not None:
        o = o * keep_scale
    return o / tl.where(none, 1.0, l)[:, None]


@device_function
def log_sum_exp(m, l):
    """The natural log-sum-exp m · ln 2 + ln l; −∞ for a row without a score."""
    return m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))


@implements("Attention.Spec.Online.online")
@device_function
def over_key_tiles(
    m, l, o, first, stop, rows, at, scores, head_dim, value_dim,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, EVEN_D: tl.constexpr,
    EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAGE_SIZE: tl.constexpr, FAR: tl.constexpr,
    CHECKED: tl.constexpr,
):  # fmt: skip
    """The state (m, l, o) after the tiles of keys first, first + 1, …, stop − 1.

    ALIGNED, of the strides from key to key and of both sizes, as in `numerics.offsets`, FAR as in
    `numerics.indices`. CHECKED: a key of these tiles may lie outside `at.first` …
    `at.stop` − 1 or be masked. Without it every row sees every key of them, and there is neither
    mask nor bias.
    """
    dims = indices(BLOCK_D, FAR)
    value_dims = indices(BLOCK_V, FAR)
    # Whether a tile may lie in several pages.
    SCATTERED: tl.constexpr = False if PAGE_SIZE is None else PAGE_SIZE % BLOCK_N != 0
    for tile in range(first, stop):
        keys = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = (keys >= at.first) & (keys < at.stop)
        begin = tl.cast(tile * BLOCK_N, tl.int64)
        if PAGE_SIZE is None:
            key_base = at.key + begin * at.stride_kn
            value_base = at.value + begin * at.stride_vn
            slots = indices(BLOCK_N, FAR)
        elif SCATTERED:
            entries = at.table + (keys // PAGE_SIZE).to(tl.int64) * at.table_n
            pages = tl.load(entries, mask=inside, other=0).to(tl.int64)
            key_base = (at.key + offsets(pages, at.stride_kp, ALIGNED))[None, :]
            value_base = (at.value + offsets(pages, at.stride_vp, ALIGNED))[:, None]
            slots = (keys % PAGE_SIZE).to(tl.int64)
            exists = (pages >= 0) & (pages < at.num_pages)
            inside = inside & exists
        else:
            # The table is read once for all keys of the tile, which lie beside each other.
            page = tl.load(at.table + begin // PAGE_SIZE * at.table_n).to(tl.int64)
            exists = (page >= 0) & (page < at.num_pages)
            slot = begin % PAGE_SIZE
            key_base = at.key + offsets(page, at.stride_kp, ALIGNED)
            key_base = key_base + offsets(slot, at.stride_kn, ALIGNED)
            value_base = at.value + offsets(page, at.stride_vp, ALIGNED)
            value_base = value_base + offsets(slot, at.stride_vn, ALIGNED)
            slots = indices(BLOCK_N, FAR)
        key_rows = offsets(slots, at.stride_kn, ALIGNED)
        value_rows = offsets(slots, at.stride_vn, ALIGNED)
        key_ptrs = key_base + (dims[:, None] * at.stride_kd + key_rows[None, :])
        value_ptrs = value_base + (value_rows[:, None] + value_dims[None, :] * at.stride_vd)
        k_inside = within(dims, head_dim, ALIGNED)[:, None]
        v_inside = within(value_dims, value_dim, ALIGNED)[None, :]
        if PAGE_SIZE is not None and not SCATTERED:
            k_inside = k_inside & exists
            v_inside = v_inside & exists
        if CHECKED or SCATTERED:
            k_inside = k_inside & inside[None, :]
            v_inside = v_inside & inside[:, None]
        if CHECKED or PAGE_SIZE is not None or not EVEN_D:
            k = tl.load(key_ptrs, mask=k_inside, other=0.0)
        else:
            k = tl.load(key_ptrs)
        s = dot(rows.q, k)
        factor = scores.scale
        if CHECKED or SCATTERED or scores.cap is not None or rows.slopes is not None:
            s = score(s, keys, rows, scores)
            factor = None
        if CHECKED or PAGE_SIZE is not None or not EVEN_V:
            v = tl.load(value_ptrs, mask=v_inside, other=0.0)
        else:
            v = tl.load(value_ptrs)
        # A page number that the pool does not have: NaN says so.
        if SCATTERED:
            s = tl.where(exists[None, :], s, float("nan"))
        elif PAGE_SIZE is not None:
            s = tl.where(exists, s, float("nan"))
        if CHECKED:
            s, v = add_bias_and_mask(s, v, keys, begin, rows, at, scores, BLOCK_N)
        kept = None
        if scores.drop is not None:
            kept = kept_pairs(scores, rows.positions, tile * BLOCK_N, rows.mask, BLOCK_N)
        m, l, o = step_block(m, l, o, s, factor, v, kept)
    return m, l, o


@implements("Attention.Spec.stepKind")
@device_function
def over_tiles(
    m, l, o, first, stop, whole_first, whole_stop, kv_len, rows, at, scores, head_dim, value_dim,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, EVEN_D: tl.constexpr,
    EVEN_V: tl.constexpr, ALIGNED: tl.constexpr, PAGE_SIZE: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The state (m, l, o) after the tiles of keys first, …, stop − 1, of which those from
    `whole_first` to `whole_stop` − 1 have nothing masked by the window and are taken without mask
    code: first the left edge of the window, then the middle, then the right edge."""
    if rows.mask is not None or rows.bias is not None:
        m, l, o = over_key_tiles(
            m, l, o, first, stop, rows, at, scores, head_dim, value_dim,
            BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, PAGE_SIZE, FAR, True,
        )  # fmt: skip
    else:
        whole_first, whole_stop = whole_tiles(whole_first, whole_stop, first, stop, kv_len, BLOCK_N)
        if scores.left is not None:
            m, l, o = over_key_tiles(
                m, l, o, first, whole_first, rows, at, scores, head_dim, value_dim,
                BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, PAGE_SIZE, FAR, True,
            )  # fmt: skip
        m, l, o = over_key_tiles(
            m, l, o, whole_first, whole_stop, rows, at, scores, head_dim, value_dim,
            BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, PAGE_SIZE, FAR, False,
        )  # fmt: skip
        m, l, o = over_key_tiles(
            m, l, o, whole_stop, stop, rows, at, scores, head_dim, value_dim,
            BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, ALIGNED, PAGE_SIZE, FAR, True,
        )  # fmt: skip
    return m, l, o
