"""Attention.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Attention.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.softmax import softmax
from bridge.spec.vector import vec_dot, vec_smul, vec_sum_over


@dataclass(frozen=True)
class ScoredValue:
    """One key as the softmax sees it: its score (`none`: masked) and its value vector.

    score: the score of the key; `none` when the key is masked.

    value: the value vector that belongs to the key.

    Lean: `Attention.Spec.ScoredValue`.
    """

    score: Score | None
    value: list[Value]


# The change of the score of query `i` and key `j`: to a new score, or `none` to mask the pair.
# Lean: `Attention.Spec.ScoreMod`.
ScoreMod: TypeAlias = Callable[[int, int, Score], Score | None]

# Which keys a query may attend to: `true` means it may. Lean: `Attention.Spec.Mask`.
Mask: TypeAlias = Callable[[int, int], bool]


def mask_to_score_mod(mask: Mask) -> ScoreMod:
    """A Boolean mask as a score transformation.

    Lean: `Attention.Spec.Mask.toScoreMod`.
    """
    return lambda i, j, s: s if mask(i, j) else None


def attend(row: list[ScoredValue], *, d_v: int, num: Arithmetic) -> list[Value]:
    """The attention of one row: Σ pⱼ vⱼ with p the softmax of the scores.

    Lean: `Attention.Spec.attend`.
    """
    p = softmax([x.score for x in row], num=num)
    return vec_sum_over(
        lambda x: vec_smul(x[0], x[1]),
        list(zip(p, [x.value for x in row], strict=False)),
        d=d_v,
        zero=num.value(0),
    )


def score(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    i: int,
    j: int,
    *,
    d: int,
    num: Arithmetic,
) -> Score | None:
    """The score of query `i` and key `j`: scale · ⟨Qᵢ, Kⱼ⟩, transformed by `modify`.

    Lean: `Attention.Spec.score`.
    """
    return modify(i, j, scale * vec_dot(Q[i], K[j], d=d, zero=num.score(0)))


def scored(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    i: int,
    cols: list[int],
    *,
    d: int,
    num: Arithmetic,
) -> list[ScoredValue]:
    """The keys `cols` with their values, as query `i` sees them.

    Lean: `Attention.Spec.scored`.
    """
    return [
        ScoredValue(score=score(scale, modify, Q, K, i, j, d=d, num=num), value=V[j]) for j in cols
    ]


def attention(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of whole matrices: row `i` of the output is `attend` of all keys as query `i` sees
    them.

    Lean: `Attention.Spec.attention`.
    """
    return [
        attend(
            scored(scale, modify, Q, K, V, i, list(range(kv_len)), d=d, num=num), d_v=d_v, num=num
        )
        for i in range(q_len)
    ]


def probabilities(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The softmax weights P of all queries and keys.

    Lean: `Attention.Spec.probabilities`.
    """
    return [
        softmax([score(scale, modify, Q, K, i, j, d=d, num=num) for j in range(kv_len)], num=num)
        for i in range(q_len)
    ]
