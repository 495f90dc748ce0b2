"""Progress: lines now and then where there is no terminal, bars on one."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from bridge.report.progress import Progress, duration_text


def test_lines_say_how_many_of_how_many_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    shown = Progress(Console(file=io.StringIO(), width=200))
    with shown.bar("Audit", expected=100) as audit, shown.bar("Mutants") as mutants:
        assert audit.text() == "about 2 min left"
        assert mutants.text() == ""
        clock[0] += 40
        assert audit.text() == "about 60 s left"
        # A few of many in 40 s: most of it was the start, and the recorded times tell more.
        audit.advance(2, 400)
        assert audit.text() == "2 of 400, about 60 s left"
        mutants.advance(10, 40)
        assert mutants.text() == "10 of 40, about 2 min left"
        # The work tells more than the number: the largest were first.
        mutants.advance(10, 40, 0.8)
        assert mutants.text() == "10 of 40, about 10 s left"
        clock[0] += 100
        audit.advance(40, 400)
        assert audit.text() == "40 of 400, about 16 min left", "it takes longer than it did"
    assert [duration_text(s) for s in (0, 22, 89, 91, 400)] == [
        "5 s",
        "20 s",
        "90 s",
        "2 min",
        "7 min",
    ]


def test_a_long_start_is_not_taken_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Progress(Console(file=io.StringIO(), width=200)).bar("Audit", expected=240) as audit:
        clock[0] += 300
        assert audit.text() == ""
        audit.advance(100, 20000)
        assert audit.text() == "100 of 20000", "not 17 h"
        clock[0] += 60
        audit.advance(4100, 20000)
        assert audit.text() == "4100 of 20000, about 4 min left"


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    out = io.StringIO()
    shown = Progress(Console(file=out, width=200), pace=0.01)
    with shown.bar("Mutants") as bar:
        bar.advance(3, 75)
        while out.getvalue().count("Mutants: 3 of 75") < 2:
            time.sleep(0.01)
    assert out.getvalue().startswith("  Mutants …\n")
    said = out.getvalue()
    time.sleep(0.1)
    assert out.getvalue() == said, "nothing more once it is done"


def test_a_terminal_shows_bars_that_go_away() -> None:
    out = io.StringIO()
    shown = Progress(Console(file=out, force_terminal=True, width=100))
    with shown.bar("Audit"), shown.bar("Mutants") as bar:
        bar.advance(3, 75)
        while "3 of 75" not in out.getvalue():
            time.sleep(0.01)
    assert shown._live is None
