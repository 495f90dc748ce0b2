"""The times of the stages: recorded, read back, and as a table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import MendableError
from bridge.report import timings
from bridge.report.verify import STAGES


def report(**changes: Any) -> dict[str, Any]:
    times = {"ok": True, "kept": False, "seconds": 3.4, "processor_seconds": 5.6}
    ran = [{"adapter": "a", "dtype": "float32", "processor_seconds": 1.5}]
    planted = [{"name": "f", "processor_seconds": 0.5}]
    found: dict[str, Any] = {name: dict(times) for name in STAGES}
    # It ran beside others.
    del found["audit"]["processor_seconds"]
    found["implementations"] |= {"results": ran}
    found["mutants"] |= {"results": planted}
    return found | changes


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    found = timings.of_verify(report(), 601.239)
    timings.write(tmp_path, "verify", found)
    timings.write(tmp_path, "test", timings.of_test({"lint": {"seconds": 29.0}}, 29.0))
    assert timings.read(tmp_path) == found
    assert datetime.date.fromisoformat(found.date)
    assert list(found.stages) == list(STAGES)
    assert found.seconds("audit") == 3.4
    assert found.cost("implementation-a-float32-cpu") == 1.5
    assert found.cost("mutant-f-cuda") == 0.5
    # A new job begins early.
    assert found.cost("mutant-new-cpu") > 10
    assert timings.read(tmp_path, "test").seconds("lint") == 29.0
    assert timings.minutes(tmp_path) == {"verify": 10, "test": 1}
    assert timings.read(tmp_path / "nowhere").stages == {}


def test_each_stage_has_its_row() -> None:
    recorded = timings.of_verify(report(), 601.2)
    found = timings.table(recorded)
    assert found.startswith(f"Recorded on {recorded.date} with {recorded.machine}: 601 s in all.\n")
    assert "\n| build | 3 | 6 |\n| audit | 3 | – |\n| kernels | 3 | 6 |\n" in found
    assert len(found.splitlines()) == 4 + len(STAGES)
    assert timings.table(timings.Timings()) == "Not recorded yet.\n"


@pytest.mark.parametrize("section", [{"ok": True, "kept": True}, {"ok": False}])
def test_times_of_a_run_that_did_not_do_everything_are_refused(section: dict[str, Any]) -> None:
    with pytest.raises(MendableError, match="not so here: build"):
        timings.of_verify(report(build=section), 1.0)


def test_a_check_that_was_kept_has_no_time_to_record() -> None:
    with pytest.raises(MendableError, match=r"not so here: types$"):
        timings.of_test({"lint": {"seconds": 1.0}, "types": None}, 1.0)
