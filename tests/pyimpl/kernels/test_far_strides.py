"""Offsets past 2³¹ elements, interpreted, in memory that is reserved and mostly never touched."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from attention_checks import inputs
from kernel_checks import score_options
from torch import Tensor

from pyimpl.kernels.decode import decode
from pyimpl.kernels.forward import forward
from pyimpl.kernels.paged import paged
from pyimpl.kernels.varlen import varlen

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs MAP_NORESERVE")
# Elements from one key to the next: the last of 40 keys lies 39 · 2²⁶ > 2³¹ after the first.
FAR = 2**26


@contextmanager
def far_apart(tensor: Tensor, dim: int) -> Iterator[Tensor]:
    """A float16 copy with stride FAR in `dim`, and otherwise those of a contiguous one."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    memory = mmap.mmap(-1, 2 * (FAR * (tensor.shape[dim] - 1) + tensor.numel()), flags=flags)
    whole = torch.frombuffer(memory, dtype=torch.float16)
    strides = list(tensor.contiguous().stride())
    strides[dim] = FAR
    yield whole.as_strided(tensor.shape, strides).copy_(tensor)


def test_forward_and_decode() -> None:
    query, key, value, _ = inputs((1, 1, 3, 40, 16, 16), torch.float16)
    options = score_options(query)
    blocks = {"block_m": 16, "block_n": 16}
    expected = forward(query, key, value, options, **blocks)[0]
    split = decode(query, key, value, options, block_n=16)[0]
    with far_apart(key, 2) as far:
        assert torch.equal(forward(query, far, value, options, **blocks)[0], expected)
        assert torch.equal(decode(query, far, value, options, block_n=16)[0], split)
    with far_apart(value, 2) as far:
        assert torch.equal(forward(query, key, far, options, **blocks)[0], expected)
    mask = torch.rand(3, 40) < 0.5
    bias = torch.zeros(3, 40, dtype=torch.float16).masked_fill(~mask, -torch.inf)
    expected = forward(query, key, value, score_options(query, bias=bias), **blocks)[0]
    with far_apart(bias, 1) as far:
        options = score_options(query, bias=far)
        assert torch.equal(forward(query, key, value, options, **blocks)[0], expected)


def test_pages_and_packed_sequences() -> None:
    query, key, value, _ = inputs((1, 1, 3, 40, 16, 16), torch.float16)
    options = score_options(query)
    pages = [x[0, 0][:, None, None] for x in (key, value)]
    table, lens = torch.arange(40)[None].int(), torch.tensor([40]).int()
    expected = paged(query, *pages, table, lens, options, block_n=16)[0]
    with far_apart(pages[0], 0) as far:
        result = paged(query, far, pages[1], table, lens, options, block_n=16)[0]
        assert torch.equal(result, expected)
    rows = [x[0].transpose(0, 1) for x in (query, key, value)]
    cu_q, cu_k = torch.tensor([0, 1, 3]).int(), torch.tensor([0, 1, 40]).int()
    blocks = {"block_m": 16, "block_n": 16}
    expected = varlen(*rows, cu_q, cu_k, options, **blocks)[0]
    with far_apart(rows[2], 0) as far:
        assert torch.equal(varlen(*rows[:2], far, cu_q, cu_k, options, **blocks)[0], expected)
