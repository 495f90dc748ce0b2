"""A problem of KernelBench's form, made for the tests: causal, for as many queries as keys."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        hidden = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
        return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2, 20, 8) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return []
