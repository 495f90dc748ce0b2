"""The Lean library: found, built, and every declaration of it audited."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bridge.audit import main_theorems, statements
from bridge.audit.implemented import implemented_names
from bridge.audit.second_kernel import check, core_statements
from bridge.audit.second_kernel.core_statements import Statement
from bridge.cache import Cache, digest
from bridge.errors import MendableError
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
    how many constants checked ("audit"). replay: the kernel of the Lean that built it checks it
    again, even where a second kernel is there to do so."""

    root: Path
    cache: Cache
    note: Callable[[str], None]
    reached: Callable[[str, int, int], None]
    replay: bool = False
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

    def _by_second_kernel(self) -> bool:
        """Whether the second kernel checks the library, in the place of the Lean that built it. A
        native Lean's modules are not read here."""
        return not self.replay and self.lean.kind == "embedded" and check.is_installed()

    def audit(self) -> Section:
        """The audit's report on each declaration, as it is built, and on the theorems, claims and
        implementations that documents and Python name. Every stored proof is checked again: by the
        second kernel where that is there, otherwise by the Lean that built them."""
        second = self._by_second_kernel()
        audit, kept = self.cache.get(
            # One does not take the place of the other.
            "audit-without-replay" if second else "audit",
            self.key(),
            lambda: self.lean.audit(
                replay=not second, on_checked=lambda *far: self.reached("audit", *far)
            ).to_json(),
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
        terms = {name: one.term for name, one in said.items()}
        kernel = {
            "kernel": f"the kernel of Lean {self.lean.version}", "checked": audit["replayed"],
            "problems": [], "kept": True,
        }  # fmt: skip
        if second:
            kernel = self._second_kernel(terms, audit["trusted_names"], listing)
        problems += kernel["problems"]
        # The site shows them, and has no Lean to ask.
        statements.keep(self.root, {name: one.text for name, one in said.items()})
        problems += empty
        for main_theorem in found:
            main_theorem["statement"] = said[main_theorem["lean"]].text
        return {
            "ok": audit["ok"] and not problems,
            "kept": kept and kept_too and kernel["kept"],
            "problems": [*audit["problems"], *problems],
            "declarations": len(listing),
            "theorems": sum(d["kind"] == "theorem" for d in listing.values()),
            "kernel": kernel["kernel"],
            "replayed": kernel["checked"],
            "trusted": audit["trusted"],
            "trusted_names": audit["trusted_names"],
            "classes": audit["classes"],
            "main_theorems": found,
            "terms": terms,
            "core_statements": kernel.get("core_statements"),
            "claims": verdicts,
            "listing": listing,
        }

    def _second_kernel(
        self, terms: dict[str, str], trusted: Section, listing: dict[str, Section]
    ) -> Section:
        """The report of the second kernel: `kernel`, its name; `checked`, how many constants of the
        library it has accepted; `core_statements`, those of Lean's own constants without a body;
        `problems` and `kept`."""
        # Constructors and recursors are checked with their types.
        declared = [name for name, d in listing.items() if d["kind"] != "constructor"]
        told = json.dumps([terms, trusted, declared], sort_keys=True)
        try:
            found, kept = self.cache.get(
                "second-kernel",
                digest(
                    self.root, ["bridge/audit/second_kernel"], self.key(), check.VERSION, told
                ),
                lambda: check.check_library(
                    self.lean, terms, trusted, declared,
                    lambda *far: self.reached("audit", *far),
                ),
                lambda found: bool(found["ok"]),
            )  # fmt: skip
            core = {name: Statement(**one) for name, one in found["core_statements"].items()}
            differing = core_statements.differences(core_statements.table(self.root), core)
        except (MendableError, OSError) as error:
            return {"kernel": "none", "checked": 0, "problems": [str(error)], "kept": False}
        name = f"the kernel of Lean {found['lean']} ({check.PACKAGE} {check.VERSION})"
        problems = [*found["problems"], *differing]
        return {
            **found, "problems": problems, "kernel": name, "kept": kept, "core_statements": core,
        }  # fmt: skip

    def find_build_and_audit(self, stage: Stage) -> Section:
        """The section of `audit`, after `find` and `build`. Raises LibraryFailure with the problems
        of the first that is not good."""
        for name, work in (("toolchain", self.find), ("build", self.build), ("audit", self.audit)):
            section = stage(name, work)
            if not section["ok"]:
                raise LibraryFailure(section["problems"] or [f"{name} fails"])
        return section
