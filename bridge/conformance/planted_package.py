"""The package `pyimpl` copied with edits: for faults in files that import each other."""

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

_numbers = itertools.count(1)


@contextmanager
def copied(file: str, edit: Callable[[str], str], entry: str) -> Iterator[ModuleType]:
    """The module of the file `entry` from a copy of the package in which the text of `file` is
    edited, for as long as the context lasts.

    The copy has a name of its own, and no `__init__`, whose operators PyTorch knows already.
    """
    name = f"faulty_pyimpl_{next(_numbers)}"
    source = Path(pyimpl.__file__).parent
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        package = Path(folder) / name
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / "__init__.py").write_text("", "utf-8")
        edited = edit((package / file).read_text("utf-8"))
        (package / file).write_text(edited, "utf-8")
        for path in package.rglob("*.py"):
            text = path.read_text("utf-8")
            own = re.sub(r"^(\s*(?:from|import) )pyimpl\b", rf"\1{name}", text, flags=re.MULTILINE)
            path.write_text(own, "utf-8")
        module = f"{name}.{entry.removesuffix('.py').replace('/', '.')}"
        with mock.patch.object(sys, "path", [folder, *sys.path]):
            try:
                yield importlib.import_module(module)
            finally:
                for loaded in [m for m in sys.modules if m.partition(".")[0] == name]:
                    del sys.modules[loaded]
