"""Tests and their helpers name nothing that this project's modules no longer have.

A thorough test runs seldom, and mypy does not read the tests.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("bridge", "pyimpl", "bench")


def find_module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def imported_modules(tree: ast.AST) -> dict[str, ModuleType]:
    """Modules of this project, by the names that a file gives them."""
    found: dict[str, ModuleType | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                one.asname: find_module(one.name)
                for one in node.names
                if one.asname and one.name.split(".")[0] in OURS
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            found |= {
                one.asname or one.name: find_module(f"{node.module}.{one.name}")
                for one in node.names
            }
    return {name: module for name, module in found.items() if module is not None}


def missing_attributes(text: str) -> Iterator[str]:
    """What a file takes from such modules that is not there, unless it puts it there itself."""
    tree = ast.parse(text)
    modules = imported_modules(tree)
    # A variable of the same name would be no module.
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                modules.pop(name, None)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Load()):
                if name in modules and not hasattr(modules[name], attribute):
                    yield f"{modules[name].__name__}.{attribute}"


def test_a_missing_attribute_is_found() -> None:
    text = "from bridge.index import extract\nimport bridge.errors as e\n"
    assert [*missing_attributes(text + "extract.listing(e.MendableError)\ne.Lost()\n")] == [
        "bridge.index.extract.listing",
        "bridge.errors.Lost",
    ]


@pytest.mark.parametrize(
    "use", ["def f(extract): extract.listing", "extract = f()\nextract.listing"]
)
def test_a_variable_of_the_same_name_is_no_module(use: str) -> None:
    assert [*missing_attributes(f"from bridge.index import extract\n{use}")] == []


def test_tests_take_nothing_that_is_missing() -> None:
    found = {
        str(path.relative_to(ROOT)): missing
        for path in (ROOT / "tests").rglob("*.py")
        if (missing := [*missing_attributes(path.read_text("utf-8"))])
    }
    assert found == {}
