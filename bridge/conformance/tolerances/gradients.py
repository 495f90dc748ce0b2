"""The gradients of a vector: the expected ones, their tolerances, and the elements that exceed
them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch

from bridge.conformance.tensors.gradient_inputs import Floats, array, inputs_of
from bridge.conformance.tolerances.gradient_tolerance import of_options
from bridge.conformance.tolerances.rounding_model import FLOAT32, FLOAT64, RoundingModel
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.kept import keep

# Every vector has gradients by these inputs; those with options have more (`expected`).
NAMES = ("q", "k", "v", "bias")


def expected_gradients(vector: GradientVector) -> dict[str, Floats]:
    """By name of the input, the gradient for a kernel with weights e^score: in the exact model
    gradients by factors of the scores are multiplied by ln 2. Beside `NAMES`, those of a vector
    that has more: [num_heads]. They are the caller's own."""
    return {name: numbers.copy() for name, numbers in _expected_numbers(vector).items()}


@keep
def _expected_numbers(vector: GradientVector) -> dict[str, Floats]:
    by_score = math.log(2.0) if vector.model == "exact" else 1.0
    return {
        name: np.vectorize(float, otypes=[np.float64])(np.array(part, dtype=object))
        * (1.0 if name in ("v", "bias", "sinks") else by_score)
        for name, part in vector.expected.by_name().items()
    }


def shapes(vector: GradientVector) -> dict[str, tuple[int, ...]]:
    """The shapes of `expected`."""
    return {name: np.shape(part) for name, part in vector.expected.by_name().items()}


def tolerances(vector: GradientVector, rounding: RoundingModel) -> dict[str, Floats]:
    """By name of the input, how far each element may be off for a function of this rounding model;
    shapes as of `expected`."""
    given = inputs_of(vector, torch.float64)
    bounds = of_options(
        given.query, given.key, given.value, given.grad_out, given.grad_lse, given.options, rounding
    )
    wide = FLOAT64 if rounding.output == FLOAT64 else FLOAT32
    unknown = float(vector.uncertainty)
    found = {}
    for name, like in given.by().items():
        stored = rounding.output if name in NAMES else wide
        allowed = bounds[name].tolerance(stored, rounding.flush_to_zero)
        whole = array(name, allowed.reshape(like.shape))
        found[name] = unknown + vector.judged_part(name, whole)
    return found


def wrong_gradients(
    vector: GradientVector, computed: Mapping[str, Floats], rounding: RoundingModel
) -> Iterable[str]:
    """One sentence for each input by which a gradient is further from the exact one than it may be,
    with its worst element. `computed`: by the names of `expected`, of the shapes of the inputs; a
    name may be absent. Raises ValueError for another shape."""
    right, allowed = expected_gradients(vector), tolerances(vector, rounding)
    for name, whole in computed.items():
        want, got = right[name], vector.judged_part(name, whole)
        if got.shape != want.shape:
            raise ValueError(f"{vector.id}: d{name} is {got.shape}, should be {want.shape}")
        if (place := worst(got, want, allowed[name])) is not None:
            yield (
                f"{vector.id}: d{name}{list(place)} is {got[place]}, should be {want[place]}, "
                f"and may be {allowed[name][place]:.3g} away"
            )


def worst(got: Floats, want: Floats, allowed: Floats) -> tuple[int, ...] | None:
    """The place where a gradient is furthest from the expected one, among those where the error
    exceeds its tolerance; None if there is none."""
    off = np.abs(got - want)
    bad = ~(off <= allowed)
    if not bad.any():
        return None
    excess = np.where(bad, np.where(np.isfinite(off), off, np.inf), -1.0)
    return tuple(int(x) for x in np.unravel_index(np.argmax(excess), off.shape))
