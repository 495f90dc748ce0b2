"""The public function of ring attention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from pyimpl.backends.dispatch import Backend
from pyimpl.distributed.internal.agreement import agree, is_checked
from pyimpl.distributed.internal.arguments import describe, prepare
from pyimpl.distributed.internal.passing import outside_of_graphs, processes_of
from pyimpl.distributed.internal.ring import Ring, attend
from pyimpl.distributed.internal.shards import Shards
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.scores import Changes, takes_changes


@outside_of_graphs
@takes_changes
def ring_attention(
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
    """`pyimpl.attention` of one sequence that the processes of a group hold in shards
    (`Attention.Spec.ring`): every process calls this with its own part, and gets the outputs of its
    own queries.

    Args:
        query: `[batch, heads, q_len, head_dim]`, the queries of this process, in the order that
            `shards` gives them.
        key, value: `[batch, kv_heads, kv_len, head_dim]` and `[batch, kv_heads, kv_len,
            value_dim]`, the keys of this process.
        shards: which places of the sequence each process holds, the same in every process.
        key_shards: those of the keys, where they are not those of the queries.
        group: a process group, a device mesh of one dimension, or None for the default group.
        attn_mask, bias: broadcastable to `[batch, heads, q_len, all keys]`: of this process's
            queries, and of the keys of all in the order of the sequence.
        causal_alignment: as for `pyimpl.attention`, with the lengths of the whole.
        cu_seqlens: the prefix sums of the lengths of documents, which do not see each other, as
            for `attention_varlen`; they end at the length of the sequence.
        dropout_p, dropout_seed: as for `pyimpl.attention`; the seed must be given, the same in
            every process. The weights dropped are those that one process drops.
        backend: of each process's own computation; "triton" has dropout for shards that are a few
            stretches, such as zigzag, and "auto" computes others with dropout by "tiled".
        check: whether the processes first exchange a description of their arguments, so that
            arguments that do not fit together are an error in every process; None: for tensors on a
            CPU. Without it such a call ends in wrong results or in the group's timeout.
        The rest, with the `Changes` of the scores, as for `pyimpl.attention`.

    Returns:
        `[batch, heads, q_len, value_dim]` in the dtype of `query`, rounded to it once; with
        `return_lse` also `[batch, heads, q_len]`, as `pyimpl.attention`.

    Both outputs are differentiable as those of `pyimpl.attention`, and every process has to call
    backward where one does. The gradients of key and value are summed over the queries of all
    processes. Those of bias, attn_mask and the changes of the scores are of this process's queries
    alone: a parameter that every process holds has their sum over the processes for its
    gradient. Key and value are sent in their dtype, gradients in float32 (float64 for float64).

    Raises:
        As `pyimpl.attention`; ValueError also where another process refuses its arguments or was
        given others, with `check`; RuntimeError where another process ended or does not answer
        within the group's timeout.
    """
    processes = processes_of(group)
    ready = agree(
        "ring_attention",
        processes,
        is_checked(check, query),
        partial(
            prepare, processes, query, key, value, shards, key_shards,
            attn_mask=attn_mask, bias=bias, whole_pairs=False, is_causal=is_causal,
            causal_alignment=causal_alignment, window=window, cu_seqlens=cu_seqlens,
            enable_gqa=enable_gqa, return_lse=return_lse, dropout_p=dropout_p,
            dropout_seed=dropout_seed, backend=backend, **changes,
        ),
        describe,
    )  # fmt: skip
    ring = Ring(processes, ready.sequence, ready.backend)
    out, lse = attend(ring, ready.query, ready.key, ready.value, *ready.options.flat())
    return (out, lse) if return_lse else out
