"""Modules and folders import each other in one direction: none needs itself before it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("bench", "bridge", "pyimpl")


def modules() -> dict[str, Path]:
    """The files by the names of their modules."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those that run when the module is imported; those for types alone are left out."""
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


def folder_of(name: str, packages: set[str]) -> str:
    """The folder of a module. Those that lie in the packages themselves stand alone: there are
    public functions and commands, and small things for all."""
    folder = name if name in packages else name.rpartition(".")[0]
    return name if folder in PACKAGES else folder


def of_folders(graph: dict[str, set[str]], packages: set[str]) -> dict[str, set[str]]:
    """The graph of the folders: which ones the modules of each import."""
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        folder = folder_of(name, packages)
        found.setdefault(folder, set())
        found[folder] |= {folder_of(other, packages) for other in others} - {folder}
    return found


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return modules()


@pytest.fixture(scope="module")
def graph(files: dict[str, Path]) -> dict[str, set[str]]:
    return {name: imports(path.read_text("utf-8"), set(files)) for name, path in files.items()}


@pytest.fixture(scope="module")
def packages(files: dict[str, Path]) -> set[str]:
    return {name for name, path in files.items() if path.name == "__init__.py"}


def test_no_module_imports_itself_by_way_of_others(graph: dict[str, set[str]]) -> None:
    assert graph["bridge.ttir.machine"]
    assert len(order(graph)) == len(graph)


def test_no_folder_imports_itself_by_way_of_others(
    graph: dict[str, set[str]], packages: set[str]
) -> None:
    folders = order(of_folders(graph, packages))
    adapters, judging = (f"bridge.conformance.{name}" for name in ("adapters", "judging"))
    assert folders.index(adapters) < folders.index(judging)


def test_a_circle_of_folders_is_seen(graph: dict[str, set[str]], packages: set[str]) -> None:
    """Where no module imports itself: one of a low folder imports one of a high folder."""
    low, high = "bridge.conformance.tensors.form", "bridge.conformance.judging.judge"
    planted = graph | {low: graph[low] | {high}}
    assert len(order(planted)) == len(graph)
    with pytest.raises(CycleError, match=r"bridge\.conformance\.tensors"):
        order(of_folders(planted, packages))


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
