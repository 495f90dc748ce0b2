"""How far computed gradients may be from the exact ones.

Per element and to first order, for a backward pass that computes P again as exp(s − L), in a format
whose unit roundoff is u. Of row i, with n keys and columns d of Q and d_v of V:

    |δs − δL| ≤ E = u·max (4·|scale|·(d + 2)·|q|ᵀ|k| + 4·|s|) + u·(2·|L| + n + 2)
    |δP| ≤ P·ε,  ε = 2E + (n + 6)·u
    |δdS| ≤ P·M·ρ,  M = |dO|ᵀ|v| + Σ P·|dO|ᵀ|v| + |dL|,  ρ = 2ε + (n + 2·d_v + 8)·u

since dS = P ∘ (dP − D + dL), D = dOᵀO, and O has the error of P and of its own sum. From these

    |δdV| ≤ Σ P·|dO|·(ε + (m + 2)·u)        |δdQ| ≤ |scale|·Σ P·M·|k|·(ρ + (n + 3)·u)
    |δdbias| = |δdS|                         |δdK| ≤ |scale|·Σ P·M·|q|·(ρ + (m + 3)·u)

with m the number of queries that share the key. Products of two errors are allowed for by 2 % more.

Where scores are changed, E has 8·cap, and 2·(|a| + |s + a|) for what is added, in its maximum; a
sink is one more key, of value 0. With t = tanh(x / cap) of the products x = scale·qᵀk, dX is
dS ∘ (1 − t²), in place of dS in dQ and dK: off by

    |δdX| ≤ P·M·((1 − t²)·(ρ + u) + τ)
    τ = 2·|t|·u·((1 − t²)·4·(|scale|·(d + 2)·|q|ᵀ|k| + |x|) / cap + 8) + 3·u

And, of c_N = N·u for a sum of N terms, Σ over what a bias is shared by, or over a head:

    |δdbias| ≤ Σ P·M·(ρ + c)    |δdslope| ≤ Σ distance·P·M·(ρ + 2·u + c)    |δdsink| ≤ Σ p·M·(ρ + c)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Matrix

Floats = npt.NDArray[np.float64]
# What every vector has a gradient by; those with options have more (`expected`).
NAMES = ("q", "k", "v", "bias")
_SECOND_ORDER = 1.02


def floats(matrices: Sequence[Matrix]) -> Floats:
    """Exact numbers, rounded to float64."""
    return np.array([[[float(x) for x in row] for row in m] for m in matrices])


def expected(vector: GradientVector) -> dict[str, Floats]:
    """By name of the input, the gradient for a kernel with weights e^score: in the exact model by
    queries and keys times ln 2. Beside `NAMES`, `slopes` and `sinks` of a vector that has some:
    [num_heads]."""
    by_score = math.log(2.0) if vector.model == "exact" else 1.0
    return {
        name: np.vectorize(float, otypes=[np.float64])(np.array(part, dtype=object))
        * (by_score if name in ("q", "k") else 1.0)
        for name, part in vector.expected.named().items()
    }


def visible(vector: GradientVector) -> npt.NDArray[np.bool_]:
    """What the mask allows: [q_len, kv_len]."""
    columns = range(vector.kv_len)
    return np.array([[vector.mask.visible(i, j) for j in columns] for i in range(vector.q_len)])


class _Head(NamedTuple):
    """What the bounds of one head are made of; [q_len, kv_len], but for `sink`, [q_len, 1].

    p: the weights; sink: that of the sink, 0 without one. by_p, by_s: their relative errors ε and
    ρ. magnitude: M for every key; of_sink: M for the sink. slope, slope_error: of softcap, 1 and 0
    without it. distance: of query and key.
    """

    p: Floats
    sink: Floats
    by_p: Floats
    by_s: Floats
    magnitude: Floats
    of_sink: Floats
    slope: Floats
    slope_error: Floats
    distance: Floats


def _head(vector: GradientVector, h: int, unit: float) -> _Head:
    of = h // (vector.num_heads // vector.num_kv_heads)
    scale, d, d_v = vector.natural_scale, vector.head_dim, vector.value_dim
    rows, columns = range(vector.q_len), range(vector.kv_len)
    q, k, v, dO = (
        floats([m])[0] for m in (vector.q[h], vector.k[of], vector.v[of], vector.grad_output[h])
    )
    dL = np.array([[float(x)] for x in vector.grad_log_sum_exp[h]])
    seen = np.array([[vector.visible(h, i, j) for j in columns] for i in rows])
    products = scale * (q @ k.T)
    rounded = 4 * abs(scale) * (d + 2) * (np.abs(q) @ np.abs(k).T)
    scores, sizes = products, rounded
    slope, slope_error = np.ones_like(products), np.zeros_like(products)
    if vector.softcap is not None:
        cap = float(vector.softcap)
        tanh = np.tanh(products / cap)
        scores, sizes = cap * tanh, sizes + 8 * cap
        slope = 1 - tanh**2
        off_tanh = slope * (rounded + 4 * np.abs(products)) / cap + 8
        slope_error = unit * (2 * np.abs(tanh) * off_tanh + 3)
    distance = np.zeros_like(products)
    if vector.alibi is not None:
        place = np.array(rows)[:, None] + vector.alibi.shift
        distance = np.abs(place - np.array(columns)[None, :]).astype(np.float64)
        added = -float(vector.alibi.slopes[h]) * distance
        scores = scores + added
        sizes = sizes + 2 * (np.abs(added) + np.abs(scores))
    if vector.bias is not None:
        added = np.array([[float(vector.bias_at(h, i, j) or 0) for j in columns] for i in rows])
        scores = scores + added
        sizes = sizes + 2 * (np.abs(added) + np.abs(scores))
    sizes = np.where(seen, sizes + 4 * np.abs(scores), 0.0)
    scores = np.where(seen, scores, -np.inf)
    sink = -np.inf if vector.sinks is None else float(vector.sinks[h])
    least = 0.0 if vector.sinks is None else 4 * abs(sink)
    n = vector.kv_len + (vector.sinks is not None)

    largest = np.max(scores, axis=1, initial=sink, keepdims=True)
    shift = np.where(np.isneginf(largest), 0.0, largest)
    weights, of_sink = np.exp(scores - shift), np.exp(sink - shift)
    total = weights.sum(axis=1, keepdims=True) + of_sink
    total = np.where(total == 0, 1.0, total)
    p = weights / total
    lse = shift + np.log(total)
    worst = np.max(sizes, axis=1, initial=least, keepdims=True)
    off = unit * (worst + 2 * np.abs(lse) + n + 2)
    by_p = 2 * off + (n + 6) * unit
    size = np.abs(dO) @ np.abs(v).T
    mean = (p * size).sum(axis=1, keepdims=True) + np.abs(dL)
    by_s = 2 * by_p + (n + 2 * d_v + 8) * unit
    return _Head(p, of_sink / total, by_p, by_s, size + mean, mean, slope, slope_error, distance)


def allowances(vector: GradientVector, unit: float) -> dict[str, Floats]:
    """By name of the input, how far each element may be off; shapes as of `expected`."""
    group = vector.num_heads // vector.num_kv_heads
    scale = abs(vector.natural_scale)
    q, k, dO = (np.abs(floats(m)) for m in (vector.q, vector.k, vector.grad_output))
    n, m = vector.kv_len, vector.q_len * group
    found = {name: np.zeros_like(x) for name, x in expected(vector).items()}
    shared = vector.num_heads * vector.q_len // (found["bias"].shape[0] * found["bias"].shape[1])
    of_bias = (shared - 1) * unit
    of_head = vector.q_len * (vector.kv_len + 1) * unit
    for h in range(vector.num_heads):
        of, head = h // group, _head(vector, h, unit)
        by_s, size = head.by_s, head.p * head.magnitude
        for i in range(vector.q_len):
            found["bias"][vector.place_in_bias(h, i)] += size[i] * (by_s[i] + of_bias)

        def by_x(
            terms: int, by_s: Floats = by_s, size: Floats = size, head: _Head = head
        ) -> Floats:
            return size * (head.slope * (by_s + (terms + 3) * unit) + head.slope_error)

        found["q"][h] += scale * by_x(n) @ k[of]
        found["k"][of] += scale * by_x(m).T @ q[h]
        found["v"][of] += (head.p * (head.by_p + (m + 2) * unit)).T @ dO[h]
        if "slopes" in found:
            found["slopes"][h] = (head.distance * size * (by_s + 2 * unit + of_head)).sum()
        if "sinks" in found:
            found["sinks"][h] = (head.sink * head.of_sink * (by_s + of_head)).sum()
    unknown = float(vector.uncertainty)
    return {name: _SECOND_ORDER * x + unknown for name, x in found.items()}


def wrong_gradients(
    vector: GradientVector, computed: Mapping[str, Floats], unit: float
) -> Iterable[str]:
    """One sentence for each input by which a gradient is further from the exact one than it may be,
    with its worst element. `computed`: by the names of `expected`, of its shapes; a name may be
    absent. Raises ValueError for another shape."""
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
