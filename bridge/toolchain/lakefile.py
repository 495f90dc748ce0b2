"""Read the small declarative subset of `lakefile.lean` that this project uses, and those that
depend on it.

    import Lake
    open Lake DSL

    package attention where
      leanOptions := #[⟨`autoImplicit, false⟩]

    require other from "../other"

    @[default_target]
    lean_lib Attention

Anything else is an error that names the line, not a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bridge.source.lean import blank_comments
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.modules import read_source

_OPTION = r"⟨`([A-Za-z_][A-Za-z0-9_.]*), (true|false)⟩"
_NAME = r"(?:«([^»]+)»|([A-Za-z_][A-Za-z0-9_.']*))"


@dataclass(frozen=True)
class Lakefile:
    """package: its name; libraries: their root modules; defaults: those built when none is named
    (all of them where none is marked, as in Lake); options: Boolean options of Lean for every
    module; requires: the packages that it depends on, each with the path of its folder."""

    package: str
    libraries: tuple[str, ...]
    defaults: tuple[str, ...]
    options: tuple[tuple[str, bool], ...] = ()
    requires: tuple[tuple[str, str], ...] = ()


def read(path: Path) -> Lakefile:
    """Parse a lakefile. Raises ToolchainError naming file, line and text for anything that is not
    understood."""
    text = read_source(path.parent, path)
    package = None
    libraries: list[str] = []
    defaults: list[str] = []
    options: list[tuple[str, bool]] = []
    requires: list[tuple[str, str]] = []
    marked = wanted = False
    for number, line in enumerate(blank_comments(text).split("\n"), 1):
        stripped = line.strip()
        if stripped in ("", "import Lake", "open Lake DSL", "open Lake", "open DSL"):
            continue
        if stripped == "@[default_target]" and not wanted:
            marked = True
            continue
        given = re.fullmatch(rf"leanOptions := #\[({_OPTION}(?:, {_OPTION})*)\]", stripped)
        if wanted and given is not None:
            options = [(name, value == "true") for name, value in re.findall(_OPTION, given[1])]
            wanted = False
            continue
        # A literal has become zeros, where it has no blanks.
        other = re.fullmatch(rf"\s*require\s+{_NAME}\s+from\s+(0[0 ]*0)\s*", line)
        literal = other and text.split("\n")[number - 1][slice(*other.span(3))]
        if other and literal and "\\" not in literal and not wanted and not marked:
            requires.append((other[1] or other[2], literal[1:-1]))
            continue
        found = re.fullmatch(
            rf"(@\[default_target\]\s*)?(package|lean_lib)\s+{_NAME}( where)?", stripped
        )
        if (
            found is None
            or wanted
            or (found[2] == "package" and (package or marked or found[1]))
            or (found[2] == "lean_lib" and found[5])
        ):
            written = text.split("\n")[number - 1].strip()
            raise ToolchainError(
                f"{path.name}:{number}: {written!r} is not understood by the embedded build, "
                "which reads `package NAME` (once, with `where` and `leanOptions := #[⟨`NAME, "
                'true or false⟩, …]` below), `require NAME from "FOLDER"`, `lean_lib NAME` and '
                "`@[default_target]`"
            )
        name = found[3] or found[4]
        if found[2] == "package":
            package, wanted = name, found[5] is not None
        else:
            libraries.append(name)
            if marked or found[1]:
                defaults.append(name)
            marked = False
    if marked:
        raise ToolchainError(f"{path.name}: no lean_lib follows the last `@[default_target]`")
    if package is None or not libraries:
        raise ToolchainError(f"{path.name}: a package and at least one lean_lib are needed")
    if wanted:
        raise ToolchainError(f"{path.name}: no leanOptions follow `package {package} where`")
    return Lakefile(
        package,
        tuple(libraries),
        tuple(defaults or libraries),
        tuple(options),
        tuple(requires),
    )
