"""Files that are there whole or not at all. Standard library only."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
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


def write_whole(path: Path, content: bytes | str) -> None:
    """Write to another name in the same folder, then rename; text as UTF-8, with `?` for characters
    that it cannot hold. An existing file that is not regular, such as a device or a pipe, is
    written to as it is. Raises OSError; then nothing has changed."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    beside = _beside(path)
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_changed(path: Path, content: bytes | str) -> bool:
    """`write_whole`, with the folders that lack, unless the file has this content; whether it was
    written. Raises OSError."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)
    return True


def write_texts(root: Path, texts: Mapping[str, str]) -> list[str]:
    """`write_changed` for each, by its path from the root; the paths of those that were written."""
    return [name for name, text in texts.items() if write_changed(root / name, text)]


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
