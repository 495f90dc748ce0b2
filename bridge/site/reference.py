"""The reference of the Python packages, from their docstrings, by pdoc."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from pathlib import Path
from typing import Any

from bridge.templates import template

FOLDER = "api"
_PACKAGES = ("pyimpl", "bridge")
# Public modules that `pyimpl` does not name as its own.
_MODULES = (
    "pyimpl.modules",
    "pyimpl.state",
    "pyimpl.cache",
    "pyimpl.dropout",
    "pyimpl.reference",
    "pyimpl.tiled",
)
# Written from Lean, and explained in docs/spec-in-python.md.
_LEFT_OUT = "bridge.spec"


def front() -> str:
    """The page that leads into it, as Markdown of `docs`: the public names of `pyimpl` and its
    modules, each with the first sentence on it."""
    pyimpl = importlib.import_module("pyimpl")
    return template("bridge.site", "reference.md.jinja").render(
        folder=FOLDER,
        functions=[(name, _first(getattr(pyimpl, name))) for name in pyimpl.__all__],
        modules=[(name, _first(importlib.import_module(name))) for name in _MODULES],
    )


def _first(documented: Any) -> str:
    """The first sentence of its docstring, in one line of a table."""
    text = " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)])\.(?= |$)", text, maxsplit=1)[0].replace("|", r"\|") + "."


def write(out: Path) -> None:
    """Write the pages into the folder `api` of `out`. Raises RuntimeError for a module that cannot
    be imported."""
    import pdoc
    import pdoc.render

    pdoc.render.configure(
        docformat="google", show_source=False, footer_text="Attention, proved and checked"
    )
    with warnings.catch_warnings():
        # Of types that are imported for annotations alone.
        warnings.simplefilter("ignore")
        pdoc.pdoc(*_PACKAGES, *_MODULES, f"!{_LEFT_OUT}", output_directory=out / FOLDER)
