"""Load vector files: strict JSON Schema first, then what a schema cannot say.

Every complaint is one sentence that names the file, the vector and the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bridge.files import write_whole
from bridge.vectors import files, index
from bridge.vectors.fields import Fields, VectorError, short
from bridge.vectors.model import Family
from bridge.vectors.read import READERS

# Imported where it is needed: `trusted` does without.
if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def default_directory() -> Path:
    """Where the vectors are: package data in an installed wheel, `tests/vectors` in a checkout."""
    packaged = Path(str(resources.files("bridge.vectors"))) / "data"
    if any(packaged.glob("*.json")):
        return packaged
    return Path(__file__).resolve().parents[2] / "tests" / "vectors"


def load(directory: Path | None = None) -> list[Family]:
    """All families of a directory, sorted by name.

    Raises VectorError for a missing or empty directory, an index (`bridge.vectors.index`) that does
    not fit the files or is of another version, a damaged file, and an id that occurs twice.
    """
    folder = default_directory() if directory is None else Path(directory)
    if not any(folder.glob("*.json")):
        raise VectorError(f"{folder}: there is no vector file (*.json) here.")
    families = []
    for listed in index.entries_of(folder):
        content = files.read_bytes(folder / listed["file"])
        family = _family(content, listed["file"])
        index.check_entry(listed, family, files.sha256(content))
        families.append(family)
    families.sort(key=lambda family: family.name)
    seen: dict[str, str] = {}
    for family in families:
        for vector in family.vectors:
            if vector.id in seen:
                raise VectorError(
                    f"{family.name}.json: {vector.id}: field id: is already used in "
                    f"{seen[vector.id]}.json."
                )
            seen[vector.id] = family.name
    return families


def load_file(path: Path) -> Family:
    """One family. Raises VectorError with a sentence that names the file, the vector and field."""
    return _family(files.read_bytes(path), path.name)


def trusted(path: Path) -> Family:
    """The family in a file that `load` has accepted before, where jsonschema is not installed.

    Raises VectorError where the file cannot be read; what else may be wrong with it does not show.
    """
    return _read(files.parse(files.read_bytes(path), path.name), path.name)


def write_index(folder: Path) -> None:
    """Write the index of the vector files in a folder anew.

    Raises VectorError for a file that is not what it should be.
    """
    entries = []
    for path in sorted(folder.glob("*.json")):
        if path.name != index.INDEX:
            content = files.read_bytes(path)
            entries.append(index.entry(_family(content, path.name), files.sha256(content)))
    write_whole(folder / index.INDEX, index.text(entries))


@lru_cache(maxsize=256)
def _family(content: bytes, filename: str) -> Family:
    """The family in these bytes. Of the same bytes it is the same again, and a process often needs
    it more than once: all files together take 5 s to check."""
    return family_of(files.parse(content, filename), filename)


def family_of(document: Any, filename: str) -> Family:
    """The family in a parsed document; `filename` is for messages and must match the family."""
    files.check_plain(document, filename)
    index.check_format(document, "format", index.VECTORS_FORMAT, filename)
    error = next(_validator().iter_errors(document), None)
    if error is not None:
        raise VectorError(_sentence(error, document, filename))
    name = document["family"]
    if filename != f"{name}.json":
        raise VectorError(f"{filename}: field family: says {name}, but the file is {filename}.")
    return _read(document, filename)


def _read(document: Any, filename: str) -> Family:
    """The family in a document that fits the schema."""
    name = document["family"]
    read = READERS[document["operation"]]
    ids: set[str] = set()
    vectors = []
    for entry in document["vectors"]:
        if entry["id"] in ids:
            raise VectorError(f"{filename}: {entry['id']}: field id: is already used in this file.")
        ids.add(entry["id"])
        vectors.append(read(Fields(filename, name, document["model"], entry)))
    return Family(name, document["about"], document["operation"], document["model"], tuple(vectors))


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a vector file."""
    text = (resources.files("bridge.vectors") / "schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _validator() -> Any:
    """A validator of the schema that goes through long lists of strings in one loop.

    The plain one takes 20 µs for each number of a matrix, ten seconds for a few megabytes; the
    result is the same, since a string that fails here is handed to the plain check.
    """
    import jsonschema
    from jsonschema.exceptions import ValidationError

    plain = jsonschema.Draft202012Validator
    definitions = schema()["$defs"]

    def named(part: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = definitions.get(part.get("$ref", "").removeprefix("#/$defs/"), part)
        return found

    def items(validator: Any, items_: Any, instance: Any, whole: Any) -> Iterator[Any]:
        leaf = named(items_)
        # A number or null.
        nullable = "oneOf" in leaf and leaf["oneOf"][0] == {"type": "null"}
        leaf = named(leaf["oneOf"][1]) if nullable else leaf
        if leaf.get("type") == "string" and isinstance(instance, list):
            matches = re.compile(leaf["pattern"]).fullmatch
            limit = leaf["maxLength"]
            strings = (x for x in instance if not (nullable and x is None))
            if all(isinstance(x, str) and len(x) <= limit and matches(x) for x in strings):
                return
        yield from plain.VALIDATORS["items"](validator, items_, instance, whole)

    def pattern(validator: Any, pattern_: Any, instance: Any, whole: Any) -> Iterator[Any]:
        yield from plain.VALIDATORS["pattern"](validator, pattern_, instance, whole)
        # Python's $ also matches before a newline at the end; JSON Schema's does not.
        if isinstance(instance, str) and instance.endswith("\n"):
            yield ValidationError(f"{instance!r} does not match {pattern_!r}")

    extend: Any = jsonschema.validators.extend
    return extend(plain, {"items": items, "pattern": pattern})(schema())


def _field(path: list[str | int]) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else part)
    return out


def _sentence(error: ValidationError, document: Any, filename: str) -> str:
    # Of the branches of oneOf the one was meant whose kind it is; without kinds, the one that fails
    # deepest.
    while error.context:
        wrong = {e.schema_path[0] for e in error.context if list(e.path)[-1:] == ["kind"]}
        meant = [e for e in error.context if e.schema_path[0] not in wrong] or error.context
        error = max(meant, key=lambda e: len(e.absolute_path))
    path = list(error.absolute_path)
    where = filename
    if path[:1] == ["vectors"] and len(path) > 1:
        entry = document["vectors"][path[1]]
        name = entry.get("id") if isinstance(entry, dict) else None
        where += f": {short(name, 60) if isinstance(name, str) else f'vectors[{path[1]}]'}"
        path = path[2:]
    field = _field(path)
    # Keywords have values of many shapes, and the validator's types name all of them.
    rule, keywords = str(error.validator), cast(dict[str, Any], error.schema)
    instance = cast(Any, error.instance)
    value = short(json.dumps(instance, ensure_ascii=False), 60)
    if rule == "required":
        missing = next(key for key in keywords["required"] if key not in instance)
        return f"{where}: lacks field {_field([*path, missing])}."
    if rule == "additionalProperties":
        extra = short(next(key for key in instance if key not in keywords["properties"]), 40)
        return f"{where}: field {_field([*path, extra])}: is not known."
    if rule == "pattern":
        meant = keywords.get("description", f"of the form {keywords['pattern']}")
        return f"{where}: field {field}: {value} is not {meant}."
    if not path:
        return f"{where}: is not an object with the fields of a vector file."
    return f"{where}: field {field}: {short(error.message)}."
