"""The reference of the Python packages, from their docstrings, by pdoc."""

from __future__ import annotations

import pkgutil
import warnings
from pathlib import Path

import bridge

FOLDER = "api"
# Of the tools that only contributors look up: a search of its own, so that neither that of `pyimpl`
# nor its list of modules has them.
_TOOLS = f"{FOLDER}/tools"
# By title, where the site has it.
PAGES = {
    "pyimpl: attention for PyTorch": f"{FOLDER}/pyimpl.html",
    "bridge: from Lean to checked kernels": f"{_TOOLS}/bridge.html",
}
# Public modules that `pyimpl` does not name as its own.
_MODULES = (
    "pyimpl.distributed",
    "pyimpl.integrations",
    *(f"pyimpl.integrations.{name}" for name in ("sdpa", "flash", "layers", "transformers")),
    "pyimpl.modules",
    "pyimpl.state",
    "pyimpl.cache",
    "pyimpl.dropout",
    "pyimpl.visualize",
    "pyimpl.backends.reference",
    "pyimpl.backends.tiled",
)
# Written from Lean, and explained in docs/spec-in-python.md.
_LEFT_OUT = "bridge.spec"


def write(out: Path) -> None:
    """Write the pages into the folder `api` of `out`; its `index.html` leads to that of `pyimpl`.
    Raises RuntimeError for a module that cannot be imported."""
    import pdoc
    import pdoc.render

    # Each by its name: pdoc shows no module that a package's `__all__` leaves out.
    tools = [f"bridge.{one.name}" for one in pkgutil.iter_modules(bridge.__path__)]
    for folder, modules in (
        (FOLDER, ("pyimpl", *_MODULES)),
        (_TOOLS, ("bridge", *tools, f"!{_LEFT_OUT}", "!bridge.__main__")),
    ):
        pdoc.render.configure(
            docformat="google",
            show_source=False,
            footer_text="Attention, proved and checked",
            template_directory=Path(__file__).parent / "templates" / "pdoc",
        )
        pdoc.render.env.globals["site"] = "../" * len(Path(folder).parts)
        with warnings.catch_warnings():
            # It warns of types that are imported for annotations alone.
            warnings.simplefilter("ignore")
            pdoc.pdoc(*modules, output_directory=out / folder)
