"""Run an adapter over the vectors and judge every element by its allowance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch

from bridge.conformance.adapter import Adapter, GradientsAdapter, LayoutsAdapter
from bridge.conformance.batch import (
    DTYPES,
    Batch,
    Misbehaviour,
    array,
    groups,
    said,
    stack,
    unchanged,
)
from bridge.conformance.judge import (
    Detail,
    VectorResult,
    judge,
    judge_gradients,
    malformed,
    plain,
    result_of,
)
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import AttentionVector, Family, Matrix, Vector
from bridge.vectors.operations import ComesToAttention


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
        for vector in result["vectors"]:
            if vector["detail"] is None:
                del vector["detail"]
        result["ok"] = self.ok
        result["ratio"] = plain(self.ratio)
        result["families"] = {name: plain(asdict(s)) for name, s in self.families().items()}
        return result


def _largest(ratios: list[float | None]) -> float | None:
    return max((r for r in ratios if r is not None), default=None)


def run(
    adapter: Adapter,
    families: Iterable[Family],
    dtype: str,
    device: str = "cpu",
    *,
    details: bool = False,
) -> Result:
    """Every vector of the families through the adapter, in their order.

    dtype: one of the adapter's; device: as PyTorch names it; details: keep what was returned for
    the vectors that fail. Raises ValueError for another dtype. What the function does wrong,
    exceptions included, becomes a failed vector.
    """
    if dtype not in adapter.dtypes:
        raise ValueError(f"{adapter.name} takes {', '.join(adapter.dtypes)}, not {dtype}")
    vectors = [vector for family in families for vector in family.vectors]
    found, jobs = plan(adapter, vectors, dtype, device)
    for job in jobs:
        found += run_job(adapter, job, dtype, device, details=details)
    return gathered(
        adapter.name, dtype, device, adapter.profile(dtype, device).name, vectors, found
    )


def gathered(
    name: str,
    dtype: str,
    device: str,
    profile: str,
    vectors: Sequence[Vector],
    found: Iterable[VectorResult],
) -> Result:
    """The results, one for each vector, in the order of the vectors."""
    results = {result.id: result for result in found}
    return Result(name, dtype, device, profile, tuple(results[vector.id] for vector in vectors))


Job = tuple[Vector, ...]


def plan(
    adapter: Adapter,
    vectors: Iterable[Vector],
    dtype: str,
    device: str,
    *,
    alone: frozenset[str] = frozenset(),
) -> tuple[list[VectorResult], list[Job]]:
    """The results of the vectors that are not covered, and the others in groups that are run at
    once: alike vectors of attention, and each vector of another operation, or with an id in
    `alone`, for itself."""
    results: list[VectorResult] = []
    jobs: list[Job] = []
    together: list[AttentionVector] = []
    for vector in vectors:
        reason = _not_covered(adapter, vector, dtype, device)
        if reason is not None:
            results.append(result_of(vector, "not covered", reason=reason))
        elif isinstance(vector, AttentionVector) and vector.id not in alone:
            together.append(vector)
        else:
            jobs.append((vector,))
    return results, [*groups(together), *jobs]


def run_job(
    adapter: Adapter, job: Job, dtype: str, device: str, *, details: bool = False
) -> list[VectorResult]:
    """The results of one job of `plan`."""
    (first, *_) = job
    if isinstance(first, GradientVector):
        return [_run_gradients(adapter, first, dtype, device, details)]
    if isinstance(first, ComesToAttention):
        return [_run_layout(adapter, first, dtype, device, details)]
    alike = tuple(vector for vector in job if isinstance(vector, AttentionVector))
    return _run_batch(adapter, stack(alike, dtype, device), dtype, device, details)


def _not_covered(adapter: Adapter, vector: Vector, dtype: str, device: str) -> str | None:
    if isinstance(vector, AttentionVector):
        missing = sorted(vector.options - adapter.takes)
        if missing:
            return f"takes no {' and no '.join(missing)}"
        problems: tuple[AttentionVector, ...] = (vector,)
    elif isinstance(vector, GradientVector) and isinstance(adapter, GradientsAdapter):
        reason = adapter.no_gradients(vector, device)
        if reason is None and not _exact(vector.grad_output, dtype):
            reason = f"its gradients by the output are not exact in {dtype}"
        if reason is not None:
            return reason
        problems = vector.attentions()
    elif (
        not isinstance(adapter, LayoutsAdapter)
        or not isinstance(vector, ComesToAttention)
        or vector.operation not in adapter.operations
    ):
        return f"takes no vectors of {vector.operation}"
    else:
        problems = vector.attentions()
    for problem in problems:
        reason = adapter.not_covered(problem, dtype, device, "output") or _inexact(problem, dtype)
        if reason is not None:
            return reason
    return None


def _inexact(vector: AttentionVector, dtype: str) -> str | None:
    bias = tuple(tuple(x or 0 for x in row) for row in vector.bias or ())
    if not _exact((vector.q, vector.k, vector.v, bias), dtype):
        return f"its inputs are not exact in {dtype}"
    return None


def _exact(matrices: Iterable[Matrix], dtype: str) -> bool:
    return all(
        torch.equal(numbers, numbers.to(DTYPES[dtype]).double())
        for numbers in (torch.from_numpy(array(matrix)) for matrix in matrices)
    )


def _raised(error: BaseException) -> str:
    if isinstance(error, Misbehaviour):
        return str(error)
    return f"raised {type(error).__name__}: {said(error)[:300]}".rstrip(": ")


def _run_gradients(
    adapter: Adapter, vector: GradientVector, dtype: str, device: str, details: bool
) -> VectorResult:
    try:
        with np.errstate(all="ignore"):
            # `plan` gives such vectors to adapters that take them, and to no others.
            found = cast(GradientsAdapter, adapter).gradients(vector, dtype, device)
    except (Exception, SystemExit) as error:
        return result_of(vector, "failed", reason=_raised(error), ratio=math.inf)
    return judge_gradients(adapter, vector, found, dtype, device, details)


def _run_layout(
    adapter: Adapter, vector: ComesToAttention, dtype: str, device: str, details: bool
) -> VectorResult:
    """A vector of another operation: judged by the plain problems that it comes to."""
    batches = [stack((problem,), dtype, device) for problem in vector.attentions()]
    wrong: str | None
    try:
        with np.errstate(all="ignore"):
            # `plan` gives such vectors to adapters that take them, and to no others.
            outputs = cast(LayoutsAdapter, adapter).run_vector(vector, dtype, device)
        forms = [malformed(*pair) for pair in zip(batches, outputs, strict=True)]
        wrong = next((x for x in forms if x is not None), None)
    except (Exception, SystemExit) as error:
        wrong = _raised(error)
    if wrong is not None:
        return result_of(vector, "failed", reason=wrong, ratio=math.inf)
    parts: list[VectorResult] = []
    for batch, output in zip(batches, outputs, strict=True):
        if batch.query.shape[-2]:
            parts += judge(adapter, batch, output, dtype, device, details)
    return _together(vector, parts)


def _together(vector: Vector, parts: list[VectorResult]) -> VectorResult:
    """The results of the parts of one vector; rows are counted on from part to part."""
    worst, before = None, 0
    for part in parts:
        if part.worst is not None and (worst is None or part.worst.ratio > worst.ratio):
            worst = replace(part.worst, row=before + part.worst.row)
        before += len(part.rows)
    failing = sum(part.failing for part in parts)
    details = [part.detail for part in parts]
    return result_of(
        vector,
        "failed" if failing else "passed",
        ratio=_largest([part.ratio for part in parts]),
        lse_ratio=_largest([part.lse_ratio for part in parts]),
        rows=tuple(ratio for part in parts for ratio in part.rows),
        worst=worst,
        failing=failing,
        lse_reason=next((part.lse_reason for part in parts if part.lse_reason), None),
        detail=Detail.joined([x for x in details if x is not None]) if failing else None,
    )


def _run_batch(
    adapter: Adapter, batch: Batch, dtype: str, device: str, details: bool
) -> list[VectorResult]:
    before = batch.inputs()
    kept: dict[str, Any] = {name: x.clone() for name, x in before.items()}
    problem: str | None
    try:
        # Triton's interpreter computes with NumPy, which warns of the NaN of a wrong kernel.
        with np.errstate(all="ignore"):
            outputs = adapter.run(batch)
        problem = malformed(batch, outputs)
    except (Exception, SystemExit) as error:
        problem = _raised(error)
    changed = [name for name, x in before.items() if not unchanged(x, kept[name])]
    if changed and problem is None:
        problem = f"changed its inputs: {', '.join(changed)}"
    if problem is None:
        return judge(adapter, batch, outputs, dtype, device, details)
    if len(batch.vectors) == 1:
        return [result_of(batch.vectors[0], "failed", reason=problem, ratio=math.inf)]
    # Which of them was it?
    whole = replace(batch, **kept)
    return [r for one in whole.split() for r in _run_batch(adapter, one, dtype, device, details)]
