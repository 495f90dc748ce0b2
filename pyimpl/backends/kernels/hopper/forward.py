"""The Gluon forward kernel for Hopper GPUs: what it takes, and its launch.

It takes less than the Triton kernel (`why_not`), and is not among what is proved: its arithmetic is
that of `Attention.Spec.flash`, with the tiles of keys from last to first.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from pyimpl.backends.kernels.hopper.forward_kernel import forward_kernel
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    are_aligned,
    check_length,
    check_outputs,
    check_programs,
    check_tensor,
    group_of,
    score_arguments,
    strides_of,
    window_arguments,
)
from pyimpl.internal.scores import KERNEL_CHANGES, ScoreOptions

CAPABILITY = 90
HEAD_DIMS = (64, 128, 256)
DTYPES = (torch.float16, torch.bfloat16)
# Rows of queries that one warp group computes.
BLOCK_M = 64
# Bytes of keys and values that are read at about the same time: they should stay in the level-2
# cache of 50 MB.
CACHED = 32 << 20
_LAYOUT = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)


def why_not(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, options: ScoreOptions
) -> str | None:
    """The sentence that says why this kernel cannot compute a call that the Triton kernel can, or
    None if it can."""
    if query.dtype not in DTYPES or out.dtype != query.dtype:
        return f"backend 'gluon' takes float16 and bfloat16, not {query.dtype} into {out.dtype}"
    sizes = (query.shape[-1], value.shape[-1])
    if sizes[0] not in HEAD_DIMS or sizes[0] != sizes[1]:
        return f"backend 'gluon' takes head sizes of 64, 128 and 256, the same for all, not {sizes}"
    given = [change.name for change in KERNEL_CHANGES if getattr(options, change.name) is not None]
    if options.dropout is not None:
        given.append("dropout")
    if given:
        return f"backend 'gluon' takes windows and causality, not {', '.join(given)}"
    if options.scale < 0.0:
        return f"backend 'gluon' takes a scale of at least 0, not {options.scale}"
    if 0 in query.shape or 0 in key.shape:
        return "backend 'gluon' takes no empty tensors"
    for name, tensor in (("query", query), ("key", key), ("value", value), ("out", out)):
        strides = tensor.stride()
        kept = [n for n, size in zip(strides[:-1], tensor.shape, strict=False) if size > 1]
        if strides[-1] != 1 or not are_aligned(*kept) or tensor.data_ptr() % 16:
            return (
                f"backend 'gluon' takes rows of elements that lie together, and strides and "
                f"addresses that 16 divides; those of {name} are {strides} at {tensor.data_ptr()}"
            )
    return None


def launch_options(head_dim: int, is_windowed: bool) -> dict[str, int]:
    """`block_n`, `stages`, `consumers`, `in_turns` (0 or 1) and `waves` for a launch."""
    block_n = 64 if head_dim == 256 else 128
    return {"block_n": block_n, "stages": 2, "consumers": 2, "in_turns": 0, "waves": 1}


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
        chosen = launch_options(head_dim, is_windowed)
    consumers = chosen["consumers"]
    items = triton.cdiv(q_len, consumers * BLOCK_M) * batch * num_heads
    check_programs("batch × heads × query tiles", items)
    programs = min(items, chosen["waves"] * processors) if chosen["waves"] else items
    scores = score_arguments(options)
    return Launch(
        forward_kernel,
        programs,
        {
            "q_desc": descriptor(query, BLOCK_M),
            "k_desc": descriptor(key, chosen["block_n"]),
            "v_desc": descriptor(value, chosen["block_n"]),
            "out_ptr": out, "lse_ptr": lse,
            **{n: s for n, s in strides_of("o", "bhmd", out.stride()).items() if n[-1] != "d"},
            **dict(zip(("stride_lb", "stride_lh", "stride_lm"), lse.stride(), strict=True)),
            "num_batches": batch, "num_heads": num_heads,
            "group": group_of(num_heads, num_kv_heads),
            "q_len": q_len, "kv_len": kv_len, "shift": options.shift, **window,
            "scale": scores["scale"],
            "heads_at_once": max(1, min(batch * num_heads, CACHED // (2 * 2 * kv_len * head_dim))),
        },
        {
            "BLOCK_M": BLOCK_M, "BLOCK_N": chosen["block_n"], "HEAD_DIM": head_dim,
            "STAGES": chosen["stages"], "CONSUMERS": consumers,
            "IN_TURNS": bool(chosen["in_turns"]),
            # Of 65,536 registers a third less a producer's share each, or a half less.
            "REGISTERS": 240 if consumers == 2 else 160,
        },
        4,
        1,
    )  # fmt: skip
