"""The times of the stages: recorded, read back, and in the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridge.report import timings
from bridge.report.verify import STAGES

ROOT = Path(__file__).resolve().parents[3]


def report(**changes: Any) -> dict[str, Any]:
    times = {"ok": True, "kept": False, "seconds": 3.4, "processor_seconds": 5.6}
    ran = [{"adapter": "a", "dtype": "float32", "processor_seconds": 1.5}]
    planted = [{"name": "f", "processor_seconds": 0.5}]
    found: dict[str, Any] = {name: dict(times) for name in STAGES}
    # It ran beside others.
    del found["audit"]["processor_seconds"]
    found["implementations"] |= {"results": ran}
    found["faults"] |= {"results": planted}
    return found | changes


def test_the_page_has_the_recorded_times() -> None:
    page = (ROOT / timings.PAGE).read_text("utf-8")
    assert timings.in_page(page, timings.read(ROOT)) == page


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / timings.PAGE).write_bytes((ROOT / timings.PAGE).read_bytes())
    found = timings.recorded(report())
    timings.write(tmp_path, found)
    assert timings.read(tmp_path) == found
    assert "\n| build | 3 | 6 |\n| audit | 3 | – |\n" in (tmp_path / timings.PAGE).read_text(
        "utf-8"
    )
    assert found.seconds("audit") == 3.4
    assert found.cost("implementation-a-float32-cpu") == 1.5
    assert found.cost("fault-f-cuda") == 0.5
    # A new job begins early.
    assert found.cost("fault-new-cpu") > 10
    assert timings.read(tmp_path / "nowhere").stages == {}


@pytest.mark.parametrize("section", [{"ok": True, "kept": True}, {"ok": False}])
def test_times_of_a_run_that_did_not_do_everything_are_refused(section: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not so here: build"):
        timings.recorded(report(build=section))
