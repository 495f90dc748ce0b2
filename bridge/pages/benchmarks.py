"""The runs that `bench --json` has written into `bench/results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bridge.source.excerpt import SourceError

FOLDER = "bench/results"
OURS = "pyimpl"


class Shown(msgspec.Struct):
    """A case in words: its heads, and its mask."""

    heads: str
    mask: str


class Shape(msgspec.Struct, rename={"length": "kv_len"}):
    """The sizes and options of one computation."""

    operation: str
    dtype: str
    batch: int
    head_dim: int
    length: int
    shown: Shown

    @property
    def heads(self) -> str:
        return self.shown.heads

    @property
    def mask(self) -> str:
        return self.shown.mask


class Result(msgspec.Struct):
    """An implementation in a case; no times where it was not timed."""

    name: str
    ms: float | None
    speed_ratio: float | None


class Case(msgspec.Struct):
    """One thing that was measured. ms: median time of a call, by name; ratios: for each peer the
    speed of ours relative to its, above 1 ours is faster."""

    case: Shape
    results: list[Result]

    @property
    def ms(self) -> dict[str, float]:
        return {one.name: one.ms for one in self.results if one.ms is not None}

    @property
    def ratios(self) -> dict[str, float]:
        return {one.name: one.speed_ratio for one in self.results if one.speed_ratio is not None}


class Machine(msgspec.Struct):
    """The machine and the versions of a run."""

    device: str
    processor: str
    cpu_threads: int
    load_average: float | None
    python: str
    versions: dict[str, str]
    commit: str | None


class Run(msgspec.Struct):
    """One run of the benchmark. file: where it is kept; note: somebody's remark in it."""

    format: Literal["attention-bench-1"]
    command: str
    date: str
    machine: Machine
    cases: Annotated[list[Case], msgspec.Meta(min_length=1)]
    note: str = ""
    file: str = ""

    @property
    def versions(self) -> str:
        machine = self.machine
        packages = [f"{name} {number}" for name, number in machine.versions.items()]
        commit = [f"commit {machine.commit}"] if machine.commit else []
        return ", ".join([f"Python {machine.python}", *packages, *commit])

    @property
    def gpu(self) -> bool:
        """Whether something other than the processor computed."""
        return self.machine.device != self.machine.processor

    def operations(self) -> dict[str, list[Case]]:
        """The cases by operation."""
        found: dict[str, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.case.operation, []).append(case)
        return found


def read(root: Path) -> list[Run]:
    """The runs of the folder, newest first. Raises SourceError for one that cannot be read."""
    paths = sorted((root / FOLDER).glob("*.json"), reverse=True)
    return [parse(path.read_bytes(), path.relative_to(root).as_posix()) for path in paths]


def others(root: Path) -> list[str]:
    """The files that other programs wrote into the folder."""
    paths = sorted((root / FOLDER).glob("[!.]*"), reverse=True)
    return [path.relative_to(root).as_posix() for path in paths if path.suffix != ".json"]


def parse(text: bytes | str, file: str) -> Run:
    """The run in the text of a file. Raises SourceError as `read` does."""
    try:
        return msgspec.structs.replace(msgspec.json.decode(text, type=Run), file=file)
    except msgspec.MsgspecError as error:
        raise SourceError(f"{file}: {error}") from error
