"""The Lean library: found, built, and every declaration of it audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bridge.audit import main_theorems, statements
from bridge.audit.implemented import implemented_names
from bridge.cache import Cache, digest
from bridge.toolchain import Lean, find
from bridge.toolchain.messages import ModuleResult

Section = dict[str, Any]


class Stage(Protocol):
    """Runs a piece of work under a name, shows how it goes, and gives its section. An error of the
    project itself becomes a section that is not `ok`."""

    def __call__(self, name: str, work: Callable[[], Section], /) -> Section: ...


class LibraryFailure(Exception):
    """The library does not build, or the audit finds something; `problems` says what, a sentence
    each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass
class Library:
    """The library of the checkout at `root`. cache: where results are kept; note: is told a line
    while Lean is prepared; reached: is told how many modules of how many are built ("build"), and
    how many declarations checked ("audit")."""

    root: Path
    cache: Cache
    note: Callable[[str], None]
    reached: Callable[[str, int, int], None]
    _lean: Lean | None = None
    _built: int = 0

    @property
    def lean(self) -> Lean:
        """Lean, after `find`."""
        assert self._lean is not None
        return self._lean

    def key(self) -> str:
        """A digest of the library and of Lean."""
        parts = ["Attention", "Attention.lean", "lakefile.lean", "bridge/toolchain"]
        return digest(self.root, parts, self.lean.kind, self.lean.version)

    def find(self) -> Section:
        """Find Lean, or prepare it. Raises ToolchainError."""
        self._lean = find(self.root, announce=self.note)
        return {"ok": True, "kind": self.lean.kind, "version": self.lean.version}

    def build(self) -> Section:
        """Build the modules that have changed."""
        self._built = 0
        result = self.lean.build(on_module=self._module_built)
        problems = [str(m) for m in result.messages if m.severity == "error"]
        return {
            "ok": result.ok,
            "built": len(result.built),
            "reused": len(result.reused),
            "kept": not result.built,
            "problems": problems,
        }

    def _module_built(self, name: str, result: ModuleResult | None) -> None:
        if result is not None:
            self._built += 1
            self.reached("build", self._built, result.total)

    def audit(self) -> Section:
        """The audit's report on each declaration, as it is built, and on the theorems, claims and
        implementations that documents and Python name."""
        audit, kept = self.cache.get(
            "audit",
            self.key(),
            lambda: self.lean.audit(on_checked=lambda *far: self.reached("audit", *far)).to_json(),
            lambda a: bool(a["ok"]),
        )
        listing = {d["name"]: d for d in audit["declarations"]}
        found, problems = main_theorems.main_theorems(self.root, listing)
        names = implemented_names()
        for lean_name, python in sorted(names.items()):
            if lean_name not in listing:
                problems.append(f"{python} implements {lean_name}, which the library does not have")
        verdicts, wrong = main_theorems.count_verdicts(self.root, listing)
        problems += wrong
        said, empty, kept_too = main_theorems.whole_statements(
            self.lean, self.cache, self.key(), found, listing
        )
        # The site shows them, and has no Lean to ask.
        statements.keep(self.root, {name: one.text for name, one in said.items()})
        problems += empty
        for main_theorem in found:
            main_theorem["statement"] = said[main_theorem["lean"]].text
        return {
            "ok": audit["ok"] and not problems,
            "kept": kept and kept_too,
            "problems": [*audit["problems"], *problems],
            "declarations": len(listing),
            "theorems": sum(d["kind"] == "theorem" for d in listing.values()),
            "replayed": audit["replayed"],
            "trusted": audit["trusted"],
            "trusted_names": audit["trusted_names"],
            "classes": audit["classes"],
            "main_theorems": found,
            "terms": {name: one.term for name, one in said.items()},
            "claims": verdicts,
            "listing": listing,
        }

    def find_build_and_audit(self, stage: Stage) -> Section:
        """The section of `audit`, after `find` and `build`. Raises LibraryFailure with the problems
        of the first that is not good."""
        for name, work in (("toolchain", self.find), ("build", self.build), ("audit", self.audit)):
            section = stage(name, work)
            if not section["ok"]:
                raise LibraryFailure(section["problems"] or [f"{name} fails"])
        return section
