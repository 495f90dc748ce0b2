"""The Lean files that list others: the imports of the library, and the families of vectors."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from pathlib import Path

from bridge.files import write_texts

LIBRARY, WRONG = "Attention.lean", "Attention/WrongVariants.lean"
FAMILIES = "Attention/Vectors/All.lean"
_IMPORT = "public import "
# If one of these names a theorem about a wrong variant, the theorem's file is of the library.
_LISTS = ("docs/theorems.toml", "docs/claims.toml")
_NAMED = re.compile(r'"Attention\.WrongVariants\.(\w+)"')
_FAMILY = re.compile(r"^def (\w+) : Family (\w+) where$", re.MULTILINE)
_STATED = re.compile(r"^theorem (\w+)", re.MULTILINE)
_ALL = """module

{imports}

public section

/-! # All families

Written by `.venv/bin/python -m bridge pages` from the other files here. -/

namespace Attention.Vectors

{lists}
end Attention.Vectors
"""


def texts(root: Path) -> dict[str, str]:
    """By path from `root`, the text that these files should have: the library imports each of its
    files, but of the wrong variants those alone that listed theorems or claims name."""
    named = {n for one in _LISTS for n in _NAMED.findall((root / one).read_text("utf-8"))}
    library, wrong = set(), set()
    for file in (root / "Attention").rglob("*.lean"):
        path = file.relative_to(root)
        module = _module(path)
        if path.as_posix() == WRONG or any(part.startswith(".") for part in path.parts):
            continue
        if path.parts[1] != "WrongVariants":
            library.add(module)
            continue
        wrong.add(module)
        if named & {*_STATED.findall(file.read_text("utf-8"))}:
            library.add(module)
    found = {LIBRARY: library | {_module(FAMILIES)}, WRONG: wrong}
    imports = {name: _with(root / name, modules) for name, modules in found.items()}
    return {**imports, FAMILIES: _families(root)}


def write(root: Path) -> list[str]:
    """Write those that are not as they should be; their paths. Nothing in other projects."""
    return write_texts(root, texts(root)) if (root / LIBRARY).is_file() else []


def _module(path: str | Path) -> str:
    return ".".join(Path(path).with_suffix("").parts)


def _families(root: Path) -> str:
    """The file with a list of all families for each type of case: `caseFamilies` of `Case`, …"""
    imports, names = [], defaultdict(list)
    for file in sorted((root / FAMILIES).parent.glob("[!.]*.lean")):
        found = _FAMILY.findall(file.read_text("utf-8"))
        imports += [f"{_IMPORT}{_module(file.relative_to(root))}"] if found else []
        for name, case in found:
            names[case].append(name)
    lists = []
    for case, several in sorted(names.items()):
        listed = textwrap.fill(
            f"[{', '.join(several)}]", 100, initial_indent="  ", subsequent_indent="   "
        )
        head = f"def {case[0].lower()}{case[1:]}Families : List (Family {case}) :="
        lists += [f"/-- All families of `{case}`. -/", head, f"{listed}\n"]
    return _ALL.format(imports="\n".join(imports), lists="\n".join(lists))


def _with(file: Path, modules: set[str]) -> str:
    """The text of a file with these imports in the place of its own."""
    lines = file.read_text("utf-8").splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(_IMPORT)), len(lines))
    rest = [line for line in lines if not line.startswith(_IMPORT)]
    imports = [f"{_IMPORT}{module}" for module in sorted(modules)]
    return "\n".join([*rest[:first], *imports, *rest[first:]]) + "\n"
