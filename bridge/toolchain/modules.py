"""The modules of the library: their files, their imports, and the hashes that decide whether they
have to be built again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.source.lean import blank_comments
from bridge.toolchain.errors import ToolchainError

# Modules that come with Lean.
EXTERNAL = ("Init", "Std", "Lean", "Lake")

_TOKEN = re.compile(
    r"\s*(?:(?P<module>module|prelude)\b|(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?"
    r"(?P<name>(?:«[^»\n]+»|[^\s.«»]+)(?:\.(?:«[^»\n]+»|[^\s.«»]+))*))"
)


@dataclass(frozen=True)
class Module:
    """A module of the library. imports: those of the library, not Lean's own."""

    name: str
    file: Path
    text: str
    imports: tuple[str, ...]


def header_imports(text: str) -> list[str]:
    """The modules that a source imports, in order."""
    clean, at, found = blank_comments(text), 0, []
    while (match := _TOKEN.match(clean, at)) is not None:
        if match["name"]:
            found.append(match["name"].replace("«", "").replace("»", ""))
        at = match.end()
    return found


def is_external(name: str) -> bool:
    return name.split(".")[0] in EXTERNAL


def file_of(root: Path, name: str) -> Path:
    return root.joinpath(*name.split(".")).with_suffix(".lean")


def read_source(root: Path, file: Path, wanted_by: str = "") -> str:
    """The text of a source, with line ends as Lean sees them. Raises ToolchainError if it cannot be
    read or is not UTF-8; the sentence starts with `wanted_by`."""
    try:
        return file.read_text("utf-8")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte {error.start})"
    raise ToolchainError(f"{wanted_by}{Path(os.path.relpath(file, root)).as_posix()} {reason}")


def closure(
    root: Path, targets: Iterable[str], root_of: Callable[[str], Path] | None = None
) -> list[Module]:
    """The targets and all that they import, imports first.

    root_of: the folder of the package that a module belongs to; None: all belong to this one.
    Raises ToolchainError for a module without a file and for an import cycle.
    """
    done: dict[str, Module] = {}
    path: list[str] = []

    def visit(name: str, wanted_by: str) -> None:
        if name in done:
            return
        if name in path:
            cycle = " → ".join([*path[path.index(name) :], name])
            raise ToolchainError(f"import cycle: {cycle}")
        file = file_of(root if root_of is None else root_of(name), name)
        text = read_source(root, file, f"{wanted_by} imports {name}, but " if wanted_by else "")
        imports = tuple(i for i in header_imports(text) if not is_external(i))
        path.append(name)
        for one in imports:
            visit(one, name)
        path.pop()
        done[name] = Module(name, file, text, imports)

    for target in targets:
        visit(target, "")
    return list(done.values())


def build_key(module: Module, toolchain: str, interfaces: Mapping[str, str]) -> str:
    """A hash of all that a build of the module depends on: its text, the interfaces of the modules
    that it imports, and the toolchain. A module is built again if and only if this changes.

    interfaces: `interface` of each import.
    """
    total = hashlib.sha256(f"{toolchain}\0{module.text}\0".encode())
    for name in module.imports:
        total.update(interfaces[name].encode())
    return total.hexdigest()


def interface(module: Module, shown: str, interfaces: Mapping[str, str]) -> str:
    """A hash of the part of the built module that modules which import it see: its own (`shown`),
    and its imports' interfaces."""
    total = hashlib.sha256(f"{module.name}\0{shown}\0".encode())
    for name in module.imports:
        total.update(interfaces[name].encode())
    return total.hexdigest()
