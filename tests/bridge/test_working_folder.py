"""No process of the judge's imports files of the working folder (`bridge.working_folder`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.conformance.functions.features import CallableError
from bridge.conformance.judging import parallel
from bridge.conformance.sandbox.session import Session
from bridge.vectors.model.attention import Family

# It says that it was imported.
HOSTILE = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"


def plant(folder: Path, *names: str) -> Path:
    """Modules in a folder, under these names; returns the file that says that one was imported."""
    for name in names:
        (folder / f"{name}.py").write_text(HOSTILE)
    return folder / "imported"


def test_a_command_is_not_made_of_modules_of_that_folder(tmp_path: Path) -> None:
    said = plant(tmp_path, "psutil", "rich", "numpy", "torch")
    command = [sys.executable, "-m", "bridge", "conform", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout
    assert not said.exists()


def length(argument: int, families: object) -> int:
    return argument


@pytest.mark.thorough
def test_nor_are_the_processes_that_judge_several_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """multiprocessing's imports, too, of which some are Python's own."""
    said = plant(tmp_path, "pickle", "psutil", "torch")
    monkeypatch.chdir(tmp_path)
    found: list[int] = []
    none: tuple[Family, ...] = ()
    with parallel.Workers(none, "cpu", most=1) as workers:
        workers.each(length, [3], found.append)
    assert found == [3]
    assert not said.exists()


def test_a_module_there_can_be_judged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text("def f(query, key, value): return value + 0\n")
    with (
        pytest.raises(CallableError, match="No module named 'of_mine'"),
        Session("of_mine:f") as one,
    ):
        one.open()
    monkeypatch.chdir(tmp_path)
    with Session("of_mine:f", required=True) as one:
        one.open()
    assert one.parameters is not None
    assert "of_mine" not in sys.modules
