"""The vectors of the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bridge.vectors.model import AttentionVector, Exact, Mask, Matrix, Vector
from bridge.vectors.operations import problem


@dataclass(frozen=True)
class Gradients:
    """The exact gradients where exp k = 2^k, head by head: by queries and keys divided by ln 2, by
    values, and by a bias of 0 that each query head has of its own."""

    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    bias: tuple[Matrix, ...]


@dataclass(frozen=True)
class GradientVector(Vector):
    """The gradients of a loss by the inputs of attention, from those by its outputs.

    The inputs as for grouped-query; grad_output: [num_heads][q_len][value_dim];
    grad_log_sum_exp: [num_heads][q_len], by the log-sum-exp in base e. expected: of the shapes of
    q, k, v, and [num_heads][q_len][kv_len].
    """

    operation: ClassVar[str] = "gradient"
    num_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    scale: Exact
    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    mask: Mask
    grad_output: tuple[Matrix, ...]
    grad_log_sum_exp: Matrix
    expected: Gradients

    @property
    def by_log_sum_exp(self) -> bool:
        """Whether the loss depends on the log-sum-exp."""
        return any(x != 0 for row in self.grad_log_sum_exp for x in row)

    def attentions(self, *, biased: bool = False) -> tuple[AttentionVector, ...]:
        """The inputs of each query head, without results. biased: with a bias of 0."""
        group = self.num_heads // self.num_kv_heads
        zeros = tuple((0,) * self.kv_len for _ in range(self.q_len))
        return tuple(
            problem(
                self,
                f"{self.id}[{h}]",
                q_len=self.q_len,
                kv_len=self.kv_len,
                head_dim=self.head_dim,
                value_dim=self.value_dim,
                scale=self.scale,
                q=self.q[h],
                k=self.k[h // group],
                v=self.v[h // group],
                mask=self.mask,
                expected=(),
                bias=zeros if biased else None,
            )
            for h in range(self.num_heads)
        )
