"""Sequences of different lengths, packed one after another.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Varlen.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.spec.core import Arithmetic, Score, Value, get_or
from bridge.spec.rows import KeyValue, attention_rows


def cu_seqlens(lens: list[int], start: int) -> list[int]:
    """The prefix sums of the lengths: where each sequence starts, and where the last one ends.

    Lean: `Attention.Spec.cuSeqlens`.
    """
    return [start] if not lens else [start, *cu_seqlens(lens[1:], start + lens[0])]


def sequence_of(cu: list[int], i: int) -> int:
    """The number of the sequence that a packed position belongs to: how many sequences end at or
    before it.

    Lean: `Attention.Spec.sequenceOf`.
    """
    return len([stop for stop in cu[1:] if stop <= i])


def slice_(cu: list[int], b: int, rows: list[Any]) -> list[Any]:
    """The rows of sequence `b`.

    Lean: `Attention.Spec.slice`.
    """
    return rows[get_or(cu, b, 0) :][: max(get_or(cu, b + 1, 0) - get_or(cu, b, 0), 0)]


def packed_mod(
    cu_q: list[int],
    cu_k: list[int],
    mods: Callable[[int, int, int, Score], Score | None],
    i: int,
    j: int,
    s: Score,
) -> Score | None:
    """The sequences of a packed batch: a query attends to the keys of its own sequence, and there
    `mods b i j` is what sequence `b` does to the score of its query `i` and its key `j`.

    Lean: `Attention.Spec.packedMod`.
    """
    b = sequence_of(cu_q, i)
    if sequence_of(cu_k, j) == b:
        return mods(b, max(i - get_or(cu_q, b, 0), 0), max(j - get_or(cu_k, b, 0), 0), s)
    return None


@dataclass(frozen=True)
class Sequence:
    """One sequence: its queries, and its keys with their values. There may be a different number
    of each, or none.

    queries: the queries, in order.

    keyValues: the keys and values, in order.

    Lean: `Attention.Spec.Sequence`.
    """

    queries: list[list[Score]]
    key_values: list[KeyValue]


def attention_varlen(
    scale: Score,
    mods: Callable[[int, int, int, Score], Score | None],
    cu_q: list[int],
    cu_k: list[int],
    Q: list[list[Score]],
    kvs: list[KeyValue],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of packed rows as one attention, where the keys of other sequences are masked.

    Lean: `Attention.Spec.attentionVarlen`.
    """
    return attention_rows(
        scale, lambda i, j, s: packed_mod(cu_q, cu_k, mods, i, j, s), Q, kvs, d=d, d_v=d_v, num=num
    )


def attention_sliced(
    scale: Score,
    mods: Callable[[int, int, int, Score], Score | None],
    cu_q: list[int],
    cu_k: list[int],
    Q: list[list[Score]],
    kvs: list[KeyValue],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of packed rows, sequence by sequence.

    Lean: `Attention.Spec.attentionSliced`.
    """
    return [
        x
        for b in range(max(len(cu_q) - 1, 0))
        for x in attention_rows(
            scale,
            lambda i, j, x: mods(b, i, j, x),
            slice_(cu_q, b, Q),
            slice_(cu_k, b, kvs),
            d=d,
            d_v=d_v,
            num=num,
        )
    ]
