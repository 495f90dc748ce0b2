"""The stages of `make verify`, from Lean to the kernels, and what each found."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import pkgutil
import platform
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

import pyimpl
from bridge.conformance import adapters, faults, parallel, planting
from bridge.conformance.adapter import LayoutsAdapter
from bridge.conformance.judge import describe_failure
from bridge.conformance.pyimpl_adapters import interpret_without_gpu
from bridge.files import write_changed, write_whole
from bridge.pages import claims
from bridge.report import statements, theorems
from bridge.report.cache import Cache, digest, imported_files
from bridge.report.theorems import Headline, SourceError
from bridge.toolchain import Lean, ToolchainError, find
from bridge.toolchain.messages import ModuleResult
from bridge.vectors import exact, generate
from bridge.vectors.fields import VectorError
from bridge.vectors.index import entries_of
from bridge.vectors.load import default_directory, load
from bridge.vectors.model import Family
from pyimpl._implements import implementations

Section = dict[str, Any]

# The stages in their order, and what they are called.
STAGES = {
    "toolchain": "Lean",
    "build": "Proofs checked: lake build",
    "audit": "Audit of every declaration",
    "vectors": "Vectors",
    "implementations": "Implementations on the vectors",
    "faults": "Planted faults",
    "docs": "docs/theorems.md",
}


class Verification:
    """One run: its stages in order, each a JSON-able section with `ok` and `problems`."""

    def __init__(self, root: Path, console: Console) -> None:
        self.root = root
        self.console = console
        self.cache = Cache(root / "build" / "cache")
        self.report: dict[str, Section] = {}
        self.lean: Lean | None = None
        self.families: list[Family] = []
        self.ahead: concurrent.futures.Future[tuple[list[str], bool]] | None = None

    def stage(self, name: str, work: Callable[[], Section]) -> Section:
        """Run one stage, say how it went, and keep its section."""
        title = STAGES[name]
        start = time.monotonic()
        try:
            with self.console.status(f"{title} …"):
                if not self.console.is_terminal:
                    self.console.print(f"  {title} …")
                section = work()
        except (ToolchainError, VectorError, SourceError, planting.FaultError) as error:
            section = {"ok": False, "problems": [str(error)]}
        seconds = time.monotonic() - start
        section.setdefault("problems", [])
        section["seconds"] = round(seconds, 2)
        self.report[name] = section
        mark = "[green]✔[/]" if section["ok"] else "[red]✘[/]"
        kept = ", unchanged" if section.get("kept") else ""
        self.console.print(f"{mark} {title} ({seconds:.1f} s{kept})")
        for problem in section["problems"][:20]:
            self.console.print(
                f"    {problem}", style="red", markup=False, highlight=False, soft_wrap=True
            )
        return section

    def note(self, text: str) -> None:
        self.console.print(f"  {text}", markup=False, highlight=False)

    def run(self) -> bool:
        """All stages; True if every one of them is good."""
        self.stage("toolchain", self.find_lean)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            if self.lean is not None:
                build = self.stage("build", self.build)
                if build["ok"]:
                    # The audit is one process of Lean: there is room beside it.
                    self.ahead = pool.submit(self.vectors_made)
                    self.stage("audit", self.audit)
            vectors = self.stage("vectors", self.vectors)
        if vectors["ok"]:
            self.stage("implementations", self.implementations)
            # A fault planted in something that fails already shows nothing.
            if all(section["ok"] for section in self.report.values()):
                self.stage("faults", self.faults)
        if self.report.get("audit", {}).get("listing"):
            self.stage("docs", self.docs)
        for name, title in STAGES.items():
            if name not in self.report:
                self.console.print(f"[red]–[/] {title}: not run, since a stage before it failed")
        return all(self.report.get(name, {}).get("ok") for name in STAGES)

    # --- Lean -------------------------------------------------------------------------------------

    def find_lean(self) -> Section:
        self.lean = find(self.root, announce=self.note)
        return {"ok": True, "kind": self.lean.kind, "version": self.lean.version}

    def lean_key(self) -> str:
        assert self.lean is not None
        parts = ["Attention", "Attention.lean", "lakefile.lean", "bridge/toolchain"]
        return digest(self.root, parts, self.lean.kind, self.lean.version)

    def build(self) -> Section:
        assert self.lean is not None
        result = self.lean.build(on_module=self.module_built)
        problems = [str(m) for m in result.messages if m.severity == "error"]
        return {
            "ok": result.ok,
            "built": len(result.built),
            "reused": len(result.reused),
            "kept": not result.built,
            "problems": problems,
        }

    def module_built(self, name: str, result: ModuleResult | None) -> None:
        if result is not None and not result.reused and not result.skipped:
            self.note(f"{name}: {result.seconds:.1f} s")

    def audit(self) -> Section:
        assert self.lean is not None
        lean = self.lean
        audit, kept = self.cache.get(
            "audit", self.lean_key(), lambda: lean.audit().to_json(), lambda a: bool(a["ok"])
        )
        listing = {d["name"]: d for d in audit["declarations"]}
        headlines, problems = self.headlines(listing)
        names = implemented_names()
        for lean_name, python in sorted(names.items()):
            if lean_name not in listing:
                problems.append(f"{python} implements {lean_name}, which the library does not have")
        verdicts, wrong = self.claims(listing)
        problems += wrong
        empty, kept_too = self.empty_statements(headlines, listing)
        problems += empty
        return {
            "ok": audit["ok"] and not problems,
            "kept": kept and kept_too,
            "problems": [*audit["problems"], *problems],
            "declarations": len(listing),
            "theorems": sum(d["kind"] == "theorem" for d in listing.values()),
            "replayed": audit["replayed"],
            "trusted": audit["trusted"],
            "classes": audit["classes"],
            "headlines": headlines,
            "claims": verdicts,
            "listing": listing,
        }

    def claims(self, listing: dict[str, Any]) -> tuple[dict[str, dict[str, int]], list[str]]:
        """How many rows of docs/claims.toml each document has of each verdict; and what is wrong
        with the rows, or with the theorems and definitions that they name. That none of these rests
        on another axiom than Lean's, the audit has seen."""
        manifest = claims.read(self.root)
        families = frozenset(entry["family"] for entry in entries_of(default_directory()))
        problems = claims.problems(manifest, claims.declared(self.root), families)
        for claim in manifest.claims:
            for name in claim.lean:
                stored = listing.get(name, {"kind": "nothing"})["kind"]
                if stored == "nothing" or (stored == "theorem") != (name not in claim.defines):
                    problems.append(
                        f"{claim.document}, {claim.heading}: Lean has {name} as {stored}"
                    )
        counts = {d.id: Counter(c.verdict for c in manifest.of(d)) for d in manifest.documents}
        return {id: dict(count) for id, count in counts.items()}, problems

    def headlines(self, listing: dict[str, Any]) -> tuple[list[Section], list[str]]:
        """The theorems of docs/theorems.toml with what the audit says of them."""
        entries = listed_theorems(self.root / "docs" / "theorems.toml")
        found, problems = [], []
        for entry in entries:
            declaration = listing.get(entry["lean"])
            if declaration is None or declaration["kind"] != "theorem":
                problems.append(f"{entry['id']}: {entry['lean']} is not a theorem of the library")
                continue
            # In the order of the library, whatever order the names came in.
            mentions = [name for name in listing if name in declaration["mentions"]]
            if not any(name.startswith("Attention.Spec.") for name in mentions):
                problems.append(f"{entry['id']}: its statement mentions no Spec definition")
            # Classes are declared before those that ask for more.
            classes = [name for name in mentions if listing[name]["is_class"]]
            over = classes[-1] if classes else None
            found.append({**entry, **declaration, "mentions": mentions, "over": over})
        ids = [entry["id"] for entry in entries]
        problems += [f"{id} is listed twice" for id in sorted({i for i in ids if ids.count(i) > 1})]
        tested = {v.theorem for family in load() for v in family.vectors}
        problems += [f"vectors name {id}, which is not listed" for id in sorted(tested - set(ids))]
        return found, problems

    def empty_statements(
        self, headlines: list[Section], listing: dict[str, Any]
    ) -> tuple[list[str], bool]:
        """A sentence on each theorem of docs/theorems.toml or docs/claims.toml whose statement says
        nothing; and whether that is kept."""
        lean = self.lean
        assert lean is not None
        named = [(headline["id"], headline["lean"]) for headline in headlines]
        for claim in claims.read(self.root).claims:
            label = f"{claim.document}, {claim.heading}"
            named += [(label, name) for name in (*claim.refutes, *claim.proves)]
        # What Lean has not, or has as something else, is named elsewhere.
        proved = {name for name, d in listing.items() if d["kind"] == "theorem"}
        wanted = sorted({name for _, name in named} & proved)
        found, kept = self.cache.get(
            "statements",
            digest(self.root, ["bridge/report/statements.lean"], self.lean_key(), *wanted),
            lambda: statements.findings(lean, wanted),
            lambda found: not found,
        )
        sentences = [
            f"{label}: {name} says nothing: {found[name]}" for label, name in named if name in found
        ]
        return sentences, kept

    # --- vectors ----------------------------------------------------------------------------------

    def vectors_made(self) -> tuple[list[str], bool]:
        """How the vectors differ from what the Lean definitions yield, and whether that is kept."""
        lean = self.lean
        assert lean is not None
        return self.cache.get(
            "vectors",
            digest(self.root, ["tests/vectors"], self.lean_key()),
            lambda: generate.differences(lean.run, self.root / "tests" / "vectors"),
            lambda differing: not differing,
        )

    def vectors(self) -> Section:
        self.families = load()
        problems = []
        for family in self.families:
            for vector in family.vectors:
                problems += exact.disagreements(vector)
        kept = False
        if self.ahead is not None:
            found, kept = self.ahead.result()
            if found:
                found.append("to write them anew: .venv/bin/python -m bridge vectors")
            problems += found
        else:
            problems.append("not compared with what the Lean definitions yield: Lean did not build")
        return {
            "ok": not problems,
            "kept": kept,
            "problems": problems,
            "families": {family.name: len(family.vectors) for family in self.families},
        }

    # --- implementations --------------------------------------------------------------------------

    def python_key(self, module: str | None) -> str:
        """A hash of all that a run of this module's function on the vectors depends on."""
        parts = ["bridge/conformance", "bridge/report", "bridge/vectors", "tests/vectors"]
        if module is not None:
            parts += imported_files(self.root, module)
        versions = [torch.__version__, triton_version(), platform.machine(), sys.version]
        return digest(self.root, parts, *versions)

    def each(
        self,
        kind: str,
        jobs: list[tuple[str, ...]],
        module: Callable[[tuple[str, ...]], str | None],
        make: Callable[
            [Sequence[tuple[str, ...]], parallel.Progress, Sequence[Family]], list[Section]
        ],
        good: Callable[[Section], bool],
    ) -> tuple[list[Section], bool]:
        """The results of the jobs, those made that were not kept; and whether all were kept."""
        names = {job: "-".join((kind, *job)) for job in jobs}
        keys = {job: self.python_key(module(job)) for job in jobs}
        found = {job: self.cache.find(names[job], keys[job]) for job in jobs}
        missing = [job for job in jobs if found[job] is None]
        for job, result in zip(missing, make(missing, self.note, self.families), strict=True):
            found[job] = result
            if good(result):
                self.cache.keep(names[job], keys[job], result)
        return [found[job] for job in jobs], not missing

    def implementations(self) -> Section:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        jobs: list[tuple[str, ...]] = [
            (name, dtype, device)
            for name in adapters.BUILTIN
            for dtype in adapters.builtin(name).dtypes
        ]
        results, kept = self.each(
            "implementation",
            jobs,
            lambda job: module_behind(job[0]),
            parallel.run_each,
            lambda result: bool(result["ok"]),
        )
        problems = []
        for result in results:
            failed = [v for v in result["vectors"] if v["status"] == "failed"]
            label = f"{result['adapter']} {result['dtype']}"
            if failed:
                first = describe_failure(failed[0])
                problems.append(f"{label}: {len(failed)} vectors fail, first {first}")
            elif not result["ok"]:
                problems.append(f"{label}: no vector could be judged")
        return {
            "ok": not problems,
            "kept": kept,
            "problems": problems,
            "device": device,
            "results": results,
        }

    def faults(self) -> Section:
        # The kernel runs where its module was loaded for: on the GPU if there is one.
        device = "cuda" if torch.cuda.is_available() else "cpu"
        modules = {
            # The whole package is copied for a fault of the backward pass.
            fault.name: "pyimpl.__init__"
            if fault.backward
            else "pyimpl." + fault.entry.removesuffix(".py").replace("/", ".")
            for fault in faults.FAULTS
        }
        results, kept = self.each(
            "fault",
            [(name, device) for name in modules],
            lambda job: modules[job[0]],
            parallel.plant_each,
            lambda result: bool(result["caught"]),
        )
        problems = [f"{r['name']} is caught by no vector" for r in results if not r["caught"]]
        return {"ok": not problems, "kept": kept, "problems": problems, "results": results}

    # --- docs -------------------------------------------------------------------------------------

    def docs(self) -> Section:
        listing = self.report["audit"]["listing"]

        def source(name: str) -> theorems.Excerpt:
            d = listing[name]
            return theorems.excerpt(self.root, name, d["file"], d["first_line"], d["last_line"])

        headlines = [
            Headline(
                h["id"],
                h["sentence"],
                theorems.statement_only(source(h["name"])),
                tuple(n for n in h["mentions"] if n.startswith("Attention.Spec.")),
                tuple(
                    source(n)
                    for n in h["mentions"]
                    if n.startswith(("Attention.Proof.", "Attention.Model."))
                ),
            )
            for h in self.report["audit"]["headlines"]
        ]
        definitions = {n: source(n) for n in listing if n.startswith("Attention.Spec.")}
        python = theorems.python_excerpts(self.root, known_implementations())
        text = theorems.render(headlines, definitions, python, self.families)
        changed = write_changed(self.root / "docs" / "theorems.md", text)
        return {"ok": True, "kept": not changed, "theorems": len(headlines)}


def triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "none"
    return str(triton.__version__)


def module_behind(adapter: str) -> str | None:
    """The module of this project on which an adapter's results depend, with what it imports; None
    for another's function."""
    found = adapters.builtin(adapter)
    # What takes heads, packed sequences or pages goes through the public functions.
    return "pyimpl.__init__" if isinstance(found, LayoutsAdapter) else found.source


# Modules outside of pyimpl with functions that implement a Lean declaration.
IMPLEMENTING = ("bridge.conformance.allowance",)


def known_implementations() -> list[Any]:
    """Every recorded implementation; importing the modules records them. Raises SourceError for a
    module that cannot be imported."""
    interpret_without_gpu()
    own = [module.name for module in pkgutil.walk_packages(pyimpl.__path__, "pyimpl.")]
    for name in [*own, *IMPLEMENTING]:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise SourceError(
                f"{name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
    return implementations()


def implemented_names() -> dict[str, str]:
    """Lean name → the Python object that says it implements it."""
    return {one.lean: f"{one.module}.{one.qualname}" for one in known_implementations()}


def listed_theorems(path: Path) -> list[dict[str, str]]:
    """The entries of docs/theorems.toml. Raises SourceError for what is no list of theorems."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))["theorem"]
        for entry in entries:
            if set(entry) != {"id", "lean", "sentence"}:
                raise SourceError(
                    f"{path.name}: a theorem has id, lean and sentence, not {', '.join(entry)}"
                )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise SourceError(f"{path.name}: is no list of theorems: {error}") from error
    return list(entries)


def write_report(report: dict[str, Section], ok: bool, path: Path) -> None:
    """`build/report.json`: every section, without the audit's whole listing."""
    sections = {
        name: {key: value for key, value in section.items() if key != "listing"}
        for name, section in report.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"ok": ok, **sections}, indent=1, ensure_ascii=False, default=asdict)
    write_whole(path, text)
