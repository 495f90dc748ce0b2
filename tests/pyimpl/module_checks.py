"""Helpers of the modules' tests: random parameters, and judging an output."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from bridge.conformance.tolerances.module_tolerance import module_tolerance
from pyimpl.modules import MultiHeadAttention


def randomise(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with all parameters normal, biases too, which modules begin with at 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            spread = 1.0 if parameter.dim() != 2 else parameter.shape[1] ** -0.5
            numbers = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(spread * numbers)
    return module


def normal(*size: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers that every dtype of the tests holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator).bfloat16().to(dtype)


def judge(result: Tensor, expected: Tensor, allowed: Tensor) -> None:
    """Fail unless `result` is within `allowed` of `expected`."""
    error = (result.double() - expected.double()).abs()
    assert bool((error <= allowed).all()), f"{(error - allowed).max()} over the tolerance"


def judge_module(
    result: Tensor,
    expected: Tensor,
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    **masks: Tensor | None,
) -> None:
    """Fail unless `result`, `[batch, q_len, output_dim]` of `module`, is within its tolerance of
    `expected`, which was computed in float64 and has a tolerance too."""
    allowed = module_tolerance(module, query, key, value, **masks)
    allowed += module_tolerance(copy.deepcopy(module).double(), query, key, value, **masks)
    assert result.dtype == module.q_proj.weight.dtype
    assert result.shape == expected.shape
    judge(result, expected, allowed)
