"""A problem of KernelBench's form, made for the tests, which is more than attention."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.output = nn.Linear(width, width)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.output(nn.functional.scaled_dot_product_attention(q, k, v))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2, 2, 9, 8) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return [8]
