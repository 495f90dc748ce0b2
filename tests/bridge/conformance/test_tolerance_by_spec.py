"""The code's tolerance is the one that is proved: the Spec's definition, computed with 50 digits.

It is compared term by term, and from below for rounding models of which the Spec knows nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tolerance_by_spec import (
    CLOSE,
    Inputs,
    by_spec,
    change_code,
    difference,
    disagreements,
    endless,
    max_error,
    score_errors,
    wrong_lse,
)

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel, generous
from bridge.conformance.tolerances.tolerance import Explained
from bridge.vectors.model.attention import AttentionVector, Family

# The rounding models of the definition: weights that are not stored again, or a denominator of
# which it is known whether it adds them as they were or as they are stored.
ROUNDING_MODELS = {
    "float64": RoundingModel.float64(4),
    "float32": RoundingModel.float32(),
    "float32 in tiles": RoundingModel.float32(16),
    "widened bfloat16": RoundingModel.widened("bfloat16", block_n=8),
    "flash": RoundingModel.flash("bfloat16", block_n=16, denominator="unrounded", truncating=True),
    "flash, rounded": RoundingModel.flash("bfloat16", block_n=16, denominator="rounded"),
    "float16, rounded": RoundingModel.flash("float16", denominator="rounded", truncating=True),
    "coarse, rounded": replace(
        RoundingModel.flash("bfloat16", block_n=16, denominator="rounded"),
        weights=replace(FORMATS["bfloat16"], unit=0.9),
        scores=FORMATS["bfloat16"],
    ),
    "few numbers": RoundingModel.flash("float16", block_n=3, denominator="unrounded"),
    "few numbers, rounded": RoundingModel.flash("float16", block_n=3, denominator="rounded"),
    "sdpa-flash": RoundingModel.sdpa_flash("float16"),
    "sdpa-math-reduced": RoundingModel.sdpa_math("float16", reduced=True),
}
# Of a format for weights whose smallest numbers are not small.
for _name in ("few numbers", "few numbers, rounded"):
    _few = replace(FORMATS["float16"], smallest_normal=2.0**-4, smallest_subnormal=2.0**-8)
    ROUNDING_MODELS[_name] = replace(ROUNDING_MODELS[_name], weights=_few, exp_error=2.0**14)
# Of one in which storing takes more than there is.
ROUNDING_MODELS["hardly a number"] = replace(
    ROUNDING_MODELS["few numbers"],
    weights=replace(FORMATS["float16"], unit=0.9, smallest_normal=0.5, smallest_subnormal=0.25),
    scores=FORMATS["bfloat16"],
)
# Of an accumulator whose smallest numbers are not small.
_FEW = replace(FORMATS["float32"], smallest_normal=2.0**-16)
ROUNDING_MODELS |= {
    "few results": replace(ROUNDING_MODELS["flash"], output=_few),
    "few small numbers": replace(ROUNDING_MODELS["float32 in tiles"], accumulator=_FEW),
    "few small numbers, rounded": replace(ROUNDING_MODELS["flash, rounded"], accumulator=_FEW),
}
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
# Vectors of each family.
SOME = 4
# Of which a denominator may be that is either.
DENOMINATORS: tuple[Literal["unrounded", "rounded"], ...] = ("unrounded", "rounded")


def problems(family: Family) -> list[Inputs]:
    found = [
        one
        for v in family.vectors
        for one in ([v] if isinstance(v, AttentionVector) else v.attentions())
    ]
    return [Inputs.of(one) for one in found[:: max(1, len(found) // SOME)]]


@st.composite
def draw_inputs(draw: st.DrawFn) -> Inputs:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q_len, kv_len, head_dim = (draw(st.integers(1, n)) for n in (3, 24, 6))
    spread = draw(st.sampled_from([0.0, 1e-4, 1.0, 30.0, 1e3, 1e4]))
    size = draw(st.sampled_from([1e-6, 1.0, 6e4]))
    return Inputs(
        rng.normal(size=(q_len, head_dim)) * spread,
        rng.normal(size=(kv_len, head_dim)),
        draw(st.sampled_from([0.0, 1.0, 1e3])) + rng.normal(size=(kv_len, 2)) * size,
        draw(st.sampled_from([1.0, math.log(2), 0.125, -3.0])),
        rng.random((q_len, kv_len)) < draw(st.sampled_from([0.2, 0.7, 1.0])),
    )


VAST = 1e257


def far_below() -> Inputs:
    """A key of next to no weight and a very large value, and scores that are known badly."""
    q, k = np.array([[1.0]]), np.array([[1000.0], [999.0], [400.0]])
    return Inputs(q, k, np.array([[1.0], [2.0], [VAST]]), 1.0, np.ones((1, 3), bool))


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


# The stored ones of scores and scaled operands: nothing, one or both operands, the scores.
SCORE_ROUNDING_MODELS = {
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
    "few small numbers": replace(RoundingModel.float32(), accumulator=_FEW),
    "few small numbers, stored": replace(
        RoundingModel.float32(), accumulator=_FEW, scores=FORMATS["bfloat16"]
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
@given(draw_inputs(), st.sampled_from([1.0, 2.0]), st.sampled_from(sorted(SCORE_ROUNDING_MODELS)))
def test_errors_of_scores(inputs: Inputs, coarser: float, name: str) -> None:
    rounding = SCORE_ROUNDING_MODELS[name]
    rounding = replace(rounding, accumulation_unit=coarser * rounding.accumulation_unit)
    assert list(wrong_scores(inputs, rounding)) == []


@settings(max_examples=60, deadline=None)
@given(draw_inputs(), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_log_sum_exps_of_drawn_rows(inputs: Inputs, rounding: str) -> None:
    assert list(wrong_lse(inputs, ROUNDING_MODELS[rounding])) == []


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
        "lost = 2.0 * np.minimum(whole, tiny) * rows.mask",
        "lost = 0.0 * np.minimum(whole, tiny) * rows.mask",
    ),
    "an exponential's error that storing leaves as it is": (
        "lost = 2.0 * np.minimum(whole, tiny) * rows.mask",
        "lost = np.minimum(whole, tiny) * rows.mask",
    ),
    "exponentials off by more than they are": (
        "lost = 2.0 * np.minimum(whole, tiny) * rows.mask",
        "lost = 2.0 * tiny * rows.mask",
    ),
    "a rescaling that doubles no weight": (
        "whole = 3.0 ** np.minimum(rows.blocks, _MANY_BLOCKS) * rows.share",
        "whole = rows.share",
    ),
    "rescalings that do not underflow": (
        "rows.unit_share * (rows.blocks + 1.0)",
        "rows.unit_share",
    ),
    "products that do not underflow": (
        "products = rows.num_keys * tiny",
        "products = 0.0 * tiny",
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


SCORE_MUTANTS = {
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
        "numbers = head_dim * max(1.0, abs(scale)) + ",
        "numbers = ",
    ),
    "products that do not meet the scale": (
        "numbers = head_dim * max(1.0, abs(scale)) + ",
        "numbers = head_dim + ",
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
}


LSE_MUTANTS = {
    "a common error that cancels": (
        "below_max = np.abs(products) if in_full else gap",
        "below_max = gap",
    ),
    "no roundings of the sum": (
        "relative = gamma(rows.num_keys + 2 * rows.blocks + 1, unit)",
        "relative = gamma(0.0 * rows.num_keys, unit)",
    ),
    "errors of the weights left out": (
        "error = rows.log_error - np.log1p(-np.minimum(relative, 1.0))",
        "error = -np.log1p(-np.minimum(relative, 1.0))",
    ),
    "stored weights added exactly": (
        "relative = relative + storing_errors(rows, rounding).together",
        "pass",
    ),
    "stored weights that do not underflow": (
        "once = unit + below_normal.sum(-1, keepdims=True)",
        "once = np.full_like(rows.unit_share, unit)",
    ),
    "a denominator that does not underflow": (
        "relative = relative + (1.0 + relative) * underflow_costs(rows, ones, rounding)[1]",
        "pass",
    ),
    "what underflows is not rounded": (
        "relative = relative + (1.0 + relative) * underflow_costs(rows, ones, rounding)[1]",
        "relative = relative + underflow_costs(rows, ones, rounding)[1]",
    ),
    "a base that is changed without underflow": ("_LSE_PRODUCTS = 8.0", "_LSE_PRODUCTS = 0.0"),
    "an exact logarithm": ("error = error + four *", "error = error + 0.0 *"),
    "one rounding less of the logarithm": ("_LSE_ROUNDINGS = 4.0", "_LSE_ROUNDINGS = 3.0"),
    "a maximum that is not rounded": ("+ 1.0 + anchor + off)", "+ 1.0 + off)"),
    "a logarithm that is exact near 1": ("+ 1.0 + anchor + off)", "+ anchor + off)"),
    "maximum and logarithm as if they were exact": (
        "+ 1.0 + anchor + off)",
        "+ 1.0 + anchor)",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_tolerance_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    chosen = ("natural-scores", "drawn-natural", "default-scale")
    inputs = [one for f in families if f.name in chosen for one in problems(f)] + [far_below()]
    pairs = itertools.product(inputs, ROUNDING_MODELS.values())
    assert any(any(disagreements(one, p, mutated.explain)) for one, p in pairs)


@pytest.mark.parametrize("name", SCORE_MUTANTS)
def test_a_wrong_error_of_scores_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*SCORE_MUTANTS[name], monkeypatch)
    inputs = [one for f in families if f.name == "drawn-natural" for one in problems(f)]
    # Errors of operands meet a part of a scale above 1.
    inputs += [replace(one, scale=9.0) for one in inputs[:1]]
    pairs = itertools.product(inputs, SCORE_ROUNDING_MODELS.values())
    assert any(any(wrong_scores(one, p, mutated.explain)) for one, p in pairs)


@pytest.mark.parametrize("name", LSE_MUTANTS)
def test_a_wrong_tolerance_of_log_sum_exps_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*LSE_MUTANTS[name], monkeypatch)
    inputs = [one for f in families if f.name == "drawn-natural" for one in problems(f)]
    pairs = itertools.product(inputs, ROUNDING_MODELS.values())
    assert any(any(wrong_lse(one, p, mutated)) for one, p in pairs)


def test_a_format_with_smaller_numbers_is_allowed_no_more() -> None:
    """The comparison leaves out only the cost of a format's smallest numbers."""
    inputs = far_below()
    rounding = RoundingModel.float32(4)
    real, ideal = inputs.explain_by(rounding), inputs.explain_by(endless(rounding))
    np.testing.assert_array_equal(real.terms.shared, ideal.terms.shared)
    np.testing.assert_array_equal(real.terms.stored, ideal.terms.stored)
    # The key of next to no weight may be lost or doubled, by its exponential and by a rescaling.
    extra = real.terms.sums[0, 0] - ideal.terms.sums[0, 0]
    assert 6 <= extra / (real.share[0, 2] * VAST) < 6.01
