"""All that is written and committed: current, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.pages import generated_tests, written
from bridge.source import lean_imports

ROOT = Path(__file__).resolve().parents[3]


def test_everything_is_current() -> None:
    wanted = {**written.texts(ROOT), **lean_imports.texts(ROOT)}
    assert written.stale(ROOT, wanted) == []
    differing = [name for name, text in wanted.items() if (ROOT / name).read_text("utf-8") != text]
    assert differing == [], "run .venv/bin/python -m bridge pages"


def test_what_nothing_makes_any_more_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / generated_tests.FOLDER
    folder.mkdir(parents=True)
    for name in ("test_gone.py", "generated_checks.py"):
        (folder / name).write_text("")
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    (tmp_path / "docs" / "examples" / "gone.md").write_text("")
    monkeypatch.setattr(written, "texts", lambda _: {"tests/generated/test_new.py": "new"})
    gone = ["docs/examples/gone.md", "tests/generated/test_gone.py"]
    changed = ["tests/generated/test_new.py", *gone]
    assert written.write_all(tmp_path) == changed
    assert sorted(p.name for p in folder.iterdir()) == ["generated_checks.py", "test_new.py"]
    assert written.write_all(tmp_path) == []
