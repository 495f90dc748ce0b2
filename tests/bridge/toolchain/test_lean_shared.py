"""Builds that several drivers share: the same outcome, and failures stay with what needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from bridge.toolchain.drivers import Drivers
from bridge.toolchain.embedded import _SHARED_FROM, EmbeddedLean

Make = Callable[[dict[str, str]], EmbeddedLean]


def sources(count: int) -> dict[str, str]:
    """A base, then modules that each need the base and the module two before it."""
    found = {"N0": "public section\n@[expose] def n0 : Nat := 1\n"}
    for n in range(1, count):
        below = max(0, n - 2)
        imports = "".join(f"public import Small.N{k}\n" for k in sorted({0, below}))
        found[f"N{n}"] = (
            f"{imports}public section\n@[expose] def n{n} : Nat := n{below} + n0\n"
            f"theorem n{n}_is : n{n} = {(n + 1) // 2 + 1} := rfl\n"
        )
    return found


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nothing is shared")
def test_shared_and_alone_come_to_the_same(
    make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.toolchain.embedded._MOST_DRIVERS", 2)
    texts = sources(_SHARED_FROM + 2)
    # A theorem that does not hold, in the middle: what needs it is skipped, all else is built.
    texts["N8"] = texts["N8"].replace("n8 = ", "n8 = 1 + ")
    shared, alone = make_project(texts), make_project(texts)
    started: list[Drivers] = []
    monkeypatch.setattr(alone, "_at_once", lambda *_: 1)
    for lean in (shared, alone):
        start = lean._drivers._start

        def counted(lean: EmbeddedLean = lean, start: Callable[[], Any] = start) -> Any:
            started.append(lean._drivers)
            return start()

        monkeypatch.setattr(lean._drivers, "_start", counted)
    results = [lean.build() for lean in (shared, alone)]
    assert started.count(shared._drivers) == 2
    assert started.count(alone._drivers) == 1
    one, other = (
        [(m.name, m.ok, m.skipped, m.number, m.total, len(m.messages)) for m in result.modules]
        for result in results
    )
    assert one == other
    failed = {m.name for m in results[0].modules if not m.ok and not m.skipped}
    assert failed == {"Small.N8"}
    skipped = {m.name for m in results[0].modules if m.skipped}
    assert skipped == {"Small", *(f"Small.N{n}" for n in range(10, _SHARED_FROM + 2, 2))}
    records = [lean.store.load() for lean in (shared, alone)]
    assert {name: kept["interface"] for name, kept in records[0].items()} == {
        name: kept["interface"] for name, kept in records[1].items()
    }
    # What failed is tried again, by one driver.
    assert shared.build().built == ("Small.N8",)
    assert started.count(shared._drivers) == 3


def test_a_driver_that_ends_is_named_and_replaced(make_project: Make) -> None:
    lean = make_project({"A": "def a := 1\n"})
    with lean.resident():
        lean.warm()
        lean._drivers._idle[0].process.kill()
        lean._drivers._idle[0].process.wait()
        assert lean.build().ok
        assert lean.memory() > 0 or not os.path.exists("/proc/self/status")
    assert lean._drivers._idle == []
    assert "not a request" in lean._drivers.ask("nonsense\n")[-1]["problem"]
    lean.stop()
