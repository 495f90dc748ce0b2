"""The Gluon backward kernel for Hopper GPUs: its limits, and its launch.

It takes less than the Triton kernels (`why_not`), and no theorem is about it. Its arithmetic is
that of `Attention.Spec.flashBackward`.
"""

from __future__ import annotations

import triton
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.hopper.backward_kernel import HALF, backward_kernel
from pyimpl.backends.kernels.hopper.forward import descriptor
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import (
    Arguments,
    Launch,
    are_aligned,
    check_programs,
    group_of,
    score_arguments,
    strides_of,
    window_arguments,
)

_NUMBERS = NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=3)
_SUMS = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=4)


def why_not(given: Given, *gradients: Tensor) -> str | None:
    """The sentence that says why this kernel cannot replace the Triton kernel for dK and dV here,
    or None if it can. gradients: into which it is to write."""
    if given.sequences is not None:
        return "backend 'gluon' takes no packed sequences"
    refusal = choice.why_not(given.query, given.key, given.value, given.grad_out, given.options)
    if refusal is not None:
        return refusal
    for rows in (given.lse, given.delta):
        strides = rows.stride()
        if strides[-1] != 1 or any(n % 4 for n in strides[:-1]):
            return f"backend 'gluon' takes buffers of `row_buffers`, not strides of {strides}"
    for gradient in gradients:
        strides = gradient.stride()
        if strides[-1] != 1 or not are_aligned(*strides[:-1]):
            return f"backend 'gluon' writes gradients with strides that 16 divides, not {strides}"
    return None


def launch(
    given: Given,
    grad_key: Tensor,
    grad_value: Tensor,
    sums: Tensor | None,
    *,
    processors: int,
    chosen: dict[str, int] | None = None,
) -> Launch:
    """The launch that writes dK and dV into `grad_key` and `grad_value`, and adds dQ / scale to
    `sums`, float32 and contiguous, if it is not None; of tensors that `why_not` has nothing
    against, on a device of so many multiprocessors."""
    query, options = given.query, given.options
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len = given.key.shape[1:3]
    window = window_arguments(options, q_len, kv_len)
    if chosen is None:
        is_causal = window["left"] is None and window["right"] is not None
        chosen = choice.keys_options(head_dim, is_causal, sums is not None)
    block_m = chosen["block_m"]
    tiles = triton.cdiv(kv_len, chosen["block_n"]) * batch * num_kv_heads
    check_programs("batch × heads × key tiles", tiles)
    programs = min(tiles, chosen["waves"] * processors) if chosen["waves"] else tiles
    # Of none there has to be a descriptor all the same, whose memory nobody looks at.
    added, shape, strides = given.delta, [1, 1, 64, 64], [4096, 4096, 64, 1]
    if sums is not None:
        added, shape, strides = sums, list(sums.shape), list(sums.stride())
    gradients: Arguments = {}
    for letter, tensor in (("c", grad_key), ("e", grad_value)):
        of_tensor = strides_of(letter, "bhnd", tensor.stride())
        gradients |= {name: n for name, n in of_tensor.items() if name[-1] != "d"}
    return Launch(
        backward_kernel,
        programs,
        {
            "q_desc": descriptor(query, block_m), "g_desc": descriptor(given.grad_out, block_m),
            "k_desc": descriptor(given.key, HALF.value),
            "v_desc": descriptor(given.value, HALF.value),
            "lse_desc": numbers_descriptor(given.lse, block_m),
            "delta_desc": numbers_descriptor(given.delta, block_m),
            "sums_desc": TensorDescriptor(added, shape, strides, [1, 1, block_m, 64], _SUMS),
            "dk_ptr": grad_key, "dv_ptr": grad_value, **gradients,
            "num_kv_heads": num_kv_heads, "group": group_of(num_heads, num_kv_heads),
            "q_len": q_len, "kv_len": kv_len, "shift": options.shift,
            **window,
            "scale": score_arguments(options)["scale"], "grad_scale": options.scale,
            "num_batches": batch if chosen["waves"] else None,
        },
        {
            "BLOCK_M": block_m, "BLOCK_N": chosen["block_n"], "HEAD_DIM": head_dim,
            "STAGES": chosen["stages"], "SUMS": sums is not None,
            "AHEAD": bool(chosen["ahead"]), "ITEMS": chosen["items"] if chosen["waves"] else 0,
        },
        4,
        1,
    )  # fmt: skip


def numbers_descriptor(rows: Tensor, block_m: int) -> TensorDescriptor:
    """Tiles of numbers of so many queries of one head, for the tensor memory accelerator."""
    return TensorDescriptor(rows, list(rows.shape), list(rows.stride()), [1, 1, block_m], _NUMBERS)
