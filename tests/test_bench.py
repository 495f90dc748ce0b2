"""The benchmark of the forward pass: that it runs, and what it says of misuse."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "forward.py"
SMALL = ["--device", "cpu", "--lengths", "8", "--head-dims", "4", "--heads", "1", "--repeats", "1"]


def bench(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_it_measures_and_writes_the_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench(monkeypatch, *SMALL, "--json", tmp_path / "bench.json")
    records = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    assert [r["is_causal"] for r in records] == [False, True]
    assert len(capsys.readouterr().out.splitlines()) == 3 + len(records)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--backend", "cudnn"], "argument --backend: invalid choice: 'cudnn'"),
        (["--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["--json", "/nowhere/bench.json"], "/nowhere/bench.json cannot be written: No such file"),
        (["--repeats", "0"], "argument --repeats: '0' is not a whole number from 1 on"),
        (["--dtypes", "float64"], "argument --dtypes: invalid choice: 'float64'"),
    ],
)
def test_misuse_is_one_sentence_and_status_2(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        bench(monkeypatch, *SMALL, *arguments)
    said = capsys.readouterr()
    assert end.value.code == 2
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_cuda_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as end:
        bench(monkeypatch, *SMALL, "--device", "cuda")
    assert end.value.code == 2
    assert "PyTorch has no CUDA device here" in capsys.readouterr().err


def test_a_backend_that_does_not_take_the_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        bench(monkeypatch, *SMALL, "--head-dims", "300", "--backend", "triton")
    assert end.value.code == 2
    assert "argument --backend: " in capsys.readouterr().err
