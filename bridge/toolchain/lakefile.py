"""Read the small declarative subset of `lakefile.lean` that this project uses.

    import Lake
    open Lake DSL

    package attention

    @[default_target]
    lean_lib Attention

Anything else is an error that names the line, not a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.modules import read_source, strip_comments

_NAME = r"(?:«([^»]+)»|([A-Za-z_][A-Za-z0-9_.']*))"


@dataclass(frozen=True)
class Lakefile:
    """package: its name; libraries: their root modules; defaults: those built when none is named
    (all of them where none is marked, as in Lake)."""

    package: str
    libraries: tuple[str, ...]
    defaults: tuple[str, ...]


def read(path: Path) -> Lakefile:
    """Parse a lakefile. Raises ToolchainError naming file, line and text for anything that is not
    understood."""
    text = strip_comments(read_source(path.parent, path))
    package = None
    libraries: list[str] = []
    defaults: list[str] = []
    marked = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped in ("", "import Lake", "open Lake DSL", "open Lake", "open DSL"):
            continue
        if stripped == "@[default_target]":
            marked = True
            continue
        found = re.fullmatch(rf"(@\[default_target\]\s*)?(package|lean_lib)\s+{_NAME}", stripped)
        if found is None or (found[2] == "package" and (package or marked or found[1])):
            raise ToolchainError(
                f"{path.name}:{number}: {stripped!r} is not understood by the embedded build, "
                "which reads `package NAME` (once), `lean_lib NAME` and `@[default_target]`"
            )
        name = found[3] or found[4]
        if found[2] == "package":
            package = name
        else:
            libraries.append(name)
            if marked or found[1]:
                defaults.append(name)
            marked = False
    if marked:
        raise ToolchainError(f"{path.name}: no lean_lib follows the last `@[default_target]`")
    if package is None or not libraries:
        raise ToolchainError(f"{path.name}: a package and at least one lean_lib are needed")
    return Lakefile(package, tuple(libraries), tuple(defaults or libraries))
