"""A problem of KernelBench's form, made for the tests: lengths before heads, in bfloat16, the last
query beside the last key."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * q.shape[-1] ** -0.5
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, device=q.device).tril(keys - queries).bool()
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", weights, v.float()).to(q.dtype)


def get_inputs() -> list[torch.Tensor]:
    q = torch.rand(2, 7, 2, 32, dtype=torch.bfloat16)
    k, v = (torch.rand(2, 70, 2, 32, dtype=torch.bfloat16) for _ in range(2))
    return [q, k, v]


def get_init_inputs() -> list[int]:
    return []
