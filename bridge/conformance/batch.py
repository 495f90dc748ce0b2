"""Vectors of one shape as tensors, and their exact results to twice the precision of float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bridge.vectors.model import AttentionVector, Matrix

DTYPES: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """What an adapter is given.

    query [batch, 1, q_len, head_dim], key [batch, 1, kv_len, head_dim], value [batch, 1, kv_len,
    value_dim], of one dtype and device; mask [batch, 1, q_len, kv_len] booleans, True = may attend,
    or None; is_causal: key j is visible to query i if and only if j ≤ i; scale in natural units;
    default_scale: whether that is 1/√head_dim because the vectors give none.
    """

    vectors: tuple[AttentionVector, ...]
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float
    default_scale: bool = False

    @property
    def given_scale(self) -> float | None:
        """The scale as an argument: None where the function's own default is meant."""
        return None if self.default_scale else self.scale

    def split(self) -> Iterator[Batch]:
        """The vectors one by one."""
        for n, vector in enumerate(self.vectors):
            part = slice(n, n + 1)
            yield Batch(
                (vector,),
                self.query[part],
                self.key[part],
                self.value[part],
                None if self.mask is None else self.mask[part],
                self.is_causal,
                self.scale,
                self.default_scale,
            )


@dataclass(frozen=True)
class Exactly:
    """The exact results of one vector.

    out + out_low: the output as sums of two float64, [q_len, value_dim] each; lse + lse_low: the
    log-sum-exp, [q_len] each, −∞ + 0 for a row with every key masked; uncertainty: [q_len], by how
    much each may be off where the results are known by bounds.
    """

    out: Array
    out_low: Array
    lse: Array
    lse_low: Array
    uncertainty: Array


def array(matrix: Matrix) -> Array:
    """A matrix of exact numbers in float64: exact for numbers that are exact in bfloat16."""
    return np.array([[float(x) for x in row] for row in matrix], dtype=np.float64)


def visible(vector: AttentionVector) -> NDArray[np.bool_]:
    """Which key each query may attend to: [q_len, kv_len]."""
    rows, columns = range(vector.q_len), range(vector.kv_len)
    return np.array([[vector.mask.visible(i, j) for j in columns] for i in rows], dtype=bool)


def exactly(vector: AttentionVector) -> Exactly:
    """The exact results of a vector."""
    rows = vector.expected
    high = np.array([[float(x) for x in row.output] for row in rows], dtype=np.float64)
    low = np.array(
        [
            [float(x - Fraction(h)) for x, h in zip(row.output, line, strict=True)]
            for row, line in zip(rows, high.tolist(), strict=True)
        ],
        dtype=np.float64,
    )
    logs = [row.log_sum_exp for row in rows]
    lse = np.array([float(x) for x in logs], dtype=np.float64)
    rest = [float(x - Decimal(float(x))) if x.is_finite() else 0.0 for x in logs]
    uncertainty = np.array([float(row.uncertainty) for row in rows], dtype=np.float64)
    return Exactly(high, low, lse, np.array(rest, dtype=np.float64), uncertainty)


def batches(
    vectors: Iterable[AttentionVector], dtype: str, device: str, largest: int = 64
) -> Iterator[Batch]:
    """The vectors in groups of one shape, mask kind, model and scale, of at most `largest`."""
    groups: dict[tuple[object, ...], list[AttentionVector]] = {}
    for vector in vectors:
        key = (
            vector.q_len,
            vector.kv_len,
            vector.head_dim,
            vector.value_dim,
            vector.mask.kind,
            vector.model,
            vector.scale,
        )
        groups.setdefault(key, []).append(vector)
    for group in groups.values():
        for start in range(0, len(group), largest):
            yield stack(tuple(group[start : start + largest]), dtype, device)


def stack(vectors: tuple[AttentionVector, ...], dtype: str, device: str) -> Batch:
    """One batch of vectors that have the same shape, mask kind and scale."""

    def tensor(matrices: list[Matrix]) -> Tensor:
        stacked = np.stack([array(m) for m in matrices])[:, None]
        return torch.from_numpy(stacked).to(DTYPES[dtype]).to(device)

    first = vectors[0]
    mask = None
    # Kinds that not every function has a name for are given as what they mean.
    if first.mask.kind not in ("none", "causal"):
        mask = torch.from_numpy(np.stack([visible(v) for v in vectors])[:, None]).to(device)
    return Batch(
        vectors,
        tensor([v.q for v in vectors]),
        tensor([v.k for v in vectors]),
        tensor([v.v for v in vectors]),
        mask,
        first.mask.kind == "causal",
        first.natural_scale,
        first.scale is None,
    )
