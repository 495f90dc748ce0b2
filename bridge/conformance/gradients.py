"""Judging the gradients of a vector: what is expected, and how far from it a gradient may be
(`gradient_allowance`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch

from bridge.conformance.gradient_allowance import Scored, gradient_bounds
from bridge.conformance.profile import Profile
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Matrix

Floats = npt.NDArray[np.float64]
NAMES = ("q", "k", "v", "bias")
_PLAIN = {p.accumulator.unit: p for p in (Profile.float32(), Profile.float64())}


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


def allowances(vector: GradientVector, unit: float) -> dict[str, Floats]:
    """By name of the input, how far each element may be off for a function that does everything in
    one format, given by its unit roundoff; shapes as of `expected`."""
    profile = _PLAIN[unit]

    def tensor(matrices: Sequence[Matrix]) -> torch.Tensor:
        return torch.from_numpy(floats(matrices))[None]

    hidden = np.where(visible(vector), 0.0, -np.inf)
    bounds = gradient_bounds(
        tensor(vector.q),
        tensor(vector.k),
        tensor(vector.v),
        tensor(vector.grad_output),
        tensor([vector.grad_log_sum_exp])[0],
        Scored(float(vector.scale) * math.log(2.0), added=(torch.from_numpy(hidden),)),
        profile,
    )
    by_name = {"q": bounds.query, "k": bounds.key, "v": bounds.value, "bias": bounds.scores}
    return {
        name: np.asarray(x.allowed(profile.output)[0].numpy(), dtype=np.float64)
        for name, x in by_name.items()
    }


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
