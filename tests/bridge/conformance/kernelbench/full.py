"""A problem of KernelBench's form, made for the tests."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4, 2, 48, 16) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
