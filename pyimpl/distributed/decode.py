"""A decoding step over a cache of keys in shards: split-KV (`Attention.Spec.splitKV`), a split to
each process.

Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference".
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from pyimpl.backends.dispatch import Backend, choose_backend
from pyimpl.distributed.internal.agreement import Description, agree, digest, is_checked
from pyimpl.distributed.internal.arguments import Prepared, check_shards, describe
from pyimpl.distributed.internal.blocks import Sequence
from pyimpl.distributed.internal.passing import (
    Processes,
    name_processes,
    outside_of_graphs,
    processes_of,
)
from pyimpl.distributed.internal.ring import Ring
from pyimpl.distributed.internal.shards import Shards
from pyimpl.internal import arguments as check_arguments
from pyimpl.internal.arguments import Window, compute_dtype
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import (
    Changes,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
    checked_options,
    folds_into_query,
    takes_changes,
)
from pyimpl.merge import combine


@outside_of_graphs
@takes_changes
def decode_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_shards: Shards,
    group: dist.ProcessGroup | DeviceMesh | None = None,
    is_causal: bool = False,
    window: Window = (None, None),
    enable_gqa: bool = False,
    return_lse: bool = False,
    backend: Backend = "auto",
    check: bool | None = None,
    **changes: Unpack[Changes],
) -> Tensor | tuple[Tensor, Tensor]:
    """`pyimpl.attention_decode` of queries that every process has, over a cache of keys that the
    processes hold in shards: each takes in its own, and the outputs are merged by their
    log-sum-exps.

    Args:
        query: `[batch, heads, q_len, head_dim]`, the last tokens of the sequence, the same in every
            process.
        key, value: `[batch, kv_heads, kv_len, head_dim]` and `[batch, kv_heads, kv_len,
            value_dim]`, the part of the cache that this process holds.
        key_shards: which places of the sequence each process holds.
        is_causal, window, alibi_slopes: query i stands at key length − q_len + i of the sequence.
        check: as for `ring_attention`; the numbers of query are compared too.
        The rest as for `ring_attention`.

    Returns:
        The result of `pyimpl.attention_decode` over the whole cache, the same bits in every
        process.

    Raises:
        As `ring_attention`; NotImplementedError also where a gradient is asked for.
    """
    processes = processes_of(group)
    ready = agree(
        "decode_attention",
        processes,
        is_checked(check, query),
        partial(
            _prepare, processes, query, key, value, key_shards,
            enable_gqa=enable_gqa, return_lse=return_lse, backend=backend, is_causal=is_causal,
            window=window, **changes,
        ),
        _describe,
    )  # fmt: skip
    ring = Ring(processes, ready.sequence, ready.backend)
    with torch.no_grad():
        options = ring.options(ready.options.flat(), ready.query)
        out, lse = _decode(ready.query, ready.key, ready.value, options, ring)
    out = out.to(ready.query.dtype)
    return (out, lse) if return_lse else out


def _prepare(
    processes: Processes,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_shards: Shards,
    *,
    enable_gqa: bool,
    return_lse: bool,
    backend: Backend,
    **changes: Any,
) -> Prepared:
    """The arguments, after the checks that a process makes alone."""
    check = check_arguments
    named = check.under_autocast({"query": query, "key": key, "value": value})
    check.check_floating(named, ("batch", "heads", "length", "head_dim"))
    query, key, value = check.check_attended(named, enable_gqa)
    check_shards("key_shards", key_shards, processes, "key", key)
    check.check_bool("return_lse", return_lse)
    check.check_one_of("backend", backend, Backend)
    choose_backend(backend, query, value)
    batch, heads, q_len, _ = query.shape
    options = checked_options(query, batch, heads, **changes)
    check.check_reverse_mode(named | options.tensors())
    check.check_no_gradients("decode_attention", named | options.tensors())
    checked_numbers(options, query.dtype)
    shift = alignment_shift("bottom-right", q_len, key_shards.length)
    # All have all queries.
    everyone = Shards((torch.arange(q_len),) * processes.count)
    sequence = Sequence(everyone, key_shards, None, options.left, options.right, shift)
    return Prepared(query, key, value, replace(options, shift=shift), sequence, backend)


def _describe(given: Prepared) -> Description:
    """The values that must be the same in every process: the queries too."""
    return describe(given) | {"the digest of query": digest(given.query)}


@folds_into_query
@implements("Attention.Spec.splitKV")
def _decode(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, ring: Ring
) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp over the keys of all, in `compute_dtype(query.dtype)`."""
    wide, processes = compute_dtype(query.dtype), ring.processes
    shape, value_dim = query.shape[:-1], value.shape[-1]
    # Output and log-sum-exp of a query are one row of a message.
    message = query.new_zeros(*shape, value_dim + 1, dtype=wide)
    message[..., value_dim] = -torch.inf
    ring.take_in(
        message[..., :value_dim], message[..., value_dim], processes.rank, query, key, value,
        replace(options, sinks=None),
    )  # fmt: skip
    parts = [torch.empty_like(message) for _ in range(processes.count)]
    others = [r for r in range(processes.count) if r != processes.rank]
    with name_processes(processes.rank, others):
        dist.all_gather(parts, message, group=processes.group)
    if options.sinks is not None:
        # One more part, without a value.
        sink = torch.zeros_like(message)
        sink[..., value_dim] = options.sinks.to(wide).view(1, -1, 1)
        parts.append(sink)
    whole = torch.stack(parts)
    return combine(whole[..., :value_dim], whole[..., value_dim])
