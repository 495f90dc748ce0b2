"""How long the parts of `make verify` took where they were last recorded: `docs/timings.json`, and
the table in `docs/running.md`."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.files import write_changed

FILE, PAGE = "docs/timings.json", "docs/running.md"
# What stands around the table in the page.
_BEGIN = "<!-- Written by verify --record from docs/timings.json. -->\n"
_END = "<!-- end of the times -->\n"
# A job that is new counts as a large one, and so begins early.
_UNKNOWN = 60.0


@dataclass(frozen=True)
class Timings:
    """machine: a sentence. stages: by name, wall seconds, and processor seconds where they are
    known; jobs: processor seconds by the name under which the result is kept, apart from its
    device."""

    machine: str
    stages: dict[str, dict[str, float]]
    jobs: dict[str, float]

    def seconds(self, stage: str) -> float | None:
        """Wall seconds of a stage."""
        return self.stages.get(stage, {}).get("seconds")

    def cost(self, name: str) -> float:
        """Processor seconds of a job."""
        return self.jobs.get(name.rpartition("-")[0], _UNKNOWN)


def read(root: Path) -> Timings:
    """The recorded ones; none where there is no file."""
    try:
        stored = json.loads((root / FILE).read_text("utf-8"))
    except FileNotFoundError:
        return Timings("", {}, {})
    return Timings(stored["machine"], stored["stages"], stored["jobs"])


def recorded(report: dict[str, dict[str, Any]]) -> Timings:
    """The times of a run whose every stage was done, and none kept. Raises ValueError otherwise."""
    kept = [name for name, section in report.items() if section.get("kept") or not section["ok"]]
    if kept:
        raise ValueError(
            f"times are recorded of a run that did everything; not so here: {', '.join(kept)}"
        )
    stages: dict[str, dict[str, float]] = {
        name: {key: section[key] for key in ("seconds", "processor_seconds") if key in section}
        for name, section in report.items()
    }
    jobs = {
        f"implementation-{r['adapter']}-{r['dtype']}": r["processor_seconds"]
        for r in report["implementations"]["results"]
    } | {f"fault-{r['name']}": r["processor_seconds"] for r in report["faults"]["results"]}
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return Timings(machine, stages, jobs)


def table(found: Timings) -> str:
    """The stages as a table of Markdown."""
    if not found.stages:
        return "Not recorded yet."
    lines = [f"Recorded with {found.machine}.", ""]
    lines += ["| stage | seconds | processor seconds |", "| --- | ---: | ---: |"]
    for stage, times in found.stages.items():
        used = f"{times['processor_seconds']:.0f}" if "processor_seconds" in times else "–"
        lines.append(f"| {stage} | {times['seconds']:.0f} | {used} |")
    return "\n".join(lines)


def in_page(text: str, found: Timings) -> str:
    """The text of the page with the table between its marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return f"{before}{begin}\n{table(found)}\n\n{end}{after}"


def write(root: Path, found: Timings) -> None:
    """Write the file, and the table in the page."""
    write_changed(root / FILE, json.dumps(vars(found), indent=1, ensure_ascii=False) + "\n")
    page = root / PAGE
    write_changed(page, in_page(page.read_text("utf-8"), found))
