"""Run an adapter over the vectors and judge every element by its allowance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bridge.conformance.adapters import Adapter, LayoutsAdapter, Part
from bridge.conformance.allowance import ScoreChanges, attention_allowance, lse_allowance
from bridge.conformance.batch import (
    DTYPES,
    Batch,
    Outputs,
    added,
    array,
    batches,
    exactly,
    stack,
    visible,
)
from bridge.vectors.model import AttentionVector, Family, Vector
from bridge.vectors.operations import ComesToAttention

Array = NDArray[np.float64]
Status = Literal["passed", "failed", "not covered"]


@dataclass(frozen=True)
class Element:
    """The element with the largest error/allowance: `column` is None for a log-sum-exp."""

    part: Part
    row: int
    column: int | None
    expected: float
    got: float
    allowance: float
    ratio: float


@dataclass(frozen=True)
class VectorResult:
    """What became of one vector.

    ratio: largest error/allowance over its output; lse_ratio: over its log-sum-exp, None where that
    is not judged; rows: the largest ratio of each output row; worst: the worst element of a judged
    vector; failing: how many elements exceed their allowance; reason: why it is not covered, or
    what went wrong besides the numbers; lse_reason: why its log-sum-exp is not judged.
    """

    id: str
    family: str
    theorem: str
    status: Status
    ratio: float | None = None
    lse_ratio: float | None = None
    rows: tuple[float, ...] = ()
    worst: Element | None = None
    failing: int = 0
    reason: str | None = None
    lse_reason: str | None = None


@dataclass(frozen=True)
class FamilySummary:
    """Counts and largest error/allowance of one family; None where nothing was judged."""

    passed: int
    failed: int
    not_covered: int
    ratio: float | None
    lse_ratio: float | None


@dataclass(frozen=True)
class Result:
    """One adapter, dtype and device over all vectors."""

    adapter: str
    dtype: str
    device: str
    profile: str
    vectors: tuple[VectorResult, ...] = field(repr=False)

    @property
    def failures(self) -> tuple[VectorResult, ...]:
        return tuple(v for v in self.vectors if v.status == "failed")

    @property
    def ok(self) -> bool:
        """At least one vector was judged and none failed."""
        return not self.failures and any(v.status == "passed" for v in self.vectors)

    @property
    def ratio(self) -> float | None:
        """The largest error/allowance of all, output and log-sum-exp."""
        return _largest([*(v.ratio for v in self.vectors), *(v.lse_ratio for v in self.vectors)])

    def families(self) -> dict[str, FamilySummary]:
        """Counts and largest ratios by family, in the order of the vectors."""
        grouped: dict[str, list[VectorResult]] = {}
        for vector in self.vectors:
            grouped.setdefault(vector.family, []).append(vector)
        return {
            name: FamilySummary(
                sum(v.status == "passed" for v in group),
                sum(v.status == "failed" for v in group),
                sum(v.status == "not covered" for v in group),
                _largest([v.ratio for v in group]),
                _largest([v.lse_ratio for v in group]),
            )
            for name, group in grouped.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps(..., allow_nan=False)`: ∞ and NaN become strings."""
        result: dict[str, Any] = plain(asdict(self))
        result["ok"] = self.ok
        result["ratio"] = plain(self.ratio)
        result["families"] = {name: plain(asdict(s)) for name, s in self.families().items()}
        return result


def describe_failure(vector: dict[str, Any]) -> str:
    """A failed vector of `Result.to_json` in half a sentence: its id and what is wrong."""
    if vector["reason"] is not None:
        return f"{vector['id']}: {vector['reason']}"
    worst = vector["worst"]
    place = (
        f"[{worst['row']}]" if worst["column"] is None else f"[{worst['row']}, {worst['column']}]"
    )
    return (
        f"{vector['id']}: {worst['part']}{place} is {worst['got']} and should be "
        f"{worst['expected']}, {worst['ratio']} times the allowance away"
    )


def _largest(ratios: list[float | None]) -> float | None:
    return max((r for r in ratios if r is not None), default=None)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: tuples become lists, ∞ and NaN strings."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def run(adapter: Adapter, families: Iterable[Family], dtype: str, device: str = "cpu") -> Result:
    """Every vector of the families through the adapter, in their order.

    dtype: one of the adapter's; device: as PyTorch names it. Raises ValueError for another dtype.
    What the function does wrong, exceptions included, becomes a failed vector.
    """
    if dtype not in adapter.dtypes:
        raise ValueError(f"{adapter.name} takes {', '.join(adapter.dtypes)}, not {dtype}")
    vectors = [vector for family in families for vector in family.vectors]
    results: dict[str, VectorResult] = {}
    covered = []
    for vector in vectors:
        if not isinstance(vector, AttentionVector):
            results[vector.id] = _run_layout(adapter, vector, dtype, device)
            continue
        reason = _not_taken(adapter, vector)
        reason = reason or adapter.not_covered(vector, dtype, device, "output")
        reason = reason or _inexact(vector, dtype)
        if reason is None:
            covered.append(vector)
        else:
            results[vector.id] = _result(vector, "not covered", reason=reason)
    for batch in batches(covered, dtype, device):
        for result in _run_batch(adapter, batch, dtype, device):
            results[result.id] = result
    profile = adapter.profile(dtype, device)
    ordered = tuple(results[vector.id] for vector in vectors)
    return Result(adapter.name, dtype, device, profile.name, ordered)


def _result(vector: Vector, status: Status, **more: Any) -> VectorResult:
    return VectorResult(vector.id, vector.family, vector.theorem, status, **more)


def _not_taken(adapter: Adapter, vector: AttentionVector) -> str | None:
    missing = sorted(vector.options - adapter.takes)
    return f"takes no {' and no '.join(missing)}" if missing else None


def _inexact(vector: AttentionVector, dtype: str) -> str | None:
    bias = tuple(tuple(x or 0 for x in row) for row in vector.bias or ())
    for matrix in (vector.q, vector.k, vector.v, bias):
        numbers = torch.from_numpy(array(matrix))
        if not torch.equal(numbers, numbers.to(DTYPES[dtype]).double()):
            return f"its inputs are not exact in {dtype}"
    return None


def _run_layout(adapter: Adapter, vector: Vector, dtype: str, device: str) -> VectorResult:
    """A vector of another operation: judged by the plain problems that it comes to."""
    if (
        not isinstance(adapter, LayoutsAdapter)
        or not isinstance(vector, ComesToAttention)
        or vector.operation not in adapter.operations
    ):
        return _result(vector, "not covered", reason=f"takes no vectors of {vector.operation}")
    problems = vector.attentions()
    for problem in problems:
        reason = adapter.not_covered(problem, dtype, device, "output") or _inexact(problem, dtype)
        if reason is not None:
            return _result(vector, "not covered", reason=reason)
    batches = [stack((problem,), dtype, device) for problem in problems]
    try:
        with np.errstate(all="ignore"):
            outputs = adapter.run_vector(vector, dtype, device)
        malformed = [_malformed(*pair) for pair in zip(batches, outputs, strict=True)]
        wrong = next((x for x in malformed if x is not None), None)
    except Exception as error:
        wrong = f"raised {type(error).__name__}: {str(error)[:300]}"
    if wrong is not None:
        return _result(vector, "failed", reason=wrong, ratio=math.inf)
    parts: list[VectorResult] = []
    for batch, output in zip(batches, outputs, strict=True):
        if batch.query.shape[-2]:
            parts += _judge(adapter, batch, output, dtype, device)
    return _together(vector, parts)


def _together(vector: Vector, parts: list[VectorResult]) -> VectorResult:
    """The results of the parts of one vector; rows are counted on from part to part."""
    worst, before = None, 0
    for part in parts:
        if part.worst is not None and (worst is None or part.worst.ratio > worst.ratio):
            worst = replace(part.worst, row=before + part.worst.row)
        before += len(part.rows)
    failing = sum(part.failing for part in parts)
    return _result(
        vector,
        "failed" if failing else "passed",
        ratio=_largest([part.ratio for part in parts]),
        lse_ratio=_largest([part.lse_ratio for part in parts]),
        rows=tuple(ratio for part in parts for ratio in part.rows),
        worst=worst,
        failing=failing,
        lse_reason=next((part.lse_reason for part in parts if part.lse_reason), None),
    )


def _run_batch(adapter: Adapter, batch: Batch, dtype: str, device: str) -> list[VectorResult]:
    before = [x.clone() for x in (batch.query, batch.key, batch.value)]
    try:
        # Triton's interpreter computes with NumPy, which warns of the NaN of a wrong kernel.
        with np.errstate(all="ignore"):
            outputs = adapter.run(batch)
        problem = _malformed(batch, outputs)
    except Exception as error:
        problem = f"raised {type(error).__name__}: {str(error)[:300]}"
    else:
        after = (batch.query, batch.key, batch.value)
        if not all(torch.equal(x, y) for x, y in zip(before, after, strict=True)):
            problem = "changed its inputs"
    if problem is None:
        return _judge(adapter, batch, outputs, dtype, device)
    if len(batch.vectors) == 1:
        return [_result(batch.vectors[0], "failed", reason=problem, ratio=math.inf)]
    # Which of them was it?
    query, key, value = before
    whole = replace(batch, query=query, key=key, value=value)
    return [r for one in whole.split() for r in _run_batch(adapter, one, dtype, device)]


def _malformed(batch: Batch, outputs: Outputs) -> str | None:
    wanted = (*batch.query.shape[:-1], batch.value.shape[-1])
    out, lse = outputs.out, outputs.lse
    if tuple(out.shape) != wanted:
        return f"returned an output of shape {tuple(out.shape)} instead of {wanted}"
    if out.dtype != batch.query.dtype:
        return f"returned an output of {out.dtype} instead of {batch.query.dtype}"
    if out.device != batch.query.device:
        return f"returned an output on {out.device} instead of {batch.query.device}"
    if lse is not None and tuple(lse.shape) != wanted[:-1]:
        return f"returned a log-sum-exp of shape {tuple(lse.shape)} instead of {wanted[:-1]}"
    return None


def _ratios(error: Array, allowance: Array) -> Array:
    """error/allowance; 0 for no error at all, ∞ for an error that is not a number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(error == 0, 0.0, error / allowance)
    return np.where(np.isnan(ratios), np.inf, ratios)


def _judge(
    adapter: Adapter, batch: Batch, outputs: Outputs, dtype: str, device: str
) -> list[VectorResult]:
    profile = adapter.profile(dtype, device)
    q, k, v = (x.double().cpu().numpy() for x in (batch.query, batch.key, batch.value))
    mask = np.stack([visible(vector) for vector in batch.vectors])[:, None]
    numbers = [x for x in map(added, batch.vectors) if x is not None]
    changes = ScoreChanges(
        batch.softcap, np.stack(numbers)[:, None] if numbers else None, batch.sink
    )
    asked: dict[str, Any] = {
        "scale": batch.scale,
        "mask": mask,
        "profile": profile,
        "changes": changes,
    }
    allowances = attention_allowance(q, k, v, **asked)
    got = outputs.out.double().cpu().numpy()
    lse_allowances = lse_got = None
    if outputs.lse is not None:
        lse_allowances = lse_allowance(q, k, **asked)
        lse_got = outputs.lse.double().cpu().numpy()
    results = []
    for n, vector in enumerate(batch.vectors):
        exact = exactly(vector)
        with np.errstate(invalid="ignore"):
            error = np.abs((got[n, 0] - exact.out) - exact.out_low)
            error = np.maximum(error - exact.uncertainty[:, None], 0.0)
        ratios = _ratios(error, allowances[n, 0])
        worst = _worst("output", ratios, exact.out, got[n, 0], allowances[n, 0])
        failing = int((ratios > 1).sum())
        lse_ratio = lse_reason = None
        if lse_got is None or lse_allowances is None:
            lse_reason = "the function does not return it"
        else:
            lse_reason = adapter.not_covered(vector, dtype, device, "lse")
        if lse_reason is None and lse_got is not None and lse_allowances is not None:
            with np.errstate(invalid="ignore"):
                lse_error = np.abs((lse_got[n, 0] - exact.lse) - exact.lse_low)
                lse_error = np.maximum(lse_error - exact.uncertainty, 0.0)
            lse_error = np.where(lse_got[n, 0] == exact.lse, 0.0, lse_error)
            lse_ratios = _ratios(lse_error, lse_allowances[n, 0])
            lse_ratio = float(lse_ratios.max())
            failing += int((lse_ratios > 1).sum())
            if lse_ratio > worst.ratio:
                worst = _worst("lse", lse_ratios, exact.lse, lse_got[n, 0], lse_allowances[n, 0])
        results.append(
            _result(
                vector,
                "failed" if failing else "passed",
                ratio=float(ratios.max()),
                lse_ratio=lse_ratio,
                rows=tuple(ratios.max(-1).tolist()),
                worst=worst,
                failing=failing,
                lse_reason=lse_reason,
            )
        )
    return results


def _worst(part: Part, ratios: Array, expected: Array, got: Array, allowance: Array) -> Element:
    place = np.unravel_index(int(ratios.argmax()), ratios.shape)
    return Element(
        part,
        int(place[0]),
        int(place[1]) if len(place) > 1 else None,
        float(expected[place]),
        float(got[place]),
        float(allowance[place]),
        float(ratios[place]),
    )
