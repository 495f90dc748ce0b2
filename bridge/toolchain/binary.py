"""Read and write the binary format of WebAssembly: numbers, names, sections.

Source: WebAssembly core specification, chapter 5 (binary format).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.toolchain.errors import ToolchainError

TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT = 1, 2, 3, 4, 5, 6, 7
ELEMENT, CODE, DATA = 9, 10, 11
# The kinds of an import or export.
KIND_FUNCTION, KIND_TABLE, KIND_MEMORY, KIND_GLOBAL = 0, 1, 2, 3


class Reader:
    """LEB128 numbers and names of a WebAssembly binary."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def uleb128(self) -> int:
        return self._leb128()[0]

    def sleb128(self) -> int:
        value, bits = self._leb128()
        return value - (1 << bits) if value >> (bits - 1) else value

    def _leb128(self) -> tuple[int, int]:
        """A number in groups of 7 bits, the lowest first, and how many bits those are."""
        value = bits = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << bits
            bits += 7
            if byte < 128:
                return value, bits

    def string(self) -> bytes:
        """A name, or another vector of bytes."""
        length = self.uleb128()
        self.at += length
        return self.data[self.at - length : self.at]

    def skip_import(self, kind: int) -> None:
        """What an import of a kind other than a function is."""
        if kind == KIND_TABLE:
            self.byte()
            self.limits()
        elif kind == KIND_MEMORY:
            self.limits()
        elif kind == KIND_GLOBAL:
            self.at += 2
        else:  # tag
            self.byte()
            self.uleb128()

    def limits(self) -> tuple[int, int, int | None]:
        flags = self.byte()
        lowest = self.uleb128()
        return flags, lowest, self.uleb128() if flags & 1 else None

    def table(self) -> tuple[int, int, int | None]:
        """The limits of the only table, of functions."""
        expect(self.uleb128() == 1 and self.byte() == 0x70, "not one table of functions")
        return self.limits()

    def elements(self) -> tuple[int, list[int]]:
        """The place in the table at which the functions start, and the functions."""
        expect(self.uleb128() == 1 and self.uleb128() == 0, "more than one element segment")
        expect(self.byte() == 0x41, "an element offset that is no constant")
        offset = self.sleb128()
        self.end_of_expression()
        return offset, [self.uleb128() for _ in range(self.uleb128())]

    def end_of_expression(self) -> None:
        expect(self.byte() == 0x0B, "a constant expression of more than one instruction")


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise ToolchainError(f"lean.wasm is not laid out as expected ({what})")


def leb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 127
        value >>= 7
        out.append(byte | 128 if value else byte)
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 127
        value >>= 7
        if value == -(byte >> 6):  # the rest is the sign of this byte
            return bytes([*out, byte])
        out.append(byte | 128)


def vector(items: Sequence[bytes]) -> bytes:
    return leb(len(items)) + b"".join(items)


def name(text: str) -> bytes:
    return leb(len(text)) + text.encode("ascii")


def section(number: int, contents: bytes) -> bytes:
    return bytes([number]) + leb(len(contents)) + contents


def sections(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(id, start of the contents, length) of each section."""
    expect(data[:4] == b"\0asm", "no WebAssembly header")
    reader = Reader(data, 8)
    while reader.at < len(data):
        number = reader.byte()
        length = reader.uleb128()
        yield number, reader.at, length
        reader.at += length
