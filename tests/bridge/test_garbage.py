from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bridge import garbage
from bridge.conformance.sandbox import zygote


class Thing:
    """In a cycle with itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    enabled, thresholds, frozen = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*thresholds)


@pytest.mark.parametrize("searching", [True, False])
def test_what_is_made_without_a_search_counts_as_old(searching: bool) -> None:
    (gc.enable if searching else gc.disable)()
    made = []
    with garbage.no_search():
        assert not gc.isenabled()
        made += [[n] for n in range(10_000)]
    # Nothing of it is looked through by the next search of young objects.
    young = {id(x) for generation in (0, 1) for x in gc.get_objects(generation)}
    assert gc.isenabled() == searching
    assert gc.get_freeze_count() == 0
    assert not young & {id(x) for x in made}


def test_what_is_frozen_stays_so() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with garbage.no_search():
            pass
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()


def test_in_a_block_of_rare_searches_young_garbage_is_found_still() -> None:
    gc.enable()
    gc.set_threshold(700, 10, 10)
    full = gc.get_stats()[2]["collections"]
    with garbage.rare_searches():
        assert gc.get_threshold() == (700, 10, 1000)
        kept = [Thing() for _ in range(100_000)]
        assert gc.get_stats()[1]["collections"] > 0
        assert gc.get_stats()[2]["collections"] == full
        for _ in range(100_000):
            Thing()
        assert sum(type(x) is Thing for x in gc.get_objects()) < len(kept) + 10_000
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.thorough
def test_a_command_ends_without_a_search() -> None:
    """Objects in a cycle when Python ends are looked for, and found, unless it is a command."""
    code = (
        "import gc, os, sys\n"
        "from bridge.command import Command\n"
        "class Thing:\n"
        "    def __del__(self, write=os.write): write(1, b'found')\n"
        "def make():\n"
        "    gc.disable()\n"
        "    thing = Thing()\n"
        "    thing.itself = thing\n"
        "if sys.argv[1] == 'plain': make()\n"
        "else: Command('x', callback=make).main([], standalone_mode=False)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, how],
            capture_output=True, text=True, check=True,
        ).stdout
        for how in ("command", "plain")
    ]  # fmt: skip
    assert said == ["", "found"]


@pytest.mark.thorough
def test_functions_begin_with_torch_counted_as_old() -> None:
    """Their first search does not look through all that PyTorch has imported."""
    ask = (
        "print(gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects(2)) > 10**5, "
        "len(gc.get_objects(0)) < 10**4)"
    )
    start = zygote._START.replace("zygote.main(number)", ask)
    assert start != zygote._START
    folder = str(zygote.Path(zygote.inside.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-I", "-c", start, "0", folder],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "True 0 True True\n"
