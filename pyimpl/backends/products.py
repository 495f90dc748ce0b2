"""The matrix products of the tile loops: by PyTorch's `bmm`, or by oneDNN where that is faster.

On a CPU MKL computes PyTorch's float32 products, and on processors of other makers than Intel it
runs its code for AVX2. oneDNN, which comes with PyTorch, has one for AVX-512 on all of them: more
than twice as fast on an AMD EPYC ("Zen 5"). It is called by an operator that `torch.compile` uses.
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch
from torch import Tensor

from pyimpl.backends.scratch import Scratch

# Multiplications of one product from which on oneDNN is worth what it takes to call it, 12 µs; it
# is slow for few rows.
LEAST_WORK = 1 << 22
LEAST_ROWS = 64


def multiply(
    left: Tensor,
    right: Tensor,
    scratch: Scratch | None = None,
    *,
    factor: float = 1.0,
    which: int = 0,
) -> Tensor:
    """`factor · left @ right` for `[b, n, d]` and `[b, d, k]`; in memory of `scratch` or of its
    own."""
    if _is_by_onednn(left, right):
        return _by_onednn(left if factor == 1.0 else left * factor, right)
    if scratch is None:
        return torch.bmm(left, right).mul_(factor) if factor != 1.0 else torch.bmm(left, right)
    memory = scratch.of(*left.shape[:2], right.shape[2], which=which)
    return memory.baddbmm_(left, right, beta=0, alpha=factor)


def add_product(to: Tensor, left: Tensor, right: Tensor) -> None:
    """Add `left @ right` to `to` `[b, n, k]`."""
    if _is_by_onednn(left, right):
        to.add_(_by_onednn(left, right))
    else:
        to.baddbmm_(left, right)


def use_onednn(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN computes large products of single matrices, `[1, n, d]` and `[1, d, k]`."""
    return (
        dtype == torch.float32
        and device.type == "cpu"
        and torch.backends.mkldnn.enabled
        and is_onednn_faster()
    )


@functools.cache
def is_onednn_faster() -> bool:
    """Whether this processor has AVX-512 and is not made by Intel, PyTorch's products are MKL's,
    and it has oneDNN as an operator."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and _is_of_another_maker()
    )


def _is_of_another_maker() -> bool:
    try:
        known = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "vendor_id" in known and "GenuineIntel" not in known


def _is_by_onednn(left: Tensor, right: Tensor) -> bool:
    many, rows, inner = left.shape
    return (
        many == 1
        and rows >= LEAST_ROWS
        and rows * inner * right.shape[2] >= LEAST_WORK
        and use_onednn(left.dtype, left.device)
    )


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    # The operator multiplies by a transposed matrix, and copies a left one whose rows are not
    # dense: the transposed product needs no copy of that.
    left, right = left[0], right[0]
    if left.stride(1) == 1:
        product = _linear(left, right.mT)
    else:
        product = _linear(right.mT, left).mT
    return product.unsqueeze(0)


def _linear(left: Tensor, weight: Tensor) -> Tensor:
    """`left @ weight.mT`."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(
        _dense(left), _dense(weight), None, "none", [], ""
    )
    return product


def _dense(matrix: Tensor) -> Tensor:
    """The matrix itself if its elements lie side by side, row by row or column by column: for
    others, as heads beside each other are, oneDNN's code takes a thousand times as long."""
    return matrix if matrix.is_contiguous() or matrix.mT.is_contiguous() else matrix.contiguous()
