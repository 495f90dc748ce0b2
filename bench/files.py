"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def why_not_writable(path: Path) -> str | None:
    """Why a file of this name could not be put there, or None."""
    if path.is_dir():
        return "Is a directory"
    beside = _beside(path)
    try:
        beside.touch()
        beside.unlink()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def write_whole(path: Path, content: bytes) -> None:
    """Write to another name in the same folder, then rename. Raises OSError."""
    beside = _beside(path)
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
