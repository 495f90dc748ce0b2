"""Entries of this package in tables of other libraries.

An entry is a `functools.partial` of a function or class of this package. It says by itself whose it
is: a set of names kept beside the table would not know of entries made before this package was
imported anew, nor of those that another has put in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def is_entry_of(entry: object, function: Callable[..., Any]) -> bool:
    """Whether an entry is a `partial` of this function, whichever import of its module made it."""
    if not isinstance(entry, partial):
        return False
    return _name(entry.func) == _name(function)


def _name(function: Callable[..., Any]) -> tuple[str | None, str | None]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", None)
