"""The code's tolerance with dropout is the one that is proved: the Spec's, with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tolerance_by_spec import (
    CLOSE,
    NATURAL,
    NEGLIGIBLE,
    Inputs,
    change_code,
    difference,
    digits,
    precision,
)

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from bridge.spec.dropout import dropout_factor
from bridge.spec.dropout_tolerance import more_roundings
from bridge.spec.tolerance import BoundedKey
from bridge.spec.underflow_tolerance import output_tolerance

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(4),
    "few small numbers": replace(
        RoundingModel.float32(4),
        accumulator=replace(FORMATS["float32"], smallest_normal=2.0**-16),
    ),
    # So coarse that few roundings more show.
    "coarse": replace(RoundingModel.float32(), accumulation_unit=2.0**-10),
    "flash": RoundingModel.flash("bfloat16", block_n=16, denominator="unrounded"),
    "flash, rounded": RoundingModel.flash("bfloat16", block_n=16, denominator="rounded"),
}


def wrong_dropout(
    inputs: Inputs,
    probability: float,
    keep: NDArray[np.bool_],
    rounding: RoundingModel,
    code: ModuleType = tolerance,
) -> Iterator[str]:
    """The elements that are not allowed the Spec's tolerance. keep: [q_len, kv_len], with a
    weight that is kept."""
    p, unit = precision(rounding), Decimal(rounding.output.unit)
    tiny = Decimal(rounding.accumulator.smallest_normal)
    kept = [
        [dropout_factor(Decimal(probability), bool(x), num=NATURAL) for x in row] for row in keep
    ]
    factors = np.array(kept, dtype=np.float64)
    allowed = code.attention_tolerance(
        *(inputs.q, inputs.k, inputs.v),
        scale=inputs.scale,
        mask=inputs.mask,
        rounding=rounding,
        factors=factors,
    )
    smallest = Decimal(rounding.output.underflow(rounding.flush_to_zero))
    found = inputs.explain_by(rounding)
    kv_len = len(inputs.k)
    rescalings = math.ceil(kv_len / (rounding.block_n or 1))
    largest = Decimal(float(factors.max()))
    for i, c in inputs.elements():
        row = [
            BoundedKey(
                score=Decimal(float(found.scores[i, j])) if inputs.mask[i, j] else None,
                error=Decimal(float(found.score_errors[i, j])),
                value=Decimal(float(factors[i, j])) * Decimal(float(inputs.v[j, c])),
            )
            for j in range(kv_len)
        ]
        roundings = len(inputs.visible_keys(i)) + 2 * rescalings
        with localcontext(digits()):
            more = more_roundings(p, roundings + 6, largest + 5, num=NATURAL)
            exact = output_tolerance(
                *(more, tiny, unit, smallest, roundings, rescalings, Decimal(NEGLIGIBLE), row),
                num=NATURAL,
            )
        one = float(allowed[i, c]) / tolerance.EVALUATION
        if not abs(difference(one, exact)) <= CLOSE * float(exact) + 1e-300:
            yield f"row {i}, column {c}: {one} for {float(exact)}"


def draw_problem(rng: np.random.Generator) -> tuple[Inputs, float, NDArray[np.bool_]]:
    q_len, kv_len = int(rng.integers(1, 4)), int(rng.integers(1, 20))
    keep = rng.random((q_len, kv_len)) < 0.7
    keep[0, 0] = True
    inputs = Inputs(
        rng.normal(size=(q_len, 4)),
        rng.normal(size=(kv_len, 4)),
        rng.normal(size=(kv_len, 2)),
        0.5,
        rng.random((q_len, kv_len)) < 0.8,
    )
    return inputs, float(rng.choice([0.1, 0.5, 0.96875])), keep


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_dropout(seed: int, name: str) -> None:
    problem = draw_problem(np.random.default_rng(seed))
    assert list(wrong_dropout(*problem, ROUNDING_MODELS[name])) == []


MUTANTS = {
    "a factor that is not rounded": ("FACTOR_ROUNDINGS = 5", "FACTOR_ROUNDINGS = 0"),
    "a probability that is exact": (
        "roundings = z.max(initial=0.0) + FACTOR_ROUNDINGS",
        "roundings = FACTOR_ROUNDINGS",
    ),
    "values without their factors": (
        "v_ = z[..., None] * v_[..., None, :, :]",
        "v_ = (z[..., None] > 0) * v_[..., None, :, :]",
    ),
    "what underflows of the values without their factors": (
        "_underflow_error(rows, size, most, numerator, rounding)",
        "_underflow_error(rows, np.ones_like(size), most, numerator, rounding)",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_tolerance_with_dropout_disagrees(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    problems = [draw_problem(np.random.default_rng(seed)) for seed in range(5)]
    assert any(
        any(wrong_dropout(*problem, ROUNDING_MODELS[model], mutated))
        for problem in problems
        for model in ("coarse", "few small numbers")
    )
