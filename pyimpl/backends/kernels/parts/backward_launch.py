"""The common part of the backward pass's launches: the tensors they read, their checks, and the
arguments that the kernels share."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyimpl.backends.kernels.parts.dropout import dropout_arguments
from pyimpl.backends.kernels.parts.launch import (
    Arguments,
    are_aligned,
    check_block,
    check_length,
    check_outputs,
    check_tensor,
    group_of,
    head_arguments,
    is_far,
    padded_size,
    pair_arguments,
    score_arguments,
    strides_of,
    window_arguments,
)
from pyimpl.backends.kernels.parts.sequences import (
    Sequences,
    check_sequences,
    shifts_of,
    strides_in_sequences,
)
from pyimpl.internal.scores import ScoreOptions

Chosen = dict[str, int] | None


class Given(NamedTuple):
    """The inputs of the kernels of keys, queries and bias: query `[batch, heads, q_len, head_dim]`,
    key and value `[batch, kv_heads, kv_len, …]`, grad_out `[batch, heads, q_len, value_dim]`, of
    one dtype; lse and delta `[batch, heads, q_len]`, float32, as `gradient.row_numbers` says."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    lse: Tensor
    delta: Tensor
    options: ScoreOptions
    sequences: Sequences | None = None


def row_buffers(query: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors `[batch, heads, q_len]`, float32, that the tensor memory accelerator can read."""
    batch, heads, q_len, _ = query.shape
    both = query.new_empty((2, batch, heads, -(-q_len // 4) * 4), dtype=torch.float32)
    first, second = both[..., :q_len].unbind(0)
    return first, second


def check_given(given: Given) -> None:
    """Raise ValueError unless the kernels read nothing outside of these tensors."""
    query, key, value = given.query, given.key, given.value
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len, value_dim = value.shape[1:]
    group_of(num_heads, num_kv_heads)
    check_tensor("key", key, query, (batch, num_kv_heads, kv_len, head_dim))
    check_tensor("value", value, query, (batch, num_kv_heads, kv_len, value_dim))
    check_tensor("grad_out", given.grad_out, query, (batch, num_heads, q_len, value_dim))
    check_outputs(given.grad_out, given.lse, given.grad_out.shape)
    check_outputs(given.grad_out, given.delta, given.grad_out.shape)
    check_length("q_len", q_len)
    check_length("kv_len", kv_len)
    if given.sequences is not None:
        check_sequences(given.sequences, query)


def shared_arguments(given: Given) -> Arguments:
    """The arguments that the kernels of keys, queries and bias have in common."""
    query, key, value, grad_out, lse, delta, options, sequences = given
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len, value_dim = value.shape[1:]
    query, key, value, grad_out = (x.resolve_neg() for x in (query, key, value, grad_out))
    found: Arguments = {
        "query_ptr": query, "key_ptr": key, "value_ptr": value, "grad_out_ptr": grad_out,
        "lse_ptr": lse, "delta_ptr": delta,
        **strides_of("q", "bhmd", query.stride()),
        **strides_of("k", "bhnd", key.stride()),
        **strides_of("v", "bhnd", value.stride()),
        **strides_of("g", "bhmd", grad_out.stride()),
        **strides_of("l", "bhm", lse.stride()),
        **strides_of("t", "bhm", delta.stride()),
        "group": group_of(num_heads, num_kv_heads), "q_len": q_len, "kv_len": kv_len,
        "head_dim": head_dim, "value_dim": value_dim, "shift": options.shift,
        "grad_scale": float(options.scale),
        **pair_arguments(options, query, kv_len),
        **score_arguments(options),
        **dropout_arguments(options.dropout, num_heads, query.device),
    }  # fmt: skip
    if sequences is not None:
        batch = sequences.number
        if options.mask is not None or options.bias is not None:
            raise ValueError("mask and bias must be None for packed sequences, not tensors")
        # The sequences are rows of one batch.
        found |= dict.fromkeys([f"stride_{x}b" for x in "qkvglt"])
    found |= head_arguments(options, batch, num_heads, query.device)
    shifts = shifts_of(sequences, options.shift, q_len, kv_len)
    found |= window_arguments(options, q_len, kv_len, shifts)
    del found["sinks_ptr"], found["stride_ih"]
    return found


def tile_constants(
    given: Given, chosen: dict[str, int], *gradients: Tensor
) -> dict[str, int | bool | None]:
    """The compile-time arguments that the kernels of keys, queries and bias have in common; of
    those of the first two ALIGNED speaks of the `gradients` too."""
    head_dim, value_dim = given.query.shape[-1], given.value.shape[-1]
    arrays = [x for x in (given.options.mask, given.options.bias) if x is not None]
    pairs = (*given.query.shape[:3], given.key.shape[2])
    vectors = (given.query, given.key, given.value, given.grad_out, *gradients)
    strides = (n for x in vectors for n in strides_in_sequences(x, given.sequences)[:-1])
    check_block("block_m", chosen["block_m"])
    check_block("block_n", chosen["block_n"])
    return {
        "BLOCK_M": chosen["block_m"], "BLOCK_N": chosen["block_n"],
        "BLOCK_D": padded_size(head_dim), "BLOCK_V": padded_size(value_dim),
        "EVEN_D": padded_size(head_dim) == head_dim, "EVEN_V": padded_size(value_dim) == value_dim,
        "ALIGNED": are_aligned(head_dim, value_dim, *strides),
        "PAIRS_ALIGNED": are_aligned(*(n for x in arrays for n in x.expand(pairs).stride()[:-1])),
        "FAR": is_far(
            max(chosen["block_m"], chosen["block_n"]),
            *(x.stride()[2:] for x in (given.query, given.key, given.value, given.grad_out)),
            *((x.stride(2), 0) for x in (given.lse, given.delta)),
            *(x.expand(pairs).stride()[2:] for x in arrays),
        ),
        "WHOLE": not arrays,
    }  # fmt: skip
