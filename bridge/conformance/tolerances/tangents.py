"""The tangents of a vector: the expected ones, their tolerances, and the elements that exceed
them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.tensors.batch import array, visible
from bridge.conformance.tensors.gradient_inputs import Floats
from bridge.conformance.tolerances.gradient_tolerance import Bounded
from bridge.conformance.tolerances.gradients import worst
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import FLOAT32, FLOAT64, Format, RoundingModel
from bridge.conformance.tolerances.tangent_tolerance import Rates, tangent_bounds
from bridge.vectors.model.attention import Matrix
from bridge.vectors.model.tangents import TangentVector
from pyimpl.internal.implements import implements

OUTPUT, LSE = "output", "lse"


def expected_tangents(vector: TangentVector) -> dict[str, Floats]:
    """The rates of the output, [q_len, value_dim], and of the log-sum-exp, [q_len], 0 where that
    stays −∞."""
    rows = vector.expected
    lse = [0.0 if row.masked else float(row.log_sum_exp) for row in rows]
    return {
        OUTPUT: array(tuple(row.output for row in rows), vector.value_dim),
        LSE: np.array(lse, dtype=np.float64),
    }


@implements("Attention.Spec.storedTangentTolerance")
def tolerances(vector: TangentVector, rounding: RoundingModel) -> dict[str, Floats]:
    """How far each element may be off for a function of this rounding model; shapes as of
    `expected_tangents`."""

    def matrix(rows: Matrix) -> Tensor:
        return torch.from_numpy(array(rows))[None, None]

    attention = vector.attention()
    added, changing = [], []
    if vector.alibi is not None:
        places = torch.arange(vector.q_len)[:, None] + vector.alibi.shift
        distance = (places - torch.arange(vector.kv_len)).abs().double()
        added.append(-float(vector.alibi.slope) * distance)
        changing.append(-float(vector.tangent_slope or 0) * distance)
    if vector.bias is not None:
        numbers = [[-math.inf if x is None else float(x) for x in row] for row in vector.bias]
        added.append(torch.tensor(numbers, dtype=torch.float64))
        changing.append(matrix(vector.tangent_bias or ()))
    added.append(torch.from_numpy(np.where(visible(attention), 0.0, -np.inf)))
    sinks, rate_of_sinks = (
        None if x is None else torch.tensor([float(x)], dtype=torch.float64)
        for x in (vector.sink, vector.tangent_sink)
    )
    scored = Scored(
        vector.attention().natural_scale,
        None if vector.softcap is None else float(vector.softcap),
        added,
        sinks,
    )
    rates = Rates(
        matrix(vector.tangent_q),
        matrix(vector.tangent_k),
        matrix(vector.tangent_v),
        changing,
        rate_of_sinks,
    )
    inputs = (matrix(vector.q), matrix(vector.k), matrix(vector.v))
    out, lse = tangent_bounds(*inputs, rates, scored, rounding)
    wide = FLOAT64 if rounding.output == FLOAT64 else FLOAT32
    unknown = np.array([float(row.uncertainty) for row in vector.expected])
    return {
        OUTPUT: _allowance(out, rounding.output, rounding.flush_to_zero) + unknown[:, None],
        LSE: _allowance(lse, wide, rounding.flush_to_zero) + unknown,
    }


def _allowance(rate: Bounded, stored: Format, flush_to_zero: bool) -> Floats:
    """How far the rates of one head may be off once stored; what is made of no key must be 0."""
    allowed = torch.where(rate.size == 0, 0.0, rate.tolerance(stored, flush_to_zero))
    return allowed[0, 0].numpy()


def wrong_tangents(
    vector: TangentVector, computed: Mapping[str, Floats], rounding: RoundingModel
) -> Iterable[str]:
    """One sentence for each output whose tangent is further from the exact one than it may be, with
    its worst element. `computed`: by the names of `expected_tangents`; one may be absent. Raises
    ValueError for another shape."""
    right, allowed = expected_tangents(vector), tolerances(vector, rounding)
    for name, got in computed.items():
        want = right[name]
        if got.shape != want.shape:
            raise ValueError(f"{vector.id}: {name} is {got.shape}, should be {want.shape}")
        if (place := worst(got, want, allowed[name])) is not None:
            yield (
                f"{vector.id}: the tangent of {name}{list(place)} is {got[place]}, should be "
                f"{want[place]}, and may be {allowed[name][place]:.3g} away"
            )
