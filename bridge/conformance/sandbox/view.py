"""The files of this machine that the process of a function under test sees."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

import bridge
from bridge.conformance.functions.features import CallableError
from bridge.conformance.inside import found
from bridge.conformance.inside.walls import View
from bridge.vectors.load import default_directory

# Of the system: programs and libraries, the files that the dynamic linker and clocks read, and how
# many processors there are.
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
    "/etc/localtime", "/sys/devices/system/cpu", "/sys/devices/system/node",
)  # fmt: skip
_OF_GPUS = ("/sys/bus", "/sys/class", "/sys/devices", "/sys/module")
_GPUS = ("nvidia*", "nvidia-caps/*", "dri/*", "kfd")
# Parts of a checkout that tell of the vectors, or could be changed into such.
_OF_CHECKOUT = ("Attention", "bridge", "build", "dist", "docs", "tests", ".git")
# Installed, this package, and the vectors as they are published for themselves.
_PACKAGES = ("bridge", "attention_vectors")
_MEMORY = 16 << 30


@dataclass(frozen=True)
class Sight:
    """The view of a function's process, in which folders its modules are found, and the function's
    name there."""

    view: View
    paths: tuple[str, ...]
    name: str


def sight_of(
    name: str,
    device: str,
    also: Iterable[Path] = (),
    problem: Path | None = None,
    *,
    loopback: bool = False,
) -> Sight:
    """For a function, `module:function` or `file.py:function`: the interpreter, installed packages
    without this one, `pyimpl`, and the function's own file or top-level package; also: files and
    folders that the user adds; problem: the file of a problem, for a model; loopback: whether its
    processes may talk to each other over a network of their own. Raises CallableError for a name
    without a colon, for a file that is not there, and for a part of the judge, links to one too."""
    if not found.is_well_formed(name):
        raise CallableError("is not of the form module:function or file.py:function")
    place, _, attribute = name.rpartition(":")
    installed = [Path(path) for path in sys.path if _is_installed(path)]
    seen = [Path(path) for path in (*_SYSTEM, sys.prefix, sys.base_prefix)] + installed
    seen.append(_package("pyimpl"))
    paths = [str(path) for path in installed] + [str(_package("pyimpl").parent)]
    if found.is_file(place):
        file = Path(place).resolve()
        if not file.is_file():
            raise CallableError(f"there is no file {place}")
        seen.append(file)
        name = f"{file}:{attribute}"
    else:
        top = place.partition(".")[0]
        if top == "bridge":
            raise CallableError("is a part of the judge")
        own = _module(top)
        if own is not None:
            seen.append(own)
            paths.insert(0, str(own.parent))
    devices: list[str] = []
    if not device.startswith("cpu"):
        seen += [Path(path) for path in _OF_GPUS]
        for pattern in _GPUS:
            devices += [str(path) for path in Path("/dev").glob(pattern) if not path.is_dir()]
    if problem is not None:
        if not problem.is_file():
            raise CallableError(f"there is no file {problem}")
        seen.append(problem.resolve())
    extra = [Path(path).resolve() for path in also]
    answers = [path.resolve() for path in _answer_files()]
    for path in (*seen, *extra):
        if any(path.resolve().is_relative_to(one) for one in answers):
            raise CallableError(f"is to see {path}, which is a part of what judges it")
    paths = [*(str(path) for path in extra if path.is_dir()), *paths]
    view = _together([*seen, *extra], devices)
    return Sight(replace(view, loopback=loopback), tuple(paths), name)


def _is_installed(path: str) -> bool:
    """Whether a folder of modules is the interpreter's own, or has installed packages: not the
    working folder, nor one that the environment adds."""
    parts = Path(path).parts
    own = any(Path(path).is_relative_to(x) for x in (sys.base_prefix, sys.prefix))
    return bool(path) and (own or "site-packages" in parts or "dist-packages" in parts)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _module(name: str) -> Path | None:
    """The file or folder of a top-level module, in the working folder if nowhere else, found
    without importing it; None for one that is seen anyway, or that is not there."""
    spec = importlib.machinery.PathFinder.find_spec(name, [*sys.path, os.getcwd()])
    if spec is None:
        return None
    origin = Path(spec.origin) if spec.origin and spec.has_location else None
    folders = list(spec.submodule_search_locations or ())
    path = Path(folders[0]) if folders else origin
    return None if path is None or _is_installed(str(path.parent)) else path.absolute()


def _together(seen: Iterable[Path], devices: list[str]) -> View:
    """All of it, by real names, with links from those that are used."""
    read: set[Path] = set()
    links: dict[str, str] = {}
    for path in sorted({Path(os.path.abspath(path)) for path in seen}):
        if not path.exists():
            continue
        real = path.resolve()
        read.add(real)
        if path != real and not any(path.is_relative_to(link) for link in links):
            link = next(p for p in (*reversed(path.parents), path) if p.is_symlink())
            links[str(link)] = str(link.resolve())
    # A path in another that is seen is there already.
    outer = [path for path in read if not any(other in path.parents for other in read)]
    hidden = {path.resolve() for path in _private() if path.exists()}
    hide = [path for path in hidden if any(path.is_relative_to(other) for other in outer)]
    memory = min(_MEMORY, psutil.virtual_memory().total * 3 // 4)
    return View(
        tuple(sorted(map(str, outer))),
        tuple(sorted(map(str, hide))),
        tuple(sorted(links.items())),
        tuple(sorted(devices)),
        memory,
    )


def _answer_files() -> list[Path]:
    """Files that no user can show to a function either, by a link from the function's maker for
    example: the vectors and this package."""
    own = Path(bridge.__file__).parent
    return [own, default_directory(), own.parent / ".git", own.parent / "Attention"]


def _private() -> list[Path]:
    """Files that no function is to see: this package and the vectors, wherever they are
    installed."""
    own = Path(bridge.__file__).parent
    folders = [Path(path) for path in sys.path if _is_installed(path)]
    installed = [folder / name for folder in folders for name in _PACKAGES]
    checkout = own.parent
    if (checkout / "pyproject.toml").is_file():
        installed += [checkout / name for name in _OF_CHECKOUT]
    return [own, default_directory(), *installed]
