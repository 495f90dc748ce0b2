"""Modules import each other in one direction: none needs itself before it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("bridge", "pyimpl")


def modules() -> dict[str, Path]:
    """The files by the names of their modules."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those that run when the module is imported; what is there for types alone is left out."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.unparse(statement.test):
            yield from statements([*statement.body, *statement.orelse])
        if isinstance(statement, ast.Try):
            yield from statements([*statement.body, *statement.orelse, *statement.finalbody])


def imports(text: str, known: set[str]) -> set[str]:
    """Which of the known modules a text imports when it is imported."""
    found: set[str] = set()
    for statement in statements(ast.parse(text).body):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        if isinstance(statement, ast.ImportFrom) and statement.module is not None:
            inner = {f"{statement.module}.{alias.name}" for alias in statement.names}
            found |= inner & known
            if not inner <= known:
                found.add(statement.module)
    return found & known


def order(graph: dict[str, set[str]]) -> list[str]:
    """The modules, each behind those that it imports. Raises CycleError with the circle."""
    return list(TopologicalSorter(graph).static_order())


def test_no_module_imports_itself_by_way_of_others() -> None:
    files = modules()
    known = set(files)
    graph = {name: imports(path.read_text("utf-8"), known) for name, path in files.items()}
    assert graph["bridge.ttir.machine"]
    assert len(order(graph)) == len(files)


def test_a_circle_is_seen() -> None:
    known = {"a", "b", "b.c"}
    graph = {
        "a": imports("if True:\n    from b import c", known),
        "b": imports("import os", known),
        "b.c": imports("try:\n    import a\nfinally:\n    pass", known),
    }
    assert graph == {"a": {"b.c"}, "b": set(), "b.c": {"a"}}
    with pytest.raises(CycleError):
        order(graph)
    later = imports("if TYPE_CHECKING:\n    import a\ndef f():\n    import a", known)
    assert later == set()
