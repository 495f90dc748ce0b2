"""Read what this project uses of `lakefile.toml`.

    name = "attention"
    defaultTargets = ["Attention"]
    leanOptions.autoImplicit = false

    [[lean_lib]]
    name = "Attention"

Anything else is an error that names it, not a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.modules import read_source

FILE = "lakefile.toml"


class _Library(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    libraries: Annotated[list[_Library], msgspec.Meta(min_length=1)] = msgspec.field(
        name="lean_lib"
    )
    defaults: list[str] = msgspec.field(name="defaultTargets", default_factory=list)
    options: dict[str, bool] = msgspec.field(name="leanOptions", default_factory=dict)


@dataclass(frozen=True)
class Lakefile:
    """package: its name; libraries: their root modules; defaults: those built when none is named
    (all of them where none is, as in Lake); options: Boolean options of Lean for every module."""

    package: str
    libraries: tuple[str, ...]
    defaults: tuple[str, ...]
    options: tuple[tuple[str, bool], ...] = ()


def read(root: Path) -> Lakefile:
    """The lakefile of a project. Raises ToolchainError naming what is not understood."""
    text = read_source(root, root / FILE)
    try:
        found = msgspec.toml.decode(text, type=_File)
    except msgspec.MsgspecError as error:
        raise ToolchainError(
            f"{FILE} is not understood by the embedded build, which reads name, defaultTargets, "
            f"leanOptions (true or false) and the name of each lean_lib: {error}"
        ) from error
    libraries = tuple(one.name for one in found.libraries)
    defaults = tuple(found.defaults) or libraries
    return Lakefile(found.name, libraries, defaults, tuple(found.options.items()))
