"""Keep values that are computed once from a vector, for all calls and dtypes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def keep(function: Callable[[T], R]) -> Callable[[T], R]:
    """The function, whose results are kept as long as the object that they are of.

    An object is known by itself, not by its contents: to hash a vector is to read every number of
    it. It must not change, and whoever gets a result must not change that.
    """
    found: dict[int, tuple[weakref.ref[T], R]] = {}

    @wraps(function)
    def call(one: T) -> R:
        number = id(one)
        held = found.get(number)
        if held is not None and held[0]() is one:
            return held[1]
        result = function(one)
        # The number is another's as soon as this one is gone.
        found[number] = weakref.ref(one, lambda _: found.pop(number, None)), result
        return result

    return call
