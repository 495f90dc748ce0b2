"""What the launches of the backward pass share: what they read, how it is checked, and the
arguments that the kernels have in common."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from pyimpl._scores import ScoreOptions
from pyimpl.kernels._dropout import dropout_arguments
from pyimpl.kernels._launch import (
    Arguments,
    check_block,
    check_indices,
    check_length,
    check_outputs,
    check_tensor,
    group_of,
    head_arguments,
    is_far,
    padded,
    pair_arguments,
    score_arguments,
    strides_of,
    window_arguments,
)

Chosen = dict[str, int] | None


class Sequences(NamedTuple):
    """Packed sequences: the tensors are those of one batch, in which each sequence has the rows
    that the prefix sums `cu_seqlens_q` and `cu_seqlens_k`, int32 `[sequences + 1]`, say. max_q_len,
    max_kv_len: at least the longest; bottom_right: as for `pyimpl.kernels.varlen.varlen`."""

    cu_seqlens_q: Tensor
    cu_seqlens_k: Tensor
    max_q_len: int
    max_kv_len: int
    bottom_right: bool


class Given(NamedTuple):
    """What the kernels of keys, queries and bias read: query `[batch, heads, q_len, head_dim]`, key
    and value `[batch, kv_heads, kv_len, …]`, grad_out `[batch, heads, q_len, value_dim]`, of one
    dtype; lse and delta `[batch, heads, q_len]`, float32, as `_gradient.row_numbers` says."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    lse: Tensor
    delta: Tensor
    options: ScoreOptions
    sequences: Sequences | None = None


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
        cu_q, cu_k, *_ = given.sequences
        check_indices("cu_seqlens_q", cu_q, query, (max(1, cu_q.numel()),))
        check_indices("cu_seqlens_k", cu_k, query, (max(1, cu_q.numel()),))


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
        **dropout_arguments(options.dropout, query.device),
    }  # fmt: skip
    shifts = None
    if sequences is not None:
        batch = sequences.cu_seqlens_q.numel() - 1
        if options.mask is not None or options.bias is not None:
            raise ValueError("mask and bias must be None for packed sequences, not tensors")
        if sequences.bottom_right:
            shifts = (options.shift - q_len, options.shift + kv_len)
        # The sequences are rows of one batch.
        found |= dict.fromkeys([f"stride_{x}b" for x in "qkvglt"], 0)
    found |= head_arguments(options, batch, num_heads, query.device)
    found |= window_arguments(options, q_len, kv_len, shifts)
    del found["sinks_ptr"], found["stride_ih"]
    return found


def sequence_arguments(given: Given) -> Arguments:
    """The arguments for packed sequences, None where there are none."""
    if given.sequences is None:
        return {"cu_q_ptr": None, "cu_k_ptr": None, "stride_xb": 0, "stride_yb": 0}
    cu_q, cu_k, *_ = given.sequences
    return {
        "cu_q_ptr": cu_q, "cu_k_ptr": cu_k,
        "stride_xb": cu_q.stride(0), "stride_yb": cu_k.stride(0),
    }  # fmt: skip


def tile_constants(given: Given, chosen: dict[str, int]) -> dict[str, int | bool | None]:
    """The compile-time arguments that the kernels of keys, queries and bias have in common."""
    head_dim, value_dim = given.query.shape[-1], given.value.shape[-1]
    arrays = [x for x in (given.options.mask, given.options.bias) if x is not None]
    pairs = (*given.query.shape[:3], given.key.shape[2])
    check_block("block_m", chosen["block_m"])
    check_block("block_n", chosen["block_n"])
    return {
        "BLOCK_M": chosen["block_m"], "BLOCK_N": chosen["block_n"],
        "BLOCK_D": padded(head_dim), "BLOCK_V": padded(value_dim),
        "EVEN_D": padded(head_dim) == head_dim, "EVEN_V": padded(value_dim) == value_dim,
        "FAR": is_far(
            max(chosen["block_m"], chosen["block_n"]),
            *(x.stride()[2:] for x in (given.query, given.key, given.value, given.grad_out)),
            *((x.stride(2), 0) for x in (given.lse, given.delta)),
            *(x.expand(pairs).stride()[2:] for x in arrays),
        ),
        "WHOLE": not arrays,
    }  # fmt: skip


def strides_in_sequences(tensor: Tensor, given: Given) -> tuple[int, ...]:
    """The strides of a tensor, of packed sequences 0 from one to the next."""
    return tensor.stride() if given.sequences is None else (0, *tensor.stride()[1:])
