"""The commands that an installed package has, `attention-check` and `bridge`: each says in a
sentence which extra it lacks. Standard library only, for it runs with `pyimpl`'s packages alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

# By extra, the module that a command without it fails to import first; the rest needs a checkout.
EXTRAS = {
    "docs": ("pdoc", "pygments", "zensical"),
    "index": ("lean_dojo", "networkx"),
    "transformers": ("transformers",),
}
_CHECKOUT = Path(__file__).resolve().parent.parent


def remedy(error: ModuleNotFoundError) -> str:
    """Which package is missing and which extra brings it, in a sentence. Raises the error where it
    is a module of the project."""
    name = (error.name or "").partition(".")[0]
    if name in ("", "bridge", "pyimpl"):
        raise error
    if (_CHECKOUT / "lakefile.lean").exists():
        what = "run make setup first, then .venv/bin/python -m bridge …"
    else:
        extra = next((one for one, names in EXTRAS.items() if name in names), "check")
        what = f"{sys.executable} -m pip install 'attention-spec[{extra}]' brings it"
    return f"{sys.executable} has no package {name}; {what}"


def end_without_package(error: ModuleNotFoundError) -> NoReturn:
    """End with status 2 and one sentence, unless it is a module of the project that is missing."""
    print(f"Error: {remedy(error)}", file=sys.stderr)
    sys.exit(2)


def attention_check() -> None:
    """`attention-check`: the command `conform`."""
    try:
        from bridge.conform import conform

        conform(prog_name="attention-check")
    except ModuleNotFoundError as error:
        end_without_package(error)


def bridge() -> None:
    """`bridge`: all commands."""
    try:
        from bridge.__main__ import main

        main(prog_name="bridge")
    except ModuleNotFoundError as error:
        end_without_package(error)
