"""Conformance runs and mutants, whose results are kept by the files that they depend on.

`make verify` and the tests make and read the same results.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bridge.cache import Cache, digest, imported_files
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters.adapter import BuiltinAdapter
from bridge.conformance.judging.run import run
from bridge.conformance.mutants import planting
from bridge.conformance.mutants.planting import Mutant
from bridge.report import jobs
from bridge.report.jobs import Done, Job
from bridge.vectors.model.attention import Family

Section = dict[str, Any]
Families = Callable[[], Iterable[Family]]

# How the vectors come in and Triton is run.
_READ = ("bridge.vectors.load", "bridge.interpreting")
_DATA = ("tests/vectors", "bridge/vectors/schema.json")


@dataclass(frozen=True)
class Run:
    """A job, and where its result is kept."""

    job: Job
    name: str
    key: str


class Runs:
    """The results for the checkout at `root`, kept in its `build/cache`."""

    def __init__(self, root: Path, cache: Cache) -> None:
        self.root = root
        self.cache = cache

    # --- their inputs -----------------------------------------------------------------------------

    def _key(self, files: Iterable[str], *facts: str) -> str:
        parts = [*_DATA, *files]
        for module in _READ:
            parts += imported_files(self.root, module)
        versions = torch.__version__, triton_version(), platform.machine(), sys.version
        return digest(self.root, parts, *versions, *facts)

    def files_of(self, adapter: BuiltinAdapter) -> list[str]:
        """The sources that an adapter's results on the vectors depend on, apart from those that
        read the vectors."""
        judge = "bridge.conformance.judging.run"
        found = [
            *imported_files(self.root, judge, also=("pyimpl",)),
            *imported_files(self.root, type(adapter).__module__),
        ]
        source = () if adapter.source is None else (adapter.source,)
        for module in adapter.rests_on or source:
            found += imported_files(self.root, module, without=adapter.without)
        return sorted(set(found))

    def files_of_mutant(self, mutant: Mutant) -> list[str]:
        """The same for a mutant, which is itself a fact beside them."""
        module = "pyimpl." + mutant.entry.removesuffix(".py").replace("/", ".")
        found = [
            *imported_files(self.root, "bridge.conformance.judging.run", also=("pyimpl",)),
            *imported_files(self.root, "bridge.conformance.mutants.planting"),
            *imported_files(self.root, module),
            f"pyimpl/{mutant.file}",
        ]
        if mutant.backward:
            kernels = mutant.entry.startswith("backends/kernels/")
            forward = "kernels.forward" if kernels else "tiled"
            found += imported_files(self.root, f"pyimpl.backends.{forward}")
        return sorted(set(found))

    # --- through worker processes -----------------------------------------------------------------

    def implementation(self, name: str, dtype: str, device: str) -> Run:
        """A built-in adapter on all vectors."""
        key = self._key(self.files_of(adapters.builtin(name)))
        job = Job("implementation", (name, dtype), device)
        return Run(job, f"implementation-{name}-{dtype}-{device}", key)

    def mutant(self, mutant: Mutant, device: str, *, every_family: bool = False) -> Run:
        """A mutant in every dtype."""
        key = self._key(self.files_of_mutant(mutant), repr(mutant))
        rest = ("every-family",) if every_family else ()
        job = Job("mutant", (mutant.name, *rest), device)
        return Run(job, "-".join(("mutant", mutant.name, *rest, device)), key)

    def find(self, one: Run) -> Section | None:
        """The kept result."""
        found: Section | None = self.cache.find(one.name, one.key)
        return found

    def keep(self, one: Run, done: Done) -> Section:
        """The result, with the processor time that it took. It is kept if it is good."""
        result = {**done.result, "processor_seconds": round(done.processor_seconds, 2)}
        if good(done.job, result):
            self.cache.keep(one.name, one.key, result)
        return result

    # --- in this process --------------------------------------------------------------------------

    def get(self, one: Run, families: Families) -> Section:
        """The kept result, or else one made here and kept."""
        found = self.find(one)
        if found is not None:
            return found
        return self.keep(one, jobs.work(one.job, list(families())))

    def of_adapter(
        self, name: str, adapter: BuiltinAdapter, dtype: str, families: Families
    ) -> Section:
        """The result on the CPU of an adapter that is not built in. name: the one under which it is
        kept."""
        found, _ = self.cache.get(
            f"implementation-{name}-{dtype}-cpu",
            self._key(self.files_of(adapter)),
            lambda: run(adapter, families(), dtype).to_json(),
            lambda result: bool(result["ok"]),
        )
        return dict(found)

    def plant(
        self, name: str, mutant: Mutant, families: Families, *, caught: bool, **how: Any
    ) -> Section:
        """The result of `planting.plant` for a mutant, called with `how`. name: of the result kept;
        caught: whether it has to be caught."""
        found, _ = self.cache.get(
            f"{name}-{mutant.name}",
            self._key(self.files_of_mutant(mutant), repr(mutant), repr(sorted(how.items()))),
            lambda: planting.plant(mutant, list(families()), **how).to_json(),
            lambda result: bool(result["caught"]) is caught,
        )
        return dict(found)


def good(job: Job, result: Section) -> bool:
    """Whether this is the result that it should be."""
    return bool(result["ok"] if job.kind == "implementation" else result["caught"])


def triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "none"
    return str(triton.__version__)
