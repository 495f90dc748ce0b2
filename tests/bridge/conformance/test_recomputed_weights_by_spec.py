"""The code's errors of weights that a backward pass computes again are those that are proved: the
Spec's, with 50 digits. Those of scores alone: `test_capped_scores_by_spec.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import pytest
import torch
from gradients_by_spec import ROUNDING_MODELS, Problem, wrong_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import CLOSE, NATURAL, change_code, difference, digits

from bridge.conformance.tolerances import gradient_tolerance, recomputed_weights
from bridge.spec.gradient_tolerance import recomputed_error, softcap_slope_error
from bridge.spec.tolerance import gamma


def wrong_weights(seed: int, code: ModuleType = recomputed_weights) -> Iterator[str]:
    """Which errors of weights that are computed again are not as the Spec has them."""
    rng = np.random.default_rng(seed)
    unit, tiny, exponential = (2.0 ** -rng.integers(5, 25) for _ in range(3))
    s, lse, of_score, of_lse = rng.normal(size=2).tolist() + (rng.random(2) / 4).tolist()
    numbers = (torch.tensor(x, dtype=torch.float64) for x in (s, lse, of_score, of_lse))
    found = float(code._recomputed_error(unit, tiny, exponential, *numbers))
    with localcontext(digits()):
        arguments = (Decimal(float(x)) for x in (unit, tiny, exponential, s, lse, of_score, of_lse))
        whole = recomputed_error(*arguments, num=NATURAL)
    if abs(difference(found, whole)) > CLOSE * float(whole):
        yield f"{found} for {float(whole)}"


def wrong_slopes(seed: int, code: ModuleType = recomputed_weights) -> Iterator[str]:
    """Which errors of softcap's slope are not as the Spec has them."""
    rng = np.random.default_rng(seed)
    unit, tiny = (2.0 ** -rng.integers(5, 25) for _ in range(2))
    tanh, of_tanh = rng.uniform(-1, 1), rng.uniform(0, 2)
    numbers = (torch.tensor(x, dtype=torch.float64) for x in (tanh, of_tanh))
    found = float(code._slope_error(unit, tiny, *numbers))
    with localcontext(digits()):
        arguments = (Decimal(float(x)) for x in (unit, tiny, tanh, of_tanh))
        whole = Decimal(softcap_slope_error(*arguments, num=NATURAL))
    if abs(difference(found, whole)) > CLOSE * float(whole):
        yield f"{found} for {float(whole)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_slopes(seed: int) -> None:
    assert list(wrong_slopes(seed)) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_weights(seed: int) -> None:
    assert list(wrong_weights(seed)) == []


@pytest.mark.thorough
def test_roundings_in_a_row() -> None:
    for count, unit in ((1, 2.0**-24), (300, 2.0**-10), (2**23, 2.0**-24)):
        with localcontext(digits()):
            whole = gamma(count, Decimal(unit), num=NATURAL)
        found = recomputed_weights.gamma(float(count), unit)
        assert abs(difference(found, whole)) <= CLOSE * float(whole)
        assert recomputed_weights.gamma(torch.tensor(float(count)).double(), unit) == found
    assert recomputed_weights.gamma(2.0**24, 2.0**-24) > 1e20


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
    "products that are added exactly": (
        "gamma(q.shape[-1] + 1.0, rounding.accumulation_unit)",
        "gamma(1.0, rounding.accumulation_unit)",
    ),
    "a scale that is exact": ("_SCALE_ROUNDINGS = 3", "_SCALE_ROUNDINGS = 0"),
    "scores that are not stored": ("off = off + stored * (s.abs() + off)", "off = off + 0 * (off)"),
    "scores of operands that are not stored": (
        "relative = compose(relative, operands)",
        "relative = compose(relative, 0.0)",
    ),
    "softcap that is exact": ("_SOFTCAP_ROUNDINGS = 8", "_SOFTCAP_ROUNDINGS = 0"),
    "a slope of an exact tanh": (
        "(2 * tanh.abs() + of_tanh) * of_tanh + 2 * unit",
        "2 * unit + 0 * of_tanh",
    ),
    "a sum that is not rounded": ("_SUM_ROUNDINGS = 2", "_SUM_ROUNDINGS = 1"),
    "a sink that is exact": ("power(_SCORE_ROUNDINGS, u) * finite", "0.0 * finite"),
    "a sink that does not underflow": (
        "finite.abs() + _score_loss(q, scored, rounding)",
        "finite.abs()",
    ),
    "exact differences in the log-sum-exp": (
        "errors + u * (below + errors + largest)",
        "errors",
    ),
    "a log-sum-exp that is not rescaled": ("- (1 + blocks) * math.log1p", "- math.log1p"),
    "a log-sum-exp that is added exactly": (
        "gamma(keys + 2 * blocks + 1, u)",
        "gamma(0 * keys, u)",
    ),
    "a log-sum-exp of weights that are not stored": (
        "(1 + added_up) * lost + of_storing",
        "(1 + added_up) * lost",
    ),
    "a log-sum-exp of weights that do not underflow where they are stored": (
        "once = unit + torch.minimum(share, tiny)",
        "once = unit + 0 * torch.minimum(share, tiny)",
    ),
    "a log-sum-exp whose denominator does not underflow": (
        "(1 + added_up) * lost + of_storing",
        "of_storing",
    ),
    "exponentials that do not underflow": ("lost = 2 * torch.minimum", "lost = 0 * torch.minimum"),
    "products and sums that do not underflow": ("lost + keys *", "lost + 0 * keys *"),
    "products with a rescaling that do not underflow": (
        "(blocks + TINY_OPERATIONS)",
        "TINY_OPERATIONS",
    ),
    "one exponential of many that underflows": ("(blocks + 2) * tiny", "tiny"),
    "sums that do not underflow": ("blocks + TINY_OPERATIONS", "blocks + TINY_OPERATIONS - 1"),
    "what underflows is not rounded": ("(1 + added_up) * lost", "lost"),
    "a base that is changed without underflow": ("_LSE_OPERATIONS = 9", "_LSE_OPERATIONS = 1"),
    "a sum with the maximum that does not underflow": (
        "_LSE_OPERATIONS = 9",
        "_LSE_OPERATIONS = 8",
    ),
    "differences of scores that are not flushed to 0": (
        "of_filled + flushed",
        "of_filled",
    ),
    "rises of the maximum that are not flushed to 0": (
        "flushed = (blocks + 1) * tiny",
        "flushed = tiny",
    ),
    "differences of a weight of the output that are not flushed to 0": ("off + flushed", "off"),
    "a weight whose base is changed without underflow": (
        "of_score + 3 * tiny, of_lse + 3 * tiny",
        "of_score, of_lse",
    ),
    "an exact logarithm": ("_LSE_ROUNDINGS = 4", "_LSE_ROUNDINGS = 0"),
    "a weight from one rounding": ("gamma(3, unit) * sizes", "gamma(1, unit) * sizes"),
    "an exponential that is exact": (
        "return compose(_expm1(exponent), exponential)",
        "return _expm1(exponent)",
    ),
    "an exact log-sum-exp": (
        "exponent = of_score + of_lse + gamma",
        "exponent = of_score + gamma",
    ),
    "a square of tanh that does not underflow": ("return most + 2 * tiny", "return most"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_error_of_weights_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = change_code(*MUTANTS[name], monkeypatch, recomputed_weights, gradient_tolerance)
    weights = sys.modules[recomputed_weights.__name__]
    checks = wrong_weights, wrong_slopes
    some = [one for seed in range(6) for one in checks if any(one(seed, weights))]
    assert some or any(
        any(wrong_gradients(Problem.draw(seed), rounding, module, below=below))
        for seed in range(6)
        for rounding in ROUNDING_MODELS.values()
        for below in (False, True)
    )
