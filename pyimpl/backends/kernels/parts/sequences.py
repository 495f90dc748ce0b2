"""Packed sequences in the kernels: where each begins, of prefix sums of the lengths."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import NamedTuple

import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.parts.launch import Arguments, check_indices
from pyimpl.backends.kernels.parts.numerics import device_function
from pyimpl.internal.implements import implements


class Sequences(NamedTuple):
    """Packed sequences: the tensors are those of one batch, in which each sequence has the rows
    that the prefix sums `cu_seqlens_q` and `cu_seqlens_k`, int32 `[sequences + 1]`, say. max_q_len,
    max_kv_len: at least the longest; bottom_right: as for `backends.kernels.varlen.varlen`."""

    cu_seqlens_q: Tensor
    cu_seqlens_k: Tensor
    max_q_len: int
    max_kv_len: int
    bottom_right: bool

    @property
    def number(self) -> int:
        return self.cu_seqlens_q.numel() - 1


@implements("Attention.Spec.slice")
@device_function
def sequence_slice(cu_ptr, stride, sequence, total):
    """(first row, number of rows) of a packed sequence; nothing outside of the `total` rows.

    Each kernel asks for queries and keys, and leaves the first rows None where nothing is packed:
    Triton 3.6 takes no None in a tuple that a function returns.
    """
    first = tl.load(cu_ptr + sequence * stride)
    stop = tl.load(cu_ptr + (sequence + 1) * stride)
    first = tl.minimum(tl.maximum(first, 0), total)
    stop = tl.minimum(tl.maximum(stop, first), total)
    return first, stop - first


def check_sequences(sequences: Sequences, query: Tensor) -> None:
    """Raise ValueError unless the prefix sums are int32 of one length, on the device of query."""
    sizes = (max(1, sequences.cu_seqlens_q.numel()),)
    check_indices("cu_seqlens_q", sequences.cu_seqlens_q, query, sizes)
    check_indices("cu_seqlens_k", sequences.cu_seqlens_k, query, sizes)


def sequence_arguments(sequences: Sequences | None) -> Arguments:
    """The arguments for packed sequences, None where there are none."""
    if sequences is None:
        return {"cu_q_ptr": None, "cu_k_ptr": None, "stride_xb": None, "stride_yb": None}
    cu_q, cu_k = sequences.cu_seqlens_q, sequences.cu_seqlens_k
    return {
        "cu_q_ptr": cu_q, "cu_k_ptr": cu_k,
        "stride_xb": cu_q.stride(0), "stride_yb": cu_k.stride(0),
    }  # fmt: skip


def shifts_of(
    sequences: Sequences | None, shift: int, q_len: int, kv_len: int
) -> tuple[int, int] | None:
    """The lowest and the highest shift of a sequence; None where that is `shift` alone."""
    if sequences is None or not sequences.bottom_right:
        return None
    return shift - q_len, shift + kv_len


def strides_in_sequences(tensor: Tensor, sequences: Sequences | None) -> tuple[int | None, ...]:
    """The strides of a tensor, of packed sequences None from one to the next."""
    return tensor.stride() if sequences is None else (None, *tensor.stride()[1:])
