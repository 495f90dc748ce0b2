"""An adapter is known, and told of, by its class alone."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from bridge.conformance import adapters as package
from bridge.conformance.adapters import builtin, libraries
from bridge.conformance.adapters.adapter import About
from bridge.findings import subjects
from bridge.pages import adapters_table


class Another(libraries.HfEager):
    name = "another"
    about = About("Another", "`another.attention`", "As it is.", "everything", packages=("torch",))


def test_each_adapter_of_the_folder_is_found_by_its_name() -> None:
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}")
        for one in pkgutil.iter_modules(package.__path__)
    ]
    named = builtin.adapters_of(*modules)
    assert {"flex", "jax", "pyimpl-tiled", "pyimpl-ptx"} <= named.keys()
    assert named.keys() == set(libraries.names())


def test_a_new_adapter_is_in_the_table_and_among_the_functions_that_are_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(libraries.FOREIGN, "another", Another)
    assert "| `another` | `transformers` | everything |" in adapters_table.table()
    *_, new, own = subjects._of_adapters()
    assert (new.name, new.about.short, own.name) == ("another", "Another", "pyimpl-tiled")


def test_an_adapter_of_another_package_says_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(libraries.FOREIGN, "another", Another)
    monkeypatch.setattr(Another, "about", None)
    with pytest.raises(ValueError, match="the adapter another has no `about`"):
        adapters_table.table()
