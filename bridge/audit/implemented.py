"""Which Python implements which Lean declaration, as `pyimpl` records it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pyimpl
from bridge.conformance import tolerances
from bridge.source.excerpt import SourceError
from pyimpl.internal.implements import implementations

# The packages with functions that implement a Lean declaration.
IMPLEMENTING = (pyimpl, tolerances)


def known_implementations() -> list[Any]:
    """Every recorded implementation; importing the modules records them. Raises SourceError for a
    module that cannot be imported."""
    found = (pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in IMPLEMENTING)
    for name in (module.name for modules in found for module in modules):
        try:
            importlib.import_module(name)
        except Exception as error:
            raise SourceError(
                f"{name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
    return implementations()


def implemented_names() -> dict[str, str]:
    """Lean name → the Python object that says it implements it."""
    return {one.lean: f"{one.module}.{one.qualname}" for one in known_implementations()}
