"""The data of the maps: `docs/maps.json`, checked against the sources, with vectors and Python."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bridge.audit.implemented import known_implementations
from bridge.audit.theorems import listed_theorems
from bridge.index.maps import COMMAND, FILE, FORMAT
from bridge.reach import reach_all
from bridge.source.excerpt import Excerpt, SourceError, python_excerpts
from bridge.source.lean import declarations
from bridge.source.sources import Sources
from bridge.vectors.model.attention import Family

SPEC = "Attention.Spec."
_DEFINE = ("def", "abbrev", "structure", "inductive", "class", "class inductive")


@dataclass(frozen=True)
class Definition:
    """A definition of the Spec. uses: other definitions; operation: whether it computes values
    (`bridge.index.gaps`); run: whether the program that makes the vectors runs it; lean: where it
    stands."""

    name: str
    module: str
    uses: tuple[str, ...]
    operation: bool
    run: bool
    lean: Excerpt

    @property
    def label(self) -> str:
        return self.name.removeprefix(SPEC)


@dataclass(frozen=True)
class Theorem:
    """A listed theorem. lean: its full name; speaks_of: the definitions of the Spec that its
    statement mentions; needs: others that one has to know to read it; rests_on: the main
    theorems that its proof uses."""

    id: str
    lean: str
    sentence: str
    module: str
    speaks_of: tuple[str, ...]
    needs: tuple[str, ...]
    rests_on: tuple[str, ...]


@dataclass(frozen=True)
class Maps:
    """Definitions by name and theorems by id, in the order of the library; and by definition the
    families whose vectors name it, with how many do, and the Python that implements it."""

    definitions: dict[str, Definition]
    theorems: dict[str, Theorem]
    vectors: dict[str, dict[str, int]]
    python: dict[str, list[Excerpt]]

    def has_row(self, name: str) -> bool:
        """Whether the table of coverage has this definition: an operation, or a definition with
        vectors or Python of its own."""
        return self.definitions[name].operation or name in self.vectors or name in self.python

    def behind(self, names: Sequence[str]) -> set[str]:
        """All definitions that these use, directly or not."""
        used = (used for name in names for used in self.definitions[name].uses)
        return {*reach_all(used, lambda name: self.definitions[name].uses)}


def read(root: Path, families: Sequence[Family]) -> Maps:
    """The maps of the checkout. Raises SourceError where the file is not of these sources."""
    stored = json.loads((root / FILE).read_text("utf-8"))
    if stored.get("format") != FORMAT:
        raise SourceError(f"{FILE} has not the format {FORMAT}; run {COMMAND}")
    listed = {one["id"]: one for one in listed_theorems(root / "docs" / "theorems.toml")}
    _same("listed theorems", set(stored["theorems"]), set(listed))
    leans = {id: one["lean"] for id, one in stored["theorems"].items()}
    moved = [id for id, one in listed.items() if one["lean"] != leans[id]]
    if moved:
        raise SourceError(f"{FILE} has another Lean name for {moved[0]}; run {COMMAND}")
    _same("definitions of the Spec", set(stored["definitions"]), declared_names(root))
    sources = Sources(root, families)
    definitions = {
        name: Definition(name, lean=sources.lean(name), **{**one, "uses": tuple(one["uses"])})
        for name, one in stored["definitions"].items()
    }
    theorems = {
        id: msgspec.convert({**listed[id], **one, "speaks_of": one["uses"]}, Theorem)
        for id, one in stored["theorems"].items()
    }
    vectors: dict[str, dict[str, int]] = defaultdict(dict)
    for family in families:
        for vector in family.vectors:
            of = vectors[vector.lean]
            of[family.name] = of.get(family.name, 0) + 1
    return Maps(definitions, theorems, dict(vectors), implementations(root))


def implementations(root: Path) -> dict[str, list[Excerpt]]:
    """By Lean name, the Python of this checkout that implements it. Raises SourceError for a module
    that cannot be imported."""
    return python_excerpts(root, known_implementations())


def declared_names(root: Path) -> set[str]:
    """The definitions of the Spec's namespace that stand in its files, read from text alone."""
    return {
        str(one.name)
        for path in sorted((root / "Attention" / "Spec").glob("**/*.lean"))
        for one in declarations(path.read_text("utf-8"))
        if one.keyword in _DEFINE and not one.private and (one.name or "").startswith(SPEC)
    }


def _same(what: str, stored: set[str], found: set[str]) -> None:
    gone, new = sorted(stored - found), sorted(found - stored)
    if gone or new:
        said = f"{gone[0]}, which is gone" if gone else f"not {new[0]}"
        raise SourceError(f"{FILE} has of the {what} {said}; run {COMMAND}")
