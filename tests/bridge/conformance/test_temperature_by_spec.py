"""The code's bounds of the gradients by queries and by their temperature are those that are proved:
the Spec's, with 50 digits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
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
    coarse_below,
    difference,
    digits,
    endless,
)

from bridge.conformance.tolerances import gradient_tolerance
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import FLOAT16, FORMATS, RoundingModel
from bridge.spec.gradient_tolerance import GradientTerm, total_error
from bridge.spec.temperature_tolerance import stored_gradient_term
from pyimpl.internal.scores import ScoreOptions

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(4),
    # So coarse that few roundings more show.
    "coarse": replace(RoundingModel.float32(), accumulation_unit=2.0**-10),
    "flash": RoundingModel.flash("bfloat16", block_n=2),
    "normalised, scores stored": RoundingModel.sdpa_math("bfloat16", reduced=True),
}
SCALE = 0.5


def wrong_temperatures(
    seed: int,
    rounding: RoundingModel,
    code: ModuleType = gradient_tolerance,
    below: bool = False,
) -> Iterator[str]:
    """Which bounds are not as the Spec has them, from those of the gradients by queries times their
    temperature on, for formats without a smallest number. Those are the code's own for queries that
    were rounded once more. below: for formats in which much is below the normal numbers."""
    rng = np.random.default_rng(seed)
    batch, heads, q_len, kv_len, d = (int(rng.integers(1, 4)) for _ in range(5))
    q, d_o = (torch.tensor(rng.normal(size=(batch, heads, q_len, d))) for _ in range(2))
    k, v = (torch.tensor(rng.normal(size=(batch, heads, kv_len, d))) for _ in range(2))
    temperature = torch.tensor(rng.normal(size=heads))
    rounding = coarse_below(rounding) if below else endless(rounding, weights=True)
    found = code.of_options(
        q, k, v, d_o, None, ScoreOptions(SCALE, temperature=temperature), rounding
    )
    once_more = replace(
        rounding, operands=rounding.input, operand_roundings=rounding.operand_roundings + 1
    )
    heat = temperature[:, None, None]
    scored = Scored(SCALE, None, (torch.zeros(q_len, kv_len).double(),), folded=heat)
    scaled = gradient_tolerance.gradient_bounds(q * heat, k, v, d_o, None, scored, once_more).query
    output, accumulation = (Decimal(x) for x in (rounding.output.unit, rounding.accumulation_unit))
    output_tiny = Decimal(rounding.output.underflow(rounding.flush_to_zero))
    tiny, zero = Decimal(rounding.accumulator.smallest_normal), Decimal(0)

    def term(place: tuple[int, ...], other: torch.Tensor) -> GradientTerm:
        numbers = (x[place] for x in (scaled.exact, scaled.size, scaled.error))
        arguments = (Decimal(float(x)) for x in (*numbers, other))
        return stored_gradient_term(output, output_tiny, *arguments, num=NATURAL)

    def total(terms: list[GradientTerm]) -> Decimal:
        count = len(terms) + 3
        return Decimal(total_error(accumulation, zero, tiny, zero, count, terms, num=NATURAL))

    with localcontext(digits()):
        for h in range(heads):
            places = [
                (b, h, i, c) for b, i, c in itertools.product(range(batch), range(q_len), range(d))
            ]
            checks = [
                (found["q"].error[place], total([term(place, temperature[h])])) for place in places
            ]
            whole = total([term(place, q[place]) for place in places])
            checks.append((found["temperature"].error[0, h, 0, 0], whole))
            for one, wanted in checks:
                if abs(difference(float(one), wanted)) > CLOSE * float(wanted):
                    yield f"head {h}: {float(one)} for {float(wanted)}"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_temperatures(seed: int, name: str) -> None:
    assert list(wrong_temperatures(seed, ROUNDING_MODELS[name])) == []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_temperatures_below_the_normal_numbers(seed: int, name: str) -> None:
    assert list(wrong_temperatures(seed, ROUNDING_MODELS[name], below=True)) == []


@pytest.mark.parametrize("early", [False, True])
def test_what_a_small_ds_loses_with_a_temperature_in_the_scale(early: bool) -> None:
    """4 · 2⁻²⁴ is kept by float16, and an eighth of it is not; the key of 32 shows it."""
    heat = 0.125
    q = torch.tensor([math.log(2.0**-22) / heat / 32]).double().view(1, 1, 1, 1)
    k = torch.tensor([0.0, 32.0]).double().view(1, 1, 2, 1)
    v = torch.tensor([0.0, 1.0]).double().view(1, 1, 2, 1)
    options = ScoreOptions(1.0, temperature=torch.tensor([heat]))
    rounding = RoundingModel.flash("float16")
    one = torch.ones_like(q)
    bound = gradient_tolerance.of_options(q, k, v, one, None, options, rounding)["q"]
    p = torch.softmax((k @ q).squeeze() * heat, 0)[1]
    d_s = p * (1 - p)
    found = (float(d_s.half()) * heat if early else float((d_s * heat).half())) * 32
    error = abs(found - float(bound.exact))
    assert early or error > 10 * 2.0**-24
    assert error <= float(bound.tolerance(FLOAT16))


def test_what_a_small_ds_loses_with_the_temperature_alone() -> None:
    """It is stored times the temperature, and the sum multiplied by a scale of 4."""
    scale, heat = 4.0, 0.125
    q = torch.tensor([math.log(2.0**-22) / scale / heat / 32]).double().view(1, 1, 1, 1)
    k = torch.tensor([0.0, 32.0]).double().view(1, 1, 2, 1)
    v = torch.tensor([0.0, 1.0]).double().view(1, 1, 2, 1)
    options = ScoreOptions(scale, temperature=torch.tensor([heat]))
    rounding, one = RoundingModel.flash("float16"), torch.ones_like(q)
    bound = gradient_tolerance.of_options(q, k, v, one, None, options, rounding)["q"]
    d_s = float(bound.exact) / (scale * heat * 32)
    found = float(torch.tensor(d_s * heat).half()) * scale * 32
    error = abs(found - float(bound.exact))
    assert error > 30 * 2.0**-24
    assert error <= float(bound.tolerance(FLOAT16))


def test_what_products_lose_before_a_large_temperature() -> None:
    """Of 64 products of queries with dS times the scale each is below the normal numbers."""
    scale, heat, rows, small, nu = 0.125, 16.0, 64, 2.0**-6, 2.0**-17
    q = torch.full((1, 1, rows, 1), small).double()
    k = torch.zeros(1, 1, 2, 1).double()
    # Half of the difference of dP is dS, of two keys of weight ½.
    d_s = 0.9 * nu / scale / small
    v = torch.tensor([4 * d_s, 0.0]).double().view(1, 1, 2, 1)
    options = ScoreOptions(scale, temperature=torch.tensor([heat]))
    flushing = replace(FORMATS["float32"], smallest_normal=nu)
    rounding = replace(RoundingModel.float32(), accumulator=flushing)
    one = torch.ones(1, 1, rows, 1).double()
    bound = gradient_tolerance.of_options(q, k, v, one, None, options, rounding)["k"]
    exact = float(bound.exact[0, 0, 0, 0])
    # So the function computes 0.
    assert exact == pytest.approx(rows * 0.9 * nu * heat)
    assert exact <= float(bound.tolerance(FORMATS["float32"])[0, 0, 0, 0])


def test_what_products_lose_with_a_temperature_in_the_scale() -> None:
    """Of 64 products with dS times the temperature each is below the normal numbers, and flushed;
    of those with dS none is."""
    heat, keys, small, nu = 2.0**-8, 64, 2.0**-9, 2.0**-17
    sign = (torch.arange(keys) % 2 * 2 - 1).double().view(1, 1, keys, 1)
    q, one = torch.zeros(1, 1, 1, 1).double(), torch.ones(1, 1, 1, 1).double()
    options = ScoreOptions(1.0, temperature=torch.tensor([heat]))
    flushing = replace(FORMATS["float32"], smallest_normal=nu)
    rounding = replace(RoundingModel.float32(), accumulator=flushing)
    bound = gradient_tolerance.of_options(
        q, small * sign, keys / 2 * sign, one, None, options, rounding
    )["q"]
    assert heat / 2 * small < nu < 1 / 2 * small
    # So the function computes 0.
    assert float(bound.exact) == pytest.approx(keys * heat / 2 * small)
    assert float(bound.exact) <= float(bound.tolerance(FORMATS["float32"]))


def test_a_store_underflows_where_the_gradient_is_exactly_0() -> None:
    rounding = RoundingModel.flash("bfloat16")
    zero = torch.zeros(2).double()
    stored = gradient_tolerance.Bounded(zero, zero, zero).store(rounding)
    assert stored.error.tolist() == [rounding.output.underflow(rounding.flush_to_zero)] * 2


# A line of the code, and what a mistake would make of it.
MUTANTS = {
    "a temperature that makes no dS smaller": (
        "parts += [heat, scale * heat]",
        "pass",
    ),
    "a temperature that makes no part of the scale larger": (
        "return factor * of_queries,",
        "return factor * most,",
    ),
    "a gradient that is not stored": (
        "by_scaled = bounds.query.store(rounding)",
        "by_scaled = bounds.query",
    ),
    "a store of an exact number": (
        "rounding.output.unit * (self.exact.abs() + self.error)",
        "rounding.output.unit * self.exact.abs()",
    ),
    "a total that is added exactly": (
        "unit, tiny = rounding.accumulation_unit, rounding.accumulator.smallest_normal",
        "unit, tiny = 0.0, rounding.accumulator.smallest_normal",
    ),
    "a store that does not underflow": (
        " + rounding.output.underflow(rounding.flush_to_zero))",
        ")",
    ),
    "products that do not underflow": ("count + 3, unit, tiny=tiny)", "count + 3, unit)"),
    "sizes without the factors": ("factors.abs() * self.size", "self.size"),
    "errors without the factors": ("factors.abs() * self.error", "self.error"),
    "a temperature times the gradient by the queries": (
        "by_scaled.sum(query.double(), [0, 2, 3], rounding)",
        'found["q"].sum(query.double(), [0, 2, 3], rounding)',
    ),
    "queries that are not rounded": (
        "rounding = _with_stored_queries(rounding, scaled)",
        "pass",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_of_temperatures_disagrees(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = change_code(*MUTANTS[name], monkeypatch, gradient_tolerance)
    assert any(
        any(wrong_temperatures(seed, rounding, module, below))
        for seed in range(4)
        for rounding in ROUNDING_MODELS.values()
        for below in (False, True)
    )
