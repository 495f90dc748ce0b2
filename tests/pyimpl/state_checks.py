"""Helpers of the tests of states: keys by their scores and values, and the judgement of a state."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from attention_checks import judge
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl.state import State, finish, log_sum_exp

# A score, None: masked, and a value.
Key = tuple[float | None, list[int]]


def tensors(some: Sequence[Key]) -> tuple[Tensor, Tensor]:
    """scores [1, k] with −∞ for masked, values [k, 2], float64."""
    scores = [-torch.inf if score is None else float(score) for score, _ in some]
    values = torch.tensor([value for _, value in some], dtype=torch.float64).reshape(-1, 2)
    return torch.tensor([scores], dtype=torch.float64), values


def judge_state(state: State, some: Sequence[Key]) -> None:
    """Fail unless the state finishes to the attention of these keys, up to the tolerance, with
    scores given as products of one-element vectors."""
    scores, values = tensors(some)
    seen = ~torch.isneginf(scores)
    judge(
        (finish(state)[None, None], log_sum_exp(state)[None, None]),
        torch.ones(1, 1, 1, 1, dtype=torch.float64),
        torch.where(seen, scores, 0.0).reshape(1, 1, -1, 1),
        values[None, None],
        mask=seen[None, None],
        scale=1.0,
        rounding=RoundingModel.float64(block_n=1),
    )
