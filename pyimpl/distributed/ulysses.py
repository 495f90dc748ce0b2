"""Attention with the sequence in shards by heads: each process trades its part of the sequence for
all of it and a part of the heads, computes these alone, and trades back. With processes in rows
and columns, heads are traded in each row, for all that the row holds, and keys go around in each
column.

Source: Jacobs et al. 2023, "DeepSpeed Ulysses: System Optimizations for Enabling Training of
Extreme Long Sequence Transformer Models", section 3; rows and columns: Fang and Zhao 2024, "USP: A
Unified Sequence Parallelism Approach for Long Context Generative AI", algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from pyimpl.backends.dispatch import Backend
from pyimpl.distributed.internal.agreement import agree, is_checked
from pyimpl.distributed.internal.arguments import Prepared, describe, prepare
from pyimpl.distributed.internal.passing import (
    Grid,
    Processes,
    exchange,
    grid_of,
    outside_of_graphs,
)
from pyimpl.distributed.internal.ring import EVERY, Ring, as_4d, attend
from pyimpl.distributed.internal.shards import Shards, in_rows
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.scores import CHANGES, Changes, ScoreOptions, cut, takes_changes


@outside_of_graphs
@takes_changes
def ulysses_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    shards: Shards,
    key_shards: Shards | None = None,
    group: dist.ProcessGroup | DeviceMesh | None = None,
    attn_mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    causal_alignment: Alignment = "top-left",
    window: Window = (None, None),
    cu_seqlens: Sequence[int] | Tensor | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    backend: Backend = "auto",
    check: bool | None = None,
    **changes: Unpack[Changes],
) -> Tensor | tuple[Tensor, Tensor]:
    """`ring_attention`, computed by heads: four exchanges in the place of the rounds.

    Args:
        query, key, value: as for `ring_attention`; the number of processes, or that of the second
            dimension of a mesh, divides the heads of query and of key.
        group: as for `ring_attention`, or a device mesh of two dimensions: heads are traded along
            the second, and keys go around along the first. The processes are numbered along the
            second first; shards that are contiguous or in zigzag are so for the rows too.
        attn_mask, bias: broadcastable to `[batch, heads, all queries, all keys]`, in the order of
            the sequence, the same in every process: each computes some heads for all queries.
        The rest as for `ring_attention`.

    Returns:
        As `ring_attention`. The gradients of bias, attn_mask and the changes of the scores are
        those by the heads and queries that this process computes alone, 0 for the others.

    Raises:
        As `ring_attention`; ValueError also where the number of processes that trade heads divides
        one of the numbers of heads not.
    """
    grid = grid_of(group)
    ready = agree(
        "ulysses_attention",
        grid,
        is_checked(check, query),
        partial(
            _prepare, grid, query, key, value, shards, key_shards,
            attn_mask=attn_mask, bias=bias, whole_pairs=True, is_causal=is_causal,
            causal_alignment=causal_alignment, window=window, cu_seqlens=cu_seqlens,
            enable_gqa=enable_gqa, return_lse=return_lse, dropout_p=dropout_p,
            dropout_seed=dropout_seed, backend=backend, **changes,
        ),
        describe,
    )  # fmt: skip
    row, column = grid.row, grid.column
    queries, own_queries = in_rows(ready.sequence.queries, row.count)
    keys, own_keys = in_rows(ready.sequence.keys, row.count)
    heads = ready.query.shape[1]
    part = heads // row.count
    some = slice(row.rank * part, (row.rank + 1) * part)
    ring = Ring(column, replace(ready.sequence, queries=queries, keys=keys), ready.backend)
    of_query, of_key = own_queries[column.rank], own_keys[column.rank]
    q, k, v = _traded(row, (of_query, of_key, of_key), False, ready.query, ready.key, ready.value)
    options = _of_part(ready.options, heads, some, queries.places[column.rank], queries.length)
    out, lse = attend(ring, q, k, v, *options.flat())
    out, lse = _traded(row, (of_query, of_query), True, out, lse.unsqueeze(-1))
    return (out, lse.squeeze(-1)) if return_lse else out


def _prepare(grid: Grid, *args: Any, **named: Any) -> Prepared:
    """`prepare`, and whether the processes divide the heads."""
    prepared = prepare(grid, *args, **named)
    for name, tensor in (("query", prepared.query), ("key", prepared.key)):
        if tensor.shape[1] % grid.row.count:
            raise ValueError(
                f"the heads of {name} must be a multiple of the number of processes that trade "
                f"them, {grid.row.count}, not {tensor.shape[1]}: ring_attention takes any"
            )
    return prepared


def _of_part(
    options: ScoreOptions, count: int, heads: slice, places: Tensor, length: int
) -> ScoreOptions:
    """The options of some of `count` heads and of the queries at these places of all `length`,
    which gradients flow through."""

    def of_queries(pairs: Tensor | None) -> Tensor | None:
        pairs = as_4d(pairs)
        # The places rise: as many as there are, they are all.
        if pairs is None or pairs.shape[2] == 1 or len(places) == length:
            return pairs
        return pairs.index_select(2, places.to(pairs.device))

    changed: dict[str, Any] = {}
    for change in CHANGES:
        given = getattr(options, change.name)
        if change.kind == "pair":
            given = of_queries(given)
        changed[change.name] = change.part(given, EVERY, heads)
    dropout = options.dropout
    if dropout is not None:
        dropout = dropout.from_head(count, 0, heads.start)
    mask = cut(of_queries(options.mask), EVERY, heads)
    return replace(options, mask=mask, dropout=dropout, **changed)


def _to_heads(part: Tensor, processes: Processes, shards: Shards) -> Tensor:
    """`[batch, heads, own length, dim]` of every process, in the order of the sequence and of this
    process's heads: `[batch, heads / processes, length, dim]`."""
    batch, heads, _, dim = part.shape
    shapes = [(batch, heads // processes.count, n, dim) for n in shards.lengths]
    return shards.join(exchange(processes, part.tensor_split(processes.count, 1), shapes))


def _to_sequence(part: Tensor, processes: Processes, shards: Shards) -> Tensor:
    """The inverse of `_to_heads`, and its adjoint."""
    batch, own, _, dim = part.shape
    pieces = [shards.take(part, p) for p in range(processes.count)]
    shape = (batch, own, shards.lengths[processes.rank], dim)
    return torch.cat(exchange(processes, pieces, [shape] * processes.count), 1)


class _Trade(torch.autograd.Function):
    """`_to_heads` of tensors over sequences in these shards, or, `back`, `_to_sequence`; the
    gradients go the other way, all of them together, so that no process waits for one alone."""

    @staticmethod
    def forward(
        ctx: Any, processes: Processes, shards: tuple[Shards, ...], back: bool, *parts: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.given = processes, shards, back
        return _trade(processes, shards, back, parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        processes, shards, back = ctx.given
        return None, None, None, *_trade(processes, shards, not back, grads)


_traded: Callable[..., tuple[Tensor, ...]] = _Trade.apply


def _trade(
    processes: Processes, shards: tuple[Shards, ...], back: bool, parts: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    way = _to_sequence if back else _to_heads
    return tuple(way(part, processes, of) for part, of in zip(parts, shards, strict=True))
