"""Kernels with one thing left out: the lines are there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.hour import what_if
from bench.hour.kernels import KERNELS
from bench.hour.what_if import ROOT, WHAT_IFS, WhatIf


@pytest.mark.parametrize("name", WHAT_IFS)
def test_one_line_is_written_otherwise(name: str, tmp_path: Path) -> None:
    folder = what_if.write(name, tmp_path)
    assert folder.parent == tmp_path
    change = WHAT_IFS[name]
    assert set(change.kernels) <= set(KERNELS)
    changed = []
    for path in sorted((ROOT / "pyimpl").rglob("*.py")):
        copied = folder / path.relative_to(ROOT)
        old, new = (x.read_text("utf-8").splitlines() for x in (path, copied))
        if old != new:
            ast.parse(copied.read_text("utf-8"))
            changed.append(path.relative_to(ROOT / "pyimpl" / "backends" / "kernels").as_posix())
            pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
            assert len(pairs) == 1
            assert change.old.strip() in pairs[0][0]
            assert change.new.strip() in pairs[0][1]
    assert changed == [change.file]


def test_a_line_that_is_no_longer_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WHAT_IFS, "gone", WhatIf("parts/loop.py", "p = tl.exp3(s)", "p = s"))
    with pytest.raises(ValueError, match=r"parts/loop.py has 'p = tl.exp3\(s\)' 0 times, not once"):
        what_if.write("gone", tmp_path)
