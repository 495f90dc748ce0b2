"""The Gluon forward kernel for Hopper GPUs: its launch. Only Triton 3.6 and 3.7 import this file.

It takes less than the Triton kernel (`choice`), and no theorem is about it: its arithmetic is that
of `Attention.Spec.flash`, with the tiles of keys from last to first.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from pyimpl.backends.kernels.hopper.choice import BLOCK_M, ROWS, launch_options, why_not
from pyimpl.backends.kernels.hopper.forward_kernel import forward_kernel
from pyimpl.backends.kernels.parts import kept
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    check_length,
    check_outputs,
    check_programs,
    check_tensor,
    group_of,
    processors,
    score_arguments,
    strides_of,
    window_arguments,
    with_nonnegative_scale,
)
from pyimpl.internal.arguments import empty_output
from pyimpl.internal.scores import ScoreOptions, folds_into_query

__all__ = ["forward", "launch", "launch_options", "why_not"]

# Bytes of keys and values that are read at about the same time: they should stay in the level-2
# cache of 50 MB.
CACHED = 32 << 20
_LAYOUT = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
# The kernel's parameters for the tensors that each call has.
_NAMES = ("q_desc", "k_desc", "v_desc", "out", "lse_ptr", *kept.OPTIONS)


@folds_into_query
def forward(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query`, laid out as `empty_output` does, and natural log-sum-exp in
    float32, both newly allocated; shapes as for `pyimpl.backends.kernels.forward.forward`.

    The rows of values in each tile that a program visits must be finite, those of hidden keys too.

    Raises:
        ValueError: the sentence of `why_not`, or a length, a number of `options` or the number of
            tiles is outside the kernel's range.
    """
    out = empty_output(query, value.shape[-1])
    lse = query.new_empty(*query.shape[:-1], dtype=torch.float32)

    def make() -> tuple[kept.Named]:
        refusal = why_not(query, key, value, out, options)
        if refusal is not None:
            raise ValueError(refusal)
        found = processors(query.device)
        made = launch(query, key, value, out, lse, options, processors=found)
        return ((made, _NAMES),)

    kept.start(
        make, query.device, (query, key, value, out, lse, *kept.tensors_of(options)), (),
        ("gluon", *kept.numbers_of(options)),
    )  # fmt: skip
    return out, lse


def descriptor(tensor: Tensor, rows: int) -> TensorDescriptor:
    """Tiles of `rows` rows of one head, for the tensor memory accelerator."""
    strides = [
        stride if size > 1 else 16
        for stride, size in zip(tensor.stride()[:-1], tensor.shape, strict=False)
    ]
    head_dim = tensor.shape[-1]
    return TensorDescriptor(
        tensor, list(tensor.shape), [*strides, 1], [1, 1, rows, head_dim], _LAYOUT
    )


def heads_at_once(heads: int, kv_len: int, head_dim: int) -> int:
    """How many of so many heads have keys and values, of 16 bits, that are `CACHED` together."""
    return max(1, min(heads, CACHED // (2 * 2 * kv_len * head_dim)))


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
    *,
    processors: int,
    chosen: dict[str, int] | None = None,
) -> Launch:
    """The launch that writes the output into `out` and the log-sum-exp into `lse`, for tensors and
    options that `why_not` has nothing against, on a device of so many multiprocessors."""
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len = key.shape[1:3]
    check_tensor("key", key, query, (batch, num_kv_heads, kv_len, head_dim))
    check_tensor("value", value, query, (batch, num_kv_heads, kv_len, head_dim))
    check_outputs(out, lse, (batch, num_heads, q_len, head_dim))
    check_length("q_len", q_len)
    check_length("kv_len", kv_len)
    window = window_arguments(options, q_len, kv_len)
    if chosen is None:
        is_windowed = any(bound is not None for bound in window.values())
        chosen = launch_options(head_dim, is_windowed, q_len)
    items = triton.cdiv(q_len, ROWS) * batch * num_heads
    check_programs("batch × heads × query tiles", items)
    programs = min(items, chosen["waves"] * processors) if chosen["waves"] else items
    # The kernel reads memory as it lies, where a negation may still be due (`z.conj().imag`).
    key, value = key.resolve_neg(), value.resolve_neg()
    query, options = with_nonnegative_scale(query, options)
    scores = score_arguments(options)
    return Launch(
        forward_kernel,
        programs,
        {
            "q_desc": descriptor(query, BLOCK_M),
            "k_desc": descriptor(key, chosen["block_n"]),
            "v_desc": descriptor(value, chosen["block_n"]),
            "out": descriptor(out, BLOCK_M) if chosen["out"] else out, "lse_ptr": lse,
            **{n: s for n, s in strides_of("o", "bhmd", out.stride()).items() if n[-1] != "d"},
            **dict(zip(("stride_lb", "stride_lh", "stride_lm"), lse.stride(), strict=True)),
            "num_batches": batch, "num_heads": num_heads,
            "group": group_of(num_heads, num_kv_heads),
            "q_len": q_len, "kv_len": kv_len, "shift": options.shift, **window,
            "scale": scores["scale"],
            "heads_at_once": heads_at_once(batch * num_heads, kv_len, head_dim),
        },
        {
            "BLOCK_M": BLOCK_M, "BLOCK_N": chosen["block_n"], "HEAD_DIM": head_dim,
            "STAGES": chosen["stages"],
            "IN_TURNS": bool(chosen["in_turns"]), "ITEMS": chosen["items"], "OUT": chosen["out"],
        },
        4,
        1,
    )  # fmt: skip
