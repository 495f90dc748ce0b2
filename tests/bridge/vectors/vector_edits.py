"""One committed vector as it is in its file, and edits of it."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from bridge.vectors.load import default_directory

Vector = dict[str, Any]


def document(name: str, n: int) -> dict[str, Any]:
    """A committed family with its vector `n` alone."""
    path = default_directory() / f"{name}.json"
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    loaded["vectors"] = loaded["vectors"][n : n + 1]
    return loaded


def at(vector: Vector, path: Sequence[Any]) -> Any:
    """What stands at the end of these keys."""
    return reduce(operator.getitem, path, vector)


def put(*path: Any) -> Callable[[Vector], None]:
    """An edit: keys, then the new value."""
    *keys, last, value = path
    return lambda vector: operator.setitem(at(vector, keys), last, value)


def drop(*path: Any) -> Callable[[Vector], None]:
    """An edit: the last entry of a list goes."""
    return lambda vector: at(vector, path).pop()
