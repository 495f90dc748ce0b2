"""The code's errors of scores and slopes that a backward pass computes again are those that are
proved: the Spec's, with 50 digits, and with softcap however far off a score is before it."""

from __future__ import annotations

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
    FEW,
    NATURAL,
    change_code,
    difference,
    digits,
    precision,
    score_formats,
)

from bridge.conformance.tolerances import recomputed_weights
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from bridge.spec.score_change_tolerance import ScoreChange
from bridge.spec.score_tolerance import magnitude, operand_underflow, score_error
from bridge.spec.softcap_tolerance import capped_change_error, capped_slope_error, tanh_error

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(),
    "normalised, scores stored": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "stored scores": replace(RoundingModel.float32(), scores=FORMATS["float16"]),
    "coarse accumulator": replace(RoundingModel.float32(), accumulator=FORMATS["bfloat16"]),
    "few small numbers": replace(RoundingModel.float32(), accumulator=FEW),
    "few small numbers, stored": replace(
        RoundingModel.float32(), accumulator=FEW, scores=FORMATS["bfloat16"]
    ),
}
# How large products of queries and keys are, from scores that are hardly off to scores that may be
# off by more than twice the cap.
SPREADS = (0.1, 30.0, 1e4, 1e9)


def wrong_scores(
    seed: int,
    spread: float,
    softcap: float | None,
    rounding: RoundingModel,
    code: ModuleType = recomputed_weights,
) -> Iterator[str]:
    """Which errors of scores and of slopes are not as the Spec has them. A number is added to each
    score, and −∞ to that of the last key."""
    rng = np.random.default_rng(seed)
    d, kv_len, scale = int(rng.integers(1, 5)), 4, float(rng.choice([0.5, -1.25]))
    q, k = rng.normal(size=(2, d)) * spread, rng.normal(size=(kv_len, d))
    added = rng.normal(size=(2, kv_len))
    added[:, -1] = -np.inf
    p, formats = precision(rounding), score_formats(rounding, scale, d, softcap)
    tiny = Decimal(rounding.accumulator.smallest_normal)
    tensors = (torch.tensor(x)[None, None] for x in (q, k))
    scored = code.Scored(scale, softcap, (torch.tensor(added),))
    _, off, _, slope_error = code._scores(*tensors, scored, rounding)
    cap = None if softcap is None else Decimal(softcap)
    for i, j in np.ndindex(2, kv_len - 1):
        with localcontext(digits()):
            row, column = ([Decimal(float(x)) for x in y] for y in (q[i], k[j]))
            s = Decimal(scale) * sum((a * b for a, b in zip(row, column, strict=True)), Decimal(0))
            error = score_error(
                *(p, formats, d - 1, Decimal(scale), magnitude(row, column, d=d, num=NATURAL)),
                *(operand_underflow(p, formats, d - 1, row, column, d=d, num=NATURAL), s, abs(s)),
                num=NATURAL,
            )
            # The code has more for the caller's own rounding of the scale.
            error += Decimal(2.0**-52) * abs(s) * (1 + formats.scores)
            change = ScoreChange(cap, Decimal(float(added[i, j])))
            wanted = capped_change_error(p, formats, change, s, error, num=NATURAL)
            checks = [("score", float(off[0, 0, i, j]), wanted)]
            if cap is not None:
                of_slope = capped_slope_error(p.unit, tiny, cap, s, error, num=NATURAL)
                # A slope is off by 1 at most: it does not show what tanh is allowed beyond that.
                of_tanh = code._tanh_error(
                    *(float(p.unit), float(tiny), softcap),
                    torch.tensor(float(error), dtype=torch.float64),
                )
                checks.append(("slope", float(slope_error[0, 0, i, j]), of_slope))
                exact = tanh_error(p.unit, tiny, cap, error, num=NATURAL)
                checks.append(("tanh", float(of_tanh), exact))
        for name, one, whole in checks:
            # float64 does not tell apart what is near 0 in the score or in its tanh.
            lost = 2.0**-50 * (1.0 + spread * CLOSE)
            if abs(difference(one, whole)) > CLOSE * float(whole) + lost * float(p.unit):
                yield f"{name} of key {j} for row {i}: {one} for {float(whole)}"


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(SPREADS),
    st.sampled_from([None, 2.5, 30.0]),
    st.sampled_from(sorted(ROUNDING_MODELS)),
)
def test_drawn_scores(seed: int, spread: float, softcap: float | None, name: str) -> None:
    assert list(wrong_scores(seed, spread, softcap, ROUNDING_MODELS[name])) == []


def test_a_bound_of_softcap_does_not_grow_with_the_scores() -> None:
    """Where a score may be off by any number, its tanh is off by 2, and the slope by 1."""
    rounding = ROUNDING_MODELS["float32"]
    q, k = (torch.tensor([[[[x]]]]).double() for x in (1e12, 1.0))
    _, off, _, slope_error = recomputed_weights._scores(
        q, k, recomputed_weights.Scored(1.0, 2.5), rounding
    )
    assert 5.0 < float(off) < 5.001
    assert 1.0 < float(slope_error) < 1.001


# A line of the code, and what a mistake would make of it.
MUTANTS = {
    "tanh that is off by any number": (
        "torch.clamp(off / cap, max=2.0) + _SOFTCAP",
        "off / cap + _SOFTCAP",
    ),
    "tanh that is off by 1": ("torch.clamp(off / cap, max=2.0)", "torch.clamp(off / cap, max=1.0)"),
    "tanh that is as far off as the score": ("torch.clamp(off / cap, max=2.0)", "off"),
    "tanh that is not rounded": ("max=2.0) + _SOFTCAP_ROUNDINGS * unit", "max=2.0)"),
    "tanh of a quotient that does not underflow": ("* unit + 4 * tiny", "* unit"),
    "a capped score that is off by any number": ("torch.clamp(off, max=2 * cap)", "off"),
    "a capped score that is off by the cap": (
        "torch.clamp(off, max=2 * cap)",
        "torch.clamp(off, max=cap)",
    ),
    "a capped score that is stored exactly": (
        "(_SOFTCAP_ROUNDINGS * u + stored) * cap",
        "_SOFTCAP_ROUNDINGS * u * cap",
    ),
    "a capped score that does not underflow": ("* cap + lost\n", "* cap\n"),
    "products of a score that do not underflow": (
        "score_underflow(q.shape[-1], scored.scale, changes, rounding)",
        "0.0 if rounding.scores is None else rounding.scores.underflow(rounding.flush_to_zero)",
    ),
    "a product with the cap that does not underflow": (
        "ScoreChanges(softcap=scored.softcap)",
        "ScoreChanges()",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_error_of_scores_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = change_code(*MUTANTS[name], monkeypatch, recomputed_weights)
    assert any(
        any(wrong_scores(seed, spread, 2.5, rounding, module))
        for seed in range(3)
        for spread in SPREADS
        for rounding in ROUNDING_MODELS.values()
    )
