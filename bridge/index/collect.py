"""Make the index: build and audit the library, list its stored constants, compare, put together."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bridge.audit.implemented import known_implementations
from bridge.audit.library import Library, Stage
from bridge.audit.second_kernel.core_statements import Statement
from bridge.cache import digest
from bridge.errors import MendableError
from bridge.index import compare, extract, traced
from bridge.index.entries import Index, assemble
from bridge.index.gaps import Gap, gaps
from bridge.source.lean import declarations
from bridge.toolchain import lakefile, modules
from bridge.vectors.format.index import entries_of
from bridge.vectors.load import default_directory

# Beginnings of names that Lean makes up: of instances, parents of structures, constructors.
_GENERATED = ("inst", "to", "mk")


class NameUnknownError(MendableError):
    """The library has nothing of a NAME; the message says so, with the nearest names."""

    def __init__(self, wanted: str, near: Sequence[str] = ()) -> None:
        hint = f"; the nearest: {', '.join(near)}" if near else ""
        super().__init__(f"NAME: the library declares nothing called {wanted!r}{hint}")


@dataclass(frozen=True)
class Collected:
    """The index; problems: differences between the extractions; trace: the index as lean-dojo's
    `TracedRepo`, or None, and then the note says why; operations, gaps: of the Spec;
    core_statements: those of Lean's own constants without a body that the library rests on, or None
    where no second kernel tells them."""

    index: Index
    problems: list[str]
    trace: Any
    note: str | None
    operations: list[str]
    gaps: list[Gap]
    core_statements: Mapping[str, Statement] | None = None


def texts_of(root: Path) -> dict[str, str]:
    """The text of each module of the library, imports first."""
    targets = lakefile.read(root / "lakefile.lean").defaults
    return {module.name: module.text for module in modules.closure(root, targets)}


def check_name(root: Path, wanted: str) -> None:
    """Raises NameUnknownError for a name that neither a declaration in the text of the library nor
    a module or namespace has: so a misspelt name is reported without a build."""
    if wanted.rpartition(".")[2].startswith(_GENERATED):
        return
    texts = texts_of(root)
    declared = {w.name for text in texts.values() for w in declarations(text) if w.name is not None}
    known = {*declared, *texts}
    known |= {name[:at] for name in known for at, letter in enumerate(name) if letter == "."}
    if not any(name == wanted or name.endswith(f".{wanted}") for name in known):
        last = {name.rpartition(".")[2]: name for name in sorted(known)}
        near = difflib.get_close_matches(wanted.rpartition(".")[2], last, 3)
        raise NameUnknownError(wanted, [last[one] for one in near])


def families() -> dict[str, list[tuple[str, str]]]:
    """For each vector of a family the definition that was run and the id of its theorem. The audit
    has checked the files; to check them again would take longer than all the rest."""
    found = {}
    folder = default_directory()
    for entry in entries_of(folder):
        document = json.loads((folder / entry["file"]).read_text("utf-8"))
        found[document["family"]] = [(v["lean"], v["theorem"]) for v in document["vectors"]]
    return found


def collect(library: Library, stage: Stage) -> Collected:
    """Everything, in about 20 s if the library has changed. Raises LibraryFailure if it does not
    build or the audit finds something, a listed theorem without a Spec definition included; and
    ToolchainError, SourceError or VectorError for an error that is not in a declaration."""
    root, audit = library.root, library.find_build_and_audit(stage)
    key = digest(root, ["bridge/index/listing.lean"], library.key())
    script, lean = extract.SCRIPT, library.lean
    answers, _ = library.cache.get("listing", key, lambda: lean.read_stored(script, "listed"), bool)
    constants = extract.read_constants(answers)
    texts = texts_of(root)
    instances = [d["name"] for d in audit["listing"].values() if d["instance_of"]]
    problems = compare.against_audit(constants, audit["listing"])
    problems += compare.against_source(constants, texts, instances)
    index = assemble(
        constants, audit["listing"], audit["main_theorems"], families(), known_implementations()
    )
    trace, note = None, None
    # Declarations that are read in two ways have no place in a syntax tree.
    if not problems:
        try:
            trace = traced.trace(root, index, texts)
            problems += traced.disagreements(trace, index)
        except traced.TraceError as error:
            note = str(error)
    operations, missing = gaps(index)
    core = audit["core_statements"]
    return Collected(index, problems, trace, note, operations, missing, core)


def to_json(found: Collected) -> dict[str, Any]:
    """The output of `--json`."""
    return {
        "declarations": [entry.to_json() for entry in found.index.entries.values()],
        "operations": found.operations,
        "gaps": [asdict(gap) for gap in found.gaps],
        "problems": found.problems,
    }
