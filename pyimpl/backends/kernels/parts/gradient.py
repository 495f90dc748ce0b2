"""Shared by the kernels of the backward pass: the weights of a tile of pairs, computed anew from
the log-sum-exp, and the gradient of its scores.

A tile may have queries as rows and keys as columns or the other way round: the numbers of queries
and keys come with a dimension of 1 for the other (`Pairs`). Base 2, as in `loop`.
Source: Dao 2023, "FlashAttention-2", algorithm 2, lines 11 to 15.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any, NamedTuple

import triton.language as tl

from pyimpl.backends.kernels.parts.numerics import (
    LOG2E,
    device_function,
    head_of,
    row_pointers,
    tanh,
    to_float32,
    within,
)
from pyimpl.internal.implements import implements


class Pairs(NamedTuple):
    """The pairs of queries and keys of a tile.

    positions: where each query stands on the axis of the keys; keys: their numbers; inside: which
    pairs are pairs and not padding; lse: of each query, times log₂e, ∞ for one without a key;
    delta: of each query, rowsum(dO ∘ O) − dL; slope: of ALiBi, times log₂e; mask, bias: pointers to
    each pair's element; kept: which pairs dropout keeps. None: there is none.
    """

    positions: Any
    keys: Any
    inside: Any
    lse: Any
    delta: Any
    slope: Any
    mask: Any
    bias: Any
    kept: Any


class Weights(NamedTuple):
    """The weights P of a tile, 0 where masked if CHECKED; before dropout. x: the scores before
    softcap's factor, tanh of the scaled products, else those. visible: which pairs are not masked
    (meaningless if not CHECKED)."""

    p: Any
    x: Any
    visible: Any


class Side(NamedTuple):
    """Where the other side of a tile lies: for a tile of keys the queries of one head, for a tile
    of queries the keys.

    a, b: pointers to the first element of query and grad_out, or of key and value; lse, delta,
    mask, bias: pointers to the entries of the first, for a tile of keys to the pair with its first
    key; None: there is none (of keys lse and delta).
    stride_…n from one to the next, …d along a vector; mask_m, bias_m from query to query, mask_n,
    bias_n from key to key. first, stop: which some of the tile may see.
    """

    a: Any
    b: Any
    lse: Any
    delta: Any
    mask: Any
    bias: Any
    stride_an: Any
    stride_ad: Any
    stride_bn: Any
    stride_bd: Any
    lse_n: Any
    delta_n: Any
    mask_m: Any
    mask_n: Any
    bias_m: Any
    bias_n: Any
    first: Any
    stop: Any


@device_function
def slope_of(ptr, batch, stride_b, head, stride_h):
    """ALiBi's slope of a head times log₂e; None without slopes."""
    slope = None
    if ptr is not None:
        slope = to_float32(tl.load(ptr + batch * stride_b + head * stride_h)) * LOG2E
    return slope


@device_function
def head_of_pairs(ptr, batch, stride_b, head, stride_h, ALIGNED: tl.constexpr):
    """`head_of` for a mask or a bias; None where there is none."""
    found = None
    if ptr is not None:
        found = head_of(ptr, batch, stride_b, head, stride_h, None, None, ALIGNED)
    return found


@device_function
def visible_pairs(pairs, scores):
    """Which pairs the window shows, of those that are no padding."""
    visible = pairs.inside
    if scores.left is not None:
        visible = visible & (pairs.positions - scores.left <= pairs.keys)
    if scores.right is not None:
        visible = visible & (pairs.keys <= pairs.positions + scores.right)
    return visible


@device_function
def distances(pairs):
    """|i + shift − j| of each pair, float32."""
    return tl.abs(pairs.positions - pairs.keys).to(tl.float32)


@implements("Attention.Spec.probabilityAgain")
@device_function
def weights(products, pairs, scores, CHECKED: tl.constexpr):
    """The `Weights` of the products ⟨q, k⟩.

    CHECKED: a pair may be masked or padding. Without it none is, and there is neither mask nor
    bias.
    """
    x = products * scores.scale
    s = x
    if scores.cap is not None:
        x = tanh(x)
        s = scores.cap * x
    if pairs.slope is not None:
        s = s - pairs.slope * distances(pairs)
    visible = pairs.inside
    if CHECKED:
        visible = visible_pairs(pairs, scores)
        if pairs.bias is not None:
            bias = to_float32(tl.load(pairs.bias, mask=pairs.inside, other=float("-inf")))
            visible = visible & (bias != float("-inf"))
            s = s + bias * LOG2E
        if pairs.mask is not None:
            visible = visible & (tl.load(pairs.mask, mask=pairs.inside, other=0) != 0)
    exponent = s - pairs.lse
    if CHECKED:
        # A pair that is masked may have a score above the log-sum-exp: chosen before, no weight
        # overflows.
        exponent = tl.where(visible, exponent, float("-inf"))
    return Weights(tl.exp2(exponent), x, visible)


@implements("Attention.Spec.droppedAgain")
@device_function
def dropped(p, pairs):
    """The weights as they meet the values, but for dropout's factor 1 / (1 − p)."""
    if pairs.kept is not None:
        p = tl.where(pairs.kept, p, 0.0)
    return p


@implements("Attention.Spec.rawGradient")
@device_function
def raw_gradient(of, grad_p, pairs, scores, CHECKED: tl.constexpr):
    """(the gradient of the scores dS; that before softcap dX, else dS) of the `Weights` and of
    dP = dO Vᵀ. CHECKED as in `weights`."""
    if pairs.kept is not None:
        grad_p = tl.where(pairs.kept, grad_p * scores.drop.scale, 0.0)
    grad_s = of.p * (grad_p - pairs.delta)
    if CHECKED:
        # A weight 0 would not silence a NaN.
        grad_s = tl.where(of.p == 0.0, 0.0, grad_s)
    grad_x = grad_s
    if scores.cap is not None:
        grad_x = grad_s * (1.0 - of.x * of.x)
        if CHECKED:
            grad_x = tl.where(of.p == 0.0, 0.0, grad_x)
    return grad_s, grad_x


@device_function
def load_rows(
    base, rows, dims, stride_n, stride_d, inside, size, ALIGNED: tl.constexpr, MASKED: tl.constexpr
):
    """The vectors `rows` of `base`, `[rows, dims]`, 0 outside. ALIGNED, of the stride from one to
    the next and of the size, as in `numerics.offsets`."""
    ptrs = row_pointers(base, rows, dims, stride_n, stride_d, ALIGNED)
    if MASKED:
        x = tl.load(ptrs, mask=inside[:, None] & within(dims, size, ALIGNED)[None, :], other=0.0)
    else:
        x = tl.load(ptrs)
    return x


@device_function
def row_numbers(lse, delta):
    """What the kernels read of each query: its log-sum-exp times log₂e, ∞ for one without a key, so
    that its weights are 0; D − dL, 0 for such a one."""
    some = lse != float("-inf")
    return tl.where(some, lse * LOG2E, float("inf")), tl.where(some, delta, 0.0)


@device_function
def load_numbers(base, rows, stride_n, inside, other, MASKED: tl.constexpr):
    """One number of each of `rows`, `other` outside."""
    if MASKED:
        x = tl.load(base + rows * stride_n, mask=inside, other=other)
    else:
        x = tl.load(base + rows * stride_n)
    return x
