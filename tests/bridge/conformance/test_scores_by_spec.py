"""The code's errors of scores are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import (
    CLOSE,
    FEW,
    Inputs,
    change_code,
    difference,
    draw_inputs,
    problems,
    score_errors,
)

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel, generous
from bridge.conformance.tolerances.tolerance import Explained
from bridge.vectors.model.attention import Family

# The stored ones of scores and scaled operands: nothing, one or both operands, the scores.
ROUNDING_MODELS = {
    "accumulator": replace(RoundingModel.float32(), operands=None, operand_roundings=0),
    "float64": RoundingModel.float64(),
    "float32": RoundingModel.float32(),
    "one operand": RoundingModel.flash("bfloat16"),
    "one stored operand": replace(
        RoundingModel.sdpa_math("float16", reduced=True), operand_roundings=1
    ),
    "scores": replace(RoundingModel.float32(), scores=FORMATS["bfloat16"]),
    "float16 scores": replace(RoundingModel.float32(), scores=FORMATS["float16"]),
    "flushed": replace(
        RoundingModel.sdpa_math("float16", reduced=True),
        scores=FORMATS["float16"],
        flush_to_zero=True,
    ),
    "sdpa-math-reduced": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "generous": generous("float16"),
    "few small numbers": replace(RoundingModel.float32(), accumulator=FEW),
    "few small numbers, stored": replace(
        RoundingModel.float32(), accumulator=FEW, scores=FORMATS["bfloat16"]
    ),
}


def wrong_scores(
    inputs: Inputs, rounding: RoundingModel, explain: Callable[..., Explained] = tolerance.explain
) -> Iterator[str]:
    """Which δ are not as the Spec has them; the code has 2·2⁻⁵³ more for the caller's own rounding
    of the scale."""
    found = inputs.explain_by(rounding, explain)
    of_caller = 2.0**-52
    stored = 0.0 if rounding.scores is None else rounding.scores.unit
    for i, _ in inputs.elements():
        exact = score_errors(inputs, rounding, found, i)
        largest = max(found.scores[i, j] for j in exact)
        for j, one in exact.items():
            s = found.scores[i, j]
            close = CLOSE * float(one)
            caller = of_caller * (largest - s + stored * abs(s)) * (1 + CLOSE)
            more = difference(float(found.score_errors[i, j]), one)
            if not -close <= more <= close + caller:
                yield f"δ of key {j} for row {i}: {more} more than {float(one)}"


@settings(max_examples=100, deadline=None)
@given(draw_inputs(), st.sampled_from([1.0, 2.0]), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_errors_of_scores(inputs: Inputs, coarser: float, name: str) -> None:
    rounding = ROUNDING_MODELS[name]
    rounding = replace(rounding, accumulation_unit=coarser * rounding.accumulation_unit)
    assert list(wrong_scores(inputs, rounding)) == []


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
    "operands that are stored exactly": (
        "once += math.log1p(rounding.operands.unit)",
        "pass",
    ),
    "no product of operands with the scale": ("once = math.log1p(unit)", "once = 0.0"),
    "one operand of two": (
        "math.expm1(rounding.operand_roundings * once)",
        "math.expm1(min(rounding.operand_roundings, 1) * once)",
    ),
    "a relative error that cancels": (
        "relative = relative + (1.0 + relative) * of_operands",
        "relative = (1.0 + relative) * math.exp(rounding.operand_roundings * once) - 1.0",
    ),
    "operands that do not underflow": (
        "(1.0 + of_operands) * _operand_underflow(q, k, scale, rounding)",
        "0.0",
    ),
    "operands that are not rounded after they underflow": (
        "(1.0 + of_operands) * _operand_underflow(q, k, scale, rounding)",
        "_operand_underflow(q, k, scale, rounding)",
    ),
    "one operand of two that underflows": (
        "tiny = rounding.operand_roundings * rounding.operands.underflow(",
        "tiny = rounding.operands.underflow(",
    ),
    "products that are not rounded after an operand underflows": (
        "growth = 1.0 + gamma(np.array(head_dim + 5.0), rounding.accumulation_unit)",
        "growth = 1.0",
    ),
    "operands that meet no scale": ("reach = max(1.0, math.sqrt(abs(scale)))", "reach = 1.0"),
    "errors of both operands that do not meet": (
        "(reach * sums + head_dim * tiny)",
        "(reach * sums)",
    ),
    "scores that do not underflow": (
        "np.asarray(errors + tiny, dtype=np.float64)",
        "np.asarray(errors, dtype=np.float64)",
    ),
    "a stored score that does not underflow": (
        "tiny = rounding.scores.underflow(rounding.flush_to_zero)",
        "pass",
    ),
    "inner products that do not underflow": (
        "_INNER_PRODUCTS = 2.0",
        "_INNER_PRODUCTS = 0.0",
    ),
    "sums of an inner product that do not underflow": (
        "_INNER_PRODUCTS = 2.0",
        "_INNER_PRODUCTS = 1.0",
    ),
    "products that do not meet the scale": (
        "head_dim * max(1.0, abs(scale))",
        "head_dim",
    ),
    "products with the scale that do not underflow": (
        "_SCORE_PRODUCTS = 3.0",
        "_SCORE_PRODUCTS = 0.0",
    ),
    "a score that underflows and is stored exactly": (
        "tiny + (1.0 + stored) * growth",
        "tiny + growth",
    ),
    "a score that underflows and is not rounded": (
        "tiny + (1.0 + stored) * growth",
        "tiny + (1.0 + stored)",
    ),
    "scores that are stored exactly": (
        "errors = errors + rounding.scores.unit * computed",
        "pass",
    ),
    "a stored score that is exact": (
        "computed = np.abs(scores) + own + of_scale * np.abs(scores)",
        "computed = np.abs(scores)",
    ),
    "a common error that cancels from what is stored": (
        "computed = np.abs(scores) + own + of_scale * np.abs(scores)",
        "computed = np.abs(scores) + errors",
    ),
    "one rounding less of each score": ("_SCORE_ROUNDINGS = 2", "_SCORE_ROUNDINGS = 1"),
    "one addition less of a product": ("head_dim + 1.0", "head_dim + 0.0"),
    "differences that are not flushed to 0": (
        "(1.0 + blocks) * rounding.accumulator.smallest_normal",
        "0.0 * blocks",
    ),
    "rises of the maximum that are not flushed to 0": (
        "(1.0 + blocks) * rounding.accumulator.smallest_normal",
        "(1.0 + 0.0 * blocks) * rounding.accumulator.smallest_normal",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_error_of_scores_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    inputs = [one for f in families if f.name == "drawn-natural" for one in problems(f)]
    # Errors of operands meet a part of a scale above 1.
    inputs += [replace(one, scale=9.0) for one in inputs[:1]]
    pairs = itertools.product(inputs, ROUNDING_MODELS.values())
    assert any(any(wrong_scores(one, p, mutated.explain)) for one, p in pairs)
