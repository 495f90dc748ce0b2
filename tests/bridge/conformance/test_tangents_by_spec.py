"""The code's bounds of tangents are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import (
    CLOSE,
    NATURAL,
    change_code,
    difference,
    digits,
    precision,
    stored_formats,
)
from torch import Tensor

from bridge.conformance.tolerances import tangent_tolerance
from bridge.conformance.tolerances.gradient_tolerance import Bounded
from bridge.conformance.tolerances.recomputed_weights import Scored, Softmax, softmax_bounds
from bridge.conformance.tolerances.rounding_model import FLOAT16, RoundingModel
from bridge.conformance.tolerances.tangent_tolerance import Rates
from bridge.spec import tangent_tolerance as by_spec
from bridge.spec.capped_rate_tolerance import bounded_score_rate_through_cap

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(4),
    # So coarse that products of errors show.
    "coarse": replace(RoundingModel.float32(), accumulation_unit=2.0**-10),
    "flash": RoundingModel.flash("bfloat16", block_n=16),
    "sdpa-math-reduced": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "widened": RoundingModel.widened("float16"),
    # So small that underflow shows.
    "half": replace(
        RoundingModel.sdpa_math("float16", reduced=True),
        accumulator=FLOAT16,
        accumulation_unit=FLOAT16.unit,
        block_n=4,
    ),
}


@dataclass(frozen=True)
class Problem:
    """One head. query, key, value: `[1, 1, length, …]`."""

    query: Tensor
    key: Tensor
    value: Tensor
    rates: Rates
    scored: Scored


def draw(seed: int) -> Problem:
    """A problem with a mask, and perhaps with softcap, a bias and a sink that change."""
    rng = np.random.default_rng(seed)
    q_len, kv_len, d = int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 5))

    def some(*shape: int) -> Tensor:
        return torch.from_numpy(rng.normal(size=shape))

    def of_shapes() -> tuple[Tensor, Tensor, Tensor]:
        return some(1, 1, q_len, d), some(1, 1, kv_len, d), some(1, 1, kv_len, 2)

    mask = torch.from_numpy(np.where(rng.random((q_len, kv_len)) < 0.8, 0.0, -np.inf))
    biased, sunk = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    return Problem(
        *of_shapes(),
        Rates(
            *of_shapes(),
            added=[some(q_len, kv_len)] if biased else [],
            sinks=some(1) if sunk else None,
        ),
        Scored(
            float(rng.choice([0.5, 2.0])),
            softcap=2.5 if rng.random() < 0.5 else None,
            added=[some(q_len, kv_len), mask] if biased else [mask],
            sinks=some(1) if sunk else None,
        ),
    )


def far(found: float, exact: Decimal, allowed: float = 0.0) -> bool:
    """Whether a bound is below the exact one, or above it by more than is allowed."""
    close = CLOSE * float(exact) + 1e-300
    return not -close <= difference(found, exact) <= close + allowed


def numbers(x: Tensor) -> list[Decimal]:
    return [Decimal(float(one)) for one in x.reshape(-1)]


def wrong_score_rates(
    problem: Problem, rounding: RoundingModel, code: ModuleType = tangent_tolerance
) -> Iterator[str]:
    """The rates of scores that are not allowed the Spec's tolerance, where operands and scores
    that are products may be off by 2 ν more; the code has 2·2⁻⁵³ more for the caller's own rounding
    of the scale."""
    q, k, rates = problem.query, problem.key, problem.rates
    row = softmax_bounds(q, k, problem.scored, rounding)
    moved = code._score_rates(q, k, rates, problem.scored, row, rounding)
    p, d = precision(rounding), q.shape[-1]
    formats = stored_formats(rounding, problem.scored.scale)
    tiny = Decimal(rounding.accumulator.smallest_normal)
    formats = replace(
        formats,
        operands_tiny=formats.operands_tiny + 2 * tiny if rounding.operands else Decimal(0),
        scores_tiny=formats.scores_tiny + 2 * tiny,
    )
    for i, j in row.visible[0, 0].nonzero().tolist():
        with localcontext(digits()):
            bound = by_spec.bounded_score_rate(
                *(p, formats, tiny, 2 * d - 1, Decimal(problem.scored.scale)),
                *(numbers(x[0, 0, i]) for x in (q, rates.query)),
                *(numbers(x[0, 0, j]) for x in (k, rates.key)),
                d=d,
                num=NATURAL,
            )
            scale = float(bound.size) * 2.0**-51
            if problem.scored.softcap is not None:
                slope, off = (Decimal(float(x[0, 0, i, j])) for x in (row.slope, row.slope_error))
                cap = Decimal(problem.scored.softcap)
                bound = bounded_score_rate_through_cap(
                    p, formats, cap, slope, off, bound, num=NATURAL
                )
            for added in rates.added:
                a = Decimal(float(added[i, j]))
                bound = by_spec.bounded_score_rate_plus(p, formats, a, bound, num=NATURAL)
        one, size = float(moved.error[0, 0, i, j]), float(moved.size[0, 0, i, j])
        if far(one, bound.error, scale):
            yield f"δ of key {j} for row {i}: {one} for {float(bound.error)}"
        if far(size, bound.size):
            yield f"the size of key {j} for row {i}: {size} for {float(bound.size)}"


def keys_of(
    problem: Problem, rounding: RoundingModel, row: Softmax, moved: Bounded, i: int, c: int
) -> list[by_spec.BoundedRate]:
    """The keys of a row and its sink as the Spec has them, by the code's weights and rates."""
    zero, flushed = Decimal(0), Decimal(rounding.accumulator.smallest_normal)
    tiny = 3 * flushed
    stored = zero if rounding.weights is None else Decimal(rounding.weights.unit)
    lost = zero
    if rounding.weights is not None:
        lost = Decimal(rounding.weights.underflow(rounding.flush_to_zero))
    columns = (
        *(x[0, 0, i] for x in (row.p, row.error, moved.exact, moved.size, moved.error)),
        *(x[0, 0, :, c] for x in (problem.value, problem.rates.value)),
    )
    keys = [
        by_spec.BoundedRate(
            *(weight, error, stored),
            *((tiny + lost, flushed) if seen else (zero, zero)),
            *others,
        )
        for seen, weight, error, *others in zip(
            row.visible[0, 0, i].tolist(), *map(numbers, columns), strict=True
        )
    ]
    if row.sink is not None and problem.rates.sinks is not None:
        sink = (row.sink[0, 0, i, 0], row.sink_error[0, 0, i, 0], problem.rates.sinks[0])
        weight, error, rate = (Decimal(float(x)) for x in sink)
        rates = rate, abs(rate), zero, zero, zero
        keys.append(by_spec.BoundedRate(weight, error, zero, tiny, flushed, *rates))
    return keys


def wrong_tangents(
    problem: Problem, rounding: RoundingModel, code: ModuleType = tangent_tolerance
) -> Iterator[str]:
    """The rates of outputs and log-sum-exps that are not allowed the Spec's tolerance, before they
    are stored."""
    q, k = problem.query, problem.key
    row = softmax_bounds(q, k, problem.scored, rounding)
    moved = code._score_rates(q, k, problem.rates, problem.scored, row, rounding)
    out, lse = code.tangent_bounds(q, k, problem.value, problem.rates, problem.scored, rounding)
    output = Decimal(rounding.output.unit)
    apart = Decimal(0) if rounding.weights is None else output
    least = Decimal(rounding.output.underflow(rounding.flush_to_zero))
    lost = Decimal(rounding.accumulator.smallest_normal) + least
    p = precision(rounding)
    for i, c in np.ndindex(out.exact.shape[2], out.exact.shape[3]):
        keys = keys_of(problem, rounding, row, moved, i, c)
        roundings = int(row.keys[0, 0, i, 0]) + 2 * row.blocks + 8
        counts = (roundings, row.blocks, 4 * row.blocks + 7, keys)
        with localcontext(digits()):
            exact = by_spec.tangent_tolerance(p, output, apart, lost, *counts, num=NATURAL)
            stored = by_spec.stored_tangent_tolerance(
                p, output, least, output, apart, lost, *counts, num=NATURAL
            )
            rate = by_spec.output_rate(keys, num=NATURAL)
            mean = by_spec.mean_rate_tolerance(p, *counts, num=NATURAL)
        one = float(out.error[0, 0, i, c])
        if far(one, exact):
            yield f"row {i}, column {c}: {one} for {float(exact)}"
        size = float(out.size[0, 0, i, c])
        if abs(difference(float(out.exact[0, 0, i, c]), rate)) > CLOSE * size:
            yield f"the rate of row {i}, column {c}, is not {rate}"
        # What is made of no key is 0, and stays 0.
        if size and float(out.tolerance(rounding.output)[0, 0, i, c]) < float(stored) * (1 - CLOSE):
            yield f"row {i}, column {c}, as it is stored: less than {float(stored)}"
        if far(float(lse.error[0, 0, i]), mean):
            yield f"μ of row {i}: {float(lse.error[0, 0, i])} for {float(mean)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_rates(seed: int, name: str) -> None:
    problem, rounding = draw(seed), ROUNDING_MODELS[name]
    assert list(wrong_score_rates(problem, rounding)) == []
    assert list(wrong_tangents(problem, rounding)) == []


MUTANTS = {
    "operations that are not rounded": ("_OPERATIONS = 5", "_OPERATIONS = 0"),
    "weights stored once": (
        "2 * math.log1p(rounding.weights.unit)",
        "math.log1p(rounding.weights.unit)",
    ),
    "rescalings that are exact": (
        "row.blocks * math.log1p(rounding.exp_error * u)",
        "0 * math.log1p(rounding.exp_error * u)",
    ),
    "tiles that are not counted": ("(row.keys + 2 * row.blocks + 8)", "(row.keys + 8)"),
    "weights that are exact": (
        "_growth(row.error, factor) * most",
        "_growth(0 * row.error, factor) * most",
    ),
    "a sink that is exact": ("_growth(row.sink_error, factor) * size", "0 * size"),
    "a mean rate that is exact": (
        "mean.error * (output.size + stored) + mean.size",
        "mean.size",
    ),
    "no product of the errors of μ and o": (
        "mean.error * (output.size + stored)",
        "mean.error * output.size",
    ),
    "an output that is not stored": (
        "rounding.output.unit * (output.exact.abs() + output.error)",
        "0.0",
    ),
    "parts that are not stored": (
        "math.log1p(0.0 if rounding.weights is None else rounding.output.unit)",
        "0.0",
    ),
    "rates that are exact": ("most + x.error)", "most)"),
    "weights that do not underflow": (
        "_exp(factor) * _weigh_loss(row, most, y, rounding)",
        "0.0",
    ),
    "a product with a stored weight that does not underflow": (
        "(terms + 2 * (visible @ y.abs()) + keys)",
        "(terms + keys)",
    ),
    "a product with a value that does not underflow": ("@ y.abs()) + keys)", "@ y.abs()))"),
    "sums that do not underflow": ("4 * row.blocks + 7", "0"),
    "factors of rescalings that do not underflow": (
        "tiny.product * (terms + keys)",
        "tiny.product * keys",
    ),
    "a sink's factors that do not underflow": ("tiny.product * 2 * rate.abs() + idle", "0 + idle"),
    "a difference with the mean rate that is not flushed": (
        "tiny.product * row.visible",
        "0 * row.visible",
    ),
    "masked keys that underflow": ("visible.sum(-1, keepdim=True)", "visible.shape[-1]"),
    "a sink that does not underflow": ("_exp(factor) * lost", "0.0"),
    "parts that do not underflow": (" + 6 * lost", ""),
    "a sum of parts that is not flushed": (" + 6 * lost", " + 4 * lost"),
    "an output that does not underflow before it meets the mean rate": (
        "output.error) + lost",
        "output.error)",
    ),
    "half of the products": ("factor = 2 * head_dim", "factor = head_dim"),
    "a scale that is exact": ("factor += 5 * math.log1p(u)", "factor += 2 * math.log1p(u)"),
    "scores stored twice": (
        "5 * math.log1p(u) + 3 * math.log1p(stored)",
        "5 * math.log1p(u) + 2 * math.log1p(stored)",
    ),
    "operands that are exact": (
        "rounding.operand_roundings * (math.log1p(u) + once) + once",
        "once",
    ),
    "a slope that is exact": ("slope * x.error + row.slope_error * x.size", "slope * x.error"),
    "an added rate without its rounding": (
        "changed * (size + x.error) + x.error",
        "changed * size + x.error",
    ),
    "operands that do not underflow": ("operand = tiny.operand *", "operand = 0.0 *"),
    "operands' errors that do not meet": ("(ends + q.shape[-1] * operand)", "ends"),
    "products that do not underflow": (" + 2 * q.shape[-1] * product", " + 0 * product"),
    "sums of products that are not flushed": ("2 * q.shape[-1] * product", "q.shape[-1] * product"),
    "inner products that do not underflow": ("2 * tiny.operand + 4", "4"),
    "scores that do not underflow": ("4 * tiny.score) + tiny.score", "3 * tiny.score)"),
    "an error that the scale does not reach": ("max(1.0, abs(scale)) * (lost", "(lost"),
    "a slope's product that does not underflow": ("(1 + changed) * 3 * max", "0 * max"),
    "a loss that the cap does not multiply": ("3 * max(1.0, cap) *", "3 *"),
    "a loss that the slope does not multiply": ("(1 + row.slope_error) * tiny", "tiny"),
    "a product with the cap that is exact": (
        "math.expm1(3 * math.log1p(u) + 3",
        "math.expm1(2 * math.log1p(u) + 3",
    ),
    "a product with the cap that is not stored": (
        "3 * math.log1p(stored))\n        moved",
        "2 * math.log1p(stored))\n        moved",
    ),
    "an added rate that does not underflow": ("(1 + changed) * 4 * tiny", "2 * tiny"),
    "a sum with an added rate that is not flushed": (
        "(1 + changed) * 4 * tiny",
        "(1 + changed) * 3 * tiny",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = MUTANTS[name]
    module = change_code(old, new, monkeypatch, tangent_tolerance)
    models = ("coarse", "flash", "sdpa-math-reduced", "half")
    assert any(
        any(check(draw(seed), ROUNDING_MODELS[model], module))
        for seed in range(8)
        for model in models
        for check in (wrong_score_rates, wrong_tangents)
    )
