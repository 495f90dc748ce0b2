"""Translate the library as it is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bridge.audit.library import Library, Stage
from bridge.cache import digest
from bridge.files import write_texts
from bridge.index import collect
from bridge.index.entries import Index
from bridge.translation import library as translated
from bridge.translation import package
from bridge.translation.package import FOLDER, Source
from bridge.translation.terms import read

SCRIPT = "bridge/translation/terms.lean"
_KINDS = frozenset({"definition", "proposition", "type", "structure", "inductive"})
_FOLDERS = ("Attention.Spec.", "Attention.Algebra.")
# The intervals in which natural exponentials are computed.
_MODULES = ("Attention.Model.Interval",)
# Written by hand.
_KEPT = frozenset({"__init__.py", "core.py"})


def names_of(index: Index) -> list[str]:
    """The definitions and types that are looked at, in the order of the library."""
    return [
        e.name
        for e in index.entries.values()
        if e.kind in _KINDS
        and (e.module.startswith(_FOLDERS) or e.module in _MODULES)
        and not e.private
    ]


def texts(library: Library, stage: Stage) -> dict[str, str]:
    """By path from the root, the text that each module of `bridge/spec` should have.

    Raises the errors of `collect`, and UntranslatableError for a definition without a translation.
    """
    index = collect.collect(library, stage).index
    wanted, root = names_of(index), library.root
    key = digest(root, [SCRIPT], f"{library.key()} {' '.join(wanted)}")
    answers, _ = library.cache.get(
        "terms", key, lambda: library.lean.read_stored(root / SCRIPT, "translated", wanted), bool
    )
    sources = {e.name: Source(e.file, e.range[0], e.doc) for e in index.entries.values()}
    return package.texts(translated.Library(map(read, answers)), sources, root)


def differing_files(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """The files that are not as they should be, those that should not be there included."""
    there = {p.relative_to(root).as_posix(): p for p in (root / FOLDER).glob("*.py")}
    kept = {f"{FOLDER}/{name}" for name in _KEPT}
    wrong = [
        n for n, text in wanted.items() if n not in there or there[n].read_text("utf-8") != text
    ]
    return sorted({*wrong, *(there.keys() - wanted.keys() - kept)})


def replace(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """Write the files that differ, and remove those that should not be there; their paths."""
    changed = differing_files(root, wanted)
    write_texts(root, wanted)
    for name in changed:
        if name not in wanted:
            (root / name).unlink()
    return changed
