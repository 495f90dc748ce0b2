"""Stored objects by address, where the addresses of a file end and begin anew."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bridge.audit.second_kernel.olean import Module, OleanError


def write(path: Path, base: int, objects: bytes, root: int) -> Path:
    head = b"olean\x02" + bytes(74) + struct.pack("<II", base, root)
    path.write_bytes(head + objects)
    return path


def text(said: bytes) -> bytes:
    size = len(said) + 1
    return struct.pack("<iIIII", 0, 249 << 24, size, size, len(said)) + said + b"\0"


def test_a_file_may_lie_across_the_end_of_the_addresses(tmp_path: Path) -> None:
    base = 0xFFFFFFA0
    # The object begins 88 bytes behind the base; its content, past the last address.
    path = write(tmp_path / "A.olean", base, text(b"across"), (base + 88) & 0xFFFFFFFF)
    module = Module("A", [path])
    assert module.string(module.root) == "across"
    assert module.find((base + 96) & 0xFFFFFFFF)[1] == 24


def test_the_root_of_the_last_part_may_lie_in_an_earlier_one(tmp_path: Path) -> None:
    first = write(tmp_path / "A.olean", 0x1000, text(b"first"), 0x1058)
    empty = write(tmp_path / "A.olean.private", 0x2000, b"", 0x1058)
    module = Module("A", [first, empty])
    assert module.string(module.root) == "first"


def test_an_address_outside_and_an_object_of_another_kind_are_refused(tmp_path: Path) -> None:
    module = Module("A", [write(tmp_path / "A.olean", 0x1000, text(b"some"), 0x1058)])
    with pytest.raises(OleanError, match="points to 0x9000, which no part of it holds"):
        module.string(0x9000)
    with pytest.raises(OleanError, match="has an object 249 at 0x1058, not 246"):
        module.array(0x1058)
