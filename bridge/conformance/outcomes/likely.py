"""The likely cause of failures: features that the failing vectors have in common, and which mutants
give the same results.

Looked for after failures alone, in results that were taken before: the function is not called
again, and whatever happens here changes no verdict.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bridge.conformance.judging.answers import Answer, answers, jobs_of, why_unsupported
from bridge.conformance.judging.judge import Detail, VectorResult
from bridge.conformance.judging.run import Result, judge_answer
from bridge.conformance.judging.threads import one_thread
from bridge.conformance.outcomes.in_common import (
    Common,
    features_of,
    find_common,
    plain_problem_of,
    remarks,
)
from bridge.vectors.model.attention import Family, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.sampled import SampledVector

if TYPE_CHECKING:
    from bridge.conformance.mutants.hypotheses.call import Hypothesis
    from bridge.conformance.outcomes.outcome import Outcome
    from bridge.conformance.tolerances.rounding_model import RoundingModel

# How much is computed for all hypotheses of one dtype, in query-key pairs times width; those left
# then are not tried. Seconds would depend on the machine's other work. It is about twice as much
# as 48 failing vectors were seen to need, which takes 1 to 3 seconds.
WORK = 1 << 30
# Of a vector however small.
_CALL = 1 << 18
# Failing vectors that every hypothesis is compared with, the smallest of each kind first, and
# passing ones that a hypothesis is held against.
_COMPARED, _HELD_AGAINST = 48, 48
# Failing vectors with another result after which a hypothesis that explained none is given up.
_GIVEN_UP_AFTER = 4
# Query-key pairs times width of a vector, above which it is not compared.
_LARGEST = 1 << 21
# Least share of the compared vectors that the first cause explains, and that a further one does.
_FIRST, _FURTHER = 0.2, 0.1
_MOST_CAUSES = 3


@dataclass(frozen=True)
class Cause:
    """A mutant with the function's results. explained: for how many of the `compared`
    failing vectors; contradicted: of how many of the `passing` vectors it was held against it
    says that they fail; others: descriptions of those that explain the same vectors."""

    name: str
    description: str
    explained: int
    compared: int
    contradicted: int
    passing: int
    others: tuple[str, ...] = ()

    def sentence(self) -> str:
        """As the verdict says it."""
        either = "; or: ".join((self.description, *self.others))
        share = f"{self.explained} of {self.compared} failing vectors compared"
        if self.contradicted:
            return (
                f"Behaves on them like: {either} ({share}), but {self.contradicted} of "
                f"{self.passing} passing vectors would fail so."
            )
        held = f", none of {self.passing} passing ones against it" if self.passing else ""
        return f"Behaves like: {either} (explains {share}{held})."


@dataclass(frozen=True)
class Likely:
    """The likely cause of an implementation's failures in one dtype. remarks: on the
    failures as a whole, such as other dtypes; tried: how many hypotheses; problem: why they were
    not all tried."""

    remarks: tuple[str, ...] = ()
    common: Common | None = None
    causes: tuple[Cause, ...] = ()
    compared: int = 0
    tried: int = 0
    problem: str | None = None

    def sentences(self) -> tuple[str, ...]:
        """All of it, a sentence each."""
        found = [cause.sentence() for cause in self.causes]
        if not self.causes and self.tried:
            found.append(
                f"No mutant explains it: none of the {self.tried} that were tried gives "
                f"the results of the {self.compared} failing vectors compared."
            )
        if self.common is not None:
            found.append(self.common.sentence())
        found += self.remarks
        if self.problem is not None:
            found.append(self.problem)
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "sentences": list(self.sentences())}


def with_likely(outcomes: Sequence[Outcome], families: Iterable[Family]) -> list[Outcome]:
    """The outcomes of one implementation, those with failures with their likely causes.
    families: the vectors that were run. Raises nothing."""
    if not any(outcome.result.failures for outcome in outcomes):
        return list(outcomes)
    vectors = {vector.id: vector for family in families for vector in family.vectors}
    found = []
    for outcome in outcomes:
        likely = None
        if outcome.result.failures:
            likely = _likely(outcome, vectors, [o.result for o in outcomes])
        found.append(replace(outcome, likely=likely))
    return found


def _likely(outcome: Outcome, vectors: Mapping[str, Vector], results: Sequence[Result]) -> Likely:
    likely = Likely()
    try:
        with one_thread():
            result = outcome.result
            likely = Likely(tuple(remarks(result, results)), find_common(result, vectors))
            return _Search(outcome, vectors).search(likely)
    except Exception as error:
        return replace(
            likely, problem=f"The cause was not looked for to the end: {_describe_error(error)}."
        )


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}".rstrip(": .")


@dataclass
class _Trial:
    """A hypothesis: the vectors that it explains, and those of which it gives something else."""

    hypothesis: Hypothesis
    explained: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    contradicted: int = 0
    passing: int = 0


class _Search:
    """The hypotheses held against the results of one implementation in one dtype."""

    def __init__(self, outcome: Outcome, vectors: Mapping[str, Vector]) -> None:
        from bridge.conformance.outcomes.subject import adapter_of

        self.outcome, self.result = outcome, outcome.result
        self.vectors = vectors
        adapter = adapter_of(outcome.subject, lambda *given, **options: None)
        self.rounding: RoundingModel = adapter.rounding(self.result.dtype, self.result.device)
        self.takes = adapter.takes
        wide = self.result.dtype == "float64"
        self.wide = torch.float64 if wide else torch.float32
        self.left = WORK
        self._costs: dict[str, int] = {}
        self._jobs: dict[tuple[str, ...], list[tuple[Vector, ...]]] = {}
        self.details = {
            v.id: v.detail
            for v in self.result.failures
            if v.detail is not None and v.reason is None
        }

    def search(self, likely: Likely) -> Likely:
        """`likely` with the causes."""
        from bridge.conformance.mutants.hypotheses import every

        failing = self._sample(list(self.details), _COMPARED)
        passing = [v.id for v in self.result.vectors if v.status == "passed"]
        held = self._sample(passing, len(passing))
        if not failing:
            return likely
        if self.outcome.subject.bench is not None:
            # No mutant is called as a definition is.
            return likely
        trials, tried, problem = [], 0, None
        operations = {vector.operation for vector in failing}
        hypotheses = [h for h in every.HYPOTHESES if not h.operations or h.operations & operations]
        for hypothesis in hypotheses:
            if self.left <= 0:
                problem = (
                    f"{len(hypotheses) - tried} of {len(hypotheses)} hypotheses were not tried: "
                    "the failing vectors are too many and too large."
                )
                break
            tried += 1
            try:
                trial = self._try(hypothesis, failing)
            except Exception as error:
                cause = _describe_error(error)
                problem = f"The hypothesis {hypothesis.name} could not be tried: {cause}."
                continue
            if trial.explained:
                trials.append(trial)
        causes = self._causes(trials, failing, held)
        return replace(
            likely, causes=tuple(causes), compared=len(failing), tried=tried, problem=problem
        )

    def jobs(self, adapter: Any, vectors: Sequence[Vector]) -> list[tuple[Vector, ...]]:
        """The vectors that run at once: the same for every hypothesis."""
        key = tuple(vector.id for vector in vectors)
        if key not in self._jobs:
            lacking = why_unsupported(adapter, vectors, "float64", "cpu")
            self._jobs[key] = jobs_of(v for v in vectors if v.id not in lacking)
        return self._jobs[key]

    def cost(self, id: str) -> int:
        """Of a vector, by its id."""
        if id not in self._costs:
            self._costs[id] = _cost(self.vectors[id])
        return self._costs[id]

    def _causes(
        self, trials: list[_Trial], failing: list[Vector], held: list[Vector]
    ) -> Iterator[Cause]:
        """The best, then the best for the rest, and so on."""
        left = {vector.id for vector in failing}
        share, number, doubtful = _FIRST, 0, None
        while number < _MOST_CAUSES:
            order = sorted(trials, key=lambda t: -len(t.explained & left))
            best = None
            for trial in order:
                if len(trial.explained & left) < max(1.0, share * len(failing)):
                    break
                self._hold(trial, held)
                if not trial.contradicted:
                    best = trial
                    break
                if doubtful is None:
                    doubtful = trial
            if best is None:
                break
            alike = [
                t.hypothesis.description
                for t in trials
                if t is not best
                and t.explained & left == best.explained & left
                and not self._hold(t, held).contradicted
            ]
            yield _cause(best, len(failing), tuple(alike[:2]))
            left -= best.explained
            trials = [t for t in trials if t is not best]
            share, number, doubtful = _FURTHER, number + 1, best
        if number == 0 and doubtful is not None:
            yield _cause(doubtful, len(failing))

    def _sample(self, ids: Sequence[str], most: int) -> list[Vector]:
        """Vectors that are small enough, the smallest of each kind in turn."""
        kinds: dict[frozenset[str], list[tuple[int, str]]] = {}
        for id in ids:
            size = self.cost(id)
            if size <= _LARGEST:
                kinds.setdefault(features_of(self.vectors[id]), []).append((size, id))
        turns = itertools.zip_longest(
            *(sorted(kind) for kind in sorted(map(sorted, kinds.values())))
        )
        each = (one[1] for turn in turns for one in turn if one is not None)
        return [self.vectors[id] for id in itertools.islice(each, most)]

    def _try(self, hypothesis: Hypothesis, failing: Sequence[Vector]) -> _Trial:
        trial = _Trial(hypothesis)
        with _Running(self, hypothesis) as running:
            for vector, result, tolerance in running.results(failing, tolerances=True):
                same = result.status == "failed" and _agree(
                    self.details[vector.id], result.detail, tolerance
                )
                (trial.explained if same else trial.others).add(vector.id)
                given_up = not trial.explained and len(trial.others) >= _GIVEN_UP_AFTER
                if given_up or self.left <= 0:
                    break
        return trial

    def _hold(self, trial: _Trial, held: Sequence[Vector]) -> _Trial:
        """Against vectors that pass, once."""
        if trial.passing or trial.contradicted:
            return trial
        with _Running(self, trial.hypothesis) as running:
            for _, result, _ in running.results(held, tolerances=False):
                trial.passing += 1
                trial.contradicted += result.status == "failed"
                # A cause found already may explain more, up to as much once more.
                if trial.passing >= _HELD_AGAINST or self.left <= -WORK:
                    break
        return trial


class _Running:
    """A hypothesis that is planted; a context manager. One that raises explains nothing."""

    def __init__(self, search: _Search, hypothesis: Hypothesis) -> None:
        from bridge.conformance.adapters.callables import CallableAdapter
        from bridge.conformance.mutants.hypotheses.hypothetical import Planted, PlantedBatches

        self.search, self.rounding = search, search.rounding
        subject, result = search.outcome.subject, search.result
        alignment, able = subject.causal_alignment, subject.features
        if subject.operation is not None and able is not None:
            # The mutants are told of the mask that a model is not told of.
            causal = subject.operation.causal
            alignment = "bottom-right" if causal == "bottom-right" else "top-left"
            able = replace(able, supported=frozenset({"is-causal"} if causal else ()))
        self.planted = Planted(hypothesis, alignment, search.wide)
        self.adapter: Any = PlantedBatches(self.planted, result.adapter, search.takes)
        if able is not None and subject.form is None:
            able = able.without(subject.without)
            self.adapter = CallableAdapter(
                result.adapter, self.planted, able, lambda _: search.rounding, alignment
            )
            self.adapter.declared = not subject.undeclared

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *raised: object) -> None:
        self.planted.close()

    def results(
        self, vectors: Sequence[Vector], *, tolerances: bool
    ) -> Iterator[tuple[Vector, VectorResult, Detail | None]]:
        """Of the vectors in which the mutant shows, its results and, if asked for, the tolerances
        of its outputs."""
        about = self.planted.hypothesis.operations
        some = [v for v in vectors if v.operation in about] if about else vectors
        for job in self.search.jobs(self.adapter, some):
            self.search.left -= sum(_CALL + self.search.cost(vector.id) for vector in job)
            self.planted.allowing, self.planted.touched = None, False
            found = self._answers(job)
            if not self.planted.touched or any(answer.problem is not None for answer in found):
                continue
            allowed: dict[str, Detail] = {}
            # Without a tolerance nothing agrees; gradients have none of their own.
            none = None
            if tolerances and not isinstance(job[0], GradientVector):
                none = Detail((), ())
                self.planted.allowing = self.rounding
                for answer in self._answers(job):
                    allowed.update(_rows(answer))
            each = {vector.id: vector for vector in job}
            for answer in found:
                for result in judge_answer(self.rounding, answer, details=True):
                    yield each[result.id], result, allowed.get(result.id, none)

    def _answers(self, job: tuple[Vector, ...]) -> list[Answer]:
        return answers(self.adapter, job, "float64", "cpu")


def _cost(vector: Vector) -> int:
    if isinstance(vector, SampledVector):
        pairs = math.prod(vector.q.shape[:3]) * int(vector.k.shape[2])
        return pairs * int(vector.q.shape[3] + vector.v.shape[3])
    x = plain_problem_of(vector)
    return 0 if x is None else x.q_len * x.kv_len * (x.head_dim + x.value_dim)


def _rows(answer: Answer) -> dict[str, Detail]:
    """The numbers of an answer that is not judged, in the order of `Detail.got`."""
    if answer.problem is not None:
        return {}
    (first, *_) = answer.vectors
    found: list[Detail] = []
    for batch, outputs in zip(answer.batches, answer.outputs, strict=True):
        if isinstance(first, ComesToAttention) and not batch.query.shape[-2]:
            continue
        for n in range(len(batch.vectors)):
            out: Any = outputs.out
            lse: Any = outputs.lse
            rows = tuple(map(tuple, out[n, 0].tolist()))
            found.append(Detail(rows, (), () if lse is None else tuple(lse[n, 0].tolist())))
    if isinstance(first, ComesToAttention):
        return {first.id: Detail.join(found)}
    return {vector.id: detail for vector, detail in zip(answer.vectors, found, strict=True)}


def _agree(got: Detail, planted: Detail | None, tolerance: Detail | None) -> bool:
    """Whether the function's numbers are those of a hypothesis, within their tolerances: those
    given, or of gradients without any the largest that the vector has for each of them."""
    if planted is None:
        return False
    if tolerance is None:
        largest: dict[str, float] = {}
        for part, row in zip(got.parts, got.tolerance, strict=True):
            largest[part] = max(largest.get(part, 0.0), *row)
        parts = zip(got.parts, got.tolerance, strict=True)
        tolerance = Detail(tuple((largest[part],) * len(row) for part, row in parts), ())
    if not _close(got.got, planted.got, tolerance.got):
        return False
    # A function that returns none is compared by its outputs.
    logarithms = tolerance.lse_got[: len(got.lse_got)]
    return not got.lse_got or _close(got.lse_got, planted.lse_got, logarithms)


def _close(got: Sequence[Any], planted: Sequence[Any], allowed: Sequence[Any]) -> bool:
    if not _lengths(got) == _lengths(planted) == _lengths(allowed):
        return False
    a, b, limit = (np.hstack([*rows, 0.0]) for rows in (got, planted, allowed))
    with np.errstate(invalid="ignore"):
        near = np.isfinite(limit) & (np.abs(a - b) <= limit)
    return bool(np.all(near | (a == b) | np.isnan(a) & np.isnan(b)))


def _lengths(rows: Sequence[Any]) -> list[int]:
    """Of each row; those of different gradients differ."""
    return [np.size(row) for row in rows]


def _cause(trial: _Trial, compared: int, others: tuple[str, ...] = ()) -> Cause:
    hypothesis = trial.hypothesis
    return Cause(
        hypothesis.name,
        hypothesis.description,
        len(trial.explained),
        compared,
        trial.contradicted,
        trial.passing,
        others,
    )
