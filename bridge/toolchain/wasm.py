"""Shrink `lean.wasm` so that it starts in a second: 200,000 of its exports become a symbol table.

The package exports every Lean function by name, for the interpreter to look it up with `dlsym`.
Node makes a JavaScript object of each export, and `lean.js` a line of code of each: a start takes
minutes. Here the functions go into the function table (element section), and a sorted file beside
the module says which name has which table index. The code section is copied byte for byte.

Layout: WebAssembly core specification, section 5.5 (binary format of modules).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bridge.toolchain.errors import ToolchainError

_IMPORT, _TABLE, _GLOBAL, _EXPORT, _ELEMENT = 2, 4, 6, 7, 9
_FUNCTION, _GLOBAL_KIND = 0, 3
# The symbols that only `dlsym` asks for: Lean's functions, and C and C++ functions of its runtime.
_LEAN_SYMBOL = re.compile(rb"(l_|_l_|_Z|initialize_|_init_|lp_|lean_|LEAN)")


@dataclass(frozen=True)
class Export:
    name: bytes
    kind: int
    index: int


@dataclass(frozen=True)
class Shrunk:
    """The smaller module, its symbol file, and the names of the exports that it kept."""

    module: bytes
    symbols: bytes
    kept: frozenset[str]


class _Reader:
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

    def name(self) -> bytes:
        length = self.uleb128()
        self.at += length
        return self.data[self.at - length : self.at]

    def limits(self) -> tuple[int, int, int | None]:
        flags = self.byte()
        lowest = self.uleb128()
        return flags, lowest, self.uleb128() if flags & 1 else None

    def end_of_expression(self) -> None:
        _expect(self.byte() == 0x0B, "a constant expression of more than one instruction")


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise ToolchainError(f"lean.wasm is not laid out as expected ({what})")


def _leb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 127
        value >>= 7
        out.append(byte | 128 if value else byte)
        if not value:
            return bytes(out)


def _sections(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(id, start of the contents, length) of each section."""
    _expect(data[:4] == b"\0asm", "no WebAssembly header")
    reader = _Reader(data, 8)
    while reader.at < len(data):
        number = reader.byte()
        length = reader.uleb128()
        yield number, reader.at, length
        reader.at += length


def _imports(reader: _Reader) -> tuple[int, set[bytes]]:
    """How many globals are imported, and the names that the dynamic linker's offset table needs."""
    num_globals, needed = 0, set()
    for _ in range(reader.uleb128()):
        module, field, kind = reader.name(), reader.name(), reader.byte()
        if module.startswith(b"GOT"):
            needed.add(field)
        if kind == _FUNCTION:
            reader.uleb128()
        elif kind == 1:  # table
            reader.byte()
            reader.limits()
        elif kind == 2:  # memory
            reader.limits()
        elif kind == _GLOBAL_KIND:
            reader.at += 2
            num_globals += 1
        else:  # tag
            reader.byte()
            reader.uleb128()
    return num_globals, needed


def _globals(reader: _Reader, first: int) -> dict[int, int]:
    """Global index → constant value, for integer globals."""
    values = {}
    for index in range(first, first + reader.uleb128()):
        reader.at += 2
        instruction = reader.byte()
        if instruction in (0x41, 0x42):  # i32.const, i64.const
            values[index] = reader.sleb128()
        elif instruction == 0x23:  # global.get
            reader.uleb128()
        elif instruction in (0x43, 0x44):  # f32.const, f64.const
            reader.at += 4 if instruction == 0x43 else 8
        else:
            _expect(False, f"global {index} starts with instruction {instruction:#x}")
        reader.end_of_expression()
    return values


def _exports(reader: _Reader) -> list[Export]:
    return [Export(reader.name(), reader.byte(), reader.uleb128()) for _ in range(reader.uleb128())]


def _elements(reader: _Reader) -> tuple[int, list[int]]:
    """The table index at which the functions start, and the functions."""
    _expect(reader.uleb128() == 1 and reader.uleb128() == 0, "more than one element segment")
    _expect(reader.byte() == 0x41, "an element offset that is no constant")
    offset = reader.sleb128()
    reader.end_of_expression()
    return offset, [reader.uleb128() for _ in range(reader.uleb128())]


def symbol_file(addresses: dict[bytes, int]) -> bytes:
    """Count, then (offset of the name, its length, address) sorted by name, then the names."""
    index, names = bytearray(), bytearray()
    for name, address in sorted(addresses.items()):
        index += struct.pack("<III", len(names), len(name), address)
        names += name
    return struct.pack("<I", len(addresses)) + bytes(index) + bytes(names)


def shrink(data: bytes, used_by_javascript: set[str]) -> Shrunk:
    """Move all exports that only `dlsym` asks for into the table and the symbol file.

    Raises ToolchainError for a module that is laid out in another way than the one this was made
    for.
    """
    places = {number: start for number, start, _ in _sections(data) if number}
    num_imported, needed = _imports(_Reader(data, places[_IMPORT]))
    values = _globals(_Reader(data, places[_GLOBAL]), num_imported)
    exports = _exports(_Reader(data, places[_EXPORT]))
    offset, functions = _elements(_Reader(data, places[_ELEMENT]))
    table = _Reader(data, places[_TABLE])
    _expect(table.uleb128() == 1 and table.byte() == 0x70, "not one table of functions")
    flags, table_size, table_limit = table.limits()
    _expect(offset + len(functions) == table_size, "a table that the elements do not fill")

    kept = [
        e
        for e in exports
        if e.kind not in (_FUNCTION, _GLOBAL_KIND)
        or e.name in needed
        or e.name.decode() in used_by_javascript
        or not _LEAN_SYMBOL.match(e.name)
    ]
    place_of: dict[int, int] = {}
    for place, function in enumerate(functions):
        place_of.setdefault(function, offset + place)
    addresses = {}
    for export in exports:
        if export.kind == _FUNCTION:
            if export.index not in place_of:
                place_of[export.index] = offset + len(functions)
                functions.append(export.index)
            addresses[export.name] = place_of[export.index]
        elif export.kind == _GLOBAL_KIND and export.index in values:
            addresses[export.name] = values[export.index] & 0xFFFFFFFF
    table_size = offset + len(functions)

    out = bytearray(data[:8])
    for number, start, length in _sections(data):
        contents = data[start : start + length]
        if number == _TABLE:
            limit = b"" if table_limit is None else _leb(max(table_limit, table_size))
            contents = b"\1\x70" + bytes([flags]) + _leb(table_size) + limit
        elif number == _EXPORT:
            contents = _leb(len(kept)) + b"".join(
                _leb(len(e.name)) + e.name + bytes([e.kind]) + _leb(e.index) for e in kept
            )
        elif number == _ELEMENT:
            # The offset is small and not negative: one byte of LEB128.
            _expect(0 <= offset < 64, "an element offset of more than one byte")
            contents = b"\1\0\x41" + bytes([offset]) + b"\x0b" + _leb(len(functions))
            contents += b"".join(map(_leb, functions))
        out += bytes([number]) + _leb(len(contents)) + contents
    return Shrunk(bytes(out), symbol_file(addresses), frozenset(e.name.decode() for e in kept))
