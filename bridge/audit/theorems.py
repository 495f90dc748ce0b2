"""The list of theorems, docs/theorems.toml."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from bridge.source.excerpt import SourceError

# The kinds of theorems in the list, and how several are called.
KINDS = {
    "main": "main results",
    "beyond": "results about definitions beyond the Spec",
    "corollary": "corollaries and steps",
    "sanity": "sanity lemmas",
}
_FIELDS = ("id", "kind", "lean", "sentence")


def theorem_list() -> Path:
    """The list of theorems: package data in an installed wheel, else docs/theorems.toml of the
    checkout."""
    packaged = Path(__file__).parent / "theorems.toml"
    checkout = Path(__file__).resolve().parents[2] / "docs" / "theorems.toml"
    return packaged if packaged.exists() else checkout


def listed_theorems(path: Path) -> list[dict[str, str]]:
    """The entries of docs/theorems.toml. Raises SourceError if it is no list of theorems."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))["theorem"]
        for entry in entries:
            if set(entry) != set(_FIELDS):
                raise SourceError(
                    f"{path.name}: a theorem has id, kind, lean and sentence, not "
                    f"{', '.join(entry)}"
                )
            if entry["kind"] not in KINDS:
                raise SourceError(
                    f"{path.name}: {entry['id']} is of the kind {entry['kind']!r}, not one of "
                    f"{', '.join(KINDS)}"
                )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise SourceError(f"{path.name}: is no list of theorems: {error}") from error
    return list(entries)


def sentences_by_id(path: Path) -> dict[str, str]:
    """By theorem id, its sentence. Raises SourceError if the file is no list of theorems."""
    return {entry["id"]: entry["sentence"] for entry in listed_theorems(path)}


def count_kinds(entries: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """How many theorems there are of each kind."""
    found = Counter(entry["kind"] for entry in entries)
    return {kind: found[kind] for kind in KINDS}
