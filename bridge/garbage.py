"""When Python looks for garbage in cycles. Standard library only.

It looks through all objects that it knows each time their number has grown by a quarter, and once
more when it ends. Modules and vectors are some hundred thousand objects, and none of them garbage.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# So many searches of younger objects come before one through all.
_SELDOM = 1000


@contextlib.contextmanager
def no_search() -> Iterator[None]:
    """A block in which there is none, and whose objects count as old afterwards: for code that
    imports or reads a great deal."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            # All that there is becomes old, without being looked through.
            gc.freeze()
            gc.unfreeze()
        if before:
            gc.enable()


@contextlib.contextmanager
def rare_searches() -> Iterator[None]:
    """A block in which young objects are looked through as ever, and all objects hardly ever."""
    before = gc.get_threshold()
    gc.set_threshold(before[0], before[1], max(_SELDOM, before[2]))
    try:
        yield
    finally:
        gc.set_threshold(*before)


def end_without_search() -> None:
    """Leave all that there is out of the search with which Python ends, for `atexit`."""
    gc.freeze()
