from __future__ import annotations

import io
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bridge.report.verify import Verification
from bridge.source.excerpt import SourceError

ROOT = Path(__file__).resolve().parents[3]


def test_stages_that_were_not_run_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=200, quiet=False, file=io.StringIO())
    verification = Verification(tmp_path, console)

    def none() -> dict[str, Any]:
        raise SourceError("There is no Lean.")

    monkeypatch.setattr(verification.library, "find", none)
    monkeypatch.setattr(verification, "vectors", lambda made: none())
    monkeypatch.setattr(verification, "kernels", lambda: {"ok": True})
    assert not verification.run()
    text = console.export_text()
    assert "✘ Lean" in text
    assert "There is no Lean." in text
    assert "– Mutants: not run, since a stage before it failed" in text


def test_one_stage_alone_is_judged_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(record=True, width=200, quiet=False, file=io.StringIO())
    for good in (True, False):
        verification = Verification(tmp_path, console)
        monkeypatch.setattr(verification, "mutants", lambda good=good: {"ok": good})
        assert verification.run(("mutants",)) is good
        assert list(verification.report) == ["mutants"]
    assert "not run" not in console.export_text()


def test_a_family_is_done_when_it_is_made_and_recomputed(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "vectors"
    folder.mkdir(parents=True)
    for name in ("one", "two", "three", "index"):
        (folder / f"{name}.json").touch()
    verification = Verification(tmp_path, Console(quiet=True))
    with verification.progress.bar("Vectors") as bar:
        verification.bars["vectors"] = bar
        verification.vectors_reached(recomputed=3)
        assert (bar.done, bar.total) == (0, 3)
        verification.vectors_reached(made=2)
        assert (bar.done, bar.total) == (2, 3)


def test_an_edit_of_what_reads_vectors_has_lean_write_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("Attention", "tests/vectors"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("Attention.lean", "lakefile.lean"):
        (tmp_path / file).touch()
    shutil.copytree(ROOT / "bridge", tmp_path / "bridge")
    written: list[str] = []

    def run(module: str, arguments: list[str]) -> None:
        written.append(module)
        shutil.copy(ROOT / "tests" / "vectors" / "one-key.json", arguments[0])

    verification = Verification(tmp_path, Console(quiet=True))
    lean = SimpleNamespace(kind="none", version="0", run=run)
    monkeypatch.setattr(verification.library, "_lean", lean)
    missing = [
        f"{file}.json is made by the Lean definitions and is not committed"
        for file in ("index", "one-key")
    ]
    assert verification.vectors_made() == (missing, False)
    processes = len(written)
    assert processes > 0
    assert verification.vectors_made() == (missing, True)
    # The index is made anew, since the files' check is another.
    for edited, times in (("format/fields", 1), ("lean_files", 2)):
        with open(tmp_path / "bridge" / "vectors" / f"{edited}.py", "a") as source:
            source.write("# edited\n")
        assert verification.vectors_made() == (missing, False)
        assert len(written) == times * processes
