"""Check timed gradients: those of one head of keys of one sequence, and of all heads of queries
that share it, against float64, each element within its tolerance
(`bridge.conformance.tolerances.gradient_tolerance`). It is the last head of the last sequence,
which an index that overflows hits first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bench.cases import Case, Inputs
from bench.check import Verdict, rounding_of, verdict
from bench.timing import Answer
from bridge.conformance.tolerances.gradient_tolerance import Bounded, gradient_bounds
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import RoundingModel

NAMES = ("query", "key", "value")
# Pairs of a query and a key at a time: float64 matrices of 32 MiB.
MAX_PAIRS = 1 << 22


def gradient_rounding(case: Case, device: torch.device, *, is_peer: bool) -> RoundingModel:
    """The rounding model of an implementation on this device: as `rounding_of`, and PyTorch's CPU
    kernels add the contributions of tiles of 32, 64 or 256 queries in the dtype of the inputs."""
    found = rounding_of(case.dtype, device, is_peer=is_peer)
    if found.weights is None or device.type != "cpu" or not is_peer:
        return found
    rows = 256 if case.q_len >= 768 else 64 if case.q_len >= 192 else 32
    return replace(found, gradient_rows=rows)


class CheckGradients:
    """The check of one case in which gradients are computed, on the device of its inputs."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        case = inputs.case
        group = case.heads // case.kv_heads
        # The part of each result that is looked at.
        self._parts = (slice(case.heads - group, None), slice(-1, None), slice(-1, None))
        self._exact: tuple[Tensor, ...] = ()
        self._tolerances: dict[str, tuple[Tensor, ...]] = {}

    def __call__(self, found: Answer | Sequence[Tensor | None], rounding: RoundingModel) -> Verdict:
        """Judge the gradients by query, key and value by the tolerances of a function of this
        rounding model; None for one that was not computed."""
        case, infinite = self._inputs.case, float("inf")
        rows = case.heads // case.kv_heads * case.q_len + 2 * case.kv_len
        for name, gradient, like in zip(NAMES, found, self._tensors(), strict=True):
            if gradient is None:
                continue
            if gradient.shape != like.shape:
                said = f"has the shape {list(gradient.shape)}, not {list(like.shape)}"
                return Verdict(rows, infinite, infinite, f"the gradient of {name} {said}")
            if not bool(torch.isfinite(gradient).all()):
                said = f"the gradient of {name} is not finite everywhere"
                return Verdict(rows, infinite, infinite, said)
        if rounding.name not in self._tolerances:
            self._exact, self._tolerances[rounding.name] = self._bounds(rounding)
        largest, ratio = 0.0, 0.0
        of_rounding = self._tolerances[rounding.name]
        for gradient, part, exact, allowed in zip(
            found, self._parts, self._exact, of_rounding, strict=True
        ):
            if gradient is None:
                continue
            error = (gradient[-1:, part].double() - exact).abs()
            largest = max(largest, float(error.max()))
            ratio = max(ratio, float((error / allowed).nan_to_num(0.0, posinf=infinite).max()))
        return verdict(rows, largest, ratio)

    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._inputs.query, self._inputs.key, self._inputs.value

    def _bounds(self, rounding: RoundingModel) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """(the exact gradients of those heads, the tolerance of each element)."""
        case = self._inputs.case
        heads: list[Bounded] = []
        members: list[Sequence[Bounded]] = []
        group = case.heads // case.kv_heads
        for head in range(case.heads - group, case.heads):
            queries, *of_keys = zip(*self._blocks(head, rounding), strict=True)
            heads.append(_join(queries))
            members.append([_add(x) for x in of_keys])
        stored = rounding.output
        query = _join(heads, dim=1)
        keys = [_add(x) for x in zip(*members, strict=True)]
        allowed = [x.tolerance(stored) for x in (query, *keys)]
        if group > 1:
            # Kernels that take no groups round the gradients of each head before they add them.
            for place, parts in enumerate(zip(*members, strict=True), 1):
                for part in parts:
                    allowed[place] = allowed[place] + part.tolerance(stored) - part.error
        return (query.exact, *(x.exact for x in keys)), tuple(allowed)

    def _blocks(
        self, head: int, rounding: RoundingModel
    ) -> Iterator[tuple[Bounded, Bounded, Bounded]]:
        """The bounds of some queries of this head after others, by query, key and value."""
        case, inputs = self._inputs.case, self._inputs
        key, value = (x.detach()[-1:, -1:] for x in (inputs.key, inputs.value))
        assert inputs.grad_out is not None
        step = max(1, MAX_PAIRS // case.kv_len)
        members = case.heads // case.kv_heads * case.q_len
        for first in range(0, case.q_len, step):
            stop = min(case.q_len, first + step)
            seen = case.mask.dense(case.q_len, case.kv_len, inputs.device, first, stop)
            hidden = torch.where(seen, 0.0, -torch.inf)
            found = gradient_bounds(
                inputs.query.detach()[-1:, head : head + 1, first:stop], key, value,
                inputs.grad_out[-1:, head : head + 1, first:stop], None,
                Scored(case.head_dim**-0.5, added=(hidden,)), rounding, q_len=members,
            )  # fmt: skip
            yield found.query, found.key, found.value


def _add(parts: Sequence[Bounded]) -> Bounded:
    return sum(parts[1:], parts[0])


def _join(parts: Sequence[Bounded], dim: int = 2) -> Bounded:
    return Bounded(
        *(torch.cat([getattr(x, n) for x in parts], dim) for n in ("exact", "error", "size"))
    )
