"""The code's tolerance of log-sum-exps is the one that is proved: the Spec's, with 50 digits. Those
of the vectors: `test_tolerance_by_spec.py`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import ROUNDING_MODELS, Inputs, change_code, draw_inputs, problems, wrong_lse

from bridge.vectors.model.attention import Family


@settings(max_examples=60, deadline=None)
@given(draw_inputs(), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_log_sum_exps_of_drawn_rows(inputs: Inputs, rounding: str) -> None:
    assert list(wrong_lse(inputs, ROUNDING_MODELS[rounding])) == []


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
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
    "a base that is changed without underflow": (
        "_LSE_OPERATIONS = 9.0",
        "_LSE_OPERATIONS = 1.0",
    ),
    "a sum with the maximum that does not underflow": (
        "_LSE_OPERATIONS = 9.0",
        "_LSE_OPERATIONS = 8.0",
    ),
    "an exact logarithm": ("error = error + four *", "error = error + 0.0 *"),
    "one rounding less of the logarithm": ("_LSE_ROUNDINGS = 4.0", "_LSE_ROUNDINGS = 3.0"),
    "a maximum that is not rounded": ("+ 1.0 + anchor + off)", "+ 1.0 + off)"),
    "a logarithm that is exact near 1": ("+ 1.0 + anchor + off)", "+ anchor + off)"),
    "maximum and logarithm as if they were exact": (
        "+ 1.0 + anchor + off)",
        "+ 1.0 + anchor)",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_tolerance_of_log_sum_exps_disagrees(
    name: str, families: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = change_code(*MUTANTS[name], monkeypatch)
    inputs = [one for f in families if f.name == "drawn-natural" for one in problems(f)]
    pairs = itertools.product(inputs, ROUNDING_MODELS.values())
    assert any(any(wrong_lse(one, p, mutated)) for one, p in pairs)
