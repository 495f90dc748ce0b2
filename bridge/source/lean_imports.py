"""The Lean files that import all others: their lines are written from the folders."""

from __future__ import annotations

import re
from pathlib import Path

from bridge.files import write_texts

LIBRARY, WRONG = "Attention.lean", "Attention/WrongVariants.lean"
_IMPORT = "public import "
# Where main theorems and claims name a theorem about a wrong variant: its file is of the library.
_LISTS = ("docs/theorems.toml", "docs/claims.toml")
_NAMED = re.compile(r'"Attention\.WrongVariants\.(\w+)"')
_STATED = re.compile(r"^theorem (\w+)", re.MULTILINE)


def texts(root: Path) -> dict[str, str]:
    """By path from `root`, both files with the imports that they should have: the library imports
    each of its files, but of the wrong variants those alone that main theorems or claims name."""
    named = {n for one in _LISTS for n in _NAMED.findall((root / one).read_text("utf-8"))}
    library, wrong = set(), set()
    for file in (root / "Attention").rglob("*.lean"):
        path = file.relative_to(root)
        module = ".".join(path.with_suffix("").parts)
        if path.as_posix() == WRONG or any(part.startswith(".") for part in path.parts):
            continue
        if path.parts[1] != "WrongVariants":
            library.add(module)
            continue
        wrong.add(module)
        if named & {*_STATED.findall(file.read_text("utf-8"))}:
            library.add(module)
    found = {LIBRARY: library, WRONG: wrong}
    return {name: _with(root / name, modules) for name, modules in found.items()}


def write(root: Path) -> list[str]:
    """Write those that are not as they should be; their paths. Nothing in other projects."""
    return write_texts(root, texts(root)) if (root / LIBRARY).is_file() else []


def _with(file: Path, modules: set[str]) -> str:
    """The text of a file with these imports in the place of its own."""
    lines = file.read_text("utf-8").splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(_IMPORT)), len(lines))
    rest = [line for line in lines if not line.startswith(_IMPORT)]
    imports = [f"{_IMPORT}{module}" for module in sorted(modules)]
    return "\n".join([*rest[:first], *imports, *rest[first:]]) + "\n"
