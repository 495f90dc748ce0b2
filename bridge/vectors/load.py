"""Load vector files: check their shape first (`shape_check`), then the rest.

Every complaint is one sentence that names the file, the vector and the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from bridge import garbage
from bridge.files import write_whole
from bridge.vectors.format import files, index
from bridge.vectors.format.fields import Entry, VectorError
from bridge.vectors.format.read import READERS
from bridge.vectors.model.attention import Family


def default_directory() -> Path:
    """The vectors' folder: package data in an installed wheel, `tests/vectors` in a checkout."""
    packaged = Path(str(resources.files("bridge.vectors"))) / "data"
    if any(packaged.glob("*.json")):
        return packaged
    return Path(__file__).resolve().parents[2] / "tests" / "vectors"


def load(directory: Path | None = None, names: Iterable[str] | None = None) -> list[Family]:
    """The families of a directory that have these names, default all, sorted by name. No other file
    is read; the index lists all families with their numbers of vectors (`index.entries_of`).

    Raises VectorError for a missing or empty directory, an index (`format.index`) that does
    not fit the files or is of another version, a damaged file, and a name that the index lacks.
    """
    folder = default_directory() if directory is None else Path(directory)
    if not any(folder.glob("*.json")):
        raise VectorError(f"{folder}: there is no vector file (*.json) here.")
    entries = {listed["family"]: listed for listed in index.entries_of(folder)}
    wanted = sorted(entries if names is None else set(names))
    found = [index.entry_named(entries, name) for name in wanted]
    with garbage.no_search():
        return [listed_family(files.read_bytes(folder / one["file"]), one) for one in found]


def listed_family(content: bytes, listed: index.Entry) -> Family:
    """The family in the content of the file of this entry of an index. Raises VectorError where it
    is damaged, and where it differs from the entry."""
    sha256 = files.sha256(content)
    family = _family(content, listed["file"], sha256 in _own_hashes())
    index.check_entry(listed, family, sha256)
    return family


def load_file(path: Path) -> Family:
    """One family. Raises VectorError with a sentence that names the file, the vector and field."""
    return _family(files.read_bytes(path), path.name, False)


def read_trusted(path: Path) -> Family:
    """The family in a file that this project wrote, where there is nothing to check others with.

    Raises VectorError where the file cannot be read; other mistakes in it do not show.
    """
    return _family(files.read_bytes(path), path.name, True)


def write_index(folder: Path) -> None:
    """Rewrite the index of the vector files in a folder.

    Raises VectorError for a file that is malformed.
    """
    entries = []
    for path in sorted(folder.glob("*.json")):
        if path.name != index.INDEX:
            content = files.read_bytes(path)
            family = _family(content, path.name, False)
            entries.append(index.entry(family, files.sha256(content)))
    write_whole(folder / index.INDEX, index.text(entries))


@cache
def _own_hashes() -> frozenset[str]:
    """The hashes of this project's own files, whose shape need not be checked again: `write_index`
    did so before it put them into the index, and a test does so for the committed ones."""
    try:
        return frozenset(entry["sha256"] for entry in index.entries_of(default_directory()))
    except VectorError:
        return frozenset()


@lru_cache(maxsize=256)
def _family(content: bytes, filename: str, known: bool) -> Family:
    """The family in these bytes, whose shape is known to be right or checked. Of the same bytes it
    is the same again, since a process often needs it more than once."""
    document = files.parse(content, filename)
    return _read(document, filename) if known else family_of(document, filename)


def family_of(document: Any, filename: str) -> Family:
    """The family in a parsed document; `filename` is for messages and must match the family."""
    files.check_plain(document, filename)
    index.check_format(document, "format", index.VECTORS_FORMAT, filename)
    # Imported here: where vectors are only read (`read_trusted`) msgspec need not be installed.
    from bridge.vectors.format.shape_check import check_vectors

    check_vectors(document, filename)
    name = document["family"]
    if filename != f"{name}.json":
        raise VectorError(f"{filename}: field family: says {name}, but the file is {filename}.")
    return _read(document, filename)


def _read(document: Any, filename: str) -> Family:
    """The family in a document of the right shape."""
    name = document["family"]
    read = READERS[document["operation"]]
    ids: set[str] = set()
    vectors = []
    for entry in document["vectors"]:
        if entry["id"] in ids:
            raise VectorError(f"{filename}: {entry['id']}: field id: is already used in this file.")
        ids.add(entry["id"])
        vectors.append(read(Entry(filename, name, document["model"], entry)))
    return Family(name, document["about"], document["operation"], document["model"], tuple(vectors))
