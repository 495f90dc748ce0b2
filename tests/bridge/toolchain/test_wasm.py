"""Shrinking a module: exports become a symbol file, functions get a place in the table."""

from __future__ import annotations

import struct

import pytest

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.wasm import Shrunk, shrink

FUNCTION, GLOBAL = 0, 3


def leb(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def name(text: str) -> bytes:
    return leb(len(text)) + text.encode()


def section(number: int, *entries: bytes) -> bytes:
    contents = leb(len(entries)) + b"".join(entries)
    return bytes([number]) + leb(len(contents)) + contents


def module(elements: bytes = b"\0\x41\1\x0b\1\0") -> bytes:
    """Four functions, the first in the table at 1; one global is imported, another is 70,000."""
    body = b"\2\0\x0b"
    return b"".join(
        [
            b"\0asm\1\0\0\0",
            section(1, b"\x60\0\0"),
            section(2, name("GOT.func") + name("l_needed") + b"\3\x7f\1"),
            section(3, *[b"\0"] * 4),
            section(4, b"\x70\1\2\2"),
            section(6, b"\x7f\0\x41" + b"\xf0\xa2\4" + b"\x0b"),
            section(
                7,
                name("l_first") + bytes([FUNCTION, 0]),
                name("l_second") + bytes([FUNCTION, 1]),
                name("l_alias") + bytes([FUNCTION, 1]),
                name("l_needed") + bytes([FUNCTION, 2]),
                name("malloc") + bytes([FUNCTION, 3]),
                name("l_data") + bytes([GLOBAL, 1]),
            ),
            section(9, elements),
            section(10, *[body] * 4),
        ]
    )


def symbols(shrunk: Shrunk) -> dict[str, int]:
    data = shrunk.symbols
    (count,) = struct.unpack_from("<I", data)
    names = data[4 + 12 * count :]
    rows = [struct.unpack_from("<III", data, 4 + 12 * i) for i in range(count)]
    found = {names[at : at + length].decode(): address for at, length, address in rows}
    assert list(found) == sorted(found)
    return found


def test_what_stays_an_export_and_what_becomes_a_symbol() -> None:
    shrunk = shrink(module(), {"l_first"})
    # Used by JavaScript; needed by the dynamic linker; no name of Lean's.
    assert shrunk.kept == {"l_first", "l_needed", "malloc"}
    assert symbols(shrunk) == {
        "l_first": 1,
        "l_second": 2,
        "l_alias": 2,
        "l_needed": 3,
        "malloc": 4,
        "l_data": 70_000,
    }


def test_the_smaller_module() -> None:
    shrunk = shrink(module(), set()).module
    table, elements = section(4, b"\x70\1\5\5"), section(9, b"\0\x41\1\x0b\4\0\1\2\3")
    assert table in shrunk
    assert elements in shrunk
    assert module()[-section(10, *[b"\2\0\x0b"] * 4).__len__() :] in shrunk
    assert b"l_second" not in shrunk
    assert shrink(shrunk, {"l_needed"}).kept == {"l_needed", "malloc"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0elf\1\0\0\0", "no WebAssembly header"),
        (module(b"\1\x41\1\x0b\1\0"), "more than one element segment"),
        (module(b"\0\x23\1\x0b\1\0"), "an element offset that is no constant"),
        (module(b"\0\x41\1\x0b\2\0\1"), "a table that the elements do not fill"),
    ],
)
def test_another_layout_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ToolchainError, match=f"not laid out as expected \\({reason}\\)"):
        shrink(data, set())
