"""A Lake package and those that it requires, and to which of them a module belongs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bridge.toolchain import lakefile, modules
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.lakefile import Lakefile
from bridge.toolchain.modules import Module


@dataclass(frozen=True)
class Package:
    """root: its folder, absolute."""

    root: Path
    lakefile: Lakefile

    def has(self, module: str) -> bool:
        """Whether a library of the package holds a module of this name."""
        return any(
            module == library or module.startswith(f"{library}.")
            for library in self.lakefile.libraries
        )


@dataclass(frozen=True)
class Packages:
    """A package, first, and all that it requires, themselves or through others."""

    all: tuple[Package, ...]

    @property
    def own(self) -> Package:
        return self.all[0]

    def of(self, module: str) -> Package:
        """The package that a module belongs to: the first itself if none has a library for it."""
        return next((package for package in self.all if package.has(module)), self.own)

    def file_of(self, module: str) -> Path:
        return modules.file_of(self.of(module).root, module)

    def closure(self, targets: Iterable[str]) -> list[Module]:
        """The targets and all that they import, imports first, of whichever package. Raises
        ToolchainError for a module without a file and for an import cycle."""
        return modules.closure(self.own.root, targets, lambda name: self.of(name).root)


def read(root: Path) -> Packages:
    """The package in a folder and all that it requires.

    Raises ToolchainError for a lakefile that is not understood, for a folder that holds no package
    of the name that is required, and for two packages that have a name or a library in common.
    """
    found: list[Package] = []

    def visit(folder: Path, wanted_by: str, name: str | None) -> None:
        if name is not None and not (folder / "lakefile.lean").exists():
            raise ToolchainError(f"{wanted_by}, and {folder} has no lakefile.lean")
        package = Package(folder, lakefile.read(folder / "lakefile.lean"))
        if name is not None and package.lakefile.package != name:
            raise ToolchainError(
                f"{wanted_by}, and the package in {folder} is {package.lakefile.package}"
            )
        if any(other.root.resolve() == folder.resolve() for other in found):
            return
        for other in found:
            _check_apart(other, package)
        found.append(package)
        for required, path in package.lakefile.requires:
            visit(
                (folder / path).resolve(),
                f'{folder / "lakefile.lean"} requires {required} from "{path}"',
                required,
            )

    visit(root.absolute(), "", None)
    return Packages(tuple(found))


def _check_apart(one: Package, other: Package) -> None:
    """Raises ToolchainError if both have a name or a library in common."""
    if one.lakefile.package == other.lakefile.package:
        raise ToolchainError(
            f"{one.root} and {other.root} are both the package {one.lakefile.package}"
        )
    for library in other.lakefile.libraries:
        if one.has(library) or any(other.has(mine) for mine in one.lakefile.libraries):
            names = f"{one.lakefile.package} and {other.lakefile.package}"
            raise ToolchainError(f"the packages {names} both have modules of {library}")
