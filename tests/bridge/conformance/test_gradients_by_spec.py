"""The code's bounds of gradients are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import pytest
import torch
from gradients_by_spec import ROUNDING_MODELS, Problem, exact, units, wrong_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import CLOSE, NATURAL, change_code, coarse_below, difference, digits

from bridge.conformance.tolerances import gradient_tolerance
from bridge.conformance.tolerances.rounding_model import FLOAT16, FLOAT32, RoundingModel
from bridge.spec.gradient_store_tolerance import (
    present_error,
    shared_gradient_error,
    stored_gradient_error,
)
from bridge.spec.gradient_tolerance import GradientTerm, total_error
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import ScoreOptions


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_gradients(seed: int, name: str) -> None:
    assert list(wrong_gradients(Problem.draw(seed), ROUNDING_MODELS[name])) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_gradients_below_the_normal_numbers(seed: int, name: str) -> None:
    rounding = ROUNDING_MODELS[name]
    assert list(wrong_gradients(Problem.draw(seed), rounding, below=True)) == []


def wrong_totals(seed: int, code: ModuleType = gradient_tolerance) -> Iterator[str]:
    """Which sums of gradients, of a bias that queries share and of heads that share a key, are not
    as the Spec has them."""
    rng = np.random.default_rng(seed)
    q_len, kv_len, group = (int(rng.integers(1, 5)) for _ in range(3))
    rounding = coarse_below(RoundingModel.flash("bfloat16"))
    tiny, output_tiny = (
        Decimal(x) for x in (rounding.accumulator.smallest_normal, rounding.output.underflow(False))
    )
    accumulation = Decimal(rounding.accumulation_unit)
    q, d_o = (torch.tensor(rng.normal(size=(1, group, q_len, 3))) for _ in range(2))
    k, v = (torch.tensor(rng.normal(size=(1, 1, kv_len, 3))) for _ in range(2))
    # Without a gradient by the output all sizes are 0, and what underflows is not; of a query of 0
    # nothing is added to the gradient by a key.
    d_o, q = d_o * rng.integers(0, 2), q * torch.tensor(rng.integers(0, 2, size=(1, group, 1, 1)))
    scored = code.Scored(0.5)
    bounds = code.gradient_bounds(q, k, v, d_o, None, scored, rounding)
    numbers = torch.tensor(rng.normal(size=q_len) * rng.integers(0, 2)).view(-1, 1)
    summed = bounds.scores.sum(numbers, [2], rounding)
    heads = [
        code.gradient_bounds(
            *(q[:, [h]], k, v, d_o[:, [h]], None, scored, rounding), q_len=group * q_len
        )
        for h in range(group)
    ]

    def terms(*columns: torch.Tensor) -> list[GradientTerm]:
        rows = zip(*(exact(x.flatten().numpy()) for x in columns), strict=True)
        return [GradientTerm(*row) for row in rows]

    with localcontext(digits()):
        scores, zero, one = bounds.scores, Decimal(0), Decimal(1)
        some = terms(scores.size[0, 0, :, 0], scores.error[0, 0, :, 0], numbers)
        error = total_error(accumulation, zero, tiny, zero, q_len + 3, some, num=NATURAL)
        whole = Decimal(present_error(one, error, some, num=NATURAL))
        checks = [(summed.error[0, 0, 0, 0], whole)]
        sizes, errors = (
            torch.stack([getattr(head.key, name)[0, 0, 0, 0] for head in heads])
            for name in ("size", "error")
        )
        of_heads = terms(sizes, errors, torch.ones(group).double())
        p = units(rounding, None)
        whole = Decimal(shared_gradient_error(p, output_tiny, group, of_heads, num=NATURAL))
        checks.append((bounds.key.error[0, 0, 0, 0], whole))
    for found, whole in checks:
        if abs(difference(float(found), whole)) > CLOSE * float(whole):
            yield f"{float(found)} for {float(whole)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_totals(seed: int) -> None:
    assert list(wrong_totals(seed)) == []


def wrong_stores(seed: int, code: ModuleType = gradient_tolerance) -> Iterator[str]:
    """Which gradients that are stored at the end are not allowed what the Spec has, of bounds that
    are 2 % larger; the code has 2·2⁻⁵³ more for the exact number in float64."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(2, 4)) * 2.0 ** rng.integers(-30, 3, size=(2, 4))
    number, error = (torch.tensor(x) for x in numbers * rng.integers(0, 2, size=(2, 4)))
    bound = code.Bounded(number, error.abs(), number.abs())
    for form, flush in ((FLOAT16, False), (FLOAT16, True), (FLOAT32, False)):
        columns = (exact(x.numpy()) for x in (number, error.abs(), bound.tolerance(form, flush)))
        for gradient, off, found in zip(*columns, strict=True):
            unit, least = Decimal(form.unit), Decimal(form.underflow(flush))
            with localcontext(digits()):
                error_of = off * Decimal(code.SECOND_ORDER)
                whole = stored_gradient_error(unit, least, gradient, error_of, num=NATURAL)
                whole += abs(gradient) * Decimal(2.0**-52)
            if abs(difference(float(found), whole)) > CLOSE * float(whole):
                yield f"{gradient}, off by {off}: {float(found)} for {float(whole)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_stores(seed: int) -> None:
    assert list(wrong_stores(seed)) == []


def test_of_products_that_are_0_nothing_but_0_is_allowed() -> None:
    """A key of 0 leaves the gradient by the query 0, and a query of 0 that by the key."""
    x, none = torch.ones(1, 1, 2, 3).double(), torch.zeros(1, 1, 2, 3).double()
    rounding = ROUNDING_MODELS["tiles stored"]

    def bounds(q: torch.Tensor, k: torch.Tensor) -> gradient_tolerance.Bounds:
        scored = gradient_tolerance.Scored(0.5)
        return gradient_tolerance.gradient_bounds(q, k, x, x, None, scored, rounding)

    assert float(bounds(x, none).query.tolerance(FLOAT32).max()) == 0
    assert float(bounds(none, x).key.tolerance(FLOAT32).max()) == 0
    assert float(bounds(none, x).query.tolerance(FLOAT32).min()) > 0


@pytest.mark.parametrize("early", [False, True])
def test_what_a_small_weight_loses_before_the_factor_of_dropout(early: bool) -> None:
    """1.5 · 2⁻²⁴ is stored in float16 as twice 2⁻²⁴, and then multiplied by ten."""
    factor, small = 10.0, math.log(1.5 * 2.0**-24)
    q, v = torch.ones(1, 1, 1, 1).double(), torch.zeros(1, 1, 2, 1).double()
    k = torch.tensor([0.0, small]).double().view(1, 1, 2, 1)
    kept = torch.tensor([0.0, factor]).double().view(1, 1, 1, 2)
    scored, rounding = gradient_tolerance.Scored(1.0, kept=kept), RoundingModel.flash("float16")
    bounds = gradient_tolerance.gradient_bounds(q, k, v, q, None, scored, rounding)
    p = torch.softmax((k @ q).squeeze(), 0)[1]
    stored = (p * factor).half() if early else p.half() * factor
    error = abs(float(stored) - float(bounds.value.exact[0, 0, 1, 0]))
    assert early or error > 4 * 2.0**-24
    assert error <= float(bounds.value.tolerance(FLOAT16)[0, 0, 1, 0])


@pytest.mark.parametrize("early", [False, True])
def test_what_a_small_ds_loses_after_the_scale(early: bool) -> None:
    """4 · 2⁻²⁴ is kept by float16, and an eighth of it is not; the key of 32 shows it."""
    scale = 0.125
    q = torch.tensor([math.log(2.0**-22) / scale / 32]).double().view(1, 1, 1, 1)
    k = torch.tensor([0.0, 32.0]).double().view(1, 1, 2, 1)
    v = torch.tensor([0.0, 1.0]).double().view(1, 1, 2, 1)
    d_o = torch.ones(1, 1, 1, 1).double()
    scored, rounding = gradient_tolerance.Scored(scale), RoundingModel.flash("float16")
    bounds = gradient_tolerance.gradient_bounds(q, k, v, d_o, None, scored, rounding)
    d_s = bounds.scores.exact[0, 0, 0, 1]
    found = (float(d_s.half()) * scale if early else float((d_s * scale).half())) * 32
    error = abs(found - float(bounds.query.exact))
    assert early or error > 10 * 2.0**-24
    assert error <= float(bounds.query.tolerance(FLOAT16))


def test_what_a_small_ds_loses_without_the_factor_where_every_weight_is_dropped() -> None:
    """dS is P·dL there, of which a tenth is stored in float16, and the sum multiplied by ten."""
    factor, small = 10.0, math.log(15 * 2.0**-24)
    q, none = torch.ones(1, 1, 1, 1).double(), torch.zeros(1, 1, 2, 1).double()
    k = torch.tensor([0.0, small]).double().view(1, 1, 2, 1)
    kept = torch.zeros(1, 1, 1, 2).double()
    scored = gradient_tolerance.Scored(1.0, kept=kept, factor=factor)
    rounding, d_l = RoundingModel.flash("float16"), torch.ones(1, 1, 1).double()
    bounds = gradient_tolerance.gradient_bounds(q, k, none, q, d_l, scored, rounding)
    d_s = bounds.scores.exact[0, 0, 0, 1]
    error = abs(float((d_s / factor).half()) * factor - float(bounds.key.exact[0, 0, 1, 0]))
    assert error > 4 * 2.0**-24
    assert error <= float(bounds.key.tolerance(FLOAT16)[0, 0, 1, 0])


def test_what_is_lost_without_the_factor_before_ds() -> None:
    """A thousandth of dL is 0 where the accumulators are of float16, and flush."""
    factor, d_l = 1000.0, torch.full((1, 1, 1), 0.05).double()
    one, none = torch.ones(1, 1, 1, 1).double(), torch.zeros(1, 1, 1, 1).double()
    scored = gradient_tolerance.Scored(1.0, kept=none, factor=factor)
    rounding = replace(RoundingModel.float32(), accumulator=FLOAT16)
    bounds = gradient_tolerance.gradient_bounds(one, one, none, none, d_l, scored, rounding)
    assert d_l.item() / factor < FLOAT16.smallest_normal
    # So dS is 0 for the function.
    assert float(bounds.key.exact) == d_l.item()
    assert d_l.item() <= float(bounds.key.tolerance(FLOAT32))
    alike = gradient_tolerance.Scored(1.0, kept=none)
    bounds = gradient_tolerance.gradient_bounds(one, one, none, none, d_l, alike, rounding)
    assert d_l.item() > float(bounds.key.tolerance(FLOAT32))


def test_options_without_a_kept_weight_have_the_factor() -> None:
    """The bound by options is that of the same problem with the factor."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, d_o = (torch.randn(1, 1, 2, 4, generator=generator).double() for _ in range(4))
    rounding, d_l = RoundingModel.flash("float16"), torch.ones(1, 1, 2).double()
    each = (Dropout(0.9, torch.tensor(seed)) for seed in range(100))
    dropping = next(d for d in each if not d.kept_weights(1, 1, range(2), range(2)).any())
    options = ScoreOptions(scale=1.0, dropout=dropping)
    found = gradient_tolerance.of_options(q, k, v, d_o, d_l, options, rounding)
    kept = torch.zeros(1, 1, 2, 2).double()
    scored = gradient_tolerance.Scored(1.0, None, (kept,), kept=kept, factor=1 / (1 - 0.9))
    wanted = gradient_tolerance.gradient_bounds(q, k, v, d_o, d_l, scored, rounding)
    assert torch.equal(found["k"].error, wanted.key.error)
    without = replace(scored, factor=1.0)
    less = gradient_tolerance.gradient_bounds(q, k, v, d_o, d_l, without, rounding)
    assert (less.key.error < wanted.key.error).all()


def test_what_a_small_dp_loses_before_the_factor_of_dropout() -> None:
    """1.5 · 2⁻²⁴ is stored in float16 as twice 2⁻²⁴, times a hundred, and stored again."""
    q, k = torch.zeros(1, 1, 1, 1).double(), torch.zeros(1, 1, 2, 1).double()
    v = torch.tensor([1.5 * 2.0**-24, 0.0]).double().view(1, 1, 2, 1)
    kept = torch.full((1, 1, 1, 2), 100.0).double()
    scored, d_o = gradient_tolerance.Scored(1.0, kept=kept), torch.ones(1, 1, 1, 1).double()
    rounding = RoundingModel.sdpa_math("float16", reduced=True)
    bounds = gradient_tolerance.gradient_bounds(q, k, v, d_o, None, scored, rounding)
    d_p = (v.squeeze().half() * 100).double()
    d_s = (d_p - d_p.mean()) / 2
    error = (d_s - bounds.scores.exact.squeeze()).abs().max()
    assert error > 10 * 2.0**-24
    assert error <= bounds.scores.tolerance(FLOAT16).min()


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
    "losses before dS that are as small without dropout's factor": (
        "tiny *= 2 * factor",
        "tiny *= 1.0",
    ),
    "a factor of dropout that is exact where it is left out": (
        "factor *= 1 + by_kept",
        "factor *= 1.0",
    ),
    "dP that is stored once although dropout's factor multiplies it": (
        "score_unit = compose(score_unit, score_unit)",
        "score_unit = compose(score_unit)",
    ),
    "dP that loses as little before dropout's factor as after it": (
        "return (factor * lost + tiny)",
        "return (lost + tiny)",
    ),
    "weights of dV that lose no more without their factor": (
        "by_values, by_scores = factor,",
        "by_values, by_scores = 1.0,",
    ),
    "dS that loses no more with the scale": (
        "torch.where(part < _LEAST_SCALE, 1.0, 1 / part)",
        "torch.ones_like(part)",
    ),
    "dS that loses no more without the factor of dropout": (
        "return factor * growth",
        "return growth",
    ),
    "a product with the slope and the scale that loses no more": (
        "+ by_scores * of_times * seen_keys",
        "+ of_times * seen_keys",
    ),
    "sums of dV whose losses no factor meets": (
        "d_o, members, 1.0, of_keys, factor)",
        "d_o, members, 1.0, of_keys, 1.0)",
    ),
    "sums of dQ and dK whose losses no factor meets": (
        "return factor * most, factor * most",
        "return most, most",
    ),
    "a gradient that is not stored at the end": (
        "whole = error + stored.unit * (self.exact.abs() + error) + stored",
        "whole = error + stored",
    ),
    "a last store that does not underflow": (
        "error) + stored.underflow(flush_to_zero)",
        "error)",
    ),
    "a last store of an exact number": (
        "stored.unit * (self.exact.abs() + error)",
        "stored.unit * self.exact.abs()",
    ),
    "nothing allowed where the exact gradient is 0": (
        "torch.where(self.exact.abs() + self.error == 0, 0.0, whole)",
        "torch.where(self.exact == 0, 0.0, whole)",
    ),
    "a store that makes something of 0": (
        "return torch.where(self.exact.abs() + self.error == 0, 0.0, whole)",
        "return whole",
    ),
    "sums that make something of 0": (
        "torch.where(sizes + errors == 0, 0.0, error)",
        "error",
    ),
    "nothing allowed where all sizes are 0": (
        "torch.where(sizes + errors == 0, 0.0, error)",
        "torch.where(sizes == 0, 0.0, error)",
    ),
    "a mean of exact weights": (
        "compose(off, weight_unit, sums)",
        "compose(0 * off, weight_unit, sums)",
    ),
    "a mean of weights that are not stored": (
        "compose(off, weight_unit, sums)",
        "compose(off, sums)",
    ),
    "a mean that is summed exactly": (
        "compose(off, weight_unit, sums)",
        "compose(off, weight_unit)",
    ),
    "an output that is not stored": (
        "score_unit, rounding.output.unit, power",
        "score_unit, power",
    ),
    "an output that is not rescaled": (
        "rounding.output.unit, power(-row.blocks - 1, -exponential)",
        "rounding.output.unit",
    ),
    "an exact mean": (
        "of_terms + of_product(kept) + of_delta",
        "of_terms + of_product(kept) + 0 * of_delta",
    ),
    "dP that is not stored": (
        "compose(gamma(value_dim + 2, ua), by_kept, score_unit) * products",
        "compose(gamma(value_dim + 2, ua), by_kept) * products",
    ),
    "a factor of dropout that is exact": (
        "compose(gamma(value_dim + 2, ua), by_kept, score_unit) * products",
        "compose(gamma(value_dim + 2, ua), score_unit) * products",
    ),
    "an exact difference": (
        "    of_inner = of_terms + gamma(3, u) * (size + of_terms)\n\n",
        "    of_inner = of_terms\n\n",
    ),
    "an exact product with G": ("early_unit, gamma(2, u))", "early_unit)"),
    "weights that are stored late": ("errors, early_unit, gamma(2, u)", "errors, gamma(2, u)"),
    "an error of G that no weight multiplies": (
        "gamma(2, u)) * most + error)",
        "gamma(2, u)) * exact.abs() + error)",
    ),
    "an exact slope": ("of_x = of_x + grad_s.abs() * slope_error", "of_x = of_x"),
    "a slope whose product with the scale is not rounded": (
        "slope_error = slope_error + u * (1 + slope_error) + by_scores * tiny",
        "slope_error = slope_error + by_scores * tiny",
    ),
    "a slope whose product with the scale does not underflow": (
        "slope_error = slope_error + u * (1 + slope_error) + by_scores * tiny",
        "slope_error = slope_error + u * (1 + slope_error)",
    ),
    "dS that is not stored": (
        "of_x = of_x + weight_unit * (grad_x.abs() + of_x) + by_scores",
        "of_x = of_x + by_scores",
    ),
    "dS that loses nothing where it is stored": (
        "of_x) + by_scores * weight_tiny * seen_keys",
        "of_x)",
    ),
    "weights of D that lose nothing": (
        "2 * of_key * (1 + weight_unit) + weight_tiny * growth",
        "0 * of_key",
    ),
    "weights of D that lose nothing where they are stored": (
        "(1 + weight_unit) + weight_tiny * growth",
        "(1 + weight_unit)",
    ),
    "losses of a weight of D that do not grow": (
        "growth = 1 + compose(errors, power(-3 * row.blocks - 2, -exponential))",
        "growth = 1 + 0 * errors",
    ),
    "a denominator of D that is exact": (
        "compose(errors, power(-3 * row.blocks - 2, -exponential))",
        "compose(0 * errors, power(-3 * row.blocks - 2, -exponential))",
    ),
    "a weight of D of one exponential": ("of_key = (row.blocks + 6)", "of_key = 1"),
    "products with values that do not underflow": ("of_key * (2 + reach)", "0 * of_key"),
    "an output that loses nothing": (
        "output_tiny = underflow(rounding.output)",
        "output_tiny = 0 * underflow(rounding.output)",
    ),
    "a quotient that does not underflow": ("_QUOTIENT_ROUNDINGS = 6", "_QUOTIENT_ROUNDINGS = 0"),
    "dP that loses nothing where it is stored": (
        "return lost + score_tiny",
        "return lost",
    ),
    "products of dP that do not underflow": (
        "products_tiny = 2 * (value_dim + 2)",
        "products_tiny = 0",
    ),
    "early weights that lose nothing": (
        "tiny * (1 + early_unit) + early_tiny",
        "tiny * (1 + early_unit)",
    ),
    "weights that do not underflow": (
        "tiny * (1 + early_unit) + early_tiny",
        "early_tiny",
    ),
    "products with G that do not underflow": ("gamma(2, u)) * (2 * tiny)", "gamma(2, u)) * 0.0"),
    "a product with the slope that does not underflow": (
        " + by_scores * of_times * seen_keys",
        "",
    ),
    "weights of dV that lose nothing": (
        "* (1 + weight_unit) + by_values * weight_tiny\n    of_v",
        "* (1 + weight_unit)\n    of_v",
    ),
    "an operand that is stored once": (
        "stores * underflow(rounding.operands)",
        "underflow(rounding.operands)",
    ),
    "a scale that no loss meets": ("* largest_part * lost", "* lost"),
    "losses of exact sizes": ("(sizes + error).sum(-1, True)", "sizes.sum(-1, True)"),
    "tiles of which one loses something": ("+ 1 + tiles)\n", "+ 1)\n"),
    "tiles that lose nothing where they are stored": ("2 * tiles * output_tiny", "0.0"),
    "sums of dP that lose nothing": (
        "products_tiny = 2 * (value_dim + 2)",
        "products_tiny = (value_dim + 2)",
    ),
    "sums of D that lose nothing": ("of_key * (2 + reach)", "of_key * (1 + reach)"),
    "a G whose sums lose nothing": (
        "of_product(kept) + of_delta + 2 * tiny",
        "of_product(kept) + of_delta",
    ),
    "a G of a sink whose sums lose nothing": (
        "of_product(1.0) + of_delta + 2 * tiny",
        "of_product(1.0) + of_delta",
    ),
    "products of sums that do not underflow": ("(2 * (terms + 3) + tiles) * tiny", "0.0"),
    "sums of products that lose nothing": ("(2 * (terms + 3) + tiles)", "(terms + 3 + tiles)"),
    "tiles that lose nothing where they are added": (
        "(2 * (terms + 3) + tiles)",
        "2 * (terms + 3)",
    ),
    "totals that lose nothing where they are added": ("2 * roundings * tiny", "roundings * tiny"),
    "heads that lose nothing where they are added": (
        "tiny=tiny, others_tiny=stored",
        "others_tiny=stored",
    ),
    "heads that lose nothing": (", others_tiny=stored", ""),
    "heads that lose as much as one": (
        "group * underflow(rounding.output)",
        "underflow(rounding.output)",
    ),
    "a total whose products do not underflow": ("count + 3, unit, tiny=tiny)", "count + 3, unit)"),
    "weights of dV that are not stored": (
        "compose(off, early_unit, by_kept, weight_unit)",
        "compose(off, early_unit, by_kept)",
    ),
    "tiles that are not stored": ("power(tiles, rounding.output.unit)", "0.0"),
    "tiles that are stored once": (
        "power(tiles, rounding.output.unit)",
        "power(min(tiles, 1), rounding.output.unit)",
    ),
    "tiles of keys for those of queries": (
        "row.blocks, -(-members // rounding.gradient_rows)",
        "row.blocks, row.blocks",
    ),
    "operands that are not stored": ("gamma(3, u), operands, power", "gamma(3, u), 0.0, power"),
    "a sum that is exact": ("gamma(terms + 3, ua), gamma", "0.0, gamma"),
    "heads that are not stored": (
        "arguments = error, size, group, ua, rounding.output.unit",
        "arguments = error, size, group, ua, 0.0",
    ),
    "a total that is exact": (
        "compose(stored, summed) * (sizes",
        "stored * (sizes",
    ),
    "sizes without their errors": ("relative * (all_sizes + errors)", "relative * all_sizes"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_of_gradients_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = change_code(*MUTANTS[name], monkeypatch, gradient_tolerance)
    checks = wrong_totals, wrong_stores
    some = [seed for seed in range(12) for check in checks if any(check(seed, module))]
    assert some or any(
        any(wrong_gradients(Problem.draw(seed), rounding, module, below=below))
        for seed in range(6)
        for rounding in ROUNDING_MODELS.values()
        for below in (False, True)
    )
