"""A problem of KernelBench's form, made for the tests: square, as a buffer of its size says."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.register_buffer("hidden", torch.ones(length, length).triu(1).bool())

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.masked_fill(self.hidden, -math.inf).softmax(-1) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(3, 40, 24) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return [40]
