"""Tests that conformance runs and mutants are kept by their inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.cache import Cache
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.mutants.attention import MUTANTS
from bridge.report import jobs
from bridge.report.jobs import Done
from bridge.report.runs import Runs

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(ROOT, Cache(tmp_path))


JUDGE = {
    "bridge/conformance/tolerances/tolerance.py",
    "bridge/conformance/tolerances/gradient_tolerance.py",
}


@pytest.mark.parametrize(
    ("adapter", "among", "not_among"),
    [
        (
            "pyimpl-triton",
            {
                "pyimpl/backends/kernels/varlen.py",
                "pyimpl/backends/kernels/parts/loop.py",
                "pyimpl/decode.py",
            },
            {"pyimpl/modules/decoder.py"},
        ),
        (
            "pyimpl-tiled",
            {
                "pyimpl/backends/tiled.py",
                "pyimpl/backends/tiled_backward.py",
                "pyimpl/varlen.py",
                "pyimpl/merge.py",
            },
            {"pyimpl/backends/kernels/forward.py"},
        ),
        (
            "pyimpl-reference",
            {"pyimpl/backends/reference.py", "pyimpl/backends/reference_backward.py"},
            {"pyimpl/backends/tiled.py"},
        ),
        (
            "pyimpl-state",
            {"pyimpl/state.py"},
            {"pyimpl/backends/tiled.py", "pyimpl/backends/reference_backward.py"},
        ),
        # The gradients of SDPA are judged by means of the reference.
        (
            "sdpa-math",
            {"bridge/conformance/adapters/sdpa.py", "pyimpl/backends/reference.py"},
            {"pyimpl/state.py"},
        ),
        (
            "flash-emulated",
            {"bridge/conformance/adapters/emulated.py"},
            {"pyimpl/backends/tiled.py"},
        ),
    ],
)
def test_results_depend_on_what_runs(
    runs: Runs, adapter: str, among: set[str], not_among: set[str]
) -> None:
    files = set(runs.files_of(adapters.builtin(adapter)))
    assert JUDGE | among <= files
    assert not not_among & files
    # Neither on the mutants, nor on how results are shown.
    assert not any("mutants" in name or name.startswith("bridge/report/") for name in files)


def test_a_mutant_depends_on_what_it_runs_through_and_on_itself(runs: Runs) -> None:
    mutants = {mutant.name: mutant for mutant in MUTANTS}
    forward = set(runs.files_of_mutant(mutants["lse-base-2"]))
    assert (
        JUDGE | {"pyimpl/backends/kernels/forward.py", "pyimpl/backends/kernels/parts/loop.py"}
        <= forward
    )
    assert not forward & {
        "pyimpl/backends/kernels/backward.py",
        "bridge/conformance/mutants/attention.py",
    }
    backward = set(runs.files_of_mutant(mutants["kernel-dq-not-added"]))
    assert {
        "pyimpl/backends/kernels/backward_queries.py",
        "pyimpl/backends/kernels/forward.py",
        "pyimpl/internal/gradients.py",
    } <= backward
    mutant = mutants["tiled-doubled-scale"]
    one, other = runs.mutant(mutant, "cpu"), runs.mutant(replace(mutant, new="1.0"), "cpu")
    assert one.name == other.name
    assert one.key != other.key


def result(**changes: Any) -> dict[str, Any]:
    return {"ok": True, "caught": True, **changes}


def test_good_results_are_kept_and_bad_ones_are_not(runs: Runs) -> None:
    run = runs.implementation("pyimpl-state", "float64", "cpu")
    assert runs.find(run) is None
    assert runs.keep(run, Done(run.job, result(ok=False), 1.0))["processor_seconds"] == 1.0
    assert runs.find(run) is None
    runs.keep(run, Done(run.job, result(), 2.0))
    assert runs.find(run) == {**result(), "processor_seconds": 2.0}
    mutant = runs.mutant(MUTANTS[0], "cpu")
    runs.keep(mutant, Done(mutant.job, result(caught=False), 1.0))
    assert runs.find(mutant) is None


def test_a_kept_result_is_not_made_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def work(job: jobs.Job, _: Any) -> Done:
        made.append(str(job))
        return Done(job, result(), 1.0)

    monkeypatch.setattr(jobs, "work", work)
    run = runs.implementation("pyimpl-state", "float64", "cpu")
    assert runs.get(run, list) == runs.get(run, list)
    assert made == ["pyimpl-state float64"]
