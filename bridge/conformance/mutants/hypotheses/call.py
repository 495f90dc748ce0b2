"""Mutants as hypotheses about the fault of a function: attention computed rightly from
arguments that are changed as the mutant changes them, or with a mutant of the tile loop planted.

`hypothetical` runs them, in float64, and `bridge.conformance.outcomes.likely` compares their
results with those of a function that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyimpl.backends import reference
from pyimpl.internal.arguments import mask_as_4d
from pyimpl.internal.scores import ScoreOptions


@dataclass(frozen=True)
class Call:
    """A call of an attention function. query `[batch, heads, q_len, head_dim]`, key and value
    `[batch, kv_heads, kv_len, …]`, float64; by: the arguments by which the function was told of
    its masks; wide: the dtype in which it computes; backward: the fault of the gradients."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: ScoreOptions
    by: frozenset[str] = frozenset()
    wide: torch.dtype = torch.float32
    backward: Backward | None = None

    @property
    def lengths(self) -> tuple[int, int]:
        """(q_len, kv_len)."""
        return self.query.shape[2], self.key.shape[2]

    @property
    def group(self) -> int:
        """Query heads for each head of keys."""
        return self.query.shape[1] // max(self.key.shape[1], 1)

    def visible_pairs(self) -> Tensor:
        """Which pairs are not masked, `[batch|1, heads|1, q_len, kv_len]`."""
        q_len, kv_len = self.lengths
        options = self.options
        found = reference.window(options, q_len, kv_len, self.query.device)[None, None]
        if options.bias is not None:
            found = found & ~torch.isneginf(mask_as_4d(options.bias, q_len, kv_len))
        if options.mask is not None:
            found = found & mask_as_4d(options.mask, q_len, kv_len)
        return found

    def with_options(self, **changes: Any) -> Call:
        """The call with other options."""
        return replace(self, options=replace(self.options, **changes))


# From the options, the output, and the gradients by output and log-sum-exp: those to go on with.
Backward = Callable[
    [ScoreOptions, Tensor, Tensor | None], tuple[ScoreOptions, Tensor, Tensor | None]
]
Parts = tuple[Tensor, Tensor]


def same(call: Call) -> Call:
    return call


@dataclass(frozen=True)
class Hypothesis:
    """name: that of the planted mutant where there is one. description: as of a mutant. change: the
    arguments that are computed with, None: the mutant does not show in this call. result: the
    changed output and log-sum-exp; tolerance: their changed tolerances, the same change unless it
    is given. loop: a mutant of the tile loop that is planted, with tiles of `tile` keys.
    operations: those that it is about, none: all; layout: of these, the layout (`layout.Layout`)
    that is computed with, None: the mutant does not show in it."""

    name: str
    description: str
    change: Callable[[Call], Call | None] = same
    result: Callable[[Call, Tensor, Tensor], Parts] | None = None
    tolerance: Callable[[Call, Tensor, Tensor], Parts] | None = None
    loop: str | None = None
    tile: int = 0
    operations: frozenset[str] = frozenset()
    layout: Callable[[Any], Any] | None = None


def option(name: str, edit: Callable[[Call], dict[str, Any]]) -> Callable[[Call], Call | None]:
    """A change of calls with this option."""

    def change(call: Call) -> Call | None:
        if getattr(call.options, name) is None:
            return None
        return call.with_options(**edit(call))

    return change


def tensor(given: Tensor | None) -> Tensor:
    assert given is not None
    return given


def lse_of(call: Call) -> Tensor:
    with torch.no_grad():
        return reference.attention(call.query, call.key, call.value, call.options)[1]


def blind(lse: Tensor) -> Tensor:
    """Rows that see neither a key nor a sink, `[batch, heads, q_len, 1]`."""
    return torch.isneginf(lse).unsqueeze(-1)
