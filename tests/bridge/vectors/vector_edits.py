"""One committed vector as it is in its file, and edits of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bridge.vectors.load import default_directory

Vector = dict[str, Any]


def document(name: str, n: int) -> dict[str, Any]:
    """A committed family with its vector `n` alone."""
    path = default_directory() / f"{name}.json"
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    loaded["vectors"] = loaded["vectors"][n : n + 1]
    return loaded


def put(*path: Any) -> Callable[[Vector], None]:
    """An edit: keys, then the new value."""
    *keys, last, value = path

    def edit(vector: Vector) -> None:
        target: Any = vector
        for key in keys:
            target = target[key]
        target[last] = value

    return edit


def drop(*path: Any) -> Callable[[Vector], None]:
    """An edit: the last entry of a list goes."""

    def edit(vector: Vector) -> None:
        target: Any = vector
        for key in path:
            target = target[key]
        target.pop()

    return edit
