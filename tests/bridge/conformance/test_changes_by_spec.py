"""The code's errors of changed scores are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import (
    CLOSE,
    NATURAL,
    Inputs,
    change_code,
    difference,
    digits,
    endless,
    precision,
    score_formats,
)

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges, bound_weights
from bridge.spec.score_change_tolerance import ScoreChange, changed_error, sink_error
from bridge.spec.score_tolerance import magnitude, operand_underflow, score_error

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(),
    "flash": RoundingModel.flash("bfloat16"),
    "sdpa-math-reduced": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "stored scores": RoundingModel(
        **(vars(RoundingModel.float32()) | {"scores": FORMATS["float16"]})
    ),
}
# Softcap and whether numbers are added.
CHANGES = {
    "none": (None, False),
    "softcap": (2.5, False),
    "added": (None, True),
    "both": (30.0, True),
}


def wrong_changes(
    inputs: Inputs,
    cap: float | None,
    added: tolerance.Array | None,
    rounding: RoundingModel,
    code: ModuleType = tolerance,
) -> Iterator[str]:
    """Which δ of changed scores are not as the Spec has them, for an accumulator without a smallest
    number; the code has 2·2⁻⁵³ of each product more for the caller's own rounding of the scale. A
    sink of 1.5 stands beside the keys."""
    rounding = endless(rounding)
    p, formats = precision(rounding), score_formats(rounding, inputs.scale)
    changes = code.ScoreChanges(softcap=cap, added=added, sink=1.5)
    rows = code.bound_weights(
        inputs.q, inputs.k, inputs.mask, inputs.scale, rounding, changes, absolute=False
    )
    d = inputs.q.shape[1]
    with localcontext(digits()):
        sink = sink_error(p, Decimal("1.5"), num=NATURAL)
        for i in range(len(inputs.q)):
            last = float(rows.score_errors[i, -1])
            if abs(difference(last, sink)) > CLOSE * float(sink):
                yield f"δ of the sink for row {i}: {last} for {sink}"
            for j in inputs.visible_keys(i):
                q = [Decimal(float(x)) for x in inputs.q[i]]
                k = [Decimal(float(x)) for x in inputs.k[j]]
                s = Decimal(inputs.scale) * sum(
                    (a * b for a, b in zip(q, k, strict=True)), Decimal(0)
                )
                size = magnitude(q, k, d=d, num=NATURAL)
                tiny = operand_underflow(p, formats, d - 1, q, k, d=d, num=NATURAL)
                before = score_error(
                    p, formats, d - 1, Decimal(inputs.scale), size, tiny, s, abs(s), num=NATURAL
                )
                change = ScoreChange(
                    None if cap is None else Decimal(cap),
                    None if added is None else Decimal(float(added[i, j])),
                )
                exact = changed_error(p, formats, change, s, before, num=NATURAL)
                caller = 2.0**-51 * float(abs(s)) + loss_of_float64(inputs, i, j)
                more = difference(float(rows.score_errors[i, j]), exact)
                close = CLOSE * float(exact)
                if not -close - loss_of_float64(inputs, i, j) <= more <= close + caller:
                    yield f"δ of key {j} for row {i}: {more} more than {exact}"


def loss_of_float64(inputs: Inputs, i: int, j: int) -> float:
    """At most what float64 loses of the exact score counts in its error: less than a hundredth."""
    size = float(np.abs(inputs.q[i]) @ np.abs(inputs.k[j])) * abs(inputs.scale)
    return (inputs.q.shape[1] + 2) * 2.0**-53 * size / 100


def draw(seed: int, spread: float = 1.0) -> tuple[Inputs, tolerance.Array]:
    """A problem, and numbers that are added to its scores. Of the first key and each query they
    cancel the score, nearly."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, 4)) * spread, rng.normal(size=(5, 4))
    mask = rng.random((2, 5)) < 0.8
    added = rng.normal(size=(2, 5)) * 3
    added[:, 0] = -0.5 * (q @ k[0])
    return Inputs(q, k, rng.normal(size=(5, 2)), 0.5, mask), added


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-4, 1.0, 30.0]),
    st.sampled_from(sorted(CHANGES)),
    st.sampled_from(sorted(ROUNDING_MODELS)),
)
def test_errors_of_changed_scores(seed: int, spread: float, change: str, rounding: str) -> None:
    inputs, added = draw(seed, spread)
    cap, with_added = CHANGES[change]
    given_added = added if with_added else None
    assert list(wrong_changes(inputs, cap, given_added, ROUNDING_MODELS[rounding])) == []


def test_masked_by_a_number() -> None:
    """A key to whose score −∞ is added is masked; the others have the same errors as without it."""
    inputs, added = draw(0)
    masked = added.copy()
    masked[:, 2] = -math.inf
    arguments = inputs.q, inputs.k, inputs.mask, inputs.scale, RoundingModel.float32()
    with_it, without = (
        bound_weights(*arguments, ScoreChanges(added=x), absolute=False).score_errors
        for x in (masked, added)
    )
    assert (with_it[:, 2] == 0).all()
    np.testing.assert_array_equal(np.delete(with_it, 2, 1), np.delete(without, 2, 1))


# A line of the code, and what a mistake would make of it.
MUTANTS = {
    "one rounding less of softcap": ("_SOFTCAP_ROUNDINGS = 8", "_SOFTCAP_ROUNDINGS = 7"),
    "a capped score that is stored exactly": (
        "(_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap",
        "_SOFTCAP_ROUNDINGS * unit * changes.softcap",
    ),
    "softcap in proportion to the result": (
        "(_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap",
        "(_SOFTCAP_ROUNDINGS * unit + stored) * np.abs(_apply_softcap(products, changes))",
    ),
    "one rounding less of a sum": ("_SUM_ROUNDINGS = 2", "_SUM_ROUNDINGS = 1"),
    "a capped score that does not underflow": (
        "(_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap + tiny",
        "(_SOFTCAP_ROUNDINGS * unit + stored) * changes.softcap",
    ),
    "a number that does not underflow": ("growth * size + tiny)", "growth * size)"),
    "a sum that does not underflow": (
        "growth * np.abs(scores) + tiny",
        "growth * np.abs(scores)",
    ),
    "a sum that is stored exactly": (" + math.log1p(stored))", ")"),
    "an error that is not rounded": (
        "(errors + growth * size + tiny) * (1.0 + growth) + growth",
        "errors + growth * size + tiny + growth",
    ),
    "an exact number": (
        "(errors + growth * size + tiny) * (1.0 + growth)",
        "(errors + tiny) * (1.0 + growth)",
    ),
    "an exact sum": (" + growth * np.abs(scores)", ""),
    "a sink of two errors and not their product": (
        "math.expm1(_SCORE_ROUNDINGS * math.log1p(rounding.accumulator.unit)) * abs(sink)",
        "_SCORE_ROUNDINGS * rounding.accumulator.unit * abs(sink)",
    ),
    "a common error that cancels": (
        "below_max = np.abs(products) if in_full else gap",
        "below_max = 0.0 * np.abs(products) if in_full else gap",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_error_of_changed_scores_disagrees(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    found = [
        one
        for seed in range(3)
        for cap, with_added in CHANGES.values()
        for rounding in ROUNDING_MODELS.values()
        for inputs, added in [draw(seed)]
        for one in wrong_changes(inputs, cap, added if with_added else None, rounding, mutated)
    ]
    assert found != []
