"""The command `translate --kernels`: the files it writes, its comparison and its messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bridge import command
from bridge.translate import translate
from bridge.ttir import texts

FILE = f"{texts.FOLDER}/Some.lean"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose kernels come to one file, with the file and one that is no more."""
    (tmp_path / texts.FOLDER).mkdir(parents=True)
    (tmp_path / "lakefile.lean").touch()
    for name in (FILE, f"{texts.FOLDER}/Old.lean"):
        (tmp_path / name).write_text("old\n")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(texts, "is_compared", lambda: True)
    monkeypatch.setattr(texts, "texts", lambda: {FILE: "new\n"})
    monkeypatch.setattr(texts, "differing_launches", lambda text: [])
    return tmp_path


def run(*options: str) -> Any:
    return CliRunner().invoke(translate, ["--kernels", *options])


def test_what_differs_is_named_and_nothing_written(checkout: Path) -> None:
    done = run("--check")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        *(f"{texts.FOLDER}/{name}.lean differs from the compiled kernel"
          for name in ("Old", "Some")),
        "Error: run .venv/bin/python -m bridge translate --kernels",
    ]  # fmt: skip
    assert (checkout / FILE).read_text() == "old\n"


def test_what_differs_is_written_and_what_is_no_more_goes(checkout: Path) -> None:
    done = run()
    assert done.exit_code == 0
    assert (checkout / FILE).read_text() == "new\n"
    assert not (checkout / texts.FOLDER / "Old.lean").exists()
    assert run("--check").output == "1 files are current\n"


def test_a_launch_of_another_text_fails(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(texts, "TEXTS", texts.TEXTS[:1])
    monkeypatch.setattr(texts, "differing_launches", lambda text: ["fp16, 64"])
    for options in (("--check",), ()):
        done = run(*options)
        assert done.exit_code == 1
        assert "another text than that of its class is launched: fp16, 64" in done.output


def test_another_triton_is_not_compared(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "is_compared", lambda: False)
    done = run("--check")
    assert done.exit_code == 0
    assert done.output.startswith("not compared: ")


def test_a_file_that_cannot_be_written_is_one_sentence(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "write_whole", full)
    done = run()
    assert done.exit_code == 2
    assert "Some.lean cannot be written: No space left on device" in done.output
