"""Heads.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Heads.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import attention
from bridge.spec.core import Arithmetic, Score, Value, div, mod


def kv_head(h: int, *, group: int) -> int:
    """The head of keys and values that query head `h` uses, `group` query heads in a row sharing
    one: h / group, rounded down.

    Lean: `Attention.Spec.kvHead`.
    """
    return div(h, group)


def repeat_heads(group: int, X: list[Any]) -> list[Any]:
    """Each head `group` times in a row, as PyTorch's `repeat_interleave` does it.

    Lean: `Attention.Spec.repeatHeads`.
    """
    return [x_1 for x in X for x_1 in [x] * group]


def packed_head(c: int, r: int, *, group: int) -> int:
    """The head of row `r` of the queries that are packed for the head `c` of keys and values: the
    (r % group)th of those that share it.

    Lean: `Attention.Spec.packedHead`.
    """
    return c * group + mod(r, group)


def packed_query(r: int, *, group: int) -> int:
    """The query of row `r` of the packed queries: r / group, rounded down.

    Lean: `Attention.Spec.packedQuery`.
    """
    return div(r, group)


def packed_row(h: int, i: int, *, group: int) -> int:
    """The row of query `i` of head `h` among the packed queries.

    Lean: `Attention.Spec.packedRow`.
    """
    return i * group + mod(h, group)


def multi_head(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    Q: list[list[list[Score]]],
    K: list[list[list[Score]]],
    V: list[list[list[Value]]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_heads: int,
    num: Arithmetic,
) -> list[list[list[Value]]]:
    """Multi-head attention: head `h` of the queries over head `h` of the keys and values.

    Lean: `Attention.Spec.multiHead`.
    """
    return [
        attention(
            scale,
            lambda i, j, x: modify(h, i, j, x),
            Q[h],
            K[h],
            V[h],
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
        for h in range(num_heads)
    ]


def grouped_query(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    Q: list[list[list[Score]]],
    K: list[list[list[Score]]],
    V: list[list[list[Value]]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> list[list[list[Value]]]:
    """Grouped-query attention: head `h` of the queries over head h / group of the keys and values.

    Lean: `Attention.Spec.groupedQuery`.
    """
    return [
        attention(
            scale,
            lambda i, j, x: modify(h, i, j, x),
            Q[h],
            K[kv_head(h, group=group)],
            V[kv_head(h, group=group)],
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
        for h in range(num_kv_heads * group)
    ]


def attention_packed_heads(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    Q: list[list[list[Score]]],
    K: list[list[list[Score]]],
    V: list[list[list[Value]]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> list[list[list[Value]]]:
    """One attention for each head of keys and values: the queries of all heads that share it are
    packed in one matrix, query by query, so that the keys and values are read once for all of
    them.

    Lean: `Attention.Spec.attentionPackedHeads`.
    """
    return [
        attention(
            scale,
            lambda r, j, i: modify(
                packed_head(c, r, group=group), packed_query(r, group=group), j, i
            ),
            [
                Q[packed_head(c, r, group=group)][packed_query(r, group=group)]
                for r in range(q_len * group)
            ],
            K[c],
            V[c],
            q_len=q_len * group,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
        for c in range(num_kv_heads)
    ]


def grouped_query_packed(
    scale: Score,
    modify: Callable[[int, int, int, Score], Score | None],
    Q: list[list[list[Score]]],
    K: list[list[list[Score]]],
    V: list[list[list[Value]]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num_kv_heads: int,
    group: int,
    num: Arithmetic,
) -> list[list[list[Value]]]:
    """Grouped-query attention with one attention for each head of keys and values; the rows of its
    output are given back to the heads that they came from.

    Lean: `Attention.Spec.groupedQueryPacked`.
    """
    packed = attention_packed_heads(
        scale,
        modify,
        Q,
        K,
        V,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num_kv_heads=num_kv_heads,
        group=group,
        num=num,
    )
    return [
        [packed[kv_head(h, group=group)][packed_row(h, i, group=group)] for i in range(q_len)]
        for h in range(num_kv_heads * group)
    ]
