"""Which nodes of a graph are reached from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def reach_all(start: Iterable[T], next_of: Callable[[T], Iterable[T]]) -> list[T]:
    """All that `start` leads to by `next_of`, directly or not, itself included; each once."""
    seen: dict[T, None] = {}
    waiting = list(start)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = None
            waiting += next_of(one)
    return list(seen)
