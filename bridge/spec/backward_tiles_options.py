"""FlashAttention-2's backward pass: the gradients by slopes and sinks.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardTilesOptions.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import Mask, ScoreMod, mask_to_score_mod
from bridge.spec.backward_tiles import TileLoop, add_tile, raw_gradient
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.dropout import WeightFactor
from bridge.spec.flash import num_tiles
from bridge.spec.masks import Alignment
from bridge.spec.maximum import rescale
from bridge.spec.schedule import TileKind, tile
from bridge.spec.score_mods import distance, score_mod_and_then
from bridge.spec.slopes import score_slope_one
from bridge.spec.sum import sum_over
from bridge.spec.vector import vec_zero


def slope_term(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    alignment: Alignment,
    i: int,
    j: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[Value]:
    """The part of a pair in the gradient by the slope: dS · (−distance).

    Lean: `Attention.Spec.slopeTerm`.
    """
    return [
        raw_gradient(
            scale,
            modify,
            score_slope_one(num=num),
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            i,
            j,
            d=d,
            d_v=d_v,
            num=num,
        )
        * num.value(-distance(alignment, i, j, q_len=q_len, kv_len=kv_len))
    ]


def step_slopes(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    alignment: Alignment,
    rows: list[int],
    sums: list[list[Value]],
    cols: list[int],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A tile of queries takes a tile of keys.

    Lean: `Attention.Spec.stepSlopes`.
    """
    return add_tile(
        lambda i, j: slope_term(
            scale,
            modify,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            alignment,
            i,
            j,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        ),
        rows,
        sums,
        cols,
        n=1,
        num=num,
    )


def step_slopes_kind(
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    alignment: Alignment,
    rows: list[int],
    sums: list[list[Value]],
    kind: TileKind,
    cols: list[int],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A tile of queries takes a tile of keys, as the kind of the pair says.

    Lean: `Attention.Spec.stepSlopesKind`.
    """
    if kind is TileKind.SKIP:
        return sums
    if kind is TileKind.UNMASKED:
        return step_slopes(
            scale,
            modify,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            alignment,
            rows,
            sums,
            cols,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
    return step_slopes(
        scale,
        score_mod_and_then(modify, mask_to_score_mod(mask)),
        Q,
        K,
        V,
        Z,
        L,
        dO,
        delta,
        alignment,
        rows,
        sums,
        cols,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )


def backward_slopes(
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    alignment: Alignment,
    loop: TileLoop,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The part of each query in the gradient by the slope, in order: each tile of queries in a
    loop over tiles of keys.

    Lean: `Attention.Spec.backwardSlopes`.
    """
    result = []
    for t in range(num_tiles(q_len, loop.block_outer)):
        rows = tile(loop.block_outer, list(range(q_len)), t)
        range_ = loop.visit(t)
        result_1 = [vec_zero(d=1, zero=num.value(0)) for _ in rows]
        for u in range(range_.first, range_.first + max(range_.stop - range_.first, 0)):
            result_1 = step_slopes_kind(
                scale,
                modify,
                mask,
                Q,
                K,
                V,
                Z,
                L,
                dO,
                delta,
                alignment,
                rows,
                result_1,
                loop.kind(t, u),
                tile(loop.block_inner, list(range(kv_len)), u),
                q_len=q_len,
                kv_len=kv_len,
                d=d,
                d_v=d_v,
                num=num,
            )
        result.extend(result_1)
    return result


def backward_slope(
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    alignment: Alignment,
    loop: TileLoop,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The gradient by the slope: the sum over all queries.

    Lean: `Attention.Spec.backwardSlope`.
    """
    return sum_over(
        lambda part: part[0],
        backward_slopes(
            scale,
            modify,
            mask,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            alignment,
            loop,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        ),
        zero=num.value(0),
    )


def sink_gradient(
    L: list[Score | None], delta: list[Value], sink: Score, *, q_len: int, num: Arithmetic
) -> Value:
    """The gradient by a sink, from the log-sum-exps and from D − dL: Σ exp (sink − L) · −(D − dL).

    Lean: `Attention.Spec.sinkGradient`.
    """
    return sum_over(
        lambda i: rescale(sink, L[i], num=num) * (num.value(0) - delta[i]),
        list(range(q_len)),
        zero=num.value(0),
    )
