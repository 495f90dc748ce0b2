"""The count of operations: as by PyTorch's formulas for its SDPA for the same tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import (
    FlopCounterMode,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from pyimpl import attention
from pyimpl.integrations import flops


def count_flops(function: Callable[..., Any], tensors: list[Tensor], backward: bool) -> int:
    counter = FlopCounterMode(display=False)
    with counter:
        out = function(*tensors)
        if backward:
            out.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("backward", [False, True])
def test_it_counts_as_that_of_sdpa(backward: bool) -> None:
    flops.register()
    flops.register()
    sizes = ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8))
    tensors = [torch.randn(size, requires_grad=backward) for size in sizes]
    expected = sdpa_flop_count(*sizes)
    if backward:
        expected += sdpa_backward_flop_count((2, 3, 5, 8), *sizes)
    assert count_flops(attention, tensors, backward) == expected


def test_heads_of_queries_are_counted() -> None:
    flops.register()
    q, k = torch.randn(1, 4, 5, 8), torch.randn(1, 2, 6, 8)

    def call_grouped(q: Tensor, k: Tensor) -> Any:
        return attention(q, k, k[..., :3], enable_gqa=True)

    assert count_flops(call_grouped, [q, k], False) == 2 * 4 * 5 * 6 * (8 + 3)
