"""A tolerance is of use only if it is small: a rounding that the rounding model does not name
exceeds it.

The kernel here rounds one more intermediate result than its rounding model says.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import committed
import pytest
import torch
from torch import Tensor

from bridge.conformance.adapters.emulated import FlashEmulated
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import Batch, Outputs

Rounding = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    return x


def to_bfloat16(x: Tensor) -> Tensor:
    return x.bfloat16().float()


def to_float16(x: Tensor) -> Tensor:
    return x.half().float()


def cut_to_tf32(x: Tensor) -> Tensor:
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)


class Rough(FlashEmulated):
    """A flash kernel over tiles of 16 keys with roundings put in; its weights are not rounded."""

    name = "rough"

    def __init__(self, **roundings: Rounding) -> None:
        super().__init__(16, "unrounded")
        self.roundings = roundings

    def round_as_asked(self, what: str, x: Tensor) -> Tensor:
        return self.roundings.get(what, keep)(x)

    def run(self, batch: Batch) -> Outputs:
        q, k, v = (x.float() for x in (batch.query, batch.key, batch.value))
        visible = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
        if batch.boolean is not None:
            visible = batch.boolean
        m = q.new_full(q.shape[:-1], -math.inf)
        l, o = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1])
        for start in range(0, k.shape[-2], 16):
            part = slice(start, start + 16)
            scores = self.round_as_asked(
                "scores", q @ k[..., part, :].transpose(-1, -2) * batch.scale
            )
            scores = scores.masked_fill(~visible[..., part], -math.inf)
            m_new = torch.maximum(m, scores.amax(-1))
            anchor = torch.where(torch.isneginf(m_new), 0.0, m_new)
            alpha, weights = torch.exp(m - anchor), torch.exp(scores - anchor[..., None])
            l = self.round_as_asked("l", l * alpha + weights.sum(-1))
            o = self.round_as_asked(
                "o",
                o * alpha[..., None] + self.round_as_asked("weights", weights) @ v[..., part, :],
            )
            m = m_new
        empty = torch.isneginf(m)
        total = torch.where(empty, 1.0, l)
        return Outputs((o / total[..., None]).to(batch.query.dtype), m + torch.log(total))


@pytest.mark.thorough
def test_without_a_rounding_it_passes() -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        assert run(Rough(), committed.everything(), dtype).ok


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("dtype", "what", "rounding", "at_least"),
    [
        ("float32", "scores", to_bfloat16, 150),
        ("float32", "o", to_bfloat16, 100),
        ("float32", "l", to_float16, 30),
        pytest.param("float16", "scores", to_float16, 150, marks=pytest.mark.thorough),
        pytest.param("float16", "l", to_float16, 30, marks=pytest.mark.thorough),
        pytest.param("float16", "o", to_float16, 1, marks=pytest.mark.thorough),
        pytest.param("bfloat16", "scores", to_bfloat16, 150, marks=pytest.mark.thorough),
        pytest.param("bfloat16", "l", to_bfloat16, 50, marks=pytest.mark.thorough),
        pytest.param("bfloat16", "o", to_bfloat16, 1, marks=pytest.mark.thorough),
    ],
)
def test_vectors_notice(dtype: str, what: str, rounding: Rounding, at_least: int) -> None:
    """at_least: of how many vectors; an accumulator in the output's format hides best."""
    assert len(run(Rough(**{what: rounding}), committed.everything(), dtype).failures) >= at_least


@pytest.mark.thorough
@pytest.mark.parametrize("rounding", [cut_to_tf32, to_bfloat16, to_float16])
def test_rounded_weights_need_the_natural_exponential(rounding: Rounding) -> None:
    """Weights of the exact model are powers of two: no format with enough range rounds them."""
    failures = run(Rough(weights=rounding), committed.everything(), "float32").failures
    models = {family.name: family.model for family in committed.everything()}
    assert sum(models[v.family] == "natural" for v in failures) >= 20
    if rounding is to_bfloat16:
        assert {models[v.family] for v in failures} == {"natural"}
