"""The gradients of a vector: what is expected, what a kernel may be off by, and the judgement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bridge.conformance.gradient_allowance import of_head, rounded
from bridge.conformance.profile import Profile
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Matrix

Floats = npt.NDArray[np.float64]
NAMES = ("q", "k", "v", "bias")


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


def allowances(vector: GradientVector, profile: Profile) -> dict[str, Floats]:
    """By name of the input, how far each element may be off for a function of this profile; shapes
    as of `expected`."""
    group = vector.num_heads // vector.num_kv_heads
    q, k, v, grad_out = (floats(m) for m in (vector.q, vector.k, vector.v, vector.grad_output))
    (grad_lse,) = floats([vector.grad_log_sum_exp])
    seen = visible(vector)
    heads = [
        of_head(
            q[h],
            k[h // group],
            v[h // group],
            grad_out[h],
            grad_lse[h],
            scale=float(vector.scale) * math.log(2.0),
            mask=seen,
            profile=profile,
        )
        for h in range(vector.num_heads)
    ]
    exact = expected(vector)
    sharing = [heads[start : start + group] for start in range(0, len(heads), group)]

    def of_each(name: str, parts: Sequence[Sequence[tuple[Floats, Floats]]]) -> Floats:
        shared = group > 1 and name in "kv"
        both = zip(parts, exact[name], strict=True)
        return np.stack([rounded(part, x, profile, shared=shared) for part, x in both])

    return {
        "q": of_each("q", [[(head.query, head.off_query)] for head in heads]),
        "k": of_each("k", [[(head.key, head.off_key) for head in each] for each in sharing]),
        "v": of_each("v", [[(head.value, head.off_value) for head in each] for each in sharing]),
        "bias": of_each("bias", [[(head.scores, head.off_scores)] for head in heads]),
    }


def wrong_gradients(
    vector: GradientVector, computed: Mapping[str, Floats], profile: Profile
) -> Iterable[str]:
    """One sentence for each input by which a gradient is further from the exact one than it may be,
    with its worst element. `computed`: by the names q, k, v and bias, of the shapes of `expected`;
    a name may be absent. Raises ValueError for another shape."""
    right, allowed = expected(vector), allowances(vector, profile)
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
