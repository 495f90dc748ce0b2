"""The code's tolerance is the one that is proved: the Spec's definition, computed with 50 digits.

It is compared term by term, and from below for rounding models of which the Spec knows nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tolerance_by_spec import (
    ROUNDING_MODELS,
    Inputs,
    by_spec,
    change_code,
    difference,
    disagreements,
    draw_inputs,
    endless,
    max_error,
    problems,
    wrong_lse,
)

from bridge.conformance.tolerances.rounding_model import RoundingModel, generous
from bridge.vectors.model.attention import Family

# The rounding models whose tolerance is at least the definition's.
WIDER = {
    **ROUNDING_MODELS,
    "generous": generous("bfloat16"),
    "flushing": replace(ROUNDING_MODELS["flash"], flush_to_zero=True, denominator="either"),
}
FAMILIES = (
    *("natural-scores", "drawn-natural", "default-scale", "large-spread", "tile-loop"),
    *("causal", "causal-bottom-right", "window", "document", "key-padding", "masked-holes"),
    *("grouped-query", "grouped-query-drawn", "equal-scores", "maximum-moves", "one-key"),
)
# Of these `make test` looks at the log-sum-exps too.
LSE_OF = ("drawn-natural", "window", "masked-holes", "one-key")
# Of which a denominator may be that is either.
DENOMINATORS: tuple[Literal["unrounded", "rounded"], ...] = ("unrounded", "rounded")
VAST = 1e257


def far_below() -> Inputs:
    """A key of next to no weight and a very large value, and scores that are known badly."""
    q, k = np.array([[1.0]]), np.array([[1000.0], [999.0], [400.0]])
    return Inputs(q, k, np.array([[1.0], [2.0], [VAST]]), 1.0, np.ones((1, 3), bool))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((name, disagreements) for name in FAMILIES),
        *(
            pytest.param(name, wrong_lse, marks=[pytest.mark.thorough] * (name not in LSE_OF))
            for name in FAMILIES
        ),
    ],
)
def test_the_vectors(
    name: str, wrong: Callable[..., Iterable[object]], families: list[Family]
) -> None:
    """Their outputs, and their log-sum-exps."""
    (family,) = (f for f in families if f.name == name)
    found = [
        f"{rounding}: {one}"
        for inputs in problems(family)
        for rounding in ROUNDING_MODELS
        for one in wrong(inputs, ROUNDING_MODELS[rounding])
    ]
    assert found == []


@settings(max_examples=100, deadline=None)
@given(draw_inputs(), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_rows(inputs: Inputs, rounding: str) -> None:
    found = inputs.explain_by(endless(ROUNDING_MODELS[rounding]))
    assume(all(max_error(inputs, found, i) < 8 for i, _ in inputs.elements()))
    assert list(disagreements(inputs, ROUNDING_MODELS[rounding])) == []


def test_a_key_of_next_to_no_weight() -> None:
    rounding = ROUNDING_MODELS["sdpa-math-reduced"]
    assert list(disagreements(far_below(), rounding)) == []


@settings(max_examples=100, deadline=None)
@given(draw_inputs(), st.sampled_from(sorted(WIDER)))
def test_no_tolerance_is_below_the_proved_one(inputs: Inputs, name: str) -> None:
    """Whatever else a rounding model rounds, and however badly it knows its scores."""
    rounding = WIDER[name]
    found, allowed = inputs.explain_by(rounding), inputs.tolerance(rounding)
    for i, c in inputs.elements():
        if max_error(inputs, found, i) < 150:
            for denominator in DENOMINATORS:
                one = rounding
                if rounding.denominator == "either":
                    one = replace(rounding, denominator=denominator)
                spec = by_spec(inputs, one, found, i, c)
                assert difference(float(allowed[i, c]), spec.total) >= 0


def test_values_next_to_the_average_count_with_their_true_distance() -> None:
    """Where one key has all but 10⁻²⁰ of the weight, o is its value in float64; the difference, and
    not 0, is multiplied by e^(2 ε), ε = 20."""
    q, k = np.array([[1.0]]), np.array([[1700.0], [1653.0], [450.0]])
    inputs = Inputs(q, k, np.array([[1.0], [-1.0], [0.0]]), 1.0, np.ones((1, 3), bool))
    rounding = generous("bfloat16")
    found = inputs.explain_by(rounding)
    assert 15 < max_error(inputs, found, 0) < 25
    spec = by_spec(inputs, rounding, found, 0, 0)
    assert 0.99 < found.terms.shared[0, 0] / float(spec.terms["shared"]) < 1.01
    assert spec.terms["shared"] > 1e-4


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
    "no roundings of denominators": (
        "denominator = gamma(additions, acc.unit)",
        "denominator = gamma(0.0 * additions, acc.unit)",
    ),
    "one rounding less of numerators": ("_OUTPUT_ROUNDINGS = 6", "_OUTPUT_ROUNDINGS = 5"),
    "no roundings of rescalings": (
        "additions = rows.num_keys + 2 * rows.blocks",
        "additions = rows.num_keys",
    ),
    "no exponentials of rescalings": (
        "errors = errors - (1.0 + blocks) * math.log1p(",
        "errors = errors - math.log1p(",
    ),
    "no roundings of differences": (
        "unit * (gap + score_errors + largest_error)",
        "unit * (gap + score_errors)",
    ),
    "a sum of weights that is not too small": (
        "average.spread(rows.excess) / rows.low_total, farthest)",
        "average.spread(rows.excess) / rows.total, farthest)",
    ),
    "an average beyond all values": (
        "shared = np.fmin(average.spread(rows.excess) / rows.low_total, farthest)",
        "shared = average.spread(rows.excess) / rows.low_total",
    ),
    "values of next to no weight left out": (
        "farthest = average.farthest(near) + average.spread(rows.share * ~near)",
        "farthest = average.farthest(near)",
    ),
    "the size of values for their distance": (
        "np.abs(keys - self.largest[part] - self.beyond[part])",
        "np.abs(keys + 0.0 * self.beyond[part])",
    ),
    "an average beyond another key's value": (
        "return RowAverage(v, largest, beyond, ",
        "return RowAverage(v, np.zeros_like(largest), beyond, ",
    ),
    "sums of exact weights": ("numerator * stored_size", "numerator * mean_size"),
    "a denominator's error of the exact average": (
        "mean_output = np.abs(output) + shared",
        "mean_output = np.abs(output)",
    ),
    "errors of a denominator not divided by": (
        "sums = sums / np.maximum(1.0 - denominator, 0.0)",
        "pass",
    ),
    "weights stored exactly": (
        "stored = np.fmin(of_weights, 2 * largest)",
        "pass",
    ),
    "stored weights' errors of the exact average": (
        "moved = average.spread(error.each) + error.together * shared",
        "moved = average.spread(error.each)",
    ),
    "a sum that loses nothing by storing": (
        "left = np.maximum(1.0 - error.together, 0.0)",
        "left = 1.0",
    ),
    "an average of sizes that grows as that of the values": (
        "of_sizes = (error.each @ size + error.together * mean_size) / left",
        "of_sizes = of_weights",
    ),
    "stored weights beyond all values": (
        "stored = np.fmin(of_weights, 2 * largest)",
        "stored = of_weights",
    ),
    "a result that is stored exactly": (
        "result = rounding.output.unit * (np.abs(output) + off)",
        "result = 0.0 * (np.abs(output) + off)",
    ),
    "a result that does not underflow": ("+ rounding.output.underflow(flush)", "+ 0.0"),
    "a stored result that is exact": (
        "result = rounding.output.unit * (np.abs(output) + off)",
        "result = rounding.output.unit * np.abs(output)",
    ),
    "shares above 1": ("np.fmin(high / low_total, 1.0)", "(high / low_total)"),
    "weights that do not underflow": (
        "return np.asarray(tiny * rows.unit_share, dtype=np.float64)",
        "return np.zeros_like(rows.unit_share)",
    ),
    "a weight below the normal numbers as if the weights' sum were 1": (
        "return np.asarray(tiny * rows.unit_share, dtype=np.float64)",
        "return np.full_like(rows.unit_share, tiny)",
    ),
    "a largest weight that only its own sum bounds": (
        "np.minimum(np.exp(np.minimum(above, 700.0)) / low_total, own)",
        "np.exp(np.minimum(above, 700.0)) / low_total",
    ),
    "rescalings that enlarge nothing": ("(1.0 + 2.0 * blocks)", "(1.0 + blocks)"),
    "weights off by more than they are": (
        "each = np.minimum(rows.share, np.maximum(unit * rows.share, tiny)) * rows.mask",
        "each = np.maximum(unit * rows.share, tiny) * rows.mask",
    ),
    "a normal weight and one below in one": (
        "each = np.minimum(rows.share, np.maximum(unit * rows.share, tiny)) * rows.mask",
        "each = np.minimum(rows.share, unit * rows.share + tiny) * rows.mask",
    ),
    "each weight by itself": (
        "together = np.minimum(each.sum(-1, keepdims=True), once)",
        "together = each.sum(-1, keepdims=True)",
    ),
    "a numerator of each weight by itself": (
        "np.minimum(np.minimum(error.each @ size, of_parts), mean_size)",
        "np.minimum(error.each @ size, mean_size)",
    ),
    "a numerator that loses more than there is": (
        "np.minimum(np.minimum(error.each @ size, of_parts), mean_size)",
        "np.minimum(error.each @ size, of_parts)",
    ),
    "exponentials that do not underflow": (
        "lost = 2.0 * np.minimum(",
        "lost = 0.0 * np.minimum(",
    ),
    "an exponential's error that storing leaves as it is": (
        "lost = 2.0 * np.minimum(",
        "lost = np.minimum(",
    ),
    "exponentials off by more than they are": (
        "np.minimum(whole, (rows.blocks + 2.0) * tiny)",
        "((rows.blocks + 2.0) * tiny)",
    ),
    "a rescaling that doubles no weight": (
        "whole = 3.0 ** np.minimum(rows.blocks + 2.0, _MANY_BLOCKS) * rows.share",
        "whole = rows.share",
    ),
    "rescalings whose exponentials do not underflow": ("(rows.blocks + 2.0) * tiny", "2.0 * tiny"),
    "a product of a weight with a factor that does not underflow": (
        "(rows.blocks + 2.0) * tiny",
        "(rows.blocks + 1.0) * tiny",
    ),
    "products and additions that do not underflow": (
        "flushed = rows.num_keys *",
        "flushed = 0.0 * rows.num_keys *",
    ),
    "rescalings whose products do not underflow": (
        "(rows.blocks + TINY_OPERATIONS)",
        "TINY_OPERATIONS",
    ),
    "additions that do not underflow": ("TINY_OPERATIONS = 6", "TINY_OPERATIONS = 5"),
    "a product of a value with a factor that does not underflow": (
        "TINY_OPERATIONS = 6",
        "TINY_OPERATIONS = 2",
    ),
    "a denominator that does not underflow": (
        "moved = (1.0 + denominator) * of_weights",
        "moved = 0.0 * of_weights",
    ),
    "a denominator of which all is left": ("np.maximum(left, _LEFT)", "1.0"),
    "stored weights of which all is left": (
        "left = left - storing_errors(rows, rounding).together",
        "pass",
    ),
    "a quotient that does not underflow": (
        "_QUOTIENT_ROUNDINGS = 5",
        "_QUOTIENT_ROUNDINGS = 0",
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_tolerance_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    chosen = ("natural-scores", "drawn-natural", "default-scale")
    inputs = [one for f in families if f.name in chosen for one in problems(f)] + [far_below()]
    pairs = itertools.product(inputs, ROUNDING_MODELS.values())
    assert any(any(disagreements(one, p, mutated.explain)) for one, p in pairs)


def test_a_format_with_smaller_numbers_is_allowed_no_more() -> None:
    """The comparison leaves out only the cost of a format's smallest numbers."""
    inputs = far_below()
    rounding = RoundingModel.float32(4)
    real, ideal = inputs.explain_by(rounding), inputs.explain_by(endless(rounding))
    np.testing.assert_array_equal(real.terms.shared, ideal.terms.shared)
    np.testing.assert_array_equal(real.terms.stored, ideal.terms.stored)
    # The key of next to no weight may be lost or doubled, by its exponential, by a rescaling and
    # where a factor multiplies it: 2 · 3³ times what it is.
    extra = real.terms.sums[0, 0] - ideal.terms.sums[0, 0]
    assert 54 <= extra / (real.share[0, 2] * VAST) < 54.01
