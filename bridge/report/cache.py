"""Results of slow checks, kept under `build/cache` by the hash of everything they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def digest(root: Path, parts: Iterable[str], *facts: str) -> str:
    """A hash of the names and contents of files below `root` (of a folder: all its files, byte code
    aside), and of facts. Where `root` lies makes no difference."""
    found: set[Path] = set()
    for part in parts:
        path = root / part
        found.update(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else found.add(
            path
        )
    total = hashlib.sha256()
    for path in sorted(p for p in found if p.suffix != ".pyc"):
        name = path.relative_to(root).as_posix()
        total.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    for fact in facts:
        total.update(fact.encode() + b"\0")
    return total.hexdigest()[:24]


class Cache:
    """JSON values by name and key. Only good results are kept, so a failure is always run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(
        self, name: str, key: str, compute: Callable[[], Any], good: Callable[[Any], bool]
    ) -> tuple[Any, bool]:
        """The kept value of this name and key, or a computed one; and whether it was kept."""
        path = self.folder / f"{name}-{key}.json"
        if path.exists():
            try:
                return json.loads(path.read_text("utf-8")), True
            except ValueError:
                path.unlink()
        value = compute()
        if good(value):
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob(f"{name}-????????????????????????.json"):
                old.unlink()
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps(value, allow_nan=False), "utf-8")
            temporary.rename(path)
        return value, False
