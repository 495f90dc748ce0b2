"""The built-in adapters, by name; those of other packages are in `libraries`."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol, cast

from bridge.conformance.adapters import compiled, emulated, own, sdpa
from bridge.conformance.adapters.adapter import About, Builtin, BuiltinAdapter


class Maker(Protocol):
    """The class of an adapter, with the attributes of `Builtin`."""

    name: str
    source: str | None
    foreign: str | None
    packages: Mapping[str, str]
    about: About | None

    def __call__(self, *given: Any, **options: Any) -> BuiltinAdapter: ...


def adapters_of(*modules: ModuleType) -> dict[str, Maker]:
    """The adapters that modules define, by name, in their order: each class that has one."""
    return {
        found.name: cast("Maker", found)
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__
        if issubclass(found, Builtin) and found.name
    }


BUILTIN = adapters_of(own, sdpa, emulated)
# The adapters that run only where they are named: they need a process in which Triton compiles.
NAMED = adapters_of(compiled)


def builtin(name: str) -> BuiltinAdapter:
    """The built-in adapter of that name. Raises KeyError with the known names."""
    known = BUILTIN | NAMED
    if name not in known:
        raise KeyError(f"no adapter {name!r}; there are {', '.join(sorted(known))}")
    return known[name]()
