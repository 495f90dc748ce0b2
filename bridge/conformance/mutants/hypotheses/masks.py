"""Masks, windows and their alignment; rows that see no key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.mutants.hypotheses.call import (
    Call,
    Hypothesis,
    Parts,
    blind,
    lse_of,
    option,
    tensor,
)
from pyimpl.internal.scores import alignment_shift


def _window(argument: str, edit: Callable[[Call], dict[str, Any]]) -> Callable[[Call], Call | None]:
    """A change of calls that were told of their mask by this argument."""

    def change(call: Call) -> Call | None:
        if argument not in call.by:
            return None
        changes = edit(call)
        now = {name: getattr(call.options, name) for name in changes}
        return None if now == changes else call.with_options(**changes)

    return change


def _move(side: str, by: int) -> Callable[[Call], dict[str, Any]]:
    def edit(call: Call) -> dict[str, Any]:
        bound = getattr(call.options, side)
        return {} if bound is None else {side: bound + by}

    return edit


def _shift(alignment: Any) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        shift = alignment_shift(alignment, *call.lengths)
        positional = call.by & {"is_causal", "window"} or call.options.alibi_slopes is not None
        if not positional or shift == call.options.shift:
            return None
        return call.with_options(shift=shift)

    return change


def _mean_of_values(call: Call, out: Tensor, lse: Tensor) -> Parts:
    if not call.lengths[1]:
        return out, lse
    mean = call.value.mean(-2, keepdim=True).repeat_interleave(call.group, 1)
    return torch.where(blind(lse), mean, out), lse


def _of_mean(call: Call, out: Tensor, lse: Tensor) -> Parts:
    """The tolerance of that of a row that sees every key, with equal scores."""
    if not call.lengths[1]:
        return out, lse
    size = call.value.abs().amax(-2, keepdim=True).repeat_interleave(call.group, 1)
    blind = torch.isneginf(lse_of(call)).unsqueeze(-1)
    unit = torch.finfo(call.wide).eps * (call.lengths[1] + 2)
    return torch.where(blind, out.amax().clamp_min(0) + unit * size, out), lse


MASKS = (
    Hypothesis(
        "causal-excludes-diagonal", "the causal mask hides the query's own key",
        _window("is_causal", _move("right", -1)),
    ),
    Hypothesis(
        "causal-shows-next-key", "the causal mask shows one key too many",
        _window("is_causal", _move("right", 1)),
    ),
    Hypothesis(
        "causal-ignored", "the causal mask is left out",
        _window("is_causal", lambda c: {"right": None}),
    ),
    Hypothesis(
        "causal-transposed", "the causal mask hides the keys before the query, not those after it",
        _window("is_causal", lambda c: {"left": 0, "right": None}),
    ),
    Hypothesis(
        "causal-aligned-bottom-right",
        "the causal mask is aligned bottom-right whatever is asked for", _shift("bottom-right"),
    ),
    Hypothesis(
        "alignment-swapped", "the window is aligned top-left whatever is asked for",
        _shift("top-left"),
    ),
    Hypothesis(
        "window-hides-its-first-key", "the left edge of the window is one key too far to the right",
        _window("window", _move("left", -1)),
    ),
    Hypothesis(
        "window-shows-one-key-before",
        "the left edge of the window is one key too far to the left",
        _window("window", _move("left", 1)),
    ),
    Hypothesis(
        "window-hides-its-last-key", "the right edge of the window is one key too far to the left",
        _window("window", _move("right", -1)),
    ),
    Hypothesis(
        "window-shows-one-key-after",
        "the right edge of the window is one key too far to the right",
        _window("window", _move("right", 1)),
    ),
    Hypothesis(
        "window-ignored", "the window is left out",
        _window("window", lambda c: {"left": None, "right": None}),
    ),
    Hypothesis(
        "mask-inverted", "a boolean mask is read as True = hidden",
        option("mask", lambda c: {"mask": ~tensor(c.options.mask)}),
    ),
    Hypothesis(
        "mask-ignored", "the boolean mask is left out", option("mask", lambda c: {"mask": None})
    ),
    Hypothesis(
        "masked-row-nan", "a row with every key masked is divided by its denominator 0",
        result=lambda c, out, lse: (torch.where(blind(lse), torch.nan, out), lse),
    ),
    Hypothesis(
        "masked-row-mean",
        "−∞ is a large finite number: a row with every key masked gives the mean of V",
        result=_mean_of_values, tolerance=_of_mean,
    ),
)  # fmt: skip
