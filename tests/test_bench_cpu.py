"""The benchmark on the CPU: that it runs, and what it says of misuse."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "cpu.py"
SMALL = ["--length", "8", "--head-dim", "4", "--heads", "1", "--repeats", "1", "--window", "2"]


def bench(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_it_measures_and_writes_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench(monkeypatch, *SMALL, "--output", tmp_path / "cpu.txt")
    said = capsys.readouterr().out
    assert (tmp_path / "cpu.txt").read_text("utf-8") == said
    names = ["full", "causal", "window (2, 0)", "window (2, 2)", "boolean mask"]
    assert [line[:19].strip() for line in said.splitlines()[4:]] == names


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--dtype", "float64"], "argument --dtype: invalid choice: 'float64'"),
        (["--repeats", "0"], "argument --repeats: '0' is not a whole number from 1 on"),
        (["--output", "/nowhere/cpu.txt"], "/nowhere/cpu.txt cannot be written: No such file"),
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
