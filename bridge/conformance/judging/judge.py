"""Judge a function's result: its form first, then every element by its tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bridge.conformance.tensors.batch import (
    Batch,
    Outputs,
    exactly,
    factors,
    score_additions,
    visible,
)
from bridge.conformance.tolerances import gradients, tangents
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.tangents import TangentVector

Array = NDArray[np.float64]
Status = Literal["passed", "failed", "unsupported"]


@dataclass(frozen=True)
class Element:
    """The element with the largest error/tolerance. part: "output", "lse", or a gradient and its
    head, as "dk[1]" or "dslopes"; column: None for a log-sum-exp."""

    part: str
    row: int
    column: int | None
    expected: float
    got: float
    tolerance: float
    ratio: float


@dataclass(frozen=True)
class Detail:
    """The result for a vector, and the tolerances: [q_len][value_dim] of the output, [q_len]
    of the log-sum-exp, both empty where that is not judged. parts: of gradients, to which the rows
    belong, as in `Element`."""

    got: tuple[tuple[float, ...], ...]
    tolerance: tuple[tuple[float, ...], ...]
    lse_got: tuple[float, ...] = ()
    lse_tolerance: tuple[float, ...] = ()
    parts: tuple[str, ...] = ()

    @classmethod
    def join(cls, parts: Sequence[Detail]) -> Detail:
        """The details of a vector from those of its parts, row after row."""
        return cls(
            *(
                tuple(row for part in parts for row in getattr(part, field.name))
                for field in fields(cls)
            )
        )


@dataclass(frozen=True)
class VectorResult:
    """The verdict on one vector.

    ratio: largest error/tolerance over its output; lse_ratio: over its log-sum-exp, None where that
    is not judged; rows: the largest ratio of each output row; worst: the worst element of a judged
    vector; failing: how many elements exceed their tolerance; reason: why it is unsupported, or
    the mistake besides the numbers; lse_reason: why its log-sum-exp is not judged; detail: the
    result, kept where asked for and the vector failed; size: of one that failed, how many
    numbers its query, key and value have, None where it has no such.
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
    detail: Detail | None = None
    size: int | None = None


def by_size(size: int | None) -> tuple[bool, int]:
    """A key that sorts failed vectors by their sizes: the smallest input first, one without a size
    last."""
    return size is None, size or 0


def describe_failure(vector: dict[str, Any]) -> str:
    """A failed vector of `Result.to_json` in a line: its id and its fault; if that is a number, the
    worst one, with the expected and the returned number, its error and its tolerance."""
    if vector["reason"] is not None:
        return f"{vector['id']}: {vector['reason']}"
    worst = vector["worst"]
    place = (
        f"[{worst['row']}]" if worst["column"] is None else f"[{worst['row']}, {worst['column']}]"
    )
    error = abs(float(worst["got"]) - float(worst["expected"]))
    return (
        f"{vector['id']}: {worst['part']}{place}: expected {worst['expected']}, got "
        f"{worst['got']}, error {error:.3g}, tolerance {float(worst['tolerance']):.3g}"
    )


def plain(value: Any) -> Any:
    """A value as JSON can hold it: tuples become lists, ∞ and NaN strings."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def result_of(vector: Vector, status: Status, **more: Any) -> VectorResult:
    """The result of that vector."""
    if status == "failed":
        more["size"] = _size(vector)
    return VectorResult(vector.id, vector.family, vector.theorem, status, **more)


def problems_of(vector: Vector) -> tuple[AttentionVector, ...]:
    """The plain problems of attention that a vector is about."""
    match vector:
        case AttentionVector():
            return (vector,)
        case ComesToAttention() | GradientVector():
            return vector.attentions()
        case TangentVector():
            return (vector.attention(),)
    return ()


def _size(vector: Vector) -> int | None:
    sizes = [
        x.q_len * x.head_dim + x.kv_len * (x.head_dim + x.value_dim) for x in problems_of(vector)
    ]
    return sum(sizes) if sizes else None


def _numbers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().double().cpu().numpy(), dtype=np.float64)


def _ratios(error: Array, tolerance: Array) -> Array:
    """error/tolerance; 0 for no error at all, ∞ for an error that is not a number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(error == 0, 0.0, error / tolerance)
    return np.where(np.isnan(ratios), np.inf, ratios)


def tolerances_of(
    rounding: RoundingModel, batch: Batch, *, lse: bool
) -> tuple[Array, Array | None]:
    """By how much the outputs of a batch may be off, [batch, 1, q_len, value_dim], and with `lse`
    its log-sum-exps, [batch, 1, q_len]."""
    q, k, v = (x.double().cpu().numpy() for x in batch.qkv)
    mask = np.stack([visible(vector) for vector in batch.vectors])[:, None]
    numbers = [x for x in map(score_additions, batch.vectors) if x is not None]
    changes = ScoreChanges(
        batch.softcap, np.stack(numbers)[:, None] if numbers else None, batch.sink
    )
    asked: dict[str, Any] = {
        "scale": batch.scale,
        "mask": mask,
        "rounding": rounding,
        "changes": changes,
    }
    dropped = [x for x in map(factors, batch.vectors) if x is not None]
    out = attention_tolerance(
        q, k, v, **asked, factors=np.stack(dropped)[:, None] if dropped else None
    )
    return out, lse_tolerance(q, k, **asked) if lse else None


def judge(
    rounding: RoundingModel,
    batch: Batch,
    outputs: Outputs,
    lse_reasons: Sequence[str | None],
    details: bool = False,
    of_passing: bool = False,
) -> list[VectorResult]:
    """The results of a batch whose outputs are well formed. lse_reasons: of each vector, why its
    log-sum-exp is not judged although there is one; of_passing: details of vectors that pass,
    too."""
    tolerances, lse_tolerances = tolerances_of(rounding, batch, lse=outputs.lse is not None)
    got = _numbers(outputs.out)
    lse_got = None if outputs.lse is None else _numbers(outputs.lse)
    results = []
    for n, vector in enumerate(batch.vectors):
        exact = exactly(vector)
        with np.errstate(invalid="ignore"):
            error = np.abs((got[n, 0] - exact.out) - exact.out_low)
            error = np.maximum(error - exact.uncertainty[:, None], 0.0)
        ratios = _ratios(error, tolerances[n, 0])
        worst = _worst("output", ratios, exact.out, got[n, 0], tolerances[n, 0])
        failing = int((ratios > 1).sum())
        lse_ratio, lse_reason = None, lse_reasons[n]
        if lse_got is None or lse_tolerances is None:
            lse_reason = "the function does not return it"
        elif lse_reason is None:
            with np.errstate(invalid="ignore"):
                lse_error = np.abs((lse_got[n, 0] - exact.lse) - exact.lse_low)
                lse_error = np.maximum(lse_error - exact.uncertainty, 0.0)
            lse_error = np.where(lse_got[n, 0] == exact.lse, 0.0, lse_error)
            lse_ratios = _ratios(lse_error, lse_tolerances[n, 0])
            lse_ratio = float(lse_ratios.max())
            failing += int((lse_ratios > 1).sum())
            if lse_ratio > worst.ratio:
                worst = _worst("lse", lse_ratios, exact.lse, lse_got[n, 0], lse_tolerances[n, 0])
        detail = None
        if details and (failing or of_passing):
            detail = Detail(_rows(got[n, 0]), _rows(tolerances[n, 0]))
            if lse_ratio is not None and lse_got is not None and lse_tolerances is not None:
                rows = lse_got[n, 0].tolist(), lse_tolerances[n, 0].tolist()
                detail = replace(detail, lse_got=tuple(rows[0]), lse_tolerance=tuple(rows[1]))
        results.append(
            result_of(
                vector,
                "failed" if failing else "passed",
                ratio=float(ratios.max()),
                lse_ratio=lse_ratio,
                rows=tuple(ratios.max(-1).tolist()),
                worst=worst,
                failing=failing,
                lse_reason=lse_reason,
                detail=detail,
            )
        )
    return results


def judge_gradients(
    rounding: RoundingModel,
    vector: GradientVector,
    found: Sequence[Mapping[str, Array]],
    details: bool = False,
) -> VectorResult:
    """The result of a vector from its gradients, as `expected_gradients` has them, in one or
    several calls. A name that a call does not give is not judged there."""
    right = gradients.expected_gradients(vector)
    allowed = gradients.tolerances(vector, rounding)
    each: list[tuple[Element, int, Detail]] = []
    for call in found:
        for name, numbers in call.items():
            judged = right[name], vector.judged_part(name, numbers), allowed[name]
            for part, *rows in gradient_parts(name, *judged):
                expected, got, tolerance = rows
                with np.errstate(invalid="ignore"):
                    ratios = _ratios(np.abs(got - expected), tolerance)
                detail = Detail(_rows(got), _rows(tolerance), parts=(part,) * len(got))
                worst = _worst(part, ratios, expected, got, tolerance)
                each.append((worst, int((ratios > 1).sum()), detail))
    failing = sum(n for _, n, _ in each)
    worst = max((element for element, _, _ in each), key=lambda element: element.ratio)
    return result_of(
        vector,
        "failed" if failing else "passed",
        ratio=worst.ratio,
        worst=worst,
        failing=failing,
        detail=Detail.join([detail for _, _, detail in each]) if details and failing else None,
    )


def judge_tangents(
    rounding: RoundingModel,
    vector: TangentVector,
    found: Mapping[str, Array],
    details: bool = False,
) -> VectorResult:
    """The result of a vector from its tangents, as `expected_tangents` has them. A name that is not
    there is not judged."""
    right, allowed = tangents.expected_tangents(vector), tangents.tolerances(vector, rounding)
    ratios, worst, failing = {}, [], 0
    for name, got in found.items():
        with np.errstate(invalid="ignore"):
            ratios[name] = _ratios(np.abs(got - right[name]), allowed[name])
        worst.append(_worst(name, ratios[name], right[name], got, allowed[name]))
        failing += int((ratios[name] > 1).sum())
    detail, lse = None, found.get(tangents.LSE)
    if details and failing:
        detail = Detail(_rows(found[tangents.OUTPUT]), _rows(allowed[tangents.OUTPUT]))
        if lse is not None:
            rows = lse.tolist(), allowed[tangents.LSE].tolist()
            detail = replace(detail, lse_got=tuple(rows[0]), lse_tolerance=tuple(rows[1]))
    return result_of(
        vector,
        "failed" if failing else "passed",
        ratio=float(ratios[tangents.OUTPUT].max()),
        lse_ratio=None if lse is None else float(ratios[tangents.LSE].max()),
        rows=tuple(ratios[tangents.OUTPUT].max(-1).tolist()),
        worst=max(worst, key=lambda element: element.ratio),
        failing=failing,
        lse_reason="the function does not return it" if lse is None else None,
        detail=detail,
    )


def gradient_parts(name: str, *numbers: Array) -> Iterator[tuple[Any, ...]]:
    """Matrices under the names of their heads; numbers of one for each head as one row."""
    if numbers[0].ndim == 1:
        yield f"d{name}", *(x[None] for x in numbers)
        return
    for h, heads in enumerate(zip(*numbers, strict=True)):
        yield f"d{name}[{h}]", *heads


def _rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


def _worst(part: str, ratios: Array, expected: Array, got: Array, tolerance: Array) -> Element:
    place = np.unravel_index(int(ratios.argmax()), ratios.shape)
    return Element(
        part,
        int(place[0]),
        int(place[1]) if len(place) > 1 else None,
        float(expected[place]),
        float(got[place]),
        float(tolerance[place]),
        float(ratios[place]),
    )
