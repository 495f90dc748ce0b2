"""The exact output o of a row of attention, and the distances |v − o| of the values it averages.

It is kept so that |v − o| is known also where the two are nearly equal. float64 still loses some of
that; the bound of this loss is the one tolerance here, derived in section 2 of
`docs/tolerances.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.conformance.tolerances.rounding_model import FLOAT64

Array = NDArray[np.float64]

# One query row at a time beyond this many numbers in a [rows, keys, columns] intermediate.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class RowAverage:
    """The exact output o of each row, as its difference from the value of the key that has the
    largest weight; [..., q_len, value_dim].

    Where that key has nearly all of the weight its v − o is a difference of nearly equal numbers,
    and float64's loss in it would count up to e^(2ε) times in the tolerance. lost: a bound of the
    loss that is left. values: the averaged values, [..., kv_len, value_dim].
    """

    values: Array
    largest: Array
    beyond: Array
    lost: Array

    def spread(self, weights: Array) -> Array:
        """Σⱼ weightⱼ·|vⱼ − o|: [..., q_len, value_dim]. weights: [..., q_len, kv_len]."""
        return self._over_keys(lambda w, far: np.asarray((w * far).sum(-2)), weights)

    def farthest(self, near: NDArray[np.bool_]) -> Array:
        """The largest |vⱼ − o| over the keys marked as near, 0 if there is none: [..., q_len,
        value_dim]. near: [..., q_len, kv_len]."""
        return self._over_keys(
            lambda w, far: np.asarray((w * far).max(-2, initial=0.0)), near.astype(float)
        )

    def _over_keys(self, reduce: Callable[[Array, Array], Array], weights: Array) -> Array:
        """`reduce(weights[..., None], |vⱼ − o|)` over the keys, in bounded memory: [..., q, d]."""
        result = np.empty((*weights.shape[:-1], self.values.shape[-1]))
        keys = self.values[..., None, :, :]
        q_len = weights.shape[-2]
        step = max(1, _CHUNK * q_len // max(1, weights.size * self.values.shape[-1]))
        for start in range(0, q_len, step):
            part = (..., slice(start, start + step), None, slice(None))
            distances = np.abs(keys - self.largest[part] - self.beyond[part])
            distances += self.lost[part]
            result[..., start : start + step, :] = reduce(
                weights[..., start : start + step, :, None], distances
            )
        return result


def row_average(weights: Array, mask: NDArray[np.bool_], v: Array) -> RowAverage:
    """The average of the values under these weights, Σ wⱼ·vⱼ / Σ wⱼ; 0 without keys.

    weights: [..., q_len, kv_len], 1 for the largest of a row and 0 where mask, of the same shape,
    is False. v: [..., kv_len, value_dim].
    """
    batch = np.broadcast_shapes(weights.shape[:-2], v.shape[:-2])
    if v.shape[-2] == 0:
        zeros = np.zeros((*batch, weights.shape[-2], v.shape[-1]))
        return RowAverage(v, zeros, zeros, zeros)
    num_keys = mask.sum(-1, keepdims=True)
    total = np.where(num_keys > 0, weights.sum(-1, keepdims=True), 1.0)
    top = weights.argmax(-1)[..., None]
    largest = np.take_along_axis(
        np.broadcast_to(v, (*batch, *v.shape[-2:])),
        np.broadcast_to(top, (*batch, *top.shape[-2:])),
        -2,
    )
    others = mask.copy()
    np.put_along_axis(others, top, False, -1)
    weights = np.where(others, weights, 0.0)
    beyond = (weights @ v - weights.sum(-1, keepdims=True) * largest) / total
    # A weight below the normal numbers is off by up to the smallest of them.
    weights = np.where(others, np.maximum(weights, FLOAT64.smallest_normal / FLOAT64.unit), 0.0)
    sizes = weights @ np.abs(v) + weights.sum(-1, keepdims=True) * np.abs(largest)
    return RowAverage(v, largest, beyond, (num_keys + 5) * FLOAT64.unit * sizes / total)
