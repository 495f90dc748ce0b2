"""Check timed results: some rows of the output against float64, within the tolerance.

Each row is a query of one head of one sequence; of gradients (`bench.check_gradients`) all rows of
one head of keys are looked at. Beside them every element must be finite. This is no conformance run
(`python -m bridge conform` is): it keeps a wrong answer from being timed.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.cases import Case, Inputs
from bench.timing import Answer
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import attention_tolerance

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_ROWS = 8
MIN_ROWS = 2
# Numbers in the keys of all rows together, beyond which fewer rows are taken: these take a few
# seconds.
MAX_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Verdict:
    """rows: how many were looked at, of all results together. max_error: the largest error of an
    element of theirs, and error_over_tolerance the largest in units of the element's tolerance;
    both infinite for an output that is not finite or has another shape. wrong: the sentence that
    says so, or None."""

    rows: int
    max_error: float
    error_over_tolerance: float
    wrong: str | None


def verdict(rows: int, max_error: float, error_over_tolerance: float) -> Verdict:
    """The verdict on a result that is finite and of the right shape."""
    wrong = None
    if not error_over_tolerance <= 1.0:
        wrong = f"an error of {max_error:.2g}, {error_over_tolerance:.2g} times the tolerance"
    return Verdict(rows, max_error, error_over_tolerance, wrong)


class Check:
    """The check of one case of forward or decode."""

    def __init__(self, inputs: Inputs, *, every_row: bool = False) -> None:
        """every_row: for a small case, instead of some."""
        case = inputs.case
        self._inputs = inputs
        self._rows = _by_head(_every_row(case) if every_row else _rows(inputs))
        self._scale = case.head_dim**-0.5
        self._truth = [self._exact(*rows) for rows in self._rows]
        self._tolerances: dict[str, list[Array]] = {}

    def __call__(self, out: Answer, rounding: RoundingModel) -> Verdict:
        """Judge an output by the tolerance of a function of this rounding model."""
        count, infinite = sum(len(some) for _, _, some in self._rows), float("inf")
        assert isinstance(out, Tensor)
        if out.shape != self._inputs.query.shape:
            wanted = list(self._inputs.query.shape)
            said = f"the output has the shape {list(out.shape)}, not {wanted}"
            return Verdict(count, infinite, infinite, said)
        if not bool(torch.isfinite(out).all()):
            return Verdict(count, infinite, infinite, "the output is not finite everywhere")
        errors = [
            np.abs(_array(out[b, h, some]) - exact)
            for (b, h, some), exact in zip(self._rows, self._truth, strict=True)
        ]
        parts = zip(errors, self._tolerances_of(rounding), strict=True)
        ratio = max(float((error / allowed).max()) for error, allowed in parts)
        largest = max(float(error.max()) for error in errors)
        return verdict(count, largest, ratio)

    def _head(self, b: int, h: int, some: list[int]) -> tuple[Array, Array, Array, Mask]:
        """Some queries of a head, its keys, values, and the mask, `[len(some), kv_len]`."""
        case = self._inputs.case
        kv = h // (case.heads // case.kv_heads)
        query, key, value = self._inputs.query, self._inputs.key, self._inputs.value
        mask = np.stack([case.mask.row(i, case.kv_len) for i in some])
        return _array(query[b, h, some]), _array(key[b, kv]), _array(value[b, kv]), mask

    def _exact(self, b: int, h: int, some: list[int]) -> Array:
        q, k, v, mask = self._head(b, h, some)
        scores = np.where(mask, self._scale * (q @ k.T), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(weights @ v / weights.sum(-1, keepdims=True))

    def _tolerances_of(self, rounding: RoundingModel) -> list[Array]:
        if rounding.name not in self._tolerances:
            found = []
            for rows in self._rows:
                q, k, v, mask = self._head(*rows)
                found.append(
                    attention_tolerance(q, k, v, scale=self._scale, mask=mask, rounding=rounding)
                )
            self._tolerances[rounding.name] = found
        return self._tolerances[rounding.name]


def rounding_of(dtype: str, device: torch.device, *, is_peer: bool) -> RoundingModel:
    """The rounding model of an implementation on this device: a flash kernel with the smallest
    tiles in use; for PyTorch's CPU kernels, which use a fast exponential, their declared one."""
    if is_peer and device.type == "cpu":
        return RoundingModel.sdpa_flash(dtype)
    return RoundingModel.flash(dtype, block_n=16, truncating=device.type == "cuda")


def _by_head(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, list[int]]]:
    """The rows of each head together, so that its keys are read once."""
    found: dict[tuple[int, int], list[int]] = {}
    for b, h, i in rows:
        found.setdefault((b, h), []).append(i)
    return [(b, h, some) for (b, h), some in found.items()]


def _every_row(case: Case) -> list[tuple[int, int, int]]:
    sizes = (range(case.batch), range(case.heads), range(case.q_len))
    return list(itertools.product(*sizes))


def _rows(inputs: Inputs) -> list[tuple[int, int, int]]:
    """(sequence, head, query) of the rows: the last of all, the first, then others by chance."""
    case = inputs.case
    count = MAX_NUMBERS // (case.kv_len * case.head_dim)
    count = min(MAX_ROWS, max(MIN_ROWS, count))
    chance = random.Random(0)
    rows = [(case.batch - 1, case.heads - 1, case.q_len - 1), (0, 0, 0)]
    sizes = (case.batch, case.heads, case.q_len)
    while len(rows) < count:
        b, h, i = (chance.randrange(size) for size in sizes)
        rows.append((b, h, i))
    return list(dict.fromkeys(rows[:count]))


def _array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().to("cpu", torch.float64).numpy(), dtype=np.float64)
