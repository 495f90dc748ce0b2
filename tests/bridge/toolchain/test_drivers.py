"""The driver that serves a request, and requests to one that ends."""

from __future__ import annotations

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

    def answers_until(self, key: str) -> list[dict[str, Any]]:
        if self._left == 0:
            self._ended = self._status
            raise ToolchainError(f"ended with status {self._status}")
        self._left -= 1
        return [{key: self.asked[-1]}]

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


@pytest.mark.parametrize("status", [1, -9])
def test_a_driver_that_ends_is_named_and_not_asked_again(status: int) -> None:
    """However it ends: that another one might answer would hide why."""
    first, second = Driver(serves=1, status=status), Driver(serves=1, status=status)
    found = drivers(first, second)
    found.ask("a")
    with pytest.raises(ToolchainError, match=f"ended with status {status}"):
        found.ask("b")
    assert second.asked == []
    assert found.ask("c") == [{"done": "c"}]
    assert (first.asked, second.asked) == (["a", "b"], ["c"])


def test_no_driver_is_asked_after_the_end() -> None:
    only = Driver(serves=2, status=1)
    found = drivers(only)
    found.ask("a", stops=0)
    found.stops += 1
    with pytest.raises(ToolchainError, match="Lean was ended before it was asked"):
        found.ask("b", stops=0)
    assert only.asked == ["a"]
