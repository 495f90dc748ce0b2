"""Run an adapter over the vectors and judge every element by its tolerance."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from bridge.conformance.adapters import documents
from bridge.conformance.adapters.adapter import Adapter
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.judging.answers import Answer, Job, answers, jobs_of, why_unsupported
from bridge.conformance.judging.judge import (
    Detail,
    VectorResult,
    describe_failure,
    judge,
    judge_gradients,
    judge_tangents,
    plain,
    result_of,
)
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector, Family, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.tangents import TangentVector

# In an order that is drawn, one call in so many comes a second time.
_TWICE = 16
# And one in so many with its inputs in larger buffers.
_PADDED = 8
Buffers = Literal["some", "all", "none"]
# How a call is made: as the vector says, with its inputs in larger buffers, or as one of several
# documents.
Way = Literal["plain", "buffers", "documents"]
IN_BUFFERS = "with query, key and value in larger buffers, which are NaN around them"
AMONG_DOCUMENTS = "as the second of three documents, by cu_seqlens"
_SAYS = {"buffers": IN_BUFFERS, "documents": AMONG_DOCUMENTS}
_AFTER_FAILURE = "was not run, since another failed first"


@dataclass(frozen=True)
class FamilySummary:
    """Counts and largest error/tolerance of one family; None where nothing was judged."""

    passed: int
    failed: int
    unsupported: int
    ratio: float | None
    lse_ratio: float | None


@dataclass(frozen=True)
class Result:
    """The results of one adapter, dtype and device over all vectors."""

    adapter: str
    dtype: str
    device: str
    rounding_model: str
    vectors: tuple[VectorResult, ...] = field(repr=False)

    @property
    def failures(self) -> tuple[VectorResult, ...]:
        return tuple(v for v in self.vectors if v.status == "failed")

    @property
    def ok(self) -> bool:
        """Whether at least one vector was judged and none failed."""
        return not self.failures and any(v.status == "passed" for v in self.vectors)

    @property
    def ratio(self) -> float | None:
        """The largest error/tolerance of all, output and log-sum-exp."""
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
                sum(v.status == "unsupported" for v in group),
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
    order: random.Random | None = None,
    until_failure: Sequence[str] | None = None,
    buffers: Buffers = "some",
) -> Result:
    """Every vector of the families through the adapter.

    dtype: one of the adapter's; device: as PyTorch names it; details: keep the results for
    the vectors that fail; order: run them in an order that is drawn from it, and some a second
    time: one that fails then fails; until_failure: begin with the vectors of these families, in
    this order, and once one has failed run no more, and do not ask which are unsupported; buffers:
    in an order that is drawn, which calls of a function come again with query, key and value in
    larger buffers: a share, all or none; a call that raises an error then is left out. Raises
    ValueError for another dtype. Errors of the function, exceptions included, become failed
    vectors.
    """
    if dtype not in adapter.dtypes:
        raise ValueError(f"{adapter.name} takes {', '.join(adapter.dtypes)}, not {dtype}")
    vectors = [vector for family in families for vector in family.vectors]
    rounding = adapter.rounding(dtype, device)
    results: dict[str, VectorResult] = {}
    others: dict[str, VectorResult] = {}
    for job, way in _calls(adapter, vectors, dtype, device, order, until_failure, buffers, results):
        for answer in _answers(adapter, job, dtype, device, way):
            for result in judge_answer(rounding, answer, details=details):
                if way != "plain":
                    if result.status == "failed":
                        others.setdefault(result.id, _in_way(result, _SAYS[way]))
                    continue
                before = results.setdefault(result.id, result)
                if before.status == "passed":
                    results[result.id] = result
        if until_failure is not None and any(
            v.id in others or (v.id in results and results[v.id].status == "failed") for v in job
        ):
            break
    for id, result in others.items():
        # A fault that shows in every way is told as it is when called plainly.
        if id not in results or results[id].status == "passed":
            results[id] = result
    each = tuple(
        results.get(vector.id) or result_of(vector, "unsupported", reason=_AFTER_FAILURE)
        for vector in vectors
    )
    return Result(adapter.name, dtype, device, rounding.name, each)


def _calls(
    adapter: Adapter,
    vectors: Sequence[Vector],
    dtype: str,
    device: str,
    order: random.Random | None,
    until_failure: Sequence[str] | None,
    buffers: Buffers,
    results: dict[str, VectorResult],
) -> Iterator[tuple[Job, Way]]:
    """The calls, in order. Unsupported vectors are entered in `results` before: those of the
    families in `until_failure` first, and the others once all calls of these are made."""
    rank = {name: n for n, name in enumerate(until_failure or ())}
    first = [vector for vector in vectors if vector.family in rank]
    for stage in (first, [vector for vector in vectors if vector.family not in rank]):
        reasons = why_unsupported(adapter, stage, dtype, device)
        for vector in stage:
            if (reason := reasons.get(vector.id)) is not None:
                results[vector.id] = result_of(vector, "unsupported", reason=reason)
        jobs = jobs_of(vector for vector in stage if vector.id not in reasons)
        calls: list[tuple[Job, Way]] = [(job, "plain") for job in jobs]
        if order is not None:
            calls += order.sample(calls, len(jobs) // _TWICE)
            order.shuffle(calls)
            if isinstance(adapter, CallableAdapter) and buffers != "none":
                # Last: if a call hangs or ends its process in any case, it is told without them.
                count = len(jobs) if buffers == "all" else -(-len(jobs) // _PADDED)
                calls += [(job, "buffers") for job in order.sample(jobs, count)]
        if isinstance(adapter, CallableAdapter) and "documents" in adapter.features.supported:
            calls += [(job, "documents") for job in jobs if can_be_among(job)]
        calls.sort(key=lambda call: min(rank.get(v.family, len(rank)) for v in call[0]))
        yield from calls


def can_be_among(job: Job) -> bool:
    """Whether each problem of a job may be one of several documents."""
    problems: list[AttentionVector] = []
    for vector in job:
        if isinstance(vector, AttentionVector):
            problems.append(vector)
        elif isinstance(vector, GradientVector):
            problems += vector.attentions()
        elif isinstance(vector, ComesToAttention):
            problems += vector.problems()
    return bool(problems) and all(map(documents.can_be_among, problems))


def _answers(adapter: Adapter, job: Job, dtype: str, device: str, way: Way) -> list[Answer]:
    """The answers of a call, without those in larger buffers that the function refuses."""
    if way == "plain" or not isinstance(adapter, CallableAdapter):
        return answers(adapter, job, dtype, device)
    adapter.padded, adapter.among = way == "buffers", way == "documents"
    try:
        found = answers(adapter, job, dtype, device)
    finally:
        adapter.padded = adapter.among = False
    if way == "documents":
        return found
    return [answer for answer in found if not (answer.problem or "").startswith("raised ")]


def _in_way(result: VectorResult, said: str) -> VectorResult:
    """A failure that says how the function was called."""
    reason = describe_failure({**plain(asdict(result)), "id": said})
    return replace(result, reason=reason, detail=None)


def judge_answer(
    rounding: RoundingModel, answer: Answer, *, details: bool = False
) -> list[VectorResult]:
    """The results of the vectors of an answer."""
    (first, *_) = answer.vectors
    if answer.problem is not None:
        return [
            result_of(vector, "failed", reason=answer.problem, ratio=math.inf)
            for vector in answer.vectors
        ]
    if isinstance(first, GradientVector):
        return [judge_gradients(rounding, first, answer.gradients, details)]
    if isinstance(first, TangentVector):
        assert answer.tangents is not None
        return [judge_tangents(rounding, first, answer.tangents, details)]
    parts: list[VectorResult] = []
    given = zip(answer.batches, answer.outputs, answer.lse_reasons, strict=True)
    for batch, outputs, reasons in given:
        if batch.query.shape[-2] or not isinstance(first, ComesToAttention):
            # The details of a vector have the rows of all its parts.
            several = isinstance(first, ComesToAttention)
            parts += judge(rounding, batch, outputs, reasons, details, of_passing=several)
    return [_together(first, parts)] if isinstance(first, ComesToAttention) else parts


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
        detail=Detail.join([x for x in details if x is not None]) if failing else None,
    )
