"""How long `make verify` and `make test` took where they were last recorded: `docs/timings.json`.

`bridge pages` shows it in `docs/running.md`, and the minutes wherever a page says them.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.errors import MendableError
from bridge.files import write_changed

FILE = "docs/timings.json"
# A job that is new counts as a large one, and so begins early.
_UNKNOWN = 60.0

Times = dict[str, float]


@dataclass(frozen=True)
class Timings:
    """One command where it was recorded.

    date: in UTC, as YYYY-MM-DD; machine: in words; whole: wall seconds of everything; stages: by
    name, wall seconds, and processor seconds where they are known; jobs: processor seconds by the
    name under which the result is kept, apart from its device.
    """

    date: str = ""
    machine: str = ""
    whole: float = 0.0
    stages: Mapping[str, Times] = field(default_factory=dict)
    jobs: Times = field(default_factory=dict)

    def seconds(self, stage: str) -> float | None:
        """Wall seconds of a stage."""
        return self.stages.get(stage, {}).get("seconds")

    def cost(self, name: str) -> float:
        """Processor seconds of a job."""
        return self.jobs.get(name.rpartition("-")[0], _UNKNOWN)


def read(root: Path, command: str = "verify") -> Timings:
    """The recorded times of `verify` or `test`; none where there is no file."""
    return Timings(**_read_stored(root).get(command, {}))


def _read_stored(root: Path) -> dict[str, Any]:
    try:
        stored: dict[str, Any] = json.loads((root / FILE).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return stored


def of_verify(report: Mapping[str, Mapping[str, Any]], whole: float) -> Timings:
    """The times of a run of `verify` that did everything, with none kept. Raises MendableError
    otherwise."""
    _did_everything(name for name, found in report.items() if found.get("kept") or not found["ok"])
    stages = {
        name: {key: section[key] for key in ("seconds", "processor_seconds") if key in section}
        for name, section in report.items()
    }
    jobs = {
        f"implementation-{r['adapter']}-{r['dtype']}": r["processor_seconds"]
        for r in report["implementations"]["results"]
    } | {f"mutant-{r['name']}": r["processor_seconds"] for r in report["mutants"]["results"]}
    return Timings(_today(), _machine(), round(whole, 2), stages, jobs)


def of_test(checks: Mapping[str, Times | None], whole: float) -> Timings:
    """The times of a run of `test`, by check. Raises MendableError for None: it was kept."""
    _did_everything(name for name, times in checks.items() if times is None)
    stages = {name: times for name, times in checks.items() if times is not None}
    return Timings(_today(), _machine(), round(whole, 2), stages)


def _did_everything(kept: Iterable[str]) -> None:
    if names := ", ".join(kept):
        said = "--record: times are recorded of a run that did everything; not so here:"
        raise MendableError(f"{said} {names}")


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def table(found: Timings) -> str:
    """The stages as a table of Markdown."""
    if not found.stages:
        return "Not recorded yet.\n"
    lines = [f"Recorded on {found.date} with {found.machine}: {found.whole:.0f} s in all.", ""]
    lines += ["| stage | seconds | processor seconds |", "| --- | ---: | ---: |"]
    for stage, times in found.stages.items():
        used = f"{times['processor_seconds']:.0f}" if "processor_seconds" in times else "–"
        lines.append(f"| {stage} | {times['seconds']:.0f} | {used} |")
    return "\n".join(lines) + "\n"


def minutes(root: Path) -> dict[str, int]:
    """By command, in how many minutes, rounded, and at least one, it did everything."""
    return {name: max(1, round(one["whole"] / 60)) for name, one in _read_stored(root).items()}


def write(root: Path, command: str, found: Timings) -> None:
    """Record a command; the times of another stay."""
    stored = {**_read_stored(root), command: vars(found)}
    write_changed(root / FILE, json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
