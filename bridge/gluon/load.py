"""A kernel's module with the simulated names in the place of Triton's."""

from __future__ import annotations

import ast
import builtins
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bridge.gluon.faults import LINES
from bridge.gluon.language import BUILTINS, MODULES

Change = tuple[str, str]


class Loader:
    """Loads modules of kernels, and those that they import. changes: pairs of a text and its
    replacement, made at each place where the text stands."""

    def __init__(self, changes: Sequence[Change] = ()) -> None:
        self.changes = changes
        self._found = [False] * len(changes)
        self._modules: dict[Path, ModuleType] = {}

    def module(self, path: Path) -> ModuleType:
        """The module in a file.

        Raises:
            ValueError: a text that is to be changed is in none of its files.
        """
        module = self._module(path, path.stem)
        for (text, _), found in zip(self.changes, self._found, strict=True):
            if not found:
                raise ValueError(f"changes: {path.name} has no text {text!r} to change")
        return module

    def _module(self, path: Path, name: str) -> ModuleType:
        known = self._modules.get(path)
        if known is not None:
            return known
        text = path.read_text("utf-8")
        for i, (old, new) in enumerate(self.changes):
            if old in text:
                self._found[i] = True
                text = text.replace(old, new)
        module = self._modules[path] = ModuleType(name)
        module.__dict__.update(
            {
                "__file__": str(path),
                "__builtins__": {**vars(builtins), **BUILTINS, "__import__": self._import},
                LINES: text.split("\n"),
            }
        )
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level:
            raise ImportError(f"a simulated kernel's module must import {name} by its whole name")
        if name in MODULES:
            return MODULES[name]
        path = _of_kernels(name) if fromlist else None
        if path is not None:
            return self._module(path, name)
        return builtins.__import__(name, globals, locals, fromlist or (), level)


def _of_kernels(name: str) -> Path | None:
    """The file of a module that has Gluon kernels in it, which is simulated too; None: another."""
    if name.split(".")[0] in ("triton", "torch", "numpy"):
        return None
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin)
    text = path.read_text("utf-8")
    if "triton.experimental" not in text:
        return None
    imported = (x.module for x in ast.walk(ast.parse(text)) if isinstance(x, ast.ImportFrom))
    return path if any(module in MODULES for module in imported) else None
