"""The reference of the Python packages, from their docstrings, by pdoc."""

from __future__ import annotations

import warnings
from pathlib import Path

FOLDER = "api"
# By title, where the site has it.
PAGES = {
    "pyimpl: attention for PyTorch": f"{FOLDER}/pyimpl.html",
    "bridge: from Lean to checked kernels": f"{FOLDER}/bridge.html",
}
# Public modules that `pyimpl` does not name as its own.
_MODULES = (
    "pyimpl.modules",
    "pyimpl.state",
    "pyimpl.cache",
    "pyimpl.dropout",
    "pyimpl.backends.reference",
    "pyimpl.backends.tiled",
)
# Written from Lean, and explained in docs/spec-in-python.md.
_LEFT_OUT = "bridge.spec"


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
        pdoc.pdoc("pyimpl", "bridge", *_MODULES, f"!{_LEFT_OUT}", output_directory=out / FOLDER)
