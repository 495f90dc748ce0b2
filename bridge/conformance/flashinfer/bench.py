"""A solution of FlashInfer-Bench made ready to be judged: its sources in a folder, its definition's
reference judged first, and its verdict as traces."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bridge.conformance.flashinfer import files
from bridge.conformance.flashinfer.adapter import BenchAdapter
from bridge.conformance.flashinfer.draw import Sizes
from bridge.conformance.flashinfer.files import BenchError
from bridge.conformance.flashinfer.operation import BenchOperation, operation_of
from bridge.conformance.judging.judge import VectorResult, describe_failure, plain
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.tolerances.rounding_model import generous
from bridge.vectors.model.attention import Family, Vector
from bridge.vectors.model.decode import DecodeVector, SequencesVector, as_one_call, decoded_families

if TYPE_CHECKING:
    from bridge.conformance.outcomes.outcome import Conditions, Outcome

# Vectors on which the reference of a definition has to be right.
_REFERENCE = 3


@dataclass(frozen=True)
class Bench:
    """function: `file.py:name` of the solution's entry, in a folder with all of its sources.
    destination: whether it writes to outputs that it is given; sizes: of workloads."""

    function: str
    folder: Path
    solution: str
    operation: BenchOperation
    destination: bool
    sizes: tuple[Sizes, ...] = ()

    def choose(self, families: Iterable[Family]) -> list[Family]:
        """The vectors of the files that a definition of this kind has."""
        alone = self.operation.kind == "paged decode"
        found = []
        for family in decoded_families(families):
            vectors = tuple(
                as_one_call(x, last_alone=alone)
                for x in family.vectors
                if isinstance(x, DecodeVector) and (x.chunk, len(x.streams)) == (1, 1)
            )
            operation = SequencesVector.operation
            found.append(replace(family, operation=operation, vectors=vectors))
        return found


def prepare(
    solution: Path, definition: Path, workload: Path | None, folder: Path, conditions: Conditions
) -> Bench:
    """Read and validate the files, write the sources to this folder, and judge the reference.
    Raises BenchError, and NoSandboxError."""
    stated = files.definition(definition)
    own = operation_of(stated)
    read = files.solution(solution, stated)
    sizes: list[Sizes] = []
    for one in files.workloads(workload, stated) if workload is not None else ():
        try:
            sizes.append(Sizes.of(own, one.axes))
        except KeyError as error:
            raise BenchError(f"{workload}: workload {one.uuid} has no axis {error}") from error
    reference, sources = folder / "reference", folder / "solution"
    files.write_sources({"reference.py": stated.reference}, reference)
    files.write_sources({one.path: one.content for one in read.sources}, sources)
    before = Bench(f"{reference}/reference.py:run", reference, "", own, False)
    wrong = _first_failure(before, conditions)
    if wrong is not None:
        raise BenchError(f"{definition}: its reference does not compute {own}: {wrong}")
    entry = f"{sources / read.get_entry_path()}:{read.get_entry_symbol()}"
    destination = bool(read.spec.destination_passing_style)
    return Bench(entry, sources, read.name, own, destination, tuple(sizes))


def _first_failure(bench: Bench, conditions: Conditions) -> str | None:
    from bridge.conformance.drawing.fresh import Fresh
    from bridge.conformance.functions.features import CallableError
    from bridge.conformance.judging.run import run

    families = Fresh(0, _REFERENCE, bench=bench).families
    conditions = replace(conditions, also=(*conditions.also, bench.folder))
    with conditions.session(bench.function) as session:
        try:
            session.open()
        except CallableError as error:
            return str(error)
        function = Remote(session)
        adapter = BenchAdapter("", function, bench.operation, generous, destination=False)
        result = run(adapter, families, bench.operation.dtype, conditions.device)
    failed = [describe_failure(plain(asdict(one))) for one in result.failures]
    return failed[0] if failed else None


def traces(outcome: Outcome, vectors: Mapping[str, Vector]) -> Iterator[str]:
    """A Trace of FlashInfer-Bench for each vector that was judged, a line of JSON each. vectors:
    those that were run, by id."""
    data, bench = files.models(), outcome.subject.bench
    assert bench is not None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    device = outcome.result.device
    hardware = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        hardware = torch.cuda.get_device_name(device)
    environment = data.Environment(hardware=hardware, libs={"torch": torch.__version__})
    for one in outcome.result.vectors:
        if one.status == "unsupported":
            continue
        vector = vectors[one.id]
        assert isinstance(vector, SequencesVector)
        lengths = [(x.tokens, x.kv_len) for x in vector.sequences]
        scalar = data.ScalarInput(value=vector.attentions()[0].natural_scale)
        given = {name: scalar if name == "sm_scale" else data.RandomInput()
                 for name in bench.operation.inputs}  # fmt: skip
        words = [] if outcome.fresh is None else outcome.fresh.options()
        trace = data.Trace(
            definition=bench.operation.name,
            workload=data.Workload(
                axes=bench.operation.values_of_axes(lengths),
                inputs=given,
                uuid=" ".join((one.id, *words)),
            ),
            solution=bench.solution,
            evaluation=_evaluation(data, one, environment, now),
        )
        yield str(trace.model_dump_json())


_STATUS = (
    ("returned an output of shape", "INCORRECT_SHAPE"),
    ("returned an output of torch.", "INCORRECT_DTYPE"),
    ("did not return", "TIMEOUT"),
)


def _evaluation(data: Any, one: VectorResult, environment: Any, now: str) -> Any:
    log = "performance was not measured: its numbers are 0" if one.status == "passed" else ""
    shared = {"environment": environment, "timestamp": now}
    if one.reason is not None:
        kinds = (status for begin, status in _STATUS if one.reason.startswith(begin))
        status = next(kinds, "RUNTIME_ERROR")
        return data.Evaluation(status=status, log=one.reason, **shared)
    correctness = None
    if one.worst is not None:
        error = abs(one.worst.got - one.worst.expected)
        size = abs(one.worst.expected)
        relative = error / size if size else (0.0 if error == 0 else float("inf"))
        extra = {
            "of": "the element with the largest error/tolerance", "part": one.worst.part,
            "error_over_tolerance": plain(one.worst.ratio), "tolerance": one.worst.tolerance,
            "failing_elements": one.failing,
        }  # fmt: skip
        correctness = data.Correctness(
            max_absolute_error=error, max_relative_error=relative, extra=extra
        )
    if one.status == "passed":
        return data.Evaluation(
            status="PASSED", correctness=correctness, performance=data.Performance(), log=log,
            **shared,
        )  # fmt: skip
    return data.Evaluation(status="INCORRECT_NUMERICAL", correctness=correctness, **shared)
