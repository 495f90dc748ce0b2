"""The package `pyimpl` copied with edits: for mutants in files that import each other."""

from __future__ import annotations

import importlib
import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest import mock

import pyimpl
from pyimpl.internal.implements import forget

_numbers = itertools.count(1)


@contextmanager
def copied_modules(file: str, edit: Callable[[str], str]) -> Iterator[ModuleType]:
    """The package `pyimpl.modules`, or another that `file`, relative to `pyimpl`, is of, from a
    copy in which the text of `file` is edited, for as long as the context lasts. Its imports from
    elsewhere are the true ones, and the registry of implementations does not learn of it."""
    folder = Path(file).parts[0]
    with _copy(folder, file, edit, rf"()\bpyimpl\.{folder}\b") as name:
        module = importlib.import_module(name)
        forget(name)
        yield module


@contextmanager
def copy_package(file: str, edit: Callable[[str], str], entry: str) -> Iterator[ModuleType]:
    """The module of the file `entry` from a copy of the package in which the text of `file` is
    edited, for as long as the context lasts.

    The copy has a name of its own, and no `__init__`, whose operators PyTorch knows already.
    """
    with _copy("", file, edit, r"^(\s*(?:from|import) )pyimpl\b") as name:
        yield importlib.import_module(f"{name}.{entry.removesuffix('.py').replace('/', '.')}")


@contextmanager
def _copy(folder: str, file: str, edit: Callable[[str], str], own: str) -> Iterator[str]:
    """The name of a package that is this folder of `pyimpl` with the text of `file` edited. own: a
    pattern of the names that become its own, with the text to keep before them as its group."""
    name = f"mutated_pyimpl_{next(_numbers)}"
    source = Path(pyimpl.__file__).parent
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        package = Path(place) / name
        shutil.copytree(source / folder, package, ignore=shutil.ignore_patterns("__pycache__"))
        if not folder:
            (package / "__init__.py").write_text("", "utf-8")
        edited = package / Path(file).relative_to(folder)
        edited.write_text(edit(edited.read_text("utf-8")), "utf-8")
        for path in package.rglob("*.py"):
            text = path.read_text("utf-8")
            path.write_text(re.sub(own, rf"\g<1>{name}", text, flags=re.MULTILINE), "utf-8")
        with mock.patch.object(sys, "path", [place, *sys.path]):
            try:
                yield name
            finally:
                forget(name)
                for loaded in [m for m in sys.modules if m.partition(".")[0] == name]:
                    del sys.modules[loaded]
