"""How far computed gradients may be from the exact ones.

Per element and to first order, for a backward pass that computes P again as exp(s − L), in a format
whose unit roundoff is u. Of row i, with n keys and columns d of Q and d_v of V:

    |δs − δL| ≤ E = u·max (4·|scale|·(d + 2)·|q|ᵀ|k| + 4·|s|) + u·(2·|L| + n + 2)
    |δP| ≤ P·ε,  ε = 2E + (n + 6)·u
    |δdS| ≤ P·M·ρ,  M = |dO|ᵀ|v| + Σ P·|dO|ᵀ|v| + |dL|,  ρ = 2ε + (n + 2·d_v + 8)·u

since dS = P ∘ (dP − D + dL), D = dOᵀO, and O has the error of P and of its own sum. From these

    |δdV| ≤ Σ P·|dO|·(ε + (m + 2)·u)        |δdQ| ≤ |scale|·Σ P·M·|k|·(ρ + (n + 3)·u)
    |δdbias| = |δdS|                         |δdK| ≤ |scale|·Σ P·M·|q|·(ρ + (m + 3)·u)

with m the number of queries that share the key. With dropout |v| stands for z·|v| in M, and P for
P·z in the first of these, z being what a weight is multiplied by; ε and ρ there get the z + 5
roundings of a factor (`bridge/conformance/allowance.py`). Products of two errors are allowed for by
2 % more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bridge.conformance.allowance import FACTOR_ROUNDINGS
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Matrix

Floats = npt.NDArray[np.float64]
NAMES = ("q", "k", "v", "bias")
_SECOND_ORDER = 1.02


def floats(matrices: Sequence[Matrix]) -> Floats:
    """Exact numbers, rounded to float64."""
    return np.array([[[float(x) for x in row] for row in m] for m in matrices])


def expected(vector: GradientVector) -> dict[str, Floats]:
    """The gradients for a kernel with weights e^score: by queries and keys times ln 2."""
    factors = {"q": math.log(2.0), "k": math.log(2.0), "v": 1.0, "bias": 1.0}
    return {name: floats(getattr(vector.expected, name)) * factors[name] for name in NAMES}


def visible(vector: GradientVector) -> npt.NDArray[np.bool_]:
    """What the mask allows: [q_len, kv_len]."""
    columns = range(vector.kv_len)
    return np.array([[vector.mask.visible(i, j) for j in columns] for i in range(vector.q_len)])


def factors(vector: GradientVector, h: int) -> Floats:
    """What dropout multiplies the weights of a head by: [q_len, kv_len]."""
    rows, columns = range(vector.q_len), range(vector.kv_len)
    return np.array([[float(vector.factor(h, i, j)) for j in columns] for i in rows])


def allowances(vector: GradientVector, unit: float) -> dict[str, Floats]:
    """By name of the input, how far each element may be off; shapes as of `expected`."""
    group = vector.num_heads // vector.num_kv_heads
    scale = abs(float(vector.scale)) * math.log(2.0)
    q, k, v, dO = (floats(m) for m in (vector.q, vector.k, vector.v, vector.grad_output))
    dL = np.array([[float(x) for x in row] for row in vector.grad_log_sum_exp])
    seen = visible(vector)
    n, m = vector.kv_len, vector.q_len * group
    d, d_v = vector.head_dim, vector.value_dim
    found = {name: np.zeros_like(x) for name, x in expected(vector).items()}
    for h in range(vector.num_heads):
        of = h // group
        scores = np.where(seen, float(vector.scale) * math.log(2.0) * (q[h] @ k[of].T), -np.inf)
        largest = np.max(scores, axis=1, initial=-np.inf, keepdims=True)
        shift = np.where(np.isneginf(largest), 0.0, largest)
        weights = np.exp(scores - shift)
        total = weights.sum(axis=1, keepdims=True)
        p = weights / np.where(total == 0, 1.0, total)
        lse = shift + np.log(np.where(total == 0, 1.0, total))
        sizes = 4 * scale * (d + 2) * (np.abs(q[h]) @ np.abs(k[of]).T) + 4 * np.abs(scores)
        worst = np.max(np.where(seen, sizes, 0.0), axis=1, initial=0.0, keepdims=True)
        off = unit * (worst + 2 * np.abs(lse) + n + 2)
        of_p = 2 * off + (n + 6) * unit
        z = factors(vector, h)
        of_z = (z.max(initial=0.0) + FACTOR_ROUNDINGS) * unit if vector.dropout else 0.0
        products = z * (np.abs(dO[h]) @ np.abs(v[of]).T)
        magnitude = products + (p * products).sum(axis=1, keepdims=True) + np.abs(dL[h])[:, None]
        of_s = 2 * of_p + (n + 2 * d_v + 8) * unit + of_z
        found["bias"][h] += p * magnitude * of_s
        found["q"][h] += scale * (p * magnitude * (of_s + (n + 3) * unit)) @ np.abs(k[of])
        found["k"][of] += scale * (p * magnitude * (of_s + (m + 3) * unit)).T @ np.abs(q[h])
        found["v"][of] += (p * z * (of_p + (m + 2) * unit + of_z)).T @ np.abs(dO[h])
    return {name: _SECOND_ORDER * x for name, x in found.items()}


def wrong_gradients(
    vector: GradientVector, computed: Mapping[str, Floats], unit: float
) -> Iterable[str]:
    """One sentence for each input by which a gradient is further from the exact one than it may be,
    with its worst element. `computed`: by the names q, k, v and bias, of the shapes of `expected`;
    a name may be absent. Raises ValueError for another shape."""
    right, allowed = expected(vector), allowances(vector, unit)
    for name, got in computed.items():
        want = right[name]
        if got.shape != want.shape:
            raise ValueError(f"{vector.id}: d{name} is {got.shape}, should be {want.shape}")
        off = np.abs(got - want)
        bad = ~(off <= allowed[name])
        if bad.any():
            excess = np.where(bad, np.where(np.isfinite(off), off, np.inf), -1.0)
            place = tuple(int(x) for x in np.unravel_index(np.argmax(excess), off.shape))
            yield (
                f"{vector.id}: d{name}{list(place)} is {got[place]}, should be {want[place]}, "
                f"and may be {allowed[name][place]:.3g} away"
            )
