"""Reading a JSON file that may be damaged or hostile: bounded in size, depth and numbers.

Every complaint is one sentence that names the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from bridge.vectors.format.fields import VectorError, short

# Far above any file of this project; a larger one is a mistake or an attack on memory.
MAX_BYTES = 8 * 1024 * 1024
# The deepest file of this project has 8 levels, but trees of merges may be deep; validation takes
# several frames of Python's stack for each.
MAX_DEPTH = 64
# Everything but strings: each takes the schema's validator up to 0.2 ms. The largest file of this
# project has 33,000.
MAX_VALUES = 100_000
# Whole numbers outside of strings are sizes and places.
_MAX_DIGITS = 18


def read(path: Path) -> tuple[bytes, Any]:
    """The bytes of a file and the JSON in them. Raises the errors of `read_bytes` and `parse`."""
    content = read_bytes(path)
    return content, parse(content, path.name)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises VectorError where it cannot be read, is no regular file, or is
    too large."""
    try:
        # Without O_NONBLOCK the opening of a pipe would wait for a writer.
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise VectorError(f"{path.name}: is not a regular file.")
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise VectorError(f"{path.name}: cannot be read: {error.strerror or error}.") from error
    if len(content) > MAX_BYTES:
        raise VectorError(f"{path.name}: is larger than {MAX_BYTES} bytes.")
    return content


def parse(content: bytes, name: str) -> Any:
    """The JSON in the bytes of a file of this name. Raises VectorError for bytes that are no JSON
    that this format can hold."""
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_int=_integer,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except UnicodeDecodeError as error:
        raise VectorError(f"{name}: is not UTF-8 text: {short(str(error))}.") from error
    except RecursionError:
        raise VectorError(f"{name}: is nested more than {MAX_DEPTH} deep.") from None
    except VectorError as error:
        raise VectorError(f"{name}: {error}") from None
    except ValueError as error:
        raise VectorError(f"{name}: is not JSON: {short(str(error))}.") from error


def sha256(content: bytes) -> str:
    """The hash as an index names it."""
    return hashlib.sha256(content).hexdigest()


def check_plain(document: Any, filename: str) -> None:
    """Refuse JSON that this format cannot hold, before anything walks over it recursively: deep
    nesting, floating-point numbers (a schema takes 1.0 for an integer), lone surrogates; and more
    than a validator goes through in seconds."""
    level, others = [document], 0
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        others += sum(not isinstance(value, str) for value in level)
        if others > MAX_VALUES:
            raise VectorError(f"{filename}: has more than {MAX_VALUES} lists, objects and sizes.")
        for value in level:
            if isinstance(value, dict):
                deeper += value.keys()
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
            elif isinstance(value, str):
                if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                    raise VectorError(f"{filename}: has text that is not Unicode.")
            elif isinstance(value, float):
                raise VectorError(f"{filename}: {_a_float(str(value))}")
        if not deeper:
            return
        level = deeper
    raise VectorError(f"{filename}: is nested more than {MAX_DEPTH} deep.")


def _a_float(text: str) -> str:
    return f"has the number {short(text, 40)}, but numbers here are strings or small integers."


def _no_number(text: str) -> NoReturn:
    raise VectorError(_a_float(text))


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise VectorError(_a_float(text))
    return int(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise VectorError(f"field {short(twice, 40)}: occurs twice in one object.")
    return result
