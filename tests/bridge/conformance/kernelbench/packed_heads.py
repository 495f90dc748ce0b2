"""A problem of KernelBench's form, made for the tests: causal, the heads of a row one after the
other, and PyTorch's alignment."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Model(nn.Module):
    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for x in (q, k, v))
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2, 33, 48) for _ in range(3)]


def get_init_inputs() -> list[int]:
    return [48, 3]
