"""Keys and values in pages.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Paged.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic, Score, Value, div, get_or_none, mod
from bridge.spec.online import finish, online
from bridge.spec.rows import KeyValue, scored_rows


def pool_read(pool: list[list[Any]], table: list[int], t: int, *, page_size: int) -> Any | None:
    """The entry of token `t` of the sequence with this table.

    Lean: `Attention.Spec.Pool.read`.
    """
    p = get_or_none(table, div(t, page_size))
    return None if p is None else get_or_none(pool[p], mod(t, page_size))


def pool_gather(pool: list[list[Any]], table: list[int], len_: int, *, page_size: int) -> list[Any]:
    """The first `len` tokens of a sequence, in order.

    Lean: `Attention.Spec.Pool.gather`.
    """
    return [
        found
        for t in range(len_)
        if (found := pool_read(pool, table, t, page_size=page_size)) is not None
    ]


def pool_write(
    pool: list[list[Any]], table: list[int], t: int, x: Any, *, page_size: int, num_pages: int
) -> list[list[Any]]:
    """Token `t` of a sequence is written to its place; nothing happens beyond the end of the
    table.

    Lean: `Attention.Spec.Pool.write`.
    """
    p = get_or_none(table, div(t, page_size))
    if p is None:
        return pool
    return [
        [x if slot == mod(t, page_size) else pool[p_][slot] for slot in range(page_size)]
        if p_ == p
        else pool[p_]
        for p_ in range(num_pages)
    ]


def pool_store(
    pool: list[list[Any]],
    table: list[int],
    len_: int,
    xs: list[Any],
    *,
    page_size: int,
    num_pages: int,
) -> list[list[Any]]:
    """Tokens are written one after another, the first of them as token `len`.

    Lean: `Attention.Spec.Pool.store`.
    """
    if not xs:
        return pool
    return pool_store(
        pool_write(pool, table, len_, xs[0], page_size=page_size, num_pages=num_pages),
        table,
        len_ + 1,
        xs[1:],
        page_size=page_size,
        num_pages=num_pages,
    )


def scored_page(
    scale: Score,
    modify: Callable[[int, Score], Score | None],
    q: list[Score],
    len_: int,
    t: int,
    page: list[KeyValue],
    *,
    page_size: int,
    d: int,
    num: Arithmetic,
) -> list[ScoredValue]:
    """The `t`th page of a sequence of length `len` as the query sees it: slots at and beyond the
    length are masked.

    Lean: `Attention.Spec.scoredPage`.
    """
    return scored_rows(
        scale,
        lambda slot, s: modify(t * page_size + slot, s) if t * page_size + slot < len_ else None,
        q,
        page,
        d=d,
        num=num,
    )


def attend_paged(
    scale: Score,
    modify: Callable[[int, Score], Score | None],
    q: list[Score],
    pool: list[list[KeyValue]],
    table: list[int],
    len_: int,
    *,
    page_size: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[Value]:
    """Attention of one query over a cache in pages, one page of the table after another.

    Lean: `Attention.Spec.attendPaged`.
    """
    return finish(
        online(
            [
                scored_page(scale, modify, q, len_, t, pool[p], page_size=page_size, d=d, num=num)
                for t, p in enumerate(table)
            ],
            d=d_v,
            num=num,
        ),
        d=d_v,
        num=num,
    )
