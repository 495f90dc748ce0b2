"""The code's errors of changed scores are those that are proved: the Spec's, with 50 digits."""

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
    flushed_error,
    precision,
    score_formats,
)

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges, bound_weights
from bridge.spec import score_change_tolerance as by_spec
from bridge.spec.dropout_tolerance import more_roundings
from bridge.spec.score_change_tolerance import ScoreChange, changed_error, sink_error
from bridge.spec.score_tolerance import magnitude, operand_underflow, score_error
from bridge.spec.underflow_tolerance import bounded_key_flushed, output_tolerance

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(),
    "flash": RoundingModel.flash("bfloat16"),
    "float16": RoundingModel.flash("float16"),
    "few small numbers": replace(
        RoundingModel.float32(), accumulator=replace(FORMATS["float32"], smallest_normal=2.0**-16)
    ),
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
    """Which δ of changed scores are not as the Spec has them; the code has 2·2⁻⁵³ of each product
    more for the caller's own rounding of the scale. A sink of 1.5 stands beside the keys."""
    p = precision(rounding)
    formats = score_formats(rounding, inputs.scale, inputs.q.shape[1], cap)
    changes = code.ScoreChanges(softcap=cap, added=added, sink=1.5)
    rows = code.bound_weights(
        inputs.q, inputs.k, inputs.mask, inputs.scale, rounding, changes, absolute=False
    )
    d = inputs.q.shape[1]
    with localcontext(digits()):
        columns = len(inputs.k) + 1
        sink = sink_error(p, formats, Decimal("1.5"), num=NATURAL)
        sink = flushed_error(rounding, columns, sink)
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
                exact = flushed_error(rounding, columns, exact)
                caller = 2.0**-51 * float(abs(s)) + loss_of_float64(inputs, i, j)
                more = difference(float(rows.score_errors[i, j]), exact)
                close = CLOSE * float(exact)
                if not -close - loss_of_float64(inputs, i, j) <= more <= close + caller:
                    yield f"δ of key {j} for row {i}: {more} more than {exact}"


def loss_of_float64(inputs: Inputs, i: int, j: int) -> float:
    """The effect of float64's loss in the exact score on δ: less than a hundredth of the loss."""
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


# A line of the code, and the line that a mistake would make of it.
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
    "a cap that nothing underflows with": ("_SCORE_PRODUCTS * (1.0 + cap)", "_SCORE_PRODUCTS"),
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
    "a sink that does not underflow": (
        "math.log1p(rounding.accumulator.unit)) * abs(sink) + tiny",
        "math.log1p(rounding.accumulator.unit)) * abs(sink)",
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


def wrong_outputs(
    inputs: Inputs,
    cap: float | None,
    added: tolerance.Array,
    keep: NDArray[np.bool_],
    rounding: RoundingModel,
    code: ModuleType = tolerance,
) -> Iterator[str]:
    """The outputs with softcap, numbers that are added, a sink of 1.5 and dropout that are not
    allowed the Spec's tolerance, from the products on. The code has more for the caller's own
    rounding of the scale. keep: [q_len, kv_len], with a weight that is kept."""
    if rounding.denominator == "either":
        rounding = replace(rounding, denominator="rounded")
    kv_len, d = inputs.k.shape
    p, formats = precision(rounding), score_formats(rounding, inputs.scale, d, cap)
    factors = np.where(keep, 2.0, 0.0)
    allowed = code.attention_tolerance(
        *(inputs.q, inputs.k, inputs.v),
        scale=inputs.scale,
        mask=inputs.mask,
        rounding=rounding,
        changes=code.ScoreChanges(softcap=cap, added=added, sink=1.5),
        factors=factors,
    )
    changes = by_spec.ScoreChanges(
        None if cap is None else Decimal(cap), exact_matrix(added), Decimal("1.5")
    )
    tiny = Decimal(rounding.accumulator.smallest_normal)
    smallest = Decimal(rounding.output.underflow(rounding.flush_to_zero))
    rescalings = math.ceil((kv_len + 1) / (rounding.block_n or 1))
    columns: list[int | None] = [*range(kv_len), None]
    for i, c in inputs.elements():
        roundings = len(inputs.visible_keys(i)) + 1 + 2 * rescalings
        values = exact_matrix(factors[i, :, None] * inputs.v)
        with localcontext(digits(100)):
            keys = by_spec.changed_keys(
                *(p, formats, d - 1, changes, False, Decimal(inputs.scale)),
                lambda i, j: bool(inputs.mask[i, j]),
                *(exact_matrix(inputs.q), exact_matrix(inputs.k), values, i, c, columns),
                d=d,
                num=NATURAL,
            )
            keys = [bounded_key_flushed(tiny, rescalings, key, num=NATURAL) for key in keys]
            more = more_roundings(p, roundings + 6, Decimal(2 + 5), num=NATURAL)
            exact = output_tolerance(
                *(more, tiny, Decimal(rounding.output.unit), smallest),
                *(roundings, rescalings, Decimal(NEGLIGIBLE), keys),
                num=NATURAL,
            )
        one = float(allowed[i, c]) / tolerance.EVALUATION
        size = float(exact)
        if not -CLOSE * size <= difference(one, exact) <= 2.0**-24 * size + 1e-300:
            yield f"row {i}, column {c}: {one} for {float(exact)}"


def exact_matrix(x: tolerance.Array) -> list[list[Decimal]]:
    return [[Decimal(float(one)) for one in row] for row in x]


def draw_kept(seed: int) -> NDArray[np.bool_]:
    keep = np.random.default_rng(seed).random((2, 5)) < 0.7
    keep[0, 0] = True
    return keep


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, 2.5, 30.0]),
    st.sampled_from(sorted(ROUNDING_MODELS)),
)
def test_outputs_from_the_products_on(seed: int, cap: float | None, rounding: str) -> None:
    inputs, added = draw(seed)
    wrong = wrong_outputs(inputs, cap, added, draw_kept(seed), ROUNDING_MODELS[rounding])
    assert list(wrong) == []


# A line of the code, and the line that a mistake would make of it, which no part shows by itself.
MUTANTS_OF_OUTPUTS = {
    "a sink that has a value": (
        "v_ = np.concatenate([v_, np.zeros(",
        "v_ = np.concatenate([v_, np.ones(",
    ),
    "softcap after the number that is added": (
        "return _apply_softcap(products, changes) + _additions(products.shape, changes)",
        "return _apply_softcap(products + _additions(products.shape, changes), changes)",
    ),
    "a result that does not underflow": ("+ rounding.output.underflow(flush)", "+ 0.0"),
    "factors that are not rounded": ("FACTOR_ROUNDINGS = 5", "FACTOR_ROUNDINGS = 0"),
    "values without their factors": (
        "v_ = z[..., None] * v_[..., None, :, :]",
        "v_ = v_[..., None, :, :]",
    ),
}


@pytest.mark.parametrize("name", MUTANTS_OF_OUTPUTS)
def test_a_wrong_tolerance_of_outputs_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutated = change_code(*MUTANTS_OF_OUTPUTS[name], monkeypatch)
    found = [
        one
        for seed in range(3)
        for rounding in ROUNDING_MODELS.values()
        for inputs, added in [draw(seed)]
        for one in wrong_outputs(inputs, 2.5, added, draw_kept(seed), rounding, mutated)
    ]
    assert found != []
