"""FlashAttention-2: the backward pass in one loop.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/BackwardOneLoop.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.attention import Mask, ScoreMod
from bridge.spec.backward import row_delta
from bridge.spec.backward_tiles import KeySums, step_keys_kind, step_queries_kind
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.dropout import WeightFactor
from bridge.spec.flash import num_tiles
from bridge.spec.schedule import TileKind, tile
from bridge.spec.tangent import ScoreSlope
from bridge.spec.vector import vec_smul, vec_zero


@dataclass(frozen=True)
class Written:
    """The gradients that the loop has written after some tiles of keys.

    dQ: the sums of all queries so far, not yet scaled, tile by tile.

    dK: the rows of dK so far.

    dV: the rows of dV so far.

    Lean: `Attention.Spec.Written`.
    """

    dQ: list[list[list[Value]]]
    dK: list[list[Value]]
    dV: list[list[Value]]


def step_written(
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
    block_m: int,
    block_n: int,
    kind: Callable[[int, int], TileKind],
    written: Written,
    u: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Written:
    """One tile of keys: over all tiles of queries, each pair taken as `kind` says, that of the
    keys named first.

    Lean: `Attention.Spec.stepWritten`.
    """
    query_tiles = list(range(num_tiles(q_len, block_m)))
    cols = tile(block_n, list(range(kv_len)), u)
    start = KeySums(
        dK=[vec_zero(d=d, zero=num.value(0)) for _ in cols],
        dV=[vec_zero(d=d_v, zero=num.value(0)) for _ in cols],
    )
    sums = start
    for t in query_tiles:
        sums = step_keys_kind(
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
            sums,
            kind(u, t),
            tile(block_m, list(range(q_len)), t),
            d=d,
            d_v=d_v,
            num=num,
        )
    return Written(
        dQ=[
            step_queries_kind(
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
                tile(block_m, list(range(q_len)), t),
                rows,
                kind(u, t),
                cols,
                d=d,
                d_v=d_v,
                num=num,
            )
            for t, rows in zip(query_tiles, written.dQ, strict=False)
        ],
        dK=written.dK + [vec_smul(to_value(scale), a) for a in sums.dK],
        dV=written.dV + sums.dV,
    )


def flash_backward_one_loop(
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
    block_m: int,
    block_n: int,
    kind: Callable[[int, int], TileKind],
    O: list[list[Value]],
    dLse: list[Value],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> tuple[list[list[Value]], tuple[list[list[Value]], list[list[Value]]]]:
    """The rows of dQ, dK and dV, from the output `O` and the log-sum-exp `L` that the forward pass
    has saved, in one loop.

    Lean: `Attention.Spec.flashBackwardOneLoop`.
    """
    delta = row_delta(O, dO, dLse, q_len=q_len, d_v=d_v, num=num)
    start = Written(
        dQ=[
            [vec_zero(d=d, zero=num.value(0)) for _ in tile(block_m, list(range(q_len)), t)]
            for t in range(num_tiles(q_len, block_m))
        ],
        dK=[],
        dV=[],
    )
    written = start
    for u in range(num_tiles(kv_len, block_n)):
        written = step_written(
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
            block_m,
            block_n,
            kind,
            written,
            u,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
    return (
        [vec_smul(to_value(scale), a) for a in [x for xs in written.dQ for x in xs]],
        (written.dK, written.dV),
    )
