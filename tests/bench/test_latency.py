"""The time of the host: the report, and the refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from bench.latency import __main__ as latency
from bench.latency.stand_in import build


def test_a_call_is_told_in_units_of_the_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def lasts(seconds: float) -> latency.Call:
        def call() -> None:
            clock[0] += seconds

        return call

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    found = latency.measure(lasts(3e-5), lasts(1e-5), lasts(1.0))
    assert found == {"us": 30.0, "bare_us": 10.0, "ratio": 3.0}


def test_the_table_has_a_row_for_each_call() -> None:
    one = {"kernels": 2, "us": 41.3, "bare_us": 3.71, "ratio": 11.1, "not_kept_us": 155.0,
           "not_kept_ratio": 41.8}  # fmt: skip
    found = {"python": "3.12", "torch": "2.13", "triton": "3.7", "device": None,
             "calls": {"decode": one}}  # fmt: skip
    row, versions = latency.table(found).splitlines()[-2:]
    assert row.split() == ["decode", "2", "41.3", "11.1", "3.71", "155.0", "41.8"]
    assert versions == "python 3.12, torch 2.13, triton 3.7"
    found |= {"device": "NVIDIA H100", "calls": {"decode": one | {"kernels": None}}}
    heading, *_, row, _ = latency.table(found).splitlines()
    assert heading.startswith("Microseconds of the host for a call, on NVIDIA H100: ")
    assert row.split()[:3] == ["decode", "–", "41.3"]


def test_where_triton_interprets_there_is_nothing_to_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert latency.main([]) == 2
    assert capsys.readouterr().err == (
        "bench.latency: Triton interprets here: unset TRITON_INTERPRET\n"
    )


def test_a_gpu_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert latency.main(["--gpu"]) == 2
    assert capsys.readouterr().err == "bench.latency: there is no GPU for --gpu\n"


def test_a_compiler_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="there is no C compiler 'no-such-compiler': set CC"):
        build(tmp_path)


@pytest.mark.thorough
def test_each_call_starts_its_kernels(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    out = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.latency", "--json", out],
        cwd=Path(__file__).resolve().parents[2], env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text("utf-8"))["calls"]
    assert {name: one["kernels"] for name, one in found.items()} == {
        "attention": 1, "attention, Gluon": 1, "forward, autograd": 1, "backward": 3,
        "backward, Gluon": 3, "attention, ALiBi": 1, "varlen": 1, "decode": 2, "decode, paged": 2,
    }  # fmt: skip
    for one in found.values():
        # By a wide margin: a launch that is kept is not made again.
        assert one["ratio"] < one["not_kept_ratio"]
