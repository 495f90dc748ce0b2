"""Judge attention in shards

Attention whose sequence is in several processes: the judge calls the function in each of them with
its shards of queries, keys and values, joins the outputs and the gradients, and judges them as
those of one process. Write your own context parallel attention in the place of `ring_attention`:
`group` is a process group that is ready, and `q_len` and `kv_len` are the lengths of the whole
([conform.md](conform.md#attention-in-shards)).

Run:

    attention-check ring_in_shards.py:attention --processes 2 --layout zigzag --dtype float32

It prints, among others:

    A function of shards: 2 processes, zigzag.
    Supports: documents, gqa, gradients, is-causal, lse, lse-gradients, scale.
"""

import torch.distributed as dist
from torch import Tensor

from pyimpl.distributed import Shards, ring_attention


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    group: dist.ProcessGroup,
    q_len: int,
    kv_len: int,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    cu_seqlens: Tensor | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The output of this process's queries; query [batch, heads, its queries, head_dim]."""
    return ring_attention(
        query,
        key,
        value,
        shards=Shards.zigzag(q_len, group.size()),
        key_shards=Shards.zigzag(kv_len, group.size()),
        group=group,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        cu_seqlens=cu_seqlens,
        return_lse=return_lse,
    )
