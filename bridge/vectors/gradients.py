"""The vectors of the backward pass."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from bridge.vectors.model import Dropout, Exact, Mask, Matrix, Vector


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
    grad_log_sum_exp: [num_heads][q_len], by the log-sum-exp in base e. dropout: of each head, where
    there is any, drawn from the seed. expected: of the shapes of q, k, v, and
    [num_heads][q_len][kv_len].
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
    dropout: tuple[Dropout, ...] = ()
    dropout_seed: int = 0

    def factor(self, h: int, i: int, j: int) -> Fraction:
        """What dropout multiplies a weight of head h by."""
        return self.dropout[h].factor(i, j) if self.dropout else Fraction(1)
