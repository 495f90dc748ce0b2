"""What `bench --output` has written into `bench/results`, read back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.source.excerpt import SourceError

FOLDER = "bench/results"
OURS = "pyimpl"

_COMMAND = re.compile(r"\$ python -m bench(?: (.*))?")
_WHERE = re.compile(r"(?P<date>\S+Z), (?P<device>.+), (?P<threads>\d+) CPU threads(?P<load>.*)")
_VERSIONS = re.compile(r"Python \S+, .*")
_CASE = re.compile(
    r"(?P<operation>[a-z+]+) (?P<dtype>\w+), batch (?P<batch>\d+), heads (?P<heads>\S+), "
    r"head_dim (?P<head_dim>\d+), length (?P<length>\d+), (?P<mask>.+)"
)
_RESULT = re.compile(r"  (?P<name>[\w-]+) +(?P<numbers>[\d.e–%-]+(?: +[\d.e–%-]+)*)")


@dataclass(frozen=True)
class Case:
    """One thing that was measured. ms: median time of a call, by name; ratios: for each peer the
    speed of ours relative to its, above 1 ours is faster."""

    operation: str
    dtype: str
    batch: str
    heads: str
    head_dim: str
    length: str
    mask: str
    ms: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)


@dataclass
class Run:
    """One run of the benchmark. options: of its command line; gpu: whether it ran on one; load:
    what was said of the machine's load at its start."""

    file: str
    options: str
    date: str = ""
    device: str = ""
    threads: int = 0
    load: str = ""
    versions: str = ""
    gpu: bool = False
    cases: list[Case] = field(default_factory=list)

    def operations(self) -> dict[str, list[Case]]:
        """The cases by operation."""
        found: dict[str, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.operation, []).append(case)
        return found


@dataclass(frozen=True)
class Results:
    """A file of results: what stands before its first run, and its runs; none, if another program
    wrote it."""

    file: str
    preface: str
    runs: tuple[Run, ...]


def read(root: Path) -> list[Results]:
    """The files of the folder, newest first. Raises SourceError for a line of a run that cannot be
    read."""
    paths = sorted((root / FOLDER).glob("*.txt"), reverse=True)
    return [parse(path.read_text("utf-8"), path.relative_to(root).as_posix()) for path in paths]


def parse(text: str, file: str) -> Results:
    """The runs in the text of a file. Raises SourceError as `read` does."""
    preface, runs, lines = [], [], text.splitlines()
    start = [at for at, line in enumerate(lines) if line.startswith("$ ")] or [len(lines)]
    preface = [line for line in lines[: start[0]] if line]
    for at, end in zip(start, [*start[1:], len(lines)], strict=True):
        command = _COMMAND.fullmatch(lines[at]) if at < len(lines) else None
        if command is not None:
            runs.append(_run(file, command[1] or "", lines, at + 1, end))
    return Results(file, " ".join(preface), tuple(runs))


def _run(file: str, options: str, lines: list[str], at: int, end: int) -> Run:
    run = Run(file, options)
    columns: list[str] = []
    for number in range(at, end):
        line = lines[number]
        if line.startswith("Speed of pyimpl relative"):
            # What follows repeats the ratios, and says what was not timed.
            break
        if found := _WHERE.fullmatch(line):
            run.date, run.device = found["date"], found["device"]
            run.threads, run.load = int(found["threads"]), found["load"].removeprefix(", ")
        elif _VERSIONS.fullmatch(line):
            run.versions = line
        elif "error/allowed" in line:
            columns = re.split(r"  +", line)[1:]
            run.gpu = "issue ms" in columns
        elif found := _CASE.fullmatch(line):
            parts: dict[str, Any] = found.groupdict()
            run.cases.append(Case(**parts))
        elif found := _RESULT.fullmatch(line):
            numbers = dict(zip(columns, found["numbers"].split(), strict=False))
            if not run.cases or len(numbers) != len(columns) or "ms" not in numbers:
                raise SourceError(f"{file}:{number + 1}: these are not the columns {columns}")
            run.cases[-1].ms[found["name"]] = float(numbers["ms"])
            if numbers["pyimpl/it"] != "–":
                run.cases[-1].ratios[found["name"]] = float(numbers["pyimpl/it"])
        elif line and not line.startswith(("matrix product, ", "copy, ")):
            raise SourceError(f"{file}:{number + 1}: no line of a benchmark: {line!r}")
    if not (run.date and run.versions and run.cases):
        raise SourceError(f"{file}:{at}: a run without date, versions or cases")
    return run
