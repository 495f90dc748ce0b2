"""The templates of this package, and the files that are written from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.files import write_changed
from bridge.templates import template


def render(name: str, **values: Any) -> str:
    """The text that a template of this package makes."""
    return template("bridge.pages", name).render(**values)


def write(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Write the files, by their paths from the root, that are not as they should be; the paths of
    those that changed."""
    return [name for name, text in texts.items() if write_changed(root / name, text)]
