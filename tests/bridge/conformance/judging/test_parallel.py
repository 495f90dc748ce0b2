"""Jobs in processes of their own run on the families that they are given."""

from __future__ import annotations

import os
import signal
from typing import Any

import committed
import pytest

from bridge.conformance.judging import parallel
from bridge.report.jobs import Done, Job, work


@pytest.mark.thorough
def test_each_process_runs_the_families_that_it_is_given() -> None:
    chosen = committed.families("one-key", "ragged-tiles")
    found: dict[str, Done] = {}
    jobs = [
        Job("implementation", ("pyimpl-tiled", "float32"), "cpu"),
        Job("implementation", ("sdpa-math", "float64"), "cpu"),
        Job("mutant", ("last-tile-dropped",), "cpu"),
    ]
    with parallel.Workers(chosen, "cpu", most=len(jobs)) as workers:
        workers.each(work, jobs, lambda one: found.update({str(one.job): one}))
    assert set(found) == {"pyimpl-tiled float32", "sdpa-math float64", "last-tile-dropped"}
    caught = found.pop("last-tile-dropped").result
    for one in found.values():
        assert list(one.result["families"]) == ["one-key", "ragged-tiles"]
        assert one.result["ok"]
        assert one.processor_seconds > 0
    assert caught["caught_by"].startswith("ragged-tiles")
    # It ends with the first catch in each dtype.
    assert caught["every_family_in"] is None
    assert caught["tried"] == len(caught["families"])


def test_a_job_that_raises_keeps_no_other_from_being_done() -> None:
    chosen = committed.families("one-key")
    jobs = [
        Job("mutant", ("no such mutant",), "cpu"),
        Job("implementation", ("sdpa-math", "float64"), "cpu"),
        Job("implementation", ("sdpa-math", "float32"), "cpu"),
    ]
    found: list[str] = []
    workers = parallel.Workers(chosen, "cpu", most=len(jobs))
    with pytest.raises(ValueError, match="unpack"), workers:
        workers.each(work, jobs, lambda one: found.append(str(one.job)))
    assert sorted(found) == ["sdpa-math float32", "sdpa-math float64"]


def test_a_worker_that_is_ended_is_a_sentence() -> None:
    chosen = committed.families("one-key")
    with parallel.Workers(chosen, "cpu", most=1) as workers:
        jobs = [Job("implementation", ("pyimpl-state", "float64"), "cpu")]
        workers.each(work, jobs, lambda one: None)
        (pid,) = workers.pids()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(parallel.WorkerError, match="ended before its job was done, one of"):
            workers.each(work, jobs, lambda one: None)


def test_machines_with_more_cores_have_more_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: Any = {"SC_PHYS_PAGES": 1 << 20, "SC_PAGE_SIZE": 1 << 16}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    found = []
    for number in (1, 2, 12, 64):
        monkeypatch.setattr(parallel, "_processors", lambda number=number: number)
        found.append(parallel._room())
    assert found == [1, 2, 12, 16]
    sizes["SC_PHYS_PAGES"] = 1 << 16  # 4 GiB
    assert parallel._room() == 4
