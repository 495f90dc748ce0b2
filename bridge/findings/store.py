"""`docs/findings.json`: the findings on each function, by which the page is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.conformance.adapters import libraries
from bridge.conformance.outcomes.outcome import Conditions
from bridge.conformance.outcomes.subject import Subject
from bridge.files import write_changed
from bridge.findings import collect, subjects
from bridge.findings.subjects import Called
from bridge.vectors.format import files, index
from bridge.vectors.load import load
from bridge.vectors.model.attention import Family
from bridge.verdict import Verdict

FILE = "docs/findings.json"
FORMAT = "attention-findings-1"
COMMAND = ".venv/bin/python -m bridge findings"
# A first call may compile for long.
_TIME_LIMIT = 600.0

Document = dict[str, Any]


def missing_packages(chosen: Iterable[Called]) -> dict[str, str]:
    """By function, the packages that it needs and that are not here."""
    found = {one.name: libraries.missing_packages(one.name) for one in chosen}
    return {name: packages for name, packages in found.items() if packages is not None}


def find(one: Called, families: Sequence[Family], hash_of: Mapping[str, str]) -> Document:
    """Run a function on a CPU, with nothing declared, and confirm each failure. Raises
    FindingsError where exact arithmetic does not."""
    verdict = Verdict(one.about.dtypes, families, Conditions(limit=_TIME_LIMIT))
    verdict.add(Subject(one.name, undeclared=True), lambda text: print(text, file=sys.stderr))
    return collect.collect(verdict.outcomes, families, hash_of)


def read(path: Path) -> Document:
    """The stored document; an empty one where there is none, or one of another format."""
    empty: Document = {"format": FORMAT, "command": COMMAND, "functions": []}
    try:
        document: Document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return empty
    return document if document.get("format") == FORMAT else empty


def update(
    root: Path,
    chosen: Sequence[Called],
    announce: Callable[[str], None] = lambda text: None,
    run: Callable[[Called, Sequence[Family], Mapping[str, str]], Document] = find,
) -> list[str]:
    """Run these functions on the vectors of the checkout, and keep the results in the place of
    those that were kept of them; the names of the files that changed."""
    folder = root / "tests" / "vectors"
    families = load(folder)
    hash_of = collect.hashes(folder, families)
    document = read(root / FILE)
    kept = {entry["name"]: entry for entry in document["functions"]}
    for one in chosen:
        announce(f"{one.name} …")
        kept[one.name] = {
            "name": one.name,
            "versions": subjects.versions(one),
            "machine": subjects.machine(),
            "vectors": files.sha256((folder / index.INDEX).read_bytes())[:16],
            **run(one, families, hash_of),
        }
    # In the order of the list; functions that are no longer run are dropped.
    document["functions"] = [kept[c.name] for c in subjects.CALLED if c.name in kept]
    changed = write_changed(root / FILE, as_text(document))
    return [FILE] if changed else []


def as_text(document: Document) -> str:
    """The document as it is stored: the same for the same results."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def outdated_vectors(document: Document, hash_of: Mapping[str, str]) -> list[str]:
    """One sentence for each vector that a function is said to fail and that is gone or another
    now. New vectors make nothing outdated: the page says which families each function ran."""
    found = []
    for entry in document["functions"]:
        named = {id: h for symptom in entry["symptoms"] for id, h in symptom["vectors"].items()}
        for id, kept in sorted(named.items()):
            if hash_of.get(id) != kept:
                what = "is another one now" if id in hash_of else "is no longer there"
                found.append(f"{id}, which {entry['name']} fails, {what}: run {COMMAND}")
    return found
