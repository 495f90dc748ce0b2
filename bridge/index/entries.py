"""The index: one entry for each declaration, with all that is known of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bridge.index.compare import internal
from bridge.index.extract import Position, Stored, uses
from bridge.reach import reach_all
from pyimpl.internal.implements import Implementation


@dataclass(frozen=True)
class Entry:
    """One declaration of the library.

    kind: theorem, definition, type, class, structure, inductive, instance, field, constructor, or
    proposition (a definition that states something). range: first line and column, last line and
    column (lines 1-based, columns 0-based). uses: own declarations that its stored terms use,
    uses_in_statement those that its type uses; used_by: the reverse. core: the constants of Lean's
    modules that it uses. axioms: those of Lean's logic that it rests on. vectors: family → how many
    of its vectors name it, as the definition that was run or as the theorem that they rest on.
    python: the functions that implement it. main_theorem: its id in docs/theorems.toml.
    """

    name: str
    shown: str
    kind: str
    module: str
    file: str
    range: Position
    statement: str
    doc: str
    private: bool
    uses: tuple[str, ...]
    uses_in_statement: tuple[str, ...]
    used_by: tuple[str, ...]
    core: tuple[str, ...]
    axioms: tuple[str, ...]
    vectors: dict[str, int]
    python: tuple[str, ...]
    main_theorem: str | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Index:
    """Entries by name, in the order of the library."""

    entries: dict[str, Entry]

    def find(self, wanted: str) -> list[Entry]:
        """The entries of this name; if there are none, those whose name ends with it."""
        exact = [e for e in self.entries.values() if wanted in (e.name, e.shown)]
        return exact or [e for e in self.entries.values() if e.shown.endswith(f".{wanted}")]

    def inside(self, space: str) -> list[Entry]:
        """The entries of this module, those of modules below it, and those of this namespace."""
        return [
            e
            for e in self.entries.values()
            if f"{e.module}.".startswith(f"{space}.") or e.shown.startswith(f"{space}.")
        ]

    def reach(self, start: Iterable[str]) -> set[str]:
        """These declarations and all that they use, directly or not."""
        return {*reach_all(start, lambda n: self.entries[n].uses if n in self.entries else ())}


def assemble(
    constants: Mapping[str, Stored],
    audited: Mapping[str, Any],
    main_theorems: Sequence[Mapping[str, Any]],
    families: Mapping[str, Iterable[tuple[str, str]]],
    implementations: Sequence[Implementation],
) -> Index:
    """Everything of a declaration in one place. audited: the audit's declarations, by name;
    families: for each vector of a family the definition that was run and the id of its theorem."""
    own = {
        n: c
        for n, c in constants.items()
        if c.range is not None and n in audited and not internal(c.shown)
    }
    used = {n: uses(constants, [*c.uses_of_type, *c.uses_of_value], n) for n, c in own.items()}
    used_by: dict[str, list[str]] = defaultdict(list)
    for name in own:
        for other in used[name][0]:
            used_by[other].append(name)
    ids = {h["lean"]: h["id"] for h in main_theorems}
    named = {h["id"]: h["lean"] for h in main_theorems}
    vectors: dict[str, Counter[str]] = defaultdict(Counter)
    for family, pairs in families.items():
        for definition, theorem in pairs:
            for name in {definition, named.get(theorem, "")}:
                vectors[name][family] += 1
    python: dict[str, list[str]] = defaultdict(list)
    for one in implementations:
        python[one.lean].append(f"{one.module}.{one.qualname}")
    kinds = _kinds(own, audited)
    entries = {}
    for name in audited:
        if name not in own:
            continue
        constant, audit = own[name], audited[name]
        assert constant.range is not None
        entries[name] = Entry(
            name,
            constant.shown,
            kinds[name],
            constant.module,
            audit["file"],
            constant.range,
            constant.statement or "",
            " ".join((constant.doc or "").split()),
            constant.private,
            tuple(n for n in used[name][0] if n in own),
            tuple(n for n in uses(constants, constant.uses_of_type, name)[0] if n in own),
            tuple(sorted(used_by[name])),
            used[name][1],
            tuple(audit["axioms"]),
            dict(vectors[name]),
            tuple(python.get(name, ())),
            ids.get(name),
        )
    return Index(entries)


def _kinds(own: Mapping[str, Stored], audited: Mapping[str, Any]) -> dict[str, str]:
    """The kind of each declaration, from the stored terms and the audit."""
    found = {}
    fields = _fields(own)
    instances = {name for name in own if audited[name]["instance_of"]}
    for name, constant in own.items():
        audit = audited[name]
        kind = constant.kind
        if audit["is_class"]:
            kind = "class"
        elif audit["instance_of"] or name.rpartition(".")[0] in instances:
            # A derived instance may come in parts: `instInhabitedState.default`.
            kind = "instance"
        elif name in fields:
            kind = "field"
        elif kind == "inductive" and name in fields.values():
            kind = "structure"
        elif kind == "definition":
            kind = _kind_of_definition(constant)
        found[name] = kind
    return found


def _kind_of_definition(constant: Stored) -> str:
    result = re.search(r":\s*(Type|Sort|Prop)\b[^:]*$", constant.statement or "")
    if result is None:
        return "definition"
    return "proposition" if result[1] == "Prop" else "type"


def _fields(own: Mapping[str, Stored]) -> dict[str, str]:
    """Fields and the types that they are fields of: named after it and declared inside it."""
    types = {c.shown: c for c in own.values() if c.kind == "inductive"}
    found = {}
    for name, constant in own.items():
        of = types.get(constant.shown.rpartition(".")[0])
        if of is None or constant.kind not in ("definition", "theorem"):
            continue
        if of.module != constant.module:
            continue
        assert of.range is not None
        assert constant.range is not None
        if of.range[:2] <= constant.range[:2] and constant.range[2:] <= of.range[2:]:
            found[name] = of.name
    return found
