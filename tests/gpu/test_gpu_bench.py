"""The benchmark on a GPU: its clock, its inputs, and its peers. Run alone: `python -m pytest
tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from gpu_device import DEVICE, needs_gpu, skip_elsewhere

from bench import __main__ as command
from bench.timing import EventClock, Runner

skip_elsewhere()


@needs_gpu
def test_the_clock_sees_the_work_and_not_only_its_issue() -> None:
    clock = EventClock(torch.device(DEVICE))
    small, large = (torch.randn(n, n, device=DEVICE) for n in (64, 4096))
    for matrix in (small, large):
        clock(Runner(lambda matrix=matrix: matrix @ matrix))
    sample = clock(Runner(lambda: large @ large))
    assert sample.seconds > clock(Runner(lambda: small @ small)).seconds
    assert sample.issue < sample.seconds


@needs_gpu
def test_small_cases_run_against_every_peer(tmp_path: Path) -> None:
    """Each peer is timed or says why not; none is wrong, and ours runs everywhere."""
    found = tmp_path / "run.json"
    command.main(
        ["--lengths", "256", "--head-dims", "64", "--dtypes", "bfloat16", "--heads", "8",
         "--batch", "2", "--masks", "full", "causal", "window", "boolean", "--page-size", "256",
         "--repeats", "3", "--json", str(found)]
    )  # fmt: skip
    cases = json.loads(found.read_text("utf-8"))["cases"]
    # Four masks forward, twice four backward, decode with and without pages.
    assert len(cases) == 14
    for one in cases:
        statuses = {result["name"]: result["status"] for result in one["results"]}
        assert statuses["pyimpl"] == "timed"
        assert "wrong" not in statuses.values()
        for result in one["results"]:
            assert result["status"] == "timed" or result["reason"]
