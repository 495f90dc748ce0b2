"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.files import why_not_writable, write_changed, write_whole


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    assert why_not_writable(path) is None
    assert path.read_text() == "before"
    write_whole(path, b"after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_text_that_utf8_cannot_hold_is_written(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "é\ud800")
    assert (tmp_path / "a.txt").read_bytes() == "é?".encode()


def test_a_device_stays_one() -> None:
    write_whole(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.txt"
    assert write_changed(path, "text")
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert not write_changed(path, "text")
    assert not write_changed(path, b"text")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert write_changed(path, "other")
    assert path.read_text() == "other"
    assert list(path.parent.iterdir()) == [path]


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
