"""The benchmark on a GPU: its clock, its inputs, and its peers. Run alone: `python -m pytest
tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from gpu_device import DEVICE, needs_gpu, skip_elsewhere

from bench import __main__ as command
from bench.hour.candidates import SMALL, default, tuned_cases
from bench.hour.kernels import KERNELS
from bench.timing import EventClock, Runner, capture_graph
from pyimpl.backends.kernels.parts.launch import capability

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


@needs_gpu
def test_a_captured_call_does_the_same() -> None:
    x = torch.zeros(4, device=DEVICE)
    runner = capture_graph(Runner(lambda: x.add_(1.0)))
    before = x.clone()
    assert torch.equal(runner.run(), before + 1.0)
    assert EventClock(torch.device(DEVICE))(runner).seconds > 0.0


@needs_gpu
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_compiled_without_the_device_is_what_it_runs(name: str, tmp_path: Path) -> None:
    found = capability(torch.device(DEVICE))
    one = default(name, tuned_cases(name, SMALL)[0], found)
    given = {
        "candidate": one.plain, "sizes": asdict(SMALL), "capability": found, "timed": True,
        "capture": True,
    }  # fmt: skip

    def do(kind: str, **environment: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "bench.hour.worker"], check=True, capture_output=True, text=True,
            input=json.dumps({"kind": kind, "given": given}) + "\n", cwd=Path(__file__).parents[2],
            env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path), **environment},
        )  # fmt: skip
        return str(json.loads(ended.stdout.splitlines()[-1])["status"])

    assert do("compile", CUDA_VISIBLE_DEVICES="") == "ok"
    compiled = sorted(tmp_path.glob("*/*.cubin"))
    assert compiled
    assert do("candidate") == "ok"
    assert sorted(tmp_path.glob("*/*.cubin")) == compiled
