"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.files import why_not_writable, write_whole


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    assert why_not_writable(path) is None
    assert path.read_text() == "before"
    write_whole(path, b"after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_asking_makes_no_file(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path / "a.txt") is None
    assert list(tmp_path.iterdir()) == []


def test_why_not(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path) == "Is a directory"
    assert why_not_writable(tmp_path / "nowhere" / "a.txt") == "No such file or directory"


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")

    def fails(self: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="no"):
        write_whole(path, b"after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
