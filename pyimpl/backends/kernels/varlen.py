"""Attention of sequences of different lengths, packed one after another without padding:
`Attention.Spec.attentionSliced`.

The forward kernel, with one program for each tile of queries of each head of each sequence.
Source: flash-attention's `flash_attn_varlen_func`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.backends.kernels import forward
from pyimpl.backends.kernels.parts import kept
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    capability,
    check_kind,
    check_length,
    check_tensor,
    padded_size,
)
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.scores import ScoreOptions, folds_into_query


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, options: ScoreOptions, capability: int
) -> dict[str, int]:
    """Those of the forward kernel, with smaller tiles or more warps where that would spill: where a
    sequence starts takes registers too."""
    dim = padded_size(max(head_dim, value_dim))
    chosen = forward.launch_options(dtype, head_dim, value_dim, options, capability)
    if dtype == torch.float32:
        if dim > 128:
            # So do dropout's random words, and the loads ahead of a second stage.
            fewer = {} if options.dropout is None else {"num_stages": 1}
            return chosen | {"block_m": 16} | fewer
        return chosen | ({"block_n": 16} if options.dropout is not None else {})
    if head_dim % 16 or value_dim % 16:
        smaller = {"block_m": 32} if dim <= 128 else {"block_m": 16, "block_n": 16}
        return chosen | smaller | {"num_warps": 8}
    # Tiles of 64 rows, as on Hopper, do not spill.
    return chosen | ({"num_warps": 8} if dim <= 64 and chosen["block_m"] > 64 else {})


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
    *,
    max_q_len: int,
    bottom_right: bool,
    capability: int,
    block_m: int | None = None,
    block_n: int | None = None,
) -> Launch:
    """The launch of `varlen` on a device of this compute capability; raises as it does."""
    total_q, _, head_dim = query.shape
    total_k, num_kv_heads, _ = key.shape
    value_dim = value.shape[-1]
    check_tensor("key", key, query, (total_k, num_kv_heads, head_dim))
    check_tensor("value", value, query, (total_k, num_kv_heads, value_dim))
    check_length("the number of packed queries", total_q)
    check_length("the number of packed keys", total_k)
    query, key, value, out = (x.transpose(0, 1)[None] for x in (query, key, value, out))
    return forward.launch(
        query, key, value, out, lse[None], options, capability=capability,
        sequences=Sequences(cu_seqlens_q, cu_seqlens_k, max_q_len, total_k, bottom_right),
        chosen=launch_options(query.dtype, head_dim, value_dim, options, capability),
        block_m=block_m, block_n=block_n,
    )  # fmt: skip


# The kernel's parameters for the tensors of a call.
_NAMES = (*forward.TENSORS[:3], "cu_q_ptr", "cu_k_ptr", *kept.OPTIONS, *forward.TENSORS[3:])


@folds_into_query
def varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    options: ScoreOptions,
    *,
    max_q_len: int | None = None,
    bottom_right: bool = False,
    block_m: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in float32, newly allocated:
    `[total_q, heads, value_dim]` and `[heads, total_q]`.

    `query` `[total_q, heads, head_dim]`, `key` `[total_k, kv_heads, head_dim]`, `value` `[total_k,
    kv_heads, value_dim]`: the sequences one after another, of any strides; dtypes, head sizes and
    heads as in `pyimpl.backends.kernels.forward.forward`. cu_seqlens_q and cu_seqlens_k, int32
    `[batch + 1]`, are the prefix sums of the lengths, from 0 on: sequence b has the rows from entry
    b to entry b + 1 (of entries outside of 0 … total the nearest of these counts). Rows of no
    sequence have output 0 and log-sum-exp −∞.

    `options` apply to each sequence, its positions counted from 0; mask and bias must be None.
    bottom_right: query 0 stands at options.shift + (number of keys) − (number of queries) of its
    sequence, so that the last query stands at the last key, and not at options.shift. max_q_len: at
    least the largest number of queries of a sequence (of a longer one the rest counts as of no
    sequence); None for total_q, with many programs that have nothing to do. block_m, block_n: as in
    `forward`.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see
            `launch.why_not`), a length, a number of `options`, a block size or the number of
            tiles is outside the kernel's range; there is a mask or a bias.
    """
    longest = query.shape[0] if max_q_len is None else max_q_len
    out = query.new_zeros(*query.shape[:-1], value.shape[-1])
    lse = query.new_full((query.shape[1], query.shape[0]), -torch.inf, dtype=torch.float32)

    def make() -> tuple[kept.Named]:
        check_kind(query, value)
        made = launch(
            query, key, value, cu_seqlens_q, cu_seqlens_k, out, lse, options,
            max_q_len=longest, bottom_right=bottom_right, capability=capability(query.device),
            block_m=block_m, block_n=block_n,
        )  # fmt: skip
        return ((made, _NAMES),)

    kept.start(
        make, query.device,
        (query, key, value, cu_seqlens_q, cu_seqlens_k, *kept.tensors_of(options)), (out, lse),
        ("varlen", longest, bottom_right, block_m, block_n, *kept.numbers_of(options)),
    )  # fmt: skip
    return out, lse
