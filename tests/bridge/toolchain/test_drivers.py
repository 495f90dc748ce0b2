"""Which driver serves a request, and what becomes of one that ends."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridge.toolchain.drivers import Drivers
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.process import LeanProcess


class Driver:
    """Serves so many requests, then ends with a status at the next."""

    def __init__(self, serves: int, status: int) -> None:
        self._left, self._status = serves, status
        self._ended: int | None = None
        self.asked: list[str] = []
        self.process = SimpleNamespace(poll=lambda: self._ended)

    def send(self, request: str) -> None:
        self.asked.append(request)

    def answers(self) -> Iterator[dict[str, Any]]:
        if self._left == 0:
            self._ended = self._status
            raise ToolchainError(f"ended with status {self._status}")
        self._left -= 1
        yield {"done": self.asked[-1]}

    def memory(self) -> int:
        return 0

    def __exit__(self, *raised: object) -> None: ...


def drivers(*some: Driver) -> Drivers:
    waiting = list(some)
    return Drivers(lambda: cast("LeanProcess", waiting.pop(0)))


def test_a_driver_serves_request_after_request() -> None:
    only = Driver(serves=2, status=1)
    found = drivers(only)
    assert [found.ask(r) for r in "ab"] == [[{"done": "a"}], [{"done": "b"}]]
    assert only.asked == ["a", "b"]


def test_a_fresh_driver_is_asked_where_one_that_has_served_ends_by_an_exception() -> None:
    first, second = Driver(serves=1, status=1), Driver(serves=1, status=1)
    found = drivers(first, second)
    found.ask("a")
    assert found.ask("b") == [{"done": "b"}]
    assert (first.asked, second.asked) == (["a", "b"], ["b"])


def test_what_ends_a_fresh_driver_is_not_asked_again() -> None:
    first, second = Driver(serves=0, status=1), Driver(serves=1, status=1)
    with pytest.raises(ToolchainError, match="ended with status 1"):
        drivers(first, second).ask("a")
    assert second.asked == []


def test_a_driver_that_is_killed_is_named() -> None:
    first, second = Driver(serves=1, status=-9), Driver(serves=1, status=1)
    found = drivers(first, second)
    found.ask("a")
    with pytest.raises(ToolchainError, match="ended with status -9"):
        found.ask("b")
    assert second.asked == []


def test_no_fresh_driver_is_asked_after_the_end() -> None:
    first, second = Driver(serves=1, status=1), Driver(serves=1, status=1)
    found = drivers(first, second)
    found.ask("a", stops=0)
    found.stops += 1
    with pytest.raises(ToolchainError, match="Lean was ended before it was asked"):
        found.ask("b", stops=0)
    assert second.asked == []
