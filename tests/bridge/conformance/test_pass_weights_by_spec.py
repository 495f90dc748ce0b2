"""The code's errors of the weights and slopes of a backward pass, from queries and keys on, are
those of `passWeightError` and `slopeError`, of which `tiny-gradients` speaks; and what the code has
more is for the caller's own rounding of the scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext

import pytest
import torch
from gradients_by_spec import ROUNDING_MODELS, Problem, exact
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import NATURAL, digits, precision, stored_formats

from bridge.conformance.tolerances import recomputed_weights
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.spec import weight_tolerance as spec
from bridge.spec.score_change_tolerance import (
    ScoreChanges,
    score_changes_columns,
    score_changes_score,
)
from bridge.spec.tolerance import Denominator
from bridge.spec.underflow_tolerance import underflow_log_sum_exp_factor

# The code's own rounding of the scale, 2⁻⁵² of a score, over the roundings of the rounding models.
MORE = 1e-6


def see_all(_query: int, _key: int) -> bool:
    return True


def wrong_errors(
    problem: Problem, rounding: RoundingModel, *, rescalings: int = 0
) -> Iterator[str]:
    """Which errors are not as the Spec has them. rescalings: how many the Spec has more."""
    q_len, kv_len, d = *problem.mask.shape, problem.q.shape[1]
    q, k = (torch.tensor(x)[None, None] for x in (problem.q, problem.k))
    hidden = torch.where(torch.tensor(problem.mask), 0.0, -torch.inf).double()
    sinks = None if problem.sink is None else torch.tensor([problem.sink]).double()
    scored = Scored(problem.scale, problem.softcap, (hidden,), sinks, None)
    found = recomputed_weights.softmax_bounds(q, k, scored, rounding)
    p = precision(rounding)
    if rounding.weights is not None and rounding.denominator != "unrounded":
        p = replace(p, denominator=Denominator.ROUNDED)
    f, nu = stored_formats(rounding, problem.scale), Decimal(rounding.accumulator.smallest_normal)
    blocks = math.ceil(kv_len / (rounding.block_n or 1))
    # A mask adds 0.
    added = [[Decimal(0) if seen else None for seen in row] for row in problem.mask.tolist()]
    cap, sink = (None if x is None else Decimal(x) for x in (problem.softcap, problem.sink))
    changes, scale = ScoreChanges(cap, added, sink), Decimal(problem.scale)
    rows, keys = [exact(row) for row in problem.q], [exact(row) for row in problem.k]

    def compare(name: str, one: torch.Tensor, whole: Decimal) -> Iterator[str]:
        if not float(whole) * (1 - 1e-12) <= float(one) <= float(whole) * (1 + MORE):
            yield f"{name}: {float(one)} for {float(whole)}"

    with localcontext(digits()):
        for i in range(q_len):
            of = changes, scale, see_all, rows, keys, i
            columns = score_changes_columns(changes, kv_len=kv_len)
            seen = [
                s
                for col in columns
                if (s := score_changes_score(*of, col, d=d, num=NATURAL)) is not None
            ]
            if not seen:
                continue
            times = blocks + rescalings
            row = spec.weight_row(p, f, nu, d - 1, *of, times, kv_len=kv_len, d=d, num=NATURAL)
            roundings = len(seen) + 2 * blocks
            factor = underflow_log_sum_exp_factor(p, nu, roundings, times, row, num=NATURAL)
            lse = sum((s.exp() for s in seen), Decimal(0)).ln()
            numbers = times, lse, max(seen), factor.ln()
            for col in columns:
                whole = spec.pass_weight_error(
                    p, f, nu, d - 1, *of, *numbers, col, kv_len=kv_len, d=d, num=NATURAL
                )
                if col is None:
                    yield from compare(f"sink {i}", found.sink_error[0, 0, i, 0], whole)
                elif problem.mask[i, col]:
                    yield from compare(f"weight {i}, {col}", found.error[0, 0, i, col], whole)
                    slope = spec.score_changes_slope_error(
                        p, f, nu, d - 1, changes, scale, rows, keys, i, col, d=d, num=NATURAL
                    )
                    yield from compare(f"slope {i}, {col}", found.slope_error[0, 0, i, col], slope)


@pytest.mark.parametrize("name", ROUNDING_MODELS)
def test_errors_are_those_of_the_spec(name: str) -> None:
    for seed in range(6):
        assert list(wrong_errors(Problem.draw(seed), ROUNDING_MODELS[name])) == []


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_errors(seed: int, name: str) -> None:
    assert list(wrong_errors(Problem.draw(seed), ROUNDING_MODELS[name])) == []


def test_one_rescaling_more_is_seen() -> None:
    some = [
        wrong_errors(Problem.draw(s), ROUNDING_MODELS["coarse"], rescalings=1) for s in range(6)
    ]
    assert all(any(one) for one in some)
