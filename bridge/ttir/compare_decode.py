"""The decoding kernel, in pages too, and the one that combines its splits, against attention by
definition."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bridge.ttir.compare import Case, Compared, Level, Shape
from bridge.ttir.domain import Array, Numbers


def decode(
    shape: Shape, level: Level, seed: int = 0, *, splits: int = 1, page_size: int | None = None
) -> Compared:
    """The output and the log-sum-exp of `shape.q_len` queries and of caches of keys, whose lengths
    are those of `shape.lengths`, or kv_len.

    page_size: keys in a page, a power of two; None: the caches are not in pages. Numbers behind a
    cache's length, and in pages of no sequence, are drawn too. Raises as `machine.Machine.run`
    does; ValueError: a sequence has fewer queries than q_len.
    """
    if any(q_len != shape.q_len for q_len, _ in shape.lengths):
        raise ValueError(f"lengths must have {shape.q_len} queries each, not {shape.lengths}")
    case = Case(shape, level, seed)
    kernels = case.kernels
    lengths = [shape.lengths_of(b)[1] for b in range(shape.batch)]
    kv_lens = torch.tensor(lengths, dtype=torch.int32) if shape.lengths or page_size else None
    keys, values, table = case.k, case.v, None
    if page_size is not None:
        table = _table(lengths, page_size)
        keys = _as_pages(case, keys, shape.head_dim, table, page_size)
        values = _as_pages(case, values, shape.value_dim, table, page_size)
    out, lse = kernels.decode(
        case.tensor(case.q), kernels.tensor(keys), kernels.tensor(values), case.options(),
        splits=splits, kv_lens=kv_lens, page_table=table, bottom_right=shape.is_bottom_right,
    )  # fmt: skip
    found = Compared()
    case.compare_attention(found, out, lse)
    return case.finish(found)


def _table(lengths: list[int], page_size: int) -> Tensor:
    """The pages of each sequence, in an order that is not theirs; page 0 is of none, and stands
    where a sequence has no more."""
    counts = [-(-length // page_size) for length in lengths]
    numbers = iter(range(sum(counts), 0, -1))
    table = torch.zeros(len(lengths), max(1, *counts), dtype=torch.int32)
    for row, count in zip(table, counts, strict=True):
        row[:count] = torch.tensor([next(numbers) for _ in range(count)], dtype=torch.int32)
    return table


def _as_pages(case: Case, tile: Numbers, dim: int, table: Tensor, page_size: int) -> Numbers:
    """Keys or values `[batch, heads, length, dim]` as pages `[pages, heads, page_size, dim]`."""
    pages = case.draw("page", int(table.max()) + 1, case.shape.kv_heads, page_size, dim)

    def fill(x: Array, drawn: Array) -> Array:
        found = np.array(drawn)
        for b, row in enumerate(table.tolist()):
            for i, page in enumerate(row):
                part = x[b, :, i * page_size : (i + 1) * page_size]
                if page:
                    found[page, :, : part.shape[1]] = part
        return found

    return case.domain.each(fill, tile, pages)
