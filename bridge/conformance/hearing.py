"""What a judged process says of a run (`judged`): looked at, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.conformance import wire
from bridge.conformance.abilities import CallableError
from bridge.conformance.answers import Answer, Job, batches_of, jobs_of
from bridge.conformance.batch import DTYPES, Outputs
from bridge.conformance.declared import profile_of
from bridge.conformance.gradients import shapes
from bridge.conformance.judge import VectorResult
from bridge.conformance.profile import Profile
from bridge.conformance.run import judged, left_out
from bridge.conformance.wire import Frame, WireError
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Vector


@dataclass
class Heard:
    """What one process has said of a run: `results`; the number of the job that it is at, and the
    vectors of it that have no answer yet. own_profile: the subject brings its profile."""

    left: Sequence[Vector]
    dtype: str
    alone: frozenset[str]
    profile: Profile | None
    results: dict[str, VectorResult] = field(default_factory=dict)
    running: Job = ()
    _unanswered: Job = ()
    _jobs: list[Job] | None = None
    _number: int = -1
    _found: list[VectorResult] = field(default_factory=list)

    def __call__(self, frame: Frame) -> bool:
        """Take it in. Raises WireError for what should not come now."""
        if frame.kind == "refused":
            raise CallableError(wire.text(frame.field("sentence"), "a sentence"))
        expected = "planned"
        if self._jobs is not None:
            expected = "start"
            if self.running:
                expected = "answer" if self._unanswered else "done"
        if frame.kind == "spoiled" and self.running:
            raise SpoiledError
        if frame.kind != expected:
            raise WireError(f"{wire.shown(frame.kind)} where {expected} was to come")
        getattr(self, f"_{expected}")(frame)
        return False

    def _planned(self, frame: Frame) -> None:
        ids = frozenset(vector.id for vector in self.left)
        reasons = wire.sentences(frame.field("not_covered"), "vectors not covered", ids)
        if self.profile is None:
            self.profile = profile_of(frame.field("profile"))
        self.results |= {result.id: result for result in left_out(self.left, reasons)}
        covered = [vector for vector in self.left if vector.id not in reasons]
        self._jobs = jobs_of(covered, self.alone)

    def _start(self, frame: Frame) -> None:
        jobs = self._jobs or []
        number = wire.whole(frame.field("job"), "a job", 0, max(len(jobs) - 1, 0))
        if number != self._number + 1 or not jobs:
            raise WireError(f"the start of job {number} where {self._number + 1} was to come")
        self._number, self._found = number, []
        self.running = self._unanswered = jobs[number]

    def _answer(self, frame: Frame) -> None:
        count = wire.whole(frame.field("count"), "a count", 1, len(self._unanswered))
        vectors, self._unanswered = self._unanswered[:count], self._unanswered[count:]
        assert self.profile is not None
        answer = answer_of(frame, vectors, self.dtype)
        self._found += judged(self.profile, answer, details=True)

    def _done(self, frame: Frame) -> None:
        wire.whole(frame.field("job"), "a job", self._number, self._number)
        self.results |= {result.id: result for result in self._found}
        self.running = ()


class SpoiledError(Exception):
    """The GPU cannot go on."""


def answer_of(frame: Frame, vectors: Job, dtype: str) -> Answer:
    """The answer of a frame for these vectors. Raises WireError unless it has the numbers that are
    judged, each of the shape and dtype that it is to have, and no more."""
    problem = wire.optional_text(frame.field("problem"), "a problem")
    reasons, tensors = frame.field("lse_reasons"), dict(frame.tensors)
    if problem is not None:
        if tensors:
            raise WireError("numbers beside a problem")
        return Answer(vectors, problem)
    (first, *_) = vectors
    if isinstance(first, GradientVector):
        return Answer(vectors, gradients=_gradients(first, tensors))
    batches = batches_of(vectors, dtype, "cpu")
    if not isinstance(reasons, list) or len(reasons) != len(batches):
        raise WireError(f"no list of reasons for {len(batches)} outputs")
    outputs = []
    for n, batch in enumerate(batches):
        shape = (*batch.query.shape[:-1], batch.value.shape[-1])
        out = _taken(tensors, f"{n} output", shape, (dtype,))
        lse = None
        if f"{n} lse" in tensors:
            lse = _taken(tensors, f"{n} lse", shape[:-1], tuple(DTYPES))
        if not isinstance(reasons[n], list) or len(reasons[n]) != len(batch.vectors):
            raise WireError(f"no list of reasons for the {len(batch.vectors)} vectors of an output")
        outputs.append(Outputs(out, lse))
    if tensors:
        raise WireError(f"a tensor {wire.shown(min(tensors))} that was not asked for")
    said = tuple(
        tuple(wire.optional_text(x, "why a log-sum-exp is not judged") for x in each)
        for each in reasons
    )
    return Answer(vectors, None, batches, tuple(outputs), said)


def _taken(
    tensors: dict[str, Any], name: str, shape: tuple[int, ...], dtypes: Sequence[str]
) -> Any:
    """Take a tensor of this shape and of one of these dtypes out. Raises WireError where there is
    none."""
    if name not in tensors:
        raise WireError(f"no tensor {wire.shown(name)}")
    found = tensors.pop(name)
    if tuple(found.shape) != shape or found.dtype not in [DTYPES[dtype] for dtype in dtypes]:
        raise WireError(
            f"{wire.shown(name)} of shape {tuple(found.shape)} and {found.dtype}; "
            f"shape {shape} and {' or '.join(dtypes)} are accepted"
        )
    return found


def _gradients(vector: GradientVector, tensors: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Those of one or two calls: the second with a bias of 0."""
    wanted = shapes(vector)
    calls: list[dict[str, Any]] = []
    while tensors and len(calls) < 2:
        names = [name for name in wanted if f"{len(calls)} {name}" in tensors]
        place = f"{len(calls)} "
        found = {n: _taken(tensors, place + n, wanted[n], ("float64",)) for n in names}
        calls.append({name: x.numpy() for name, x in found.items()})
    if tensors:
        raise WireError(f"a tensor {wire.shown(min(tensors))} that was not asked for")
    if not calls or not all(calls):
        raise WireError("no gradients")
    return tuple(calls)
