"""Results of slow checks, kept under `build/cache` by the hash of everything they depend on."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bridge.files import write_whole


def imported_files(
    root: Path, module: str, *, also: Iterable[str] = (), without: Iterable[str] = ()
) -> list[str]:
    """The source of a module below `root` and of all that it imports from its own package, and from
    the packages of `also`; without the sources of the modules or packages `without`. A package that
    is imported as a whole counts if its name has a dot: `pyimpl` would be everything."""
    inside = tuple(f"{package}." for package in (module.partition(".")[0], *also))
    outside = tuple(f"{name}." for name in without)
    found: set[str] = set()
    seen: set[str] = set()
    wanted = [module]
    while wanted:
        name = wanted.pop()
        if name in seen or not name.startswith(inside) or f"{name}.".startswith(outside):
            continue
        seen.add(name)
        path = root.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():
            found.add(file.relative_to(root).as_posix())
            wanted += _imports(file, file.stat().st_mtime_ns)
    return sorted(found)


@functools.cache
def _imports(file: Path, _: int) -> list[str]:
    """The names that a source imports, of modules or of their members."""
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


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
        state = path.stat()
        content = _hash(path, state.st_mtime_ns, state.st_ctime_ns, state.st_size)
        total.update(name.encode() + b"\0" + content)
    for fact in facts:
        total.update(fact.encode() + b"\0")
    return total.hexdigest()[:24]


@functools.cache
def _hash(path: Path, *_: int) -> bytes:
    """Of a file's contents, once for each state of it."""
    return hashlib.sha256(path.read_bytes()).digest()


class Cache:
    """JSON values by name and key. Only good results are kept, so a failure is always run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str, key: str) -> Any:
        """The kept value of this name and key; None if there is none."""
        path = self._path(name, key)
        try:
            return json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            path.unlink(missing_ok=True)
            return None

    def keep(self, name: str, key: str, value: Any) -> None:
        """Keep a value in the place of the one that is kept of this name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob(f"{name}-????????????????????????.json"):
            old.unlink(missing_ok=True)  # another process may keep one of this name, too
        write_whole(self._path(name, key), json.dumps(value, allow_nan=False))

    def get(
        self, name: str, key: str, compute: Callable[[], Any], good: Callable[[Any], bool]
    ) -> tuple[Any, bool]:
        """The kept value of this name and key, or a computed one; and whether it was kept."""
        value = self.find(name, key)
        if value is not None:
            return value, True
        value = compute()
        if good(value):
            self.keep(name, key, value)
        return value, False

    def _path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key}.json"
