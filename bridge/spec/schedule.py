"""FlashAttention-2 with a tile schedule.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Schedule.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.spec.attention import Mask, ScoreMod, mask_to_score_mod, scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import num_tiles, step_tile
from bridge.spec.online import State, empty, finish
from bridge.spec.score_mods import score_mod_and_then


class TileKind(Enum):
    """How the pair of a query tile and a key tile is taken.

    Lean: `Attention.Spec.TileKind`.
    """

    SKIP = "skip"
    UNMASKED = "unmasked"
    MASKED = "masked"


@dataclass(frozen=True)
class TileRange:
    """A range of tiles: `first`, first + 1, …, stop − 1.

    first: the first tile.

    stop: one past the last tile.

    Lean: `Attention.Spec.TileRange`.
    """

    first: int
    stop: int


def tile_range_contains(r: TileRange, u: int) -> bool:
    """The tile is in the range.

    Lean: `Attention.Spec.TileRange.contains`.
    """
    return r.first <= u and u < r.stop


def tile(b: int, xs: list[Any], t: int) -> list[Any]:
    """Tile `t` of a list cut into consecutive tiles of size `b`.

    Lean: `Attention.Spec.tile`.
    """
    return xs[t * b :][:b]


def step_kind(
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    rows: list[int],
    states: list[State],
    kind: TileKind,
    cols: list[int],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """One key tile updates the states of all rows of a query tile, as its kind says.

    Lean: `Attention.Spec.stepKind`.
    """
    if kind is TileKind.SKIP:
        return states
    if kind is TileKind.UNMASKED:
        return step_tile(
            lambda i, cols_1: scored(scale, modify, Q, K, V, i, cols_1, d=d, num=num),
            rows,
            states,
            cols,
            d_v=d_v,
            num=num,
        )
    return step_tile(
        lambda i, cols_1: scored(
            scale,
            score_mod_and_then(modify, mask_to_score_mod(mask)),
            Q,
            K,
            V,
            i,
            cols_1,
            d=d,
            num=num,
        ),
        rows,
        states,
        cols,
        d_v=d_v,
        num=num,
    )


def flash_schedule(
    scale: Score,
    modify: ScoreMod,
    mask: Mask,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    visit: Callable[[int], TileRange],
    kind: Callable[[int, int], TileKind],
    block_m: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The rows of attention's output: query tile `t` visits the key tiles `visit t`, each as `kind
    t u` says.

    Lean: `Attention.Spec.flashSchedule`.
    """
    result = []
    for t in range(num_tiles(q_len, block_m)):
        rows = tile(block_m, list(range(q_len)), t)
        start = [empty(d=d_v, num=num) for _ in rows]
        range_ = visit(t)
        states = start
        for u in range(range_.first, range_.first + max(range_.stop - range_.first, 0)):
            states = step_kind(
                scale,
                modify,
                mask,
                Q,
                K,
                V,
                rows,
                states,
                kind(t, u),
                tile(block_n, list(range(kv_len)), u),
                d=d,
                d_v=d_v,
                num=num,
            )
        result.extend([finish(s, d=d_v, num=num) for s in states])
    return result
