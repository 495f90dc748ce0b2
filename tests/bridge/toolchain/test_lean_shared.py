"""Builds that several drivers share: the same outcome, and a failure stops only its dependents."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from bridge.toolchain.embedded import _SHARED_FROM, EmbeddedLean
from bridge.toolchain.modules import closure
from bridge.toolchain.process import LeanProcess

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
# `make verify` shares out the library itself; here it is three drivers that start for it.
@pytest.mark.thorough
@pytest.mark.parametrize("least", [6, _SHARED_FROM])
def test_shared_and_alone_come_to_the_same(
    least: int, make_project: Make, exchange_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """least: how many modules are shared out."""
    monkeypatch.setattr("bridge.toolchain.embedded._MOST_DRIVERS", 2)
    monkeypatch.setattr("bridge.toolchain.embedded._SHARED_FROM", least)
    texts = sources(least + 2)
    # A theorem that does not hold, in the middle: its dependents are skipped, all else is built.
    texts["N4"] = texts["N4"].replace("n4 = ", "n4 = 1 + ")
    # The driver of the second stays, and is the only one.
    shared, alone = make_project(texts), exchange_project(texts)
    started = []
    start = shared._drivers._start

    def start_process() -> LeanProcess:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(shared._drivers, "_start", start_process)
    results = [lean.build() for lean in (shared, alone)]
    assert len(started) == 2
    assert len(alone._drivers._idle) == 1
    one, other = (
        [(m.name, m.ok, m.skipped, m.number, m.total, len(m.messages)) for m in result.modules]
        for result in results
    )
    assert one == other
    failed = {m.name for m in results[0].modules if not m.ok and not m.skipped}
    assert failed == {"Small.N4"}
    skipped = {m.name for m in results[0].modules if m.skipped}
    assert skipped == {"Small", *(f"Small.N{n}" for n in range(6, least + 2, 2))}
    records = [lean.store.load() for lean in (shared, alone)]
    assert {name: kept["interface"] for name, kept in records[0].items()} == {
        name: kept["interface"] for name, kept in records[1].items()
    }
    # The failed modules are too few to be shared out, when they are tried again.
    if least == _SHARED_FROM:
        assert shared.build().built == ("Small.N4",)
        assert len(started) == 3
    else:
        assert shared._at_once(closure(shared.root, ["Small"]), records[0]) == 1


@pytest.mark.thorough
def test_a_driver_that_ends_is_named_and_replaced(make_project: Make) -> None:
    lean = make_project({"A": "def a := 1\n"})
    with lean.resident():
        lean.warm()
        lean._drivers._idle[0].process.kill()
        lean._drivers._idle[0].process.wait()
        assert lean.build().ok
        assert lean.memory() > 0
        assert "not a request" in lean._drivers.ask("nonsense\n")[-1]["problem"]
    assert lean._drivers._idle == []
