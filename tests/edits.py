"""Edits of files, for tests of what shows them."""

from __future__ import annotations

from pathlib import Path


def edit(file: Path, old: str, new: str, to: Path | None = None) -> None:
    """Put a text in the place of the one where `old` stands; the result goes to another file if
    there is one."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1, f"the edit of {file} no longer applies"
    (to or file).write_text(text.replace(old, new), "utf-8")
