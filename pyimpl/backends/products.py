"""The matrix products of the tile loops: by PyTorch's `bmm`, or by oneDNN where that is faster.

On a CPU MKL computes PyTorch's float32 products, and on processors of other makers than Intel it
runs its code for AVX2. oneDNN, which comes with PyTorch, has one for AVX-512 on all of them: more
than twice as fast on an AMD EPYC ("Zen 5"). It is called by an operator that `torch.compile` uses,
a matrix at a time.
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch
from torch import Tensor

from pyimpl.backends.scratch import Scratch

# Multiplications of one matrix from which on oneDNN is worth the 12 µs of a call; it is slow for
# few rows.
LEAST_WORK = 1 << 22
LEAST_ROWS = 64


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right` for `[b, n, d]` and `[b, d, k]`."""
    if not _is_by_onednn(left, right):
        return torch.bmm(left, right)
    return torch.stack([_by_onednn(*pair) for pair in zip(left, right, strict=True)])


def multiply_into(
    scratch: Scratch, left: Tensor, right: Tensor, *, factor: float = 1.0, which: int = 0
) -> Tensor:
    """`factor · left @ right` for `[b, n, d]` and `[b, d, k]`, in the memory `which` of `scratch`;
    the only matrix of oneDNN, which allocates its results, in that."""
    by_onednn = _is_by_onednn(left, right)
    if by_onednn and factor != 1.0:
        left = left * factor
    if by_onednn and left.shape[0] == 1:
        return _by_onednn(left[0], right[0]).unsqueeze(0)
    memory = scratch.of(*left.shape[:2], right.shape[2], which=which)
    if not by_onednn:
        return memory.baddbmm_(left, right, beta=0, alpha=factor)
    for to, *pair in zip(memory, left, right, strict=True):
        to.copy_(_by_onednn(*pair))
    return memory


def add_product(to: Tensor, left: Tensor, right: Tensor) -> None:
    """Add `left @ right` to `to` `[b, n, k]`."""
    if not _is_by_onednn(left, right):
        to.baddbmm_(left, right)
        return
    for one, *pair in zip(to, left, right, strict=True):
        one.add_(_by_onednn(*pair))


def use_onednn(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN computes the products of large matrices of this kind."""
    return (
        dtype == torch.float32
        and device.type == "cpu"
        and bool(torch.backends.mkldnn.enabled)
        and is_onednn_faster()
    )


@functools.cache
def is_onednn_faster() -> bool:
    """Whether this processor has AVX-512 and is not made by Intel, and PyTorch has MKL for its
    products, and oneDNN as an operator."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
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
    rows, inner = left.shape[1:]
    large = rows >= LEAST_ROWS and rows * inner * right.shape[2] >= LEAST_WORK
    return large and use_onednn(left.dtype, left.device)


def _by_onednn(left: Tensor, right: Tensor) -> Tensor:
    # The operator multiplies by a transposed matrix, and copies a left one whose rows are not
    # dense: the transposed product needs no copy of that.
    if left.stride(1) == 1:
        return _linear(left, right.mT)
    return _linear(right.mT, left).mT


def _linear(left: Tensor, weight: Tensor) -> Tensor:
    """`left @ weight.mT`."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(
        _dense(left), _dense(weight), None, "none", [], ""
    )
    return product


def _dense(matrix: Tensor) -> Tensor:
    """The matrix itself if its elements lie side by side, row by row or column by column. Of
    others, such as heads that lie beside each other, oneDNN took a thousand times as long."""
    return matrix if matrix.is_contiguous() or matrix.mT.is_contiguous() else matrix.contiguous()
