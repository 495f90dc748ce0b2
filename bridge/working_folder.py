"""The working folder is no place of the judge's modules: functions to judge may lie in it, and a
`psutil.py` beside them would be run in the place of the package. Standard library only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Python then puts no folder before those of installed packages.
_NAME = "PYTHONSAFEPATH"


def leave() -> None:
    """Look for no module in it any more, unless it is the folder of this package. To be called
    where `python -m`, which puts it first, begins."""
    here = os.getcwd()
    if sys.path and sys.path[0] == here != _CHECKOUT:
        del sys.path[0]


@contextmanager
def unknown_to_children() -> Iterator[None]:
    """A block in which processes are started: they, and those that they start, look for no module
    in it. multiprocessing has Python begin with `-c`, which puts it first, too."""
    before = os.environ.get(_NAME)
    os.environ[_NAME] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NAME]
        else:
            os.environ[_NAME] = before
