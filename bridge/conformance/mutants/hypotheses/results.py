"""The tile loop, the division by the denominator, the log-sum-exp, and the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from bridge.conformance.mutants.attention import TILED_MUTANTS
from bridge.conformance.mutants.hypotheses.call import Backward, Call, Hypothesis, Parts, lse_of
from bridge.conformance.mutants.hypotheses.scores import LN2
from bridge.conformance.mutants.hypotheses.sizes import TILES
from pyimpl.backends import reference

# Tiles of the loop, among them those of a few keys, and single ones.
_LOOP_TILES = (1, 4, 8, *TILES)
_LOOP_MUTANTS = ("tiled-l-not-rescaled", "tiled-o-not-rescaled")


def _backwards(edit: Backward) -> Callable[[Call], Call | None]:
    """A change of calls whose gradients are asked for."""

    def change(call: Call) -> Call | None:
        asked = any(x.requires_grad for x in (call.query, call.key, call.value))
        return replace(call, backward=edit) if asked else None

    return change


def _maxima(call: Call) -> Tensor:
    """The largest score of each row, `[batch, heads, q_len]`; 0 where none is seen."""
    s = reference.scores(call.query, call.key, call.options)
    s = s.amax(-1) if s.shape[-1] else s.new_zeros(s.shape[:-1])
    return torch.where(torch.isneginf(s), 0.0, s)


def _denominators(call: Call) -> Tensor:
    """Σ exp(s − m) of each row, `[batch, heads, q_len]`."""
    return (lse_of(call) - _maxima(call)).exp()


def _overflow(call: Call, out: Tensor, lse: Tensor) -> Parts:
    """Weights exp(s) in the dtype of the computation, where one of them overflows or all vanish;
    elsewhere nothing shows."""
    s = reference.scores(call.query, call.key, call.options)
    weights = s.to(call.wide).exp().double()
    total = weights.sum(-1)
    value = call.value.repeat_interleave(call.group, 1)
    wrong = (weights @ value) / total.unsqueeze(-1)
    strange = torch.isinf(total) | (total == 0) & ~torch.isneginf(lse)
    return (
        torch.where(strange.unsqueeze(-1), wrong, out),
        torch.where(strange, total.log(), lse),
    )


def _lse_only(edit: Callable[[Call, Tensor], Tensor]) -> Callable[[Call, Tensor, Tensor], Parts]:
    return lambda call, out, lse: (out, edit(call, lse))


DENOMINATORS = (
    Hypothesis(
        "maximum-not-subtracted", "the maximum is not subtracted, and the exponential overflows",
        result=_overflow,
    ),
    Hypothesis(
        "output-not-divided", "the output is not divided by the denominator",
        result=lambda c, out, lse: (out * _denominators(c).unsqueeze(-1), lse),
        tolerance=lambda c, out, lse: (out * _denominators(c).unsqueeze(-1), lse),
    ),
)  # fmt: skip
LOGARITHMS = (
    Hypothesis(
        "lse-base-2", "the log-sum-exp is returned in base 2",
        result=_lse_only(lambda c, lse: lse / LN2),
        tolerance=_lse_only(lambda c, lse: lse / LN2),
    ),
    Hypothesis(
        "lse-without-maximum", "the maximum is not added to the log-sum-exp",
        result=_lse_only(lambda c, lse: lse - _maxima(c)),
    ),
    Hypothesis(
        "lse-is-the-maximum", "the maximum is returned as log-sum-exp",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), lse, _maxima(c))),
    ),
    Hypothesis(
        "empty-row-lse-infinite", "a row with every key masked has log-sum-exp +∞",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), torch.inf, lse)),
    ),
    Hypothesis(
        "empty-row-lse-zero", "a row with every key masked has log-sum-exp 0",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), 0.0, lse)),
    ),
)  # fmt: skip
LOOPS = tuple(
    Hypothesis(
        mutant.name.removeprefix("tiled-"),
        f"{mutant.description}, tiles of {tile} keys" if tile > 1 else f"{mutant.description}",
        loop=mutant.name,
        tile=tile,
    )
    for mutant in TILED_MUTANTS
    if mutant.name in _LOOP_MUTANTS
    for tile in _LOOP_TILES
)
GRADIENTS = (
    Hypothesis(
        "gradient-delta-omitted", "backwards, D = rowsum(dO ∘ O) is left out",
        _backwards(lambda options, out, by_lse: (options, torch.zeros_like(out), by_lse)),
    ),
    Hypothesis(
        "gradient-of-lse-ignored", "backwards, the gradient of the log-sum-exp is left out",
        _backwards(lambda options, out, by_lse: (options, out, None)),
    ),
    Hypothesis(
        "gradient-delta-and-lse-omitted",
        "backwards, D = rowsum(dO ∘ O) and the gradient of the log-sum-exp are left out",
        _backwards(lambda options, out, by_lse: (options, torch.zeros_like(out), None)),
    ),
    Hypothesis(
        "gradient-unmasked", "backwards, the mask is left out",
        _backwards(
            lambda options, out, by_lse: (
                replace(options, mask=None, left=None, right=None), out, by_lse
            )
        ),
    ),
    Hypothesis(
        "gradient-without-softcap", "backwards, the softcap is left out",
        _backwards(lambda options, out, by_lse: (replace(options, softcap=None), out, by_lse)),
    ),
)  # fmt: skip
