"""Everything that is written from the vectors and committed, in one place."""

from __future__ import annotations

from pathlib import Path

from bridge.pages import vectors_page
from bridge.pages.render import write
from bridge.vectors.load import load


def texts(root: Path) -> dict[str, str]:
    """By path from the root, what each file should be. Raises what the loader raises."""
    families = load(root / "tests" / "vectors")
    return {vectors_page.PAGE: vectors_page.page(families)}


def write_all(root: Path) -> list[str]:
    """Write those that are not as they should be; their paths."""
    return write(root, texts(root))
