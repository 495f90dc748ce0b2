"""The `lake` of the environment, and which Lean is taken."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from bridge.limits import Limit
from bridge.toolchain import lake
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.find import native_lake
from bridge.toolchain.messages import Message, ModuleResult


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "arguments", [["update"], ["build", "--old"], ["exe", "x"], ["clean", "x"]]
)
def test_what_it_does_not_have(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lake.run(arguments) == 2
    said = capsys.readouterr().err
    assert f"{' '.join(arguments)!r} is not a command" in said
    assert "lake build" in said


def test_no_lakefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolchainError, match=r"no lakefile\.lean in"):
        lake.package_root()


def test_clean_removes_what_was_built_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build" / "lean" / "stock").mkdir(parents=True)
    (tmp_path / "build" / "report.json").write_text("{}")
    (tmp_path / "lakefile.lean").write_text("")
    monkeypatch.chdir(tmp_path)
    assert lake.run(["clean"]) == 0
    assert os.listdir(tmp_path / "build") == ["report.json"]


def test_lines_of_a_module_that_failed() -> None:
    message = Message("error", "A/B.lean", 12, 4, "unsolved goals\n⊢ False")
    failed = ModuleResult("A.B", False, seconds=1.23, messages=(message,))
    assert list(lake.describe(failed, "[3/8] ")) == [
        "✖ [3/8] Building A.B (1.2s)",
        "error: A/B.lean:12:4: unsolved goals\n⊢ False",
        "error: Lean exited with code 1",
    ]


def test_a_working_lake_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = program(tmp_path / "broken" / "lake", "exit 1")
    ours = program(tmp_path / "ours" / "lake", "# from bridge.toolchain.lake import main")
    works = program(tmp_path / "works" / "lake", "echo Lake version 5")
    path = [broken.parent, ours.parent]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))
    assert native_lake() is None
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, [*path, works.parent])))
    assert native_lake() == works


@pytest.mark.parametrize("there", [True, False])
def test_which_lean_can_be_chosen(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = program(tmp_path / "lake", "echo Lake version 5")
    monkeypatch.setenv("PATH", str(works.parent) if there else "")
    monkeypatch.setenv("ATTENTION_LEAN", "embedded")
    assert native_lake() is None
    monkeypatch.setenv("ATTENTION_LEAN", "native")
    if there:
        assert native_lake() == works
    else:
        with pytest.raises(ToolchainError, match="native, and there is no working lake on PATH"):
            native_lake()
    monkeypatch.setenv("ATTENTION_LEAN", "wasm")
    with pytest.raises(ToolchainError, match="must be native or embedded, or not set, not 'wasm'"):
        native_lake()


def test_a_lake_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "lake", "exec /bin/sleep 1000")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    # Under its name in the package there is the function.
    monkeypatch.setattr(sys.modules[native_lake.__module__], "_VERSION_LIMIT", Limit(60, 0.5))
    with pytest.raises(ToolchainError, match=r"no processor time.*ATTENTION_LEAN=embedded"):
        native_lake()


def test_the_console_script_of_this_environment_is_not_a_native_lake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = program(tmp_path / "bin" / "lake", "echo mine").parent
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(folder))
    assert shutil.which("lake") is not None
    assert native_lake() is None
