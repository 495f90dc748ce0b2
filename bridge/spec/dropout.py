"""Attention with dropout.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Dropout.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bridge.spec.attention import Mask, ScoredValue, ScoreMod, probabilities, score, scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import tile_loop
from bridge.spec.keep_mask import keeps_from
from bridge.spec.online import empty, finish
from bridge.spec.vector import vec_smul, vec_sum_over

# The factor of each weight: Z. Lean: `Attention.Spec.WeightFactor`.
WeightFactor: TypeAlias = Callable[[int, int], Value]


def dropout_factor(p: Value, keep: bool, *, num: Arithmetic) -> Value:
    """The factor of a weight under dropout with probability `p`.

    Lean: `Attention.Spec.dropoutFactor`.
    """
    return num.value(1) / (num.value(1) - p) if keep else num.value(0)


def weight_factor_dropout(p: Value, keep: Mask, *, num: Arithmetic) -> WeightFactor:
    """The factor of each weight under dropout with probability `p`, `keep` being those that it
    keeps.

    Lean: `Attention.Spec.WeightFactor.dropout`.
    """
    return lambda i, j: dropout_factor(p, keep(i, j), num=num)


def dropped_values(
    V: list[list[Value]], Z: WeightFactor, i: int, *, kv_len: int
) -> list[list[Value]]:
    """The values as query `i` sees them under dropout.

    Lean: `Attention.Spec.droppedValues`.
    """
    return [vec_smul(Z(i, j), V[j]) for j in range(kv_len)]


def drop_key(z: Value, key: ScoredValue) -> ScoredValue:
    """A key whose weight is multiplied by `z` where it meets the value, and nowhere else: the same
    as the value multiplied by `z`.

    Lean: `Attention.Spec.dropKey`.
    """
    return ScoredValue(score=key.score, value=vec_smul(z, key.value))


def attention_dropout(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention with dropout, O = (P ∘ Z) V with P the softmax weights, for any factors Z.

    Lean: `Attention.Spec.attentionDropout`.
    """
    P = probabilities(scale, modify, Q, K, q_len=q_len, kv_len=kv_len, d=d, num=num)
    return [
        vec_sum_over(
            lambda j: vec_smul(P[i][j] * Z(i, j), V[j]),
            list(range(kv_len)),
            d=d_v,
            zero=num.value(0),
        )
        for i in range(q_len)
    ]


def scored_dropout(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    i: int,
    cols: list[int],
    *,
    d: int,
    num: Arithmetic,
) -> list[ScoredValue]:
    """The keys `cols` as query `i` sees them under dropout.

    Lean: `Attention.Spec.scoredDropout`.
    """
    return [
        drop_key(
            Z(i, j), ScoredValue(score=score(scale, modify, Q, K, i, j, d=d, num=num), value=V[j])
        )
        for j in cols
    ]


def scored_drawn(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    p: Value,
    threshold: int,
    seed: int,
    head: int,
    i: int,
    cols: list[int],
    *,
    d: int,
    num: Arithmetic,
) -> list[ScoredValue]:
    """The keys `cols`, which follow one another, as query `i` sees them under dropout; which of
    their weights are kept is drawn for them alone.

    Lean: `Attention.Spec.scoredDrawn`.
    """
    if not cols:
        return []
    return [
        drop_key(dropout_factor(p, keep, num=num), key)
        for keep, key in zip(
            keeps_from(threshold, seed, head, i, cols[0], len(cols)),
            scored(scale, modify, Q, K, V, i, cols, d=d, num=num),
            strict=False,
        )
    ]


def flash_dropout(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Z: WeightFactor,
    block_m: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The tile loop with dropout, for any factors Z.

    Lean: `Attention.Spec.flashDropout`.
    """
    return [
        finish(s, d=d_v, num=num)
        for s in tile_loop(
            empty(d=d_v, num=num),
            lambda i, cols: scored_dropout(scale, modify, Q, K, V, Z, i, cols, d=d, num=num),
            block_m,
            block_n,
            q_len=q_len,
            kv_len=kv_len,
            d_v=d_v,
            num=num,
        )
    ]


def flash_drawn(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    p: Value,
    threshold: int,
    seed: int,
    head: int,
    block_m: int,
    block_n: int,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The tile loop with dropout, where each pair of tiles draws for itself which weights are
    kept.

    Lean: `Attention.Spec.flashDrawn`.
    """
    return [
        finish(s, d=d_v, num=num)
        for s in tile_loop(
            empty(d=d_v, num=num),
            lambda i, cols: scored_drawn(
                scale, modify, Q, K, V, p, threshold, seed, head, i, cols, d=d, num=num
            ),
            block_m,
            block_n,
            q_len=q_len,
            kv_len=kv_len,
            d_v=d_v,
            num=num,
        )
    ]
