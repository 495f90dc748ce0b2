"""`index.json` beside the vector files: a list of them, with their contents and their hashes.

A reader in another language finds files by it, and it tells a complete folder of this version from
any other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.vectors.format.fields import VectorError, short
from bridge.vectors.format.files import check_plain, read
from bridge.vectors.model.attention import Family

INDEX = "index.json"
INDEX_FORMAT = "attention-vectors-index-1"
# The format of the vector files. The number rises when a reader of it could misread a new file.
VECTORS_FORMAT = "attention-vectors-2"

Entry = dict[str, Any]


def entry(family: Family, sha256: str) -> Entry:
    """The index's entry for a family whose file has this hash."""
    theorems = Counter(vector.theorem for vector in family.vectors)
    definitions = Counter(vector.lean for vector in family.vectors)
    return {
        "file": f"{family.name}.json",
        "sha256": sha256,
        "family": family.name,
        "operation": family.operation,
        "model": family.model,
        "vectors": len(family.vectors),
        "theorems": sorted(theorems),
        "definitions": sorted(definitions),
    }


def text(entries: Sequence[Entry]) -> str:
    """The index as it is written: a family a line, in the order of their names."""
    lines = [json.dumps(e, ensure_ascii=False) for e in sorted(entries, key=lambda e: e["family"])]
    total = sum(e["vectors"] for e in entries)
    return (
        f'{{"format": "{INDEX_FORMAT}", "vectors_format": "{VECTORS_FORMAT}",\n'
        f' "vectors": {total},\n "families": [\n  ' + ",\n  ".join(lines) + "]}\n"
    )


def entries_of(folder: Path) -> list[Entry]:
    """The entries of the index of a folder, whose files are exactly those that it lists.

    Raises VectorError for an index that is missing, damaged or of another version, for a file that
    it lists and that is missing, and for one that it does not list.
    """
    if not (folder / INDEX).is_file():
        raise VectorError(f"{folder}: there is no {INDEX} here, which lists the vector files.")
    _, document = read(folder / INDEX)
    check_plain(document, INDEX)
    check_format(document, "format", INDEX_FORMAT, INDEX)
    check_format(document, "vectors_format", VECTORS_FORMAT, INDEX)
    # Imported here: where vectors are only read (`read_trusted`) msgspec need not be installed.
    from bridge.vectors.format.shape_check import check_index

    check_index(document, INDEX)
    entries: list[Entry] = document["families"]
    listed = Counter(e["file"] for e in entries)
    twice = next((name for name, count in listed.items() if count > 1), None)
    if twice is not None:
        raise VectorError(f"{INDEX}: {twice} is listed twice.")
    present = {path.name for path in folder.glob("*.json")} - {INDEX}
    for name in sorted(listed.keys() ^ present):
        where = f"is not in {INDEX}" if name in present else f"is in {INDEX}, but not in its folder"
        raise VectorError(f"{name}: {where}.")
    total = sum(e["vectors"] for e in entries)
    if document["vectors"] != total:
        raise VectorError(
            f"{INDEX}: field vectors: is {document['vectors']}, but its families have {total}."
        )
    return entries


def entry_named(entries: Mapping[str, Entry], name: str) -> Entry:
    """The entry of this family. Raises VectorError where there is none."""
    if name not in entries:
        raise VectorError(f"there is no family {name!r}; {INDEX} lists those that there are.")
    return entries[name]


def ids(listed: Entry) -> list[str]:
    """The ids of the vectors of one of this project's families, which are numbered from 000."""
    return [f"{listed['family']}-{n:03}" for n in range(listed["vectors"])]


def check_format(document: Any, field: str, known: str, filename: str) -> None:
    """Refuse another version before anything else is looked at: its fields may differ."""
    if not isinstance(document, dict):
        raise VectorError(f"{filename}: is not an object with the fields of this format.")
    given = document.get(field)
    if isinstance(given, str) and given != known:
        raise VectorError(
            f"{filename}: field {field}: is {short(given, 60)}, but this version reads {known}."
        )


def check_entry(listed: Entry, family: Family, sha256: str) -> None:
    """Refuse a family that differs from its entry in the index."""
    name = listed["file"]
    if listed["sha256"] != sha256:
        raise VectorError(
            f"{name}: its SHA-256 is not that of {INDEX}: it was changed, or not read in full."
        )
    for field, value in entry(family, sha256).items():
        if listed[field] != value:
            raise VectorError(
                f"{INDEX}: {name}: field {field}: is {short(str(listed[field]), 60)}, but the file "
                f"says {short(str(value), 60)}."
            )
