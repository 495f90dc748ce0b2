"""Conversions and products of the kernels, interpreted, against PyTorch's."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.parts.numerics import dot, round_to, tanh, to_float32

BLOCK = tl.constexpr(1024)


@triton.jit
def _widen(source, target, size):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + index, mask=index < size)
    tl.store(target + index, to_float32(x), mask=index < size)


@triton.jit
def _narrow(source, target, size):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + index, mask=index < size)
    tl.store(target + index, round_to(x, target.dtype.element_ty), mask=index < size)


@triton.jit
def _tanh(source, target, size):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + index, mask=index < size)
    tl.store(target + index, tanh(x), mask=index < size)


@triton.jit
def _product(a, b, c, SIZE: tl.constexpr):
    index = tl.arange(0, SIZE)
    offsets = index[:, None] * SIZE + index[None, :]
    tl.store(c + offsets, dot(tl.load(a + offsets), tl.load(b + offsets)))


def convert(source: Tensor, dtype: torch.dtype) -> Tensor:
    target = torch.empty(source.numel(), dtype=dtype)
    kernel = _widen if dtype == torch.float32 else _narrow
    kernel[(triton.cdiv(source.numel(), 1024),)](source, target, source.numel())
    return target


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    """Equal bit for bit, the sign of 0 included; a NaN for each NaN."""
    assert torch.equal(ours.isnan(), theirs.isnan())
    bits = torch.int32 if ours.dtype == torch.float32 else torch.int16
    number = ~ours.isnan()
    assert torch.equal(ours.view(bits)[number], theirs.view(bits)[number])


def float32_samples(kept_bits: int) -> Tensor:
    """Random bit patterns; ties, in which exactly half a unit is dropped, and their neighbours; ±0,
    ±∞, NaN; the largest and smallest numbers."""
    generator = torch.Generator().manual_seed(0)
    random = torch.randint(-(2**31), 2**31, (100_000,), generator=generator).to(torch.int32)
    half = 1 << (31 - kept_bits)
    tied = (random[:20_000] & -(2 * half)) | half
    patterns = torch.cat([random, tied, tied - 1, tied + 1])
    special = torch.tensor(
        [0.0, torch.inf, torch.nan, 3.4028235e38, 1e-45, 65504.0, 65519.99, 65520.0, 2.0**-24,
         2.0**-25, 1.5 * 2.0**-25, 2.0**-133, 2.0**-134]
    )  # fmt: skip
    return torch.cat([patterns.view(torch.float32), special, -special])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_16_bit_number_widens_exactly(dtype: torch.dtype) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    assert_same(convert(every, torch.float32), every.float())


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(("dtype", "kept_bits"), [(torch.bfloat16, 16), (torch.float16, 19)])
def test_rounding_to_nearest_even(dtype: torch.dtype, kept_bits: int) -> None:
    samples = float32_samples(kept_bits)
    assert_same(convert(samples, dtype), samples.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dot_multiplies_numbers_not_bits(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randint(-16, 17, (2, 32, 32), generator=generator).to(dtype)
    c = torch.empty(32, 32)
    _product[(1,)](a, b, c, SIZE=32)
    assert torch.equal(c, a.float() @ b.float())


@pytest.mark.filterwarnings("ignore:overflow encountered in multiply")
def test_tanh() -> None:
    """Within 4 units in the last place of any number, however small or large; odd; NaN stays."""
    sizes = torch.cat([torch.logspace(-44, 2, 5000), torch.linspace(0.5, 10, 5000)])
    source = torch.cat([sizes, -sizes])
    target = torch.empty_like(source)
    _tanh[(triton.cdiv(len(source), 1024),)](source, target, len(source))
    exact = torch.tanh(source.double())
    assert bool(((target.double() - exact).abs() <= 2.0**-22 * exact.abs() + 2.0**-149).all())
    assert torch.equal(target[:10000], -target[10000:])
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3e38])
    target = torch.empty_like(special)
    _tanh[(1,)](special, target, len(special))
    assert_same(target, torch.tensor([0.0, -0.0, 1.0, -1.0, torch.nan, 1.0]))
