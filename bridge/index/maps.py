"""`docs/maps.json`: the facts that the maps of the documentation need and Lean alone knows.

Of each definition of the Spec which others it uses, whether it is an operation, and whether the
program that makes the vectors runs it; of each listed theorem which definitions of the Spec its
statement speaks of, which others it takes to read it, and on which other listed theorems its
proof rests: itself, or through theorems that are not listed theorems. All else on the maps is in
the sources and the vectors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.files import write_changed
from bridge.index.entries import Index
from bridge.index.gaps import PROGRAM, SPEC, is_operation
from bridge.index.graph import SHOWN, arrows, behind
from bridge.reach import reach_all

FILE = "docs/maps.json"
FORMAT = "attention-maps-2"
COMMAND = ".venv/bin/python -m bridge index --maps"
_NUMBERS = "Attention.Algebra."


def rests_on(index: Index, name: str) -> list[str]:
    """The listed theorems that a proof uses, in the order of the library. Behind one of them it
    does not look."""

    def behind(used: str) -> tuple[str, ...]:
        one = index.entries.get(used)
        return one.uses if one is not None and one.main_theorem is None else ()

    found = {*reach_all(index.entries[name].uses, behind)} - {name}
    return [n for n, one in index.entries.items() if n in found and one.main_theorem is not None]


def needed_definitions(index: Index, name: str) -> list[str]:
    """The definitions outside of the Spec that a statement mentions, in the order of the library.
    Numbers and vectors, which most statements mention, are left out."""
    mentioned = {behind(used, index) for used in index.entries[name].uses_in_statement}
    return [
        one.name
        for one in index.entries.values()
        if one.name in mentioned
        and one.kind in SHOWN
        and not one.private
        and not one.module.startswith((SPEC, _NUMBERS))
    ]


def data(index: Index) -> dict[str, Any]:
    """The contents of the file, definitions and theorems in the order of the library."""
    speaks_of = arrows(index)
    order = {name: n for n, name in enumerate(index.entries)}
    run = index.reach(e.name for e in index.entries.values() if e.module == PROGRAM)
    definitions, theorems = {}, {}
    for name in sorted(speaks_of, key=order.__getitem__):
        entry = index.entries[name]
        known: dict[str, Any] = {
            "module": entry.module,
            "uses": sorted(speaks_of[name], key=order.__getitem__),
        }
        if entry.main_theorem is None:
            known |= {"operation": is_operation(entry), "run": name in run}
            definitions[name] = known
        else:
            resting = [str(index.entries[one].main_theorem) for one in rests_on(index, name)]
            theorems[entry.main_theorem] = {
                "lean": name,
                **known,
                "needs": needed_definitions(index, name),
                "rests_on": resting,
            }
    return {"definitions": definitions, "theorems": theorems}


def text(index: Index) -> str:
    """The file as it is written: a declaration a line."""
    parts = []
    for part, entries in data(index).items():
        lines = [
            f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}"
            for name, one in entries.items()
        ]
        parts.append(f'"{part}": {{\n' + ",\n".join(lines) + "\n}")
    return f'{{"format": "{FORMAT}",\n' + ",\n".join(parts) + "}\n"


def problems(root: Path, index: Index) -> list[str]:
    """One sentence if the file differs from the index."""
    path = root / FILE
    if path.is_file() and path.read_text("utf-8") == text(index):
        return []
    return [f"{FILE} differs from the index; run {COMMAND}"]


def write(root: Path, index: Index) -> bool:
    """Write the file; whether it changed."""
    return write_changed(root / FILE, text(index))
