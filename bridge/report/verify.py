"""The stages of `make verify`, from Lean to the kernels, and the findings of each."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bridge.audit.implemented import known_implementations
from bridge.audit.library import Library, Section
from bridge.cache import Cache, digest, imported_files
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters import interpreter
from bridge.conformance.judging import parallel
from bridge.conformance.judging.judge import describe_failure
from bridge.conformance.mutants import attention as mutants
from bridge.conformance.mutants import planting
from bridge.files import write_whole
from bridge.interrupt import end_children
from bridge.report import jobs, kernels, timings
from bridge.report.beside import Beside
from bridge.report.progress import Bar, Progress
from bridge.report.runs import Run, Runs
from bridge.source.excerpt import SourceError
from bridge.terminal import tell
from bridge.toolchain import ToolchainError
from bridge.vectors import generate, lean_files
from bridge.vectors.exact import attention as exact
from bridge.vectors.format.fields import VectorError
from bridge.vectors.format.index import INDEX
from bridge.vectors.load import load
from bridge.vectors.model.attention import Family

# The stages in their order, and their titles.
STAGES = {
    "toolchain": "Lean",
    "build": "Proofs checked: lake build",
    "audit": "Audit of every declaration",
    "kernels": "Kernels: the compiled text is the proved text",
    "vectors": "Vectors",
    "implementations": "Implementations on the vectors",
    "mutants": "Mutants",
}

# The stages that nothing runs beside.
ALONE = ("toolchain", "build")
# The stages that one cannot do without. Implementations and mutants read the vectors as they are.
NEEDS = {
    "build": ("toolchain",),
    "audit": ("toolchain", "build"),
    "vectors": ("toolchain", "build"),
}


class Verification:
    """One run: its stages in order, each a JSON-able section with `ok` and `problems`."""

    def __init__(self, root: Path, console: Console) -> None:
        self.root = root
        self.console = console
        self.progress = Progress(console)
        self.cache = Cache(root / "build" / "cache")
        self.runs = Runs(root, self.cache)
        self.timings = timings.read(root)
        self.report: dict[str, Section] = {}
        self.bars: dict[str, Bar] = {}
        self.library = Library(root, self.cache, self.note, self.advance)
        self._families: list[Family] | None = None
        self._families_done = {"made": 0, "recomputed": 0}
        self._workers: parallel.Workers | None = None
        self._lock = threading.RLock()
        self._running: set[str] = set()
        self._shown: set[str] = set()
        self._ended = False

    def stage(self, name: str, work: Callable[[], Section]) -> Section:
        """Run one stage, say how it went, and keep its section."""
        self._running.add(name)
        start, used = time.monotonic(), processor_time()
        with self.progress.bar(STAGES[name], self.timings.seconds(name)) as bar:
            self.bars[name] = bar
            try:
                section = work()
            except (
                *(ToolchainError, VectorError, SourceError),
                *(planting.MutantError, parallel.WorkerError),
            ) as error:
                section = {"ok": False, "problems": [str(error)]}
        section.setdefault("problems", [])
        section["seconds"] = round(time.monotonic() - start, 2)
        # Of stages beside each other it is not known whose the time of this process was.
        if name in ALONE:
            section["processor_seconds"] = round(processor_time() - used, 2)
        with self._lock:
            # A stage that fails since its process was ended shows nothing.
            if not self._ended:
                self.report[name] = section
                self._running.discard(name)
                self.show_done()
        return section

    def show_done(self, *, waiting: bool = True) -> None:
        """A line for each stage that is done, in their order. waiting: not for those that come
        after one that still runs."""
        for name, title in STAGES.items():
            if name in self._running and waiting:
                break
            if name in self._shown or name not in self.report:
                continue
            self._shown.add(name)
            section = self.report[name]
            mark = "[green]✔[/]" if section["ok"] else "[red]✘[/]"
            kept = ", unchanged" if section.get("kept") else ""
            self.console.print(f"{mark} {title} ({section['seconds']:.1f} s{kept})")
            for problem in section["problems"][:20]:
                tell(self.console, f"    {problem}", "red")

    def note(self, text: str) -> None:
        self.console.print(f"  {text}", markup=False, highlight=False)

    def advance(self, name: str, done: int, total: int) -> None:
        """So much of a stage is done."""
        self.bars[name].advance(done, total)

    def run(self, only: Collection[str] = ()) -> bool:
        """All stages, or `only` these and those that they need; True if every one of them is good.

        The audit is one process of Lean, and the vectors' definitions run in another: the
        rest goes on beside them. Ctrl-C ends everything that runs, says what was done, and is
        raised again as KeyboardInterrupt.
        """
        wanted = {*only, *(need for one in only for need in NEEDS.get(one, ()))} or set(STAGES)
        beside: list[Beside[Any]] = []
        good, found = True, False
        try:
            if "toolchain" in wanted:
                found = self.stage("toolchain", self.library.find)["ok"]
            made = None
            if found and "build" in wanted and self.stage("build", self.library.build)["ok"]:
                if "audit" in wanted:
                    # Where two threads import Triton, each sees modules that the other has half
                    # made. The audit reports modules that cannot be imported.
                    with contextlib.suppress(SourceError):
                        known_implementations()
                    self._running.add("audit")
                    beside.append(Beside(lambda: self.stage("audit", self.library.audit)))
                if "vectors" in wanted:
                    made = Beside(self.vectors_made)
                    beside.append(made)
            if "kernels" in wanted:
                self.stage("kernels", self.kernels)
            if "vectors" in wanted:
                good = self.stage("vectors", lambda: self.vectors(made))["ok"]
            if "implementations" in wanted and good:
                good = self.stage("implementations", self.implementations)["ok"]
            # A mutant planted in something that fails already shows nothing.
            if "mutants" in wanted and good:
                self.stage("mutants", self.mutants)
            for one in beside:
                one.result()
        except BaseException as error:
            self.end(interrupted=isinstance(error, KeyboardInterrupt))
            for one in beside:
                one.wait(1.0)
            raise
        finally:
            self.end_workers()
        self.report = {name: self.report[name] for name in STAGES if name in self.report}
        for name, title in STAGES.items():
            if name in wanted and name not in self.report:
                self.console.print(f"[red]–[/] {title}: not run, since a stage before it failed")
        return all(self.report.get(name, {}).get("ok") for name in wanted)

    def end(self, *, interrupted: bool) -> None:
        """End all that still runs, and say how far it was."""
        self._ended = True
        end_children()
        self.progress.stop()
        self.show_done(waiting=False)
        for name in (name for name in STAGES if name in self._running and interrupted):
            bar = self.bars.get(name)
            far = f": {bar.done} of {bar.total} done" if bar is not None and bar.total else ""
            self.console.print(f"[red]–[/] {STAGES[name]}: ended by Ctrl-C{far}")
        if interrupted:
            self.note("What was done is kept; the next run goes on from there.")

    def families(self) -> list[Family]:
        """All vectors, read once."""
        with self._lock:
            if self._families is None:
                self._families = load()
            return self._families

    def workers(self) -> parallel.Workers:
        """The processes that implementations and mutants share."""
        if self._workers is None:
            self._workers = parallel.Workers(self.families(), device())
        return self._workers

    def end_workers(self) -> None:
        if self._workers is not None:
            self._workers.__exit__(*sys.exc_info())
            self._workers = None

    # --- kernels ----------------------------------------------------------------------------------

    def kernels(self) -> Section:
        """Whether the texts that theorems are about are those that Triton compiles."""
        found, kept = kernels.find(self.root, self.cache)
        if not found["compared"] and found["ok"]:
            self.note(found["said"])
        return {**found, "kept": kept}

    # --- vectors ----------------------------------------------------------------------------------

    def vectors_made(self) -> tuple[list[str], bool]:
        """How the vectors differ from the results of the Lean definitions, and whether that is
        kept."""
        run, key = self.library.lean.run, self.library.key()
        # By the sources of each, since Lean's share takes minutes: an edit of a reader of vectors
        # is no reason to have Lean write them anew.
        sources = imported_files(self.root, "bridge.vectors.lean_files")
        written, kept = self.cache.get(
            "vectors-written",
            digest(self.root, sources, key),
            lambda: lean_files.texts(run, lambda number: self.vectors_reached(made=number)),
            bool,
        )
        self.vectors_reached(made=len(written))
        sources = imported_files(self.root, "bridge.vectors.generate")
        index, kept_too = self.cache.get(
            "vectors-index",
            digest(self.root, sources, key),
            lambda: generate.index_of(written),
            bool,
        )
        made = {**written, INDEX: index}
        differing = generate.differences(made, self.root / "tests" / "vectors")
        return differing, kept and kept_too

    def vectors_reached(self, **numbers: int) -> None:
        """So many families are made by Lean, or recomputed; each has both before it."""
        self._families_done.update(numbers)
        if "vectors" in self.bars:
            # All files but the index; whether they can be read is not for this to say.
            total = len(list((self.root / "tests" / "vectors").glob("*.json"))) - 1
            self.bars["vectors"].advance(min(self._families_done.values()), total)

    def vectors_recomputed(self) -> Section:
        """The vectors of each family, and the errors that exact arithmetic finds in them."""
        families, problems = self.families(), []
        for number, family in enumerate(families, 1):
            for vector in family.vectors:
                problems += exact.disagreements(vector)
            self.vectors_reached(recomputed=number)
        counts = {family.name: len(family.vectors) for family in families}
        return {"problems": problems, "families": counts}

    def vectors(self, made: Beside[tuple[list[str], bool]] | None) -> Section:
        """`made`: the result of `vectors_made`; None where Lean did not build."""
        if made is None:
            del self._families_done["made"]
        modules = ("bridge.vectors.load", "bridge.vectors.exact.attention")
        files = [file for module in modules for file in imported_files(self.root, module)]
        found, kept = self.cache.get(
            "vectors-recomputed",
            digest(self.root, ["tests/vectors", "bridge/vectors/schema.json", *files]),
            self.vectors_recomputed,
            lambda found: not found["problems"],
        )
        self.vectors_reached(recomputed=len(found["families"]))
        problems = list(found["problems"])
        if made is not None:
            differing, kept_too = made.result()
            kept = kept and kept_too
            problems += differing
            if differing:
                problems.append("to write them anew: .venv/bin/python -m bridge vectors")
        else:
            problems.append("not compared with the Lean definitions' output: Lean did not build")
        return {"ok": not problems, "kept": kept, **found, "problems": problems}

    # --- implementations --------------------------------------------------------------------------

    def each(self, stage: str, runs: Sequence[Run]) -> Section:
        """The results of the runs, those made that were not kept, each kept as it is done."""
        bar, costs = self.bars[stage], [self.timings.cost(one.name) for one in runs]
        found = {one.job: self.runs.find(one) for one in runs}
        by_job = {one.job: (one, cost) for one, cost in zip(runs, costs, strict=True)}
        kept = all(result is not None for result in found.values())
        missing = [job for job, result in found.items() if result is None]
        # The largest first, so that none is left alone at the end.
        missing.sort(key=lambda job: -by_job[job][1])
        done, of, used = 0.0, sum(by_job[job][1] for job in missing), 0.0

        def keep(one: jobs.Done) -> None:
            nonlocal done, used
            run, cost = by_job[one.job]
            found[one.job] = self.runs.keep(run, one)
            done, used = done + cost, used + one.processor_seconds
            number = sum(result is not None for result in found.values())
            bar.advance(number, len(found), done / of)

        bar.advance(len(found) - len(missing), len(found), 0.0)
        if missing:
            self.workers().each(jobs.work, missing, keep)
        return {"kept": kept, "processor_seconds": round(used, 2), "results": [*found.values()]}

    def implementations(self) -> Section:
        section = self.each(
            "implementations",
            [
                self.runs.implementation(name, dtype, device())
                for name in adapters.BUILTIN
                for dtype in adapters.builtin(name).dtypes
            ],
        )
        why_slow = interpreter.install()
        if why_slow is not None:
            self.note(why_slow)
        results = section["results"]
        problems = [
            f"{name} is unsupported: {why}" for name, why in why_unsupported(results).items()
        ]
        for result in results:
            failed = [v for v in result["vectors"] if v["status"] == "failed"]
            if failed:
                label, first = f"{result['adapter']} {result['dtype']}", describe_failure(failed[0])
                problems.append(f"{label}: {len(failed)} vectors fail, first {first}")
        return {"ok": not problems, "problems": problems, "device": device(), **section}

    def mutants(self, every_family: bool = False) -> Section:
        """every_family: those of forward passes go through every family in one dtype."""
        # The kernel runs where its module was loaded for: on the GPU if there is one.
        runs = [
            self.runs.mutant(one, device(), every_family=every_family and not one.backward)
            for one in mutants.MUTANTS
        ]
        section = self.each("mutants", runs)
        results = section["results"]
        problems = [f"{r['name']} is caught by no vector" for r in results if not r["caught"]]
        return {"ok": not problems, "problems": problems, **section}


def device() -> str:
    """Where implementations run: on the GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def processor_time() -> float:
    """Seconds of this process and of those that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def why_unsupported(results: Sequence[Section]) -> dict[str, str]:
    """By implementation of which no vector could be judged: the reason of most of them."""
    return {
        result["adapter"]: Counter(v["reason"] for v in result["vectors"]).most_common(1)[0][0]
        for result in results
        if all(v["status"] == "unsupported" for v in result["vectors"])
    }


def write_report(report: dict[str, Section], ok: bool, path: Path) -> None:
    """`build/report.json`: every section, without what the audit lists for other commands."""
    listed = ("listing", "core_statements")
    sections = {
        name: {key: value for key, value in section.items() if key not in listed}
        for name, section in report.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without indentation, which Python writes ten times slower.
    text = json.dumps({"ok": ok, **sections}, ensure_ascii=False, default=asdict)
    write_whole(path, text)
