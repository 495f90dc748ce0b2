"""A function's results for the vectors: called here, judged elsewhere (`run.judge_answer`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from bridge.conformance.adapters.adapter import (
    Adapter,
    ChoosingAdapter,
    GradientsAdapter,
    LayoutsAdapter,
    PartialAdapter,
    TangentsAdapter,
)
from bridge.conformance.tensors.batch import (
    DTYPES,
    Batch,
    Misbehaviour,
    Outputs,
    array,
    bias_of,
    error_text,
    groups,
    inputs_of,
    is_unchanged,
    stack,
)
from bridge.conformance.tensors.form import form_error
from bridge.conformance.tensors.gradient_inputs import Floats, floats_of
from bridge.conformance.tensors.gradient_inputs import array as as_judged
from bridge.vectors.model.attention import AttentionVector, Matrix, Vector
from bridge.vectors.model.dropout import DropoutVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention, GroupedQueryVector
from bridge.vectors.model.sampled import SampledVector
from bridge.vectors.model.tangents import TangentVector

Job = tuple[Vector, ...]


@dataclass(frozen=True)
class Answer:
    """A function's results for some vectors of a job, before they are judged.

    vectors: which. problem: the fault of the call or of the form of its result; None
    if nothing. Then either gradients, by name as in `expected_gradients`, one result for each way
    in which it was called; or tangents, by name as in `expected_tangents`; or batches, the plain
    problems that the vectors come to, with outputs, of each, and lse_reasons, of each vector of
    each batch: why its log-sum-exp is not judged.
    """

    vectors: Job
    problem: str | None = None
    batches: tuple[Batch, ...] = ()
    outputs: tuple[Outputs, ...] = ()
    lse_reasons: tuple[tuple[str | None, ...], ...] = ()
    gradients: tuple[Mapping[str, Floats], ...] = ()
    tangents: Mapping[str, Floats] | None = None


def why_unsupported(
    adapter: Adapter, vectors: Iterable[Vector], dtype: str, device: str
) -> dict[str, str]:
    """The reasons of the unsupported vectors, by id."""
    reasons = ((vector.id, _why_unsupported(adapter, vector, dtype, device)) for vector in vectors)
    return {id: reason for id, reason in reasons if reason is not None}


def jobs_of(vectors: Iterable[Vector], alone: frozenset[str] = frozenset()) -> list[Job]:
    """Vectors in groups that are run at once: alike vectors of attention, and each vector of
    another operation, or with an id in `alone`, for itself."""
    together: list[AttentionVector] = []
    jobs: list[Job] = []
    for vector in vectors:
        if isinstance(vector, AttentionVector) and vector.id not in alone:
            together.append(vector)
        else:
            jobs.append((vector,))
    return [*groups(together), *jobs]


def batches_of(job: Job, dtype: str, device: str) -> tuple[Batch, ...]:
    """The plain problems that a job comes to, which is no gradient: a batch of vectors of
    attention, or one for each problem of a vector of another operation."""
    (first, *_) = job
    if isinstance(first, ComesToAttention):
        return tuple(stack((problem,), dtype, device) for problem in first.attentions())
    alike = tuple(vector for vector in job if isinstance(vector, AttentionVector))
    return (stack(alike, dtype, device),)


def answers(adapter: Adapter, job: Job, dtype: str, device: str) -> list[Answer]:
    """Call the function for a job of `jobs_of`: one answer for all its vectors, or where they go
    wrong together, one for each."""
    (first, *_) = job
    if isinstance(first, GradientVector):
        return [_gradients_of(adapter, first, dtype, device)]
    if isinstance(first, TangentVector):
        return [_tangents_of(adapter, first, dtype, device)]
    batches = batches_of(job, dtype, device)
    if isinstance(first, ComesToAttention):
        return [_layout_of(adapter, first, batches, dtype, device)]
    return _batch_of(adapter, batches[0], dtype, device)


def _why_unsupported(adapter: Adapter, vector: Vector, dtype: str, device: str) -> str | None:
    missing: frozenset[str] = frozenset()
    problems: tuple[AttentionVector, ...]
    if isinstance(vector, AttentionVector):
        missing, problems = vector.options - adapter.takes, (vector,)
    elif isinstance(vector, GradientVector) and isinstance(adapter, GradientsAdapter):
        reason = adapter.no_gradients(vector, device)
        if reason is None and not _is_exact(floats_of(vector)["grad_output"], dtype):
            reason = f"its gradients by the output are not exact in {dtype}"
        if reason is not None:
            return reason
        problems = vector.attentions()
    elif isinstance(vector, TangentVector) and isinstance(adapter, TangentsAdapter):
        problems = (vector.attention(),)
        missing = problems[0].options - adapter.takes
        if not missing and not _exact(vector.rates(), dtype):
            return f"the rates of its inputs are not exact in {dtype}"
    elif (
        not isinstance(adapter, LayoutsAdapter)
        or not isinstance(vector, ComesToAttention)
        or vector.operation not in adapter.operations
    ):
        return f"takes no vectors of {vector.operation}"
    else:
        if isinstance(adapter, ChoosingAdapter) and (why := adapter.why_not(vector)) is not None:
            return why
        grouped = GroupedQueryVector.operation
        sampled = vector if isinstance(vector, SampledVector) else None
        if sampled is not None and sampled.grouped and grouped not in adapter.operations:
            return f"takes no vectors of {grouped}"
        problems = vector.problems()
        options = problems[0].options if problems else frozenset()
        takes = adapter.takes
        if sampled is not None:
            options |= sampled.own_options
            takes |= adapter.operations & {DropoutVector.operation}
        missing = options - takes
    if missing:
        return f"takes no {' and no '.join(sorted(missing))}"
    for problem in problems:
        reason = adapter.why_unsupported(problem, dtype, device) or _inexact(problem, dtype)
        if reason is not None:
            return reason
    return None


def _inexact(vector: AttentionVector, dtype: str) -> str | None:
    given = [*inputs_of(vector), *(() if vector.bias is None else (bias_of(vector),))]
    if not all(_is_exact(numbers, dtype) for numbers in given):
        return f"its inputs are not exact in {dtype}"
    return None


def _exact(matrices: Iterable[Matrix], dtype: str) -> bool:
    return all(_is_exact(array(matrix), dtype) for matrix in matrices)


def _is_exact(matrix: NDArray[np.float64], dtype: str) -> bool:
    numbers = torch.tensor(matrix)
    return torch.equal(numbers, numbers.to(DTYPES[dtype]).double())


def _error_answer(error: BaseException) -> str:
    if isinstance(error, Misbehaviour):
        return str(error)
    return f"raised {type(error).__name__}: {error_text(error)[:300]}".rstrip(": ")


def _gradients_of(adapter: Adapter, vector: GradientVector, dtype: str, device: str) -> Answer:
    try:
        with np.errstate(all="ignore"):
            # Such vectors are supported by adapters that take them, and by no others.
            found = cast(GradientsAdapter, adapter).gradients(vector, dtype, device)
    except (Exception, SystemExit) as error:
        return Answer((vector,), _error_answer(error))
    numbers = ({name: as_judged(name, x) for name, x in call.items()} for call in found)
    return Answer((vector,), gradients=tuple(numbers))


def _tangents_of(adapter: Adapter, vector: TangentVector, dtype: str, device: str) -> Answer:
    try:
        with np.errstate(all="ignore"):
            # Only adapters that take such vectors support them, as for gradients.
            found = cast(TangentsAdapter, adapter).tangents(vector, dtype, device)
    except (Exception, SystemExit) as error:
        return Answer((vector,), _error_answer(error))
    numbers = {name: x.detach().double().cpu().numpy()[0, 0] for name, x in found.items()}
    return Answer((vector,), tangents=numbers)


def _layout_of(
    adapter: Adapter, vector: ComesToAttention, batches: tuple[Batch, ...], dtype: str, device: str
) -> Answer:
    """A vector of another operation: judged by the plain problems that it comes to."""
    problem: str | None
    try:
        with np.errstate(all="ignore"):
            # Such vectors are supported by adapters that take them, and by no others.
            outputs = cast(LayoutsAdapter, adapter).run_vector(vector, dtype, device)
        forms = [form_error(*pair) for pair in zip(batches, outputs, strict=True)]
        problem = next((x for x in forms if x is not None), None)
    except (Exception, SystemExit) as error:
        problem = _error_answer(error)
    if problem is not None:
        return Answer((vector,), problem)
    return _answer(adapter, (vector,), batches, outputs, dtype, device)


def _answer(
    adapter: Adapter,
    vectors: Job,
    batches: tuple[Batch, ...],
    outputs: Sequence[Outputs],
    dtype: str,
    device: str,
) -> Answer:
    """An answer with well-formed outputs."""

    def reason(vector: AttentionVector) -> str | None:
        if isinstance(adapter, PartialAdapter):
            return adapter.no_log_sum_exp(vector, dtype, device)
        return None

    reasons = (tuple(map(reason, batch.vectors)) for batch in batches)
    return Answer(vectors, None, batches, tuple(outputs), tuple(reasons))


def _batch_of(adapter: Adapter, batch: Batch, dtype: str, device: str) -> list[Answer]:
    before = batch.inputs()
    kept: dict[str, Any] = {name: x.clone() for name, x in before.items()}
    problem: str | None
    lost = False
    try:
        # Triton's interpreter computes with NumPy, which warns of the NaN of a wrong kernel.
        with np.errstate(all="ignore"):
            outputs = adapter.run(batch)
        problem = form_error(batch, outputs)
    except (Exception, SystemExit) as error:
        problem = _error_answer(error)
        lost = isinstance(error, Misbehaviour) and error.for_all
    changed = [name for name, x in before.items() if not is_unchanged(x, kept[name])]
    if changed and problem is None:
        problem = f"changed its inputs: {', '.join(changed)}"
    whole = replace(batch, **kept)
    if problem is None:
        return [_answer(adapter, batch.vectors, (whole,), (outputs,), dtype, device)]
    if len(batch.vectors) == 1:
        return [Answer(batch.vectors, problem)]
    if lost:
        # Each would take as long once more.
        problem += f", for one of {len(batch.vectors)} vectors that were given at once"
        return [Answer(batch.vectors, problem)]
    # Which of them was it?
    return [r for one in whole.split() for r in _batch_of(adapter, one, dtype, device)]
