"""The stage that compares the kernels' Lean texts with those that Triton compiles."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from checkout_copy import copy_of
from edits import edit
from rich.console import Console

from bridge.report import kernels
from bridge.report.verify import Verification

ROOT = Path(__file__).resolve().parents[3]
TEXTS = "bridge/ttir/texts.py"
SENTENCE = "Error: run .venv/bin/python -m bridge translate --kernels"


def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, dict[str, Any], str]:
    """Whether the stage holds in this checkout, its section, and its output."""
    monkeypatch.setenv("PYTHONPATH", str(folder))
    # As a process has it that interprets kernels; the one that compares must not.
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    console = Console(width=200, file=io.StringIO(), record=True)
    verification = Verification(folder, console)
    good = verification.run(("kernels",))
    return good, verification.report["kernels"], console.export_text()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    copy_of(ROOT, tmp_path / "copy", built=False)
    return tmp_path / "copy"


@pytest.mark.thorough
def test_another_text_than_the_compiled_one_fails(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = "Attention/Kernel/Generated/Causal.lean"
    lanes = "∀ i < a.BLOCK_{}, FitsI64 (Full.found_5 "
    edit(copied / changed, lanes.format("M"), lanes.format("N"))
    # Of the launches of each text one: the others say nothing of the file.
    edit(copied / TEXTS, "return (16, 16), (32, 32),", "return (16, 16),  # (32, 32),")
    edit(copied / TEXTS, "return (80, 80), (96, 96),", "return (80, 80),  # (96, 96),")
    good, section, printed = stage(copied, monkeypatch)
    assert not good
    assert section["problems"] == [f"{changed} differs from the compiled kernel", SENTENCE]
    assert "✘ Kernels: the compiled text is the proved text" in printed
    assert SENTENCE in printed
    # A failure is looked at again.
    assert not list((copied / "build" / "cache").glob("kernels-*"))


@pytest.mark.thorough
def test_with_another_triton_nothing_is_compared(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A text that differs, which would be noticed.
    causal = copied / "Attention/Kernel/Generated/Causal.lean"
    edit(causal, "Flt.mul (Causal.loop2.y_1", "Flt.add (Causal.loop2.y_1")
    edit(copied / TEXTS, 'COMPARED = ("3.6", "3.7")', 'COMPARED = ("1.9",)')
    good, section, printed = stage(copied, monkeypatch)
    assert good
    assert not section["compared"]
    assert "not compared: Triton " in printed
    # Kept, and said again.
    monkeypatch.setattr(kernels, "compare", pytest.fail)
    good, section, printed = stage(copied, monkeypatch)
    assert good
    assert section["kept"]
    assert "not compared: Triton " in printed


@pytest.mark.parametrize(
    "file",
    [
        "pyimpl/backends/kernels/parts/loop.py",
        "bridge/ttir/lean.py",
        "bridge/ttir/templates/generated.lean.jinja",
        "Attention/Kernel/Generated/Full.lean",
    ],
)
def test_what_is_kept_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    for source in kernels.SOURCES:
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(ROOT / source, tmp_path / source)
    compared = []

    def compare(root: Path) -> dict[str, Any]:
        compared.append(root)
        return {"ok": True, "compared": True, "said": "as it should be"}

    monkeypatch.setattr(kernels, "compare", compare)
    verification = Verification(tmp_path, Console(quiet=True))
    assert [verification.kernels()["kept"] for _ in range(2)] == [False, True]
    top = next(source for source in kernels.SOURCES if file.startswith(f"{source}/"))
    (tmp_path / top).unlink()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("another", "utf-8")
    assert not verification.kernels()["kept"]
    assert len(compared) == 2
