"""Results of a conformance run as one self-contained page of HTML."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bridge.audit.theorems import sentences_by_id, theorem_list
from bridge.conformance.judging.judge import (
    VectorResult,
    by_size,
    describe_failure,
    gradient_parts,
    plain,
    problems_of,
)
from bridge.conformance.outcomes.outcome import NotJudged, Outcome
from bridge.conformance.tensors.batch import exactly, visible
from bridge.conformance.tolerances import gradients, tangents
from bridge.report import plots
from bridge.report.tables import alignment_of_is_causal, no_sandbox
from bridge.source.excerpt import SourceError
from bridge.templates import template
from bridge.vectors.model.attention import AttentionVector, Exact, Family, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.tangents import TangentVector
from pyimpl.internal.scores import KERNEL_CHANGES

# A function that fails everything would make a page that no browser shows.
MOST_SHOWN = 50
# Numbers of a matrix that are shown; those of the files have 16,384 at most.
_MOST_NUMBERS = 20_000


@dataclass(frozen=True)
class Line:
    """One row of a result: worst is the column of the largest error/tolerance; errors and
    tolerances are those of all its columns, none where nothing could be judged."""

    number: int
    part: str
    expected: tuple[float, ...]
    got: tuple[float, ...]
    worst: int
    error: float
    tolerance: float
    ratio: float
    errors: tuple[float, ...] = ()
    tolerances: tuple[float, ...] = ()


@dataclass(frozen=True)
class Failure:
    """One failed vector as the page shows it."""

    id: str
    family: str
    what: str
    why: str
    theorem: str
    sentence: str | None
    lean: str
    command: str
    inputs: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]

    @property
    def plot(self) -> plots.Errors | None:
        """Of the row with the worst element, or where a row is one number of all rows of its part;
        None where nothing could be judged."""
        judged = [line for line in self.lines if line.errors]
        if not judged:
            return None
        worst = max(judged, key=lambda line: line.ratio)
        if len(worst.errors) > 1:
            of = f"columns of row {worst.number} of the {worst.part}"
            return plots.errors(of, worst.errors, worst.tolerances)
        column = [line for line in judged if line.part == worst.part]
        return plots.errors(
            f"rows of the {worst.part}",
            [line.errors[0] for line in column], [line.tolerances[0] for line in column],
        )  # fmt: skip


def page(
    outcomes: Sequence[Outcome],
    families: Sequence[Family],
    theorems: Path | None = None,
    refused: Sequence[NotJudged] = (),
) -> str:
    """The page. families: the vectors that were run; theorems: the list of listed theorems,
    default `theorem_list()`, whose sentences are left out where there is none; refused: functions
    that were not judged."""
    sentences = theorem_sentences(theorems or theorem_list())
    vectors = {vector.id: vector for family in families for vector in family.vectors}
    sections = []
    for outcome in outcomes:
        failed = sorted(outcome.result.failures, key=lambda result: by_size(result.size))
        sections.append(
            {
                "outcome": outcome,
                "result": outcome.result,
                "families": outcome.result.families(),
                "plot": plots.families(outcome.result.vectors),
                "unsupported": reasons(outcome),
                "failures": [
                    _failure(outcome, result, vectors[result.id], sentences)
                    for result in failed[:MOST_SHOWN]
                ],
                "others": [describe_failure(plain(asdict(r))) for r in failed[MOST_SHOWN:]],
            }
        )
    return template("bridge.report", "conform.html.jinja").render(
        sections=sections,
        refused=refused,
        number=_number,
        plots=plots,
        alignment=alignment_of_is_causal,
        no_sandbox=no_sandbox,
    )


def reasons(outcome: Outcome) -> list[tuple[str, int]]:
    """Why vectors are unsupported, and how many, the most first."""
    found = Counter(v.reason or "" for v in outcome.result.vectors if v.status == "unsupported")
    return found.most_common()


def theorem_sentences(path: Path) -> dict[str, str]:
    """The sentence of each theorem by its id; none where the list is not there or damaged."""
    try:
        return sentences_by_id(path)
    except (OSError, UnicodeDecodeError, SourceError):
        return {}


def command(outcome: Outcome, vector: str) -> str:
    """The command that runs this vector alone once more."""
    subject, result = outcome.subject, outcome.result
    in_checkout = (Path(__file__).resolve().parents[2] / "lakefile.lean").exists()
    python = ".venv/bin/python" if in_checkout else "python"
    words = [python, "-m", "bridge", "conform", subject.name]
    words += ["--dtype", result.dtype, "--vector", vector]
    if result.device != "cpu":
        words += ["--device", result.device]
    if subject.rounding_model is not None:
        words += ["--rounding-model", subject.rounding_model]
    for feature in subject.without:
        words += ["--without", feature]
    if subject.undeclared:
        words.append("--undeclared")
    for path in outcome.also:
        words += ["--also", str(path)]
    if outcome.fresh is not None and vector in {id for _, id in outcome.fresh.list_names()}:
        words += outcome.fresh.options()
    if subject.bench is not None:
        return "the same command with --vector " + shlex.join(
            [vector, *(outcome.fresh.options() if outcome.fresh is not None else ())]
        )
    if subject.decode:
        words += ["--operation", "decode"]
    if subject.shards is not None:
        words += ["--processes", str(subject.shards.processes), "--layout", subject.shards.layout]
    if subject.problem is not None:
        words += ["--problem", str(subject.problem)]
    if subject.causal_alignment != "top-left":
        words += ["--alignment", subject.causal_alignment]
    return shlex.join(words)


def _failure(
    outcome: Outcome, result: VectorResult, vector: Vector, sentences: dict[str, str]
) -> Failure:
    problems = problems_of(vector)
    described = describe_failure(plain(asdict(result)))
    return Failure(
        result.id,
        result.family,
        described.removeprefix(f"{result.id}: "),
        vector.reason,
        result.theorem,
        sentences.get(result.theorem),
        vector.lean,
        command(outcome, result.id),
        tuple(
            (name if len(problems) == 1 else f"{problem.id}: {name}", text)
            for problem in problems
            for name, text in _inputs(problem)
        )
        + _gradients_given(vector)
        + _rates_given(vector),
        tuple(
            _gradient_lines(result, vector)
            if isinstance(vector, GradientVector)
            else _lines(result, *_expected_rows(vector, problems))
        ),
    )


def _inputs(vector: AttentionVector) -> list[tuple[str, str]]:
    """The inputs by name, numbers as they are in the vector file."""
    scale = "1/√head_dim" if vector.scale is None else str(vector.scale)
    if vector.scale is not None and vector.model == "exact":
        scale += f" · ln 2 = {vector.natural_scale!r}, for weights e^score"
    found = [("scale", scale)]
    for name in (change.feature for change in KERNEL_CHANGES if change.kind != "pair"):
        value = getattr(vector, name)
        if value is not None:
            found.append((name, str(value)))
    found += [(name, _matrix(getattr(vector, name))) for name in ("q", "k", "v")]
    if vector.bias is not None:
        numbers = [["−∞" if x is None else str(x) for x in row] for row in vector.bias]
        found.append(("bias", "\n".join("  ".join(row) for row in numbers)))
    if vector.mask.kind != "none":
        seen = visible(vector).astype(int).tolist()
        rows = ["".join(map(str, row)) for row in seen]
        found.append((f"mask: {vector.mask.kind} (1 = may attend)", "\n".join(rows)))
    return found


def _matrix(matrix: tuple[tuple[Exact, ...], ...]) -> str:
    numbers = sum(map(len, matrix))
    if numbers > _MOST_NUMBERS:
        return f"{numbers} numbers, not shown; the command draws them again"
    return "\n".join("  ".join(str(x) for x in row) for row in matrix)


def _expected_rows(
    vector: Vector, problems: tuple[AttentionVector, ...]
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    """The rows of the output and of the log-sum-exp, or of their rates."""
    if isinstance(vector, TangentVector):
        rates = tangents.expected_tangents(vector)
        outputs, lse = rates[tangents.OUTPUT].tolist(), rates[tangents.LSE].tolist()
    else:
        exact = [exactly(problem) for problem in problems]
        outputs = [row for each in exact for row in each.out.tolist()]
        lse = [x for each in exact for x in each.lse.tolist()]
    return [tuple(row) for row in outputs], [(x,) for x in lse]


def _rates_given(vector: Vector) -> tuple[tuple[str, str], ...]:
    """The rates of the inputs, where the vector has them."""
    if not isinstance(vector, TangentVector):
        return ()
    matrices = {
        name: getattr(vector, f"tangent_{name}")
        for name in ("q", "k", "v", "bias")
        if getattr(vector, f"tangent_{name}") is not None
    }
    numbers = {"slope": vector.tangent_slope, "sink": vector.tangent_sink}
    return (
        *((f"rates of {name}", _matrix(rows)) for name, rows in matrices.items()),
        *((f"rate of the {name}", str(x)) for name, x in numbers.items() if x is not None),
    )


def _lines(
    result: VectorResult, expected: list[tuple[float, ...]], lse: list[tuple[float, ...]]
) -> list[Line]:
    """The rows of the output, then those of the log-sum-exp; only the expected ones where nothing
    was returned that could be judged."""
    detail = result.detail
    if detail is None:
        nothing = (math.nan, math.nan, math.nan)
        return [Line(n, "output", row, (), 0, *nothing) for n, row in enumerate(expected)]
    lines = [
        _line(n, "output", *row)
        for n, row in enumerate(zip(expected, detail.got, detail.tolerance, strict=True))
    ]
    if detail.lse_got:
        pairs = zip(lse, detail.lse_got, detail.lse_tolerance, strict=True)
        lines += [_line(n, "log-sum-exp", e, (g,), (a,)) for n, (e, g, a) in enumerate(pairs)]
    return lines


def _gradients_given(vector: Vector) -> tuple[tuple[str, str], ...]:
    """The gradients by the outputs, where the vector has them."""
    if not isinstance(vector, GradientVector):
        return ()
    heads = zip(vector.grad_output, vector.grad_log_sum_exp, strict=True)
    return tuple(
        (f"{vector.id}[{h}]: gradients by {name}", _matrix(matrix))
        for h, (out, lse) in enumerate(heads)
        for name, matrix in (("the output", out), ("the log-sum-exp", (lse,)))
    )


def _gradient_lines(result: VectorResult, vector: GradientVector) -> list[Line]:
    """The rows of the gradients of each head, in the order in which they were judged."""
    rows = {
        part: [tuple(row) for row in matrix.tolist()]
        for name, numbers in gradients.expected_gradients(vector).items()
        for part, matrix in gradient_parts(name, numbers)
    }
    detail, nothing = result.detail, (math.nan, math.nan, math.nan)
    if detail is None:
        return [
            Line(n, part, row, (), 0, *nothing)
            for part, of_head in rows.items()
            for n, row in enumerate(of_head)
        ]
    lines: list[Line] = []
    for part, got, allowed in zip(detail.parts, detail.got, detail.tolerance, strict=True):
        number = lines[-1].number + 1 if lines and lines[-1].part == part else 0
        number %= len(rows[part])
        lines.append(_line(number, part, rows[part][number], got, allowed))
    return lines


def _line(
    number: int,
    part: str,
    expected: tuple[float, ...],
    got: tuple[float, ...],
    tolerance: tuple[float, ...],
) -> Line:
    wanted, found, allowed = (np.array(row) for row in (expected, got, tolerance))
    with np.errstate(all="ignore"):
        error = np.where(wanted == found, 0.0, np.abs(found - wanted))
        ratios = np.where(error == 0, 0.0, error / allowed)
    ratios = np.where(np.isnan(ratios), np.inf, ratios)
    worst = int(ratios.argmax())
    numbers = float(error[worst]), float(allowed[worst]), float(ratios[worst])
    return Line(
        number, part, expected, got, worst, *numbers, tuple(error.tolist()), tuple(tolerance)
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.6g}"
