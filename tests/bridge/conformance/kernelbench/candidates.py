"""Models of KernelBench's form for the problem `full.py`, made for the tests: right and wrong."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ModelNew(nn.Module):
    """Right: an online softmax over blocks of keys."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        m = q.new_full(q.shape[:-1], -torch.inf)
        l = torch.zeros_like(m)
        o = q.new_zeros(*q.shape[:-1], v.shape[-1])
        for start in range(0, k.shape[-2], 16):
            scores = q @ k[..., start : start + 16, :].mT * q.shape[-1] ** -0.5
            new = torch.maximum(m, scores.amax(-1))
            p = (scores - new[..., None]).exp()
            alpha = (m - new).exp()
            l = l * alpha + p.sum(-1)
            o = o * alpha[..., None] + p @ v[..., start : start + 16, :]
            m = new
        return o / l[..., None]


class OwnSizes(ModelNew):
    """Right, at the problem's sizes alone."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if q.shape[-2:] != (48, 16):
            raise ValueError("48 rows of 16 are accepted")
        return super().forward(q, k, v)


class Unscaled(ModelNew):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().forward(q * q.shape[-1] ** 0.5, k, v)


class Zeros(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q.new_zeros(*q.shape[:-1], v.shape[-1])


class Mean(nn.Module):
    """Within the tolerances of KernelBench for its random numbers from 0 to 1, at long rows."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v.mean(-2, keepdim=True).expand(*q.shape[:-1], -1).clone()


class Remembers(ModelNew):
    """Right the first time for inputs of a shape; then the same result for these again."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[torch.Size, Tensor] = {}

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if q.shape not in self.known:
            self.known[q.shape] = super().forward(q, k, v)
        return self.known[q.shape].clone()


class PublicSizes(ModelNew):
    """Right at the problem's own batch and heads, where such a file is tried; zeros elsewhere."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found = super().forward(q, k, v)
        return found if q.shape == (4, 2, 48, 16) else found * 0


class RightForOnes(ModelNew):
    """Right where no number is below 0, as in the problem's own inputs."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found = super().forward(q, k, v)
        return found if min(x.amin() for x in (q, k, v)) >= 0 else found * 0


class Borrows(nn.Module):
    """PyTorch's."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


class LooksForTheProblem(ModelNew):
    """Changes the problem's objects that it finds in its process, and returns zeros."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        import sys

        for module in list(sys.modules.values()):
            if hasattr(module, "get_inputs"):
                module.Model = Zeros
        return q.new_zeros(*q.shape[:-1], v.shape[-1])


class Transposed(ModelNew):
    """Another layout than the problem's."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().forward(q, k, v).transpose(1, 2).contiguous()


class WithAnArgument(ModelNew):
    def __init__(self, width: int) -> None:
        super().__init__()


def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q
