"""FlashAttention-2: the backward pass, tile by tile.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardTiles.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import Mask, ScoreMod, mask_to_score_mod, score
from bridge.spec.backward import row_delta, score_gradient
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.dropout import WeightFactor
from bridge.spec.flash import num_tiles
from bridge.spec.maximum import rescale
from bridge.spec.schedule import TileKind, TileRange, tile
from bridge.spec.score_mods import score_mod_and_then
from bridge.spec.tangent import ScoreSlope
from bridge.spec.vector import vec_add, vec_dot, vec_smul, vec_sum_over, vec_zero


@dataclass(frozen=True)
class TileLoop:
    """The tiles of one loop, and how it takes them: `blockOuter` results to a tile, each the sum
    of terms that come in tiles of `blockInner`.

    blockOuter: the size of the tiles of results.

    blockInner: the size of the tiles of terms.

    visit: the tiles of terms that a tile of results visits.

    kind: how a pair of tiles is taken, that of the results named first.

    Lean: `Attention.Spec.TileLoop`.
    """

    block_outer: int
    block_inner: int
    visit: Callable[[int], TileRange]
    kind: Callable[[int, int], TileKind]


def add_tile(
    term: Callable[[Any, Any], list[Value]],
    outs: list[Any],
    sums: list[list[Value]],
    tile: list[Any],
    *,
    n: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The tile of results `outs`, their sums so far in `sums`, each with its terms of one more
    tile added.

    Lean: `Attention.Spec.addTile`.
    """
    return [
        vec_add(sum_, vec_sum_over(lambda i: term(x, i), tile, d=n, zero=num.value(0)))
        for x, sum_ in zip(outs, sums, strict=False)
    ]


@dataclass(frozen=True)
class KeySums:
    """The sums of a tile of keys.

    dK: for each key the sum Σ dZ · q.

    dV: for each key the sum Σ p · z · dO.

    Lean: `Attention.Spec.KeySums`.
    """

    dK: list[list[Value]]
    dV: list[list[Value]]


def probability_again(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    L: list[Score | None],
    i: int,
    j: int,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """The softmax weight of a pair, computed again from the log-sum-exp: exp (s − L).

    Lean: `Attention.Spec.probabilityAgain`.
    """
    return rescale(score(scale, modify, Q, K, i, j, d=d, num=num), L[i], num=num)


def dropped_again(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    Z: WeightFactor,
    L: list[Score | None],
    i: int,
    j: int,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """The softmax weight of a pair with its factor, as it meets the value: p · z.

    Lean: `Attention.Spec.droppedAgain`.
    """
    return probability_again(scale, modify, Q, K, L, i, j, d=d, num=num) * Z(i, j)


def raw_gradient(
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    i: int,
    j: int,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The gradient by a score before it was transformed: dS · slope, dS from the value as the
    query sees it, z · v.

    Lean: `Attention.Spec.rawGradient`.
    """
    return score_gradient(
        probability_again(scale, modify, Q, K, L, i, j, d=d, num=num),
        dO[i],
        vec_smul(Z(i, j), V[j]),
        delta[i],
        d_v=d_v,
        num=num,
    ) * slope(i, j, scale * vec_dot(Q[i], K[j], d=d, zero=num.score(0)))


def step_keys(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    cols: list[int],
    sums: KeySums,
    rows: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> KeySums:
    """A tile of keys takes a tile of queries.

    Lean: `Attention.Spec.stepKeys`.
    """
    return KeySums(
        dK=add_tile(
            lambda j, i: vec_smul(
                raw_gradient(
                    scale, modify, slope, Q, K, V, Z, L, dO, delta, i, j, d=d, d_v=d_v, num=num
                ),
                [to_value(x) for x in Q[i]],
            ),
            cols,
            sums.dK,
            rows,
            n=d,
            num=num,
        ),
        dV=add_tile(
            lambda j, i: vec_smul(
                dropped_again(scale, modify, Q, K, Z, L, i, j, d=d, num=num), dO[i]
            ),
            cols,
            sums.dV,
            rows,
            n=d_v,
            num=num,
        ),
    )


def step_keys_kind(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    cols: list[int],
    sums: KeySums,
    kind: TileKind,
    rows: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> KeySums:
    """A tile of keys takes a tile of queries, as the kind of the pair says.

    Lean: `Attention.Spec.stepKeysKind`.
    """
    if kind is TileKind.SKIP:
        return sums
    if kind is TileKind.UNMASKED:
        return step_keys(
            to_value,
            scale,
            modify,
            slope,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            cols,
            sums,
            rows,
            d=d,
            d_v=d_v,
            num=num,
        )
    return step_keys(
        to_value,
        scale,
        score_mod_and_then(modify, mask_to_score_mod(mask)),
        slope,
        Q,
        K,
        V,
        Z,
        L,
        dO,
        delta,
        cols,
        sums,
        rows,
        d=d,
        d_v=d_v,
        num=num,
    )


def step_queries(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    rows: list[int],
    sums: list[list[Value]],
    cols: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A tile of queries takes a tile of keys.

    Lean: `Attention.Spec.stepQueries`.
    """
    return add_tile(
        lambda i, j: vec_smul(
            raw_gradient(
                scale, modify, slope, Q, K, V, Z, L, dO, delta, i, j, d=d, d_v=d_v, num=num
            ),
            [to_value(x) for x in K[j]],
        ),
        rows,
        sums,
        cols,
        n=d,
        num=num,
    )


def step_queries_kind(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    rows: list[int],
    sums: list[list[Value]],
    kind: TileKind,
    cols: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """A tile of queries takes a tile of keys, as the kind of the pair says.

    Lean: `Attention.Spec.stepQueriesKind`.
    """
    if kind is TileKind.SKIP:
        return sums
    if kind is TileKind.UNMASKED:
        return step_queries(
            to_value,
            scale,
            modify,
            slope,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            rows,
            sums,
            cols,
            d=d,
            d_v=d_v,
            num=num,
        )
    return step_queries(
        to_value,
        scale,
        score_mod_and_then(modify, mask_to_score_mod(mask)),
        slope,
        Q,
        K,
        V,
        Z,
        L,
        dO,
        delta,
        rows,
        sums,
        cols,
        d=d,
        d_v=d_v,
        num=num,
    )


def backward_keys(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    loop: TileLoop,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> KeySums:
    """The rows of dK and of dV, in order: each tile of keys in a loop over tiles of queries.

    Lean: `Attention.Spec.backwardKeys`.
    """
    tiles_of_keys = []
    for u in range(num_tiles(kv_len, loop.block_outer)):
        cols = tile(loop.block_outer, list(range(kv_len)), u)
        range_ = loop.visit(u)
        start = KeySums(
            dK=[vec_zero(d=d, zero=num.value(0)) for _ in cols],
            dV=[vec_zero(d=d_v, zero=num.value(0)) for _ in cols],
        )
        result = start
        for t in range(range_.first, range_.first + max(range_.stop - range_.first, 0)):
            result = step_keys_kind(
                to_value,
                scale,
                modify,
                mask,
                slope,
                Q,
                K,
                V,
                Z,
                L,
                dO,
                delta,
                cols,
                result,
                loop.kind(u, t),
                tile(loop.block_inner, list(range(q_len)), t),
                d=d,
                d_v=d_v,
                num=num,
            )
        tiles_of_keys.append(result)
    return KeySums(
        dK=[x for sums in tiles_of_keys for x in [vec_smul(to_value(scale), a) for a in sums.dK]],
        dV=[x for sums in tiles_of_keys for x in sums.dV],
    )


def backward_queries(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    loop: TileLoop,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The rows of dQ, in order: each tile of queries in a loop over tiles of keys.

    Lean: `Attention.Spec.backwardQueries`.
    """
    result = []
    for t in range(num_tiles(q_len, loop.block_outer)):
        rows = tile(loop.block_outer, list(range(q_len)), t)
        range_ = loop.visit(t)
        start = [vec_zero(d=d, zero=num.value(0)) for _ in rows]
        sums = start
        for u in range(range_.first, range_.first + max(range_.stop - range_.first, 0)):
            sums = step_queries_kind(
                to_value,
                scale,
                modify,
                mask,
                slope,
                Q,
                K,
                V,
                Z,
                L,
                dO,
                delta,
                rows,
                sums,
                loop.kind(t, u),
                tile(loop.block_inner, list(range(kv_len)), u),
                d=d,
                d_v=d_v,
                num=num,
            )
        result.extend([vec_smul(to_value(scale), a) for a in sums])
    return result


def flash_backward(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    slope: ScoreSlope,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    keys: TileLoop,
    queries: TileLoop,
    O: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> tuple[list[list[Value]], tuple[list[list[Value]], list[list[Value]]]]:
    """The rows of dQ, dK and dV, from what the forward pass has saved: the output `O`, with
    dropout where there is any, and the log-sum-exp `L`.

    Lean: `Attention.Spec.flashBackward`.
    """
    delta = row_delta(O, dO, dLse, q_len=q_len, d_v=d_v, num=num)
    dKV = backward_keys(
        to_value,
        scale,
        modify,
        mask,
        slope,
        Q,
        K,
        V,
        Z,
        L,
        dO,
        delta,
        keys,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )
    return (
        backward_queries(
            to_value,
            scale,
            modify,
            mask,
            slope,
            Q,
            K,
            V,
            Z,
            L,
            dO,
            delta,
            queries,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        ),
        (dKV.dK, dKV.dV),
    )
