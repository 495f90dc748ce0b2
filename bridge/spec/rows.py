"""Keys and values as a list of rows.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Rows.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bridge.spec.attention import ScoredValue, ScoreMod, attend
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.vector import vec_dot

# A key with its value. Lean: `Attention.Spec.KeyValue`.
KeyValue: TypeAlias = tuple[list[Score], list[Value]]


def scored_rows(
    scale: Score,
    modify: Callable[[int, Score], Score | None],
    q: list[Score],
    kvs: list[KeyValue],
    *,
    d: int,
    num: Arithmetic,
) -> list[ScoredValue]:
    """The keys and values of a list as the query `q` sees them; `modify` is given the position of
    the key in the list.

    Lean: `Attention.Spec.scoredRows`.
    """
    return [
        ScoredValue(score=modify(j, scale * vec_dot(q, kv[0], d=d, zero=num.score(0))), value=kv[1])
        for j, kv in enumerate(kvs)
    ]


def attend_rows(
    scale: Score,
    modify: Callable[[int, Score], Score | None],
    q: list[Score],
    kvs: list[KeyValue],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[Value]:
    """Attention of one query over a list of keys and values.

    Lean: `Attention.Spec.attendRows`.
    """
    return attend(scored_rows(scale, modify, q, kvs, d=d, num=num), d_v=d_v, num=num)


def attention_rows(
    scale: Score,
    modify: Callable[[int, int, Score], Score | None],
    Q: list[list[Score]],
    kvs: list[KeyValue],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of a list of queries over a list of keys and values; `modify` is given the
    positions of the query and of the key.

    Lean: `Attention.Spec.attentionRows`.
    """
    return [
        attend_rows(scale, lambda i_1, j: modify(i, i_1, j), q, kvs, d=d, d_v=d_v, num=num)
        for i, q in enumerate(Q)
    ]


def score_mod_row(modify: ScoreMod, i: int, j: int, s: Score, *, kv_len: int) -> Score | None:
    """The score transformation of query `i` with natural numbers for positions: positions beyond
    the end are masked.

    Lean: `Attention.Spec.ScoreMod.row`.
    """
    return modify(i, j, s) if j < kv_len else None


def key_values(K: list[list[Score]], V: list[list[Value]]) -> list[KeyValue]:
    """The keys and values of two matrices as a list.

    Lean: `Attention.Spec.keyValues`.
    """
    return list(zip(K, V, strict=False))
