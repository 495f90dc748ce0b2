"""The float64 reference against the Spec's formulas in plain Python, and against PyTorch's SDPA."""

from __future__ import annotations

import math

import pytest
import spec_by_hand
import torch
from attention_checks import inputs, judge, judge_options, score_options
from option_cases import OPTIONS, options_of

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl.backends import reference
from pyimpl.backends.reference import safe_softmax, softmax
from pyimpl.internal.scores import ScoreOptions


def test_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, math.log(2.0), -math.inf], [-math.inf] * 3], dtype=torch.float64)
    expected = torch.tensor([[1 / 3, 2 / 3, 0.0], [0.0] * 3], dtype=torch.float64)
    for function in (softmax, safe_softmax):
        weights = function(scores)
        assert torch.equal(weights[1], expected[1])
        assert float((weights - expected).abs().max()) <= 2 * torch.finfo(torch.float64).eps


def test_safe_softmax_does_not_overflow() -> None:
    scores = torch.tensor([800.0, 800.0, -800.0, -math.inf], dtype=torch.float64)
    assert softmax(scores).isnan().any()
    assert torch.equal(safe_softmax(scores), torch.tensor([0.5, 0.5, 0.0, 0.0]).double())


def test_attention_by_hand() -> None:
    """Scores 0 and ln 2 for the first query; only the second key for the second; none, third."""
    query = torch.tensor([[[[math.log(2.0)], [1.0], [5.0]]]], dtype=torch.float64)
    key = torch.tensor([[[[0.0], [1.0]]]], dtype=torch.float64)
    value = torch.tensor([[[[3.0, 0.0], [9.0, -6.0]]]], dtype=torch.float64)
    mask = torch.tensor([[True, True], [False, True], [False, False]])
    out, lse = reference.attention(query, key, value, ScoreOptions(scale=1.0, mask=mask))
    eps = torch.finfo(torch.float64).eps
    assert float((out[0, 0, 0] - torch.tensor([7.0, -4.0])).abs().max()) <= 8 * 4 * eps
    assert torch.equal(out[0, 0, 1:], torch.tensor([[9.0, -6.0], [0.0, 0.0]]).double())
    assert abs(float(lse[0, 0, 0]) - math.log(3.0)) <= 4 * eps
    assert lse[0, 0, 1:].tolist() == [1.0, -math.inf]


@pytest.mark.parametrize("shape", [(2, 2, 5, 4, 3, 2), (1, 1, 3, 6, 2, 3)], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_by_hand(name: str, shape: tuple[int, ...]) -> None:
    query, key, value, _ = inputs(shape, torch.float64, group=2)
    options = options_of(name, query, key)
    result = spec_by_hand.attention(query, key, value, options)
    judge_options(result, query, key, value, options, RoundingModel.float64())


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5, 9, 4, 7), (1, 1, 9, 5, 3, 3)], ids=str)
def test_against_sdpa(shape: tuple[int, ...], is_causal: bool) -> None:
    """SDPA is the one judged, by its own rounding: the reference has to be right for it to pass."""
    query, key, value, _ = inputs(shape, torch.float64)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
    scores = reference.scores(query, key, score_options(query, is_causal=is_causal))
    rounding = RoundingModel.sdpa_math("float64")
    judge((out, scores.logsumexp(-1)), query, key, value, is_causal=is_causal, rounding=rounding)


def test_mask_and_causality_both_apply() -> None:
    mask = torch.tensor([[True, True, True], [False, True, True], [True, False, True]])
    zeros = torch.zeros(1, 1, 3, 2)
    scores = reference.scores(zeros, zeros, ScoreOptions(scale=1.0, mask=mask, right=0))
    visible = scores[0, 0] == 0
    assert visible.tolist() == [[True, False, False], [False, True, False], [True, False, True]]
