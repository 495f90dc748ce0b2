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
from dataclasses import dataclass

from bridge.toolchain.binary import (
    ELEMENT,
    EXPORT,
    GLOBAL,
    IMPORT,
    KIND_FUNCTION,
    KIND_GLOBAL,
    TABLE,
    Reader,
    expect,
    leb,
    section,
    sections,
)

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


def _imports(reader: Reader) -> tuple[int, set[bytes]]:
    """How many globals are imported, and the names that the dynamic linker's offset table needs."""
    num_globals, needed = 0, set()
    for _ in range(reader.uleb128()):
        module, field, kind = reader.string(), reader.string(), reader.byte()
        if module.startswith(b"GOT"):
            needed.add(field)
        num_globals += kind == KIND_GLOBAL
        if kind == KIND_FUNCTION:
            reader.uleb128()
        else:
            reader.skip_import(kind)
    return num_globals, needed


def _globals(reader: Reader, first: int) -> dict[int, int]:
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
            expect(False, f"global {index} starts with instruction {instruction:#x}")
        reader.end_of_expression()
    return values


def _exports(reader: Reader) -> list[Export]:
    return [
        Export(reader.string(), reader.byte(), reader.uleb128()) for _ in range(reader.uleb128())
    ]


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
    places = {number: start for number, start, _ in sections(data) if number}
    num_imported, needed = _imports(Reader(data, places[IMPORT]))
    values = _globals(Reader(data, places[GLOBAL]), num_imported)
    exports = _exports(Reader(data, places[EXPORT]))
    offset, functions = Reader(data, places[ELEMENT]).elements()
    flags, table_size, table_limit = Reader(data, places[TABLE]).table()
    expect(offset + len(functions) == table_size, "a table that the elements do not fill")

    kept = [
        e
        for e in exports
        if e.kind not in (KIND_FUNCTION, KIND_GLOBAL)
        or e.name in needed
        or e.name.decode() in used_by_javascript
        or not _LEAN_SYMBOL.match(e.name)
    ]
    place_of: dict[int, int] = {}
    for place, function in enumerate(functions):
        place_of.setdefault(function, offset + place)
    addresses = {}
    for export in exports:
        if export.kind == KIND_FUNCTION:
            if export.index not in place_of:
                place_of[export.index] = offset + len(functions)
                functions.append(export.index)
            addresses[export.name] = place_of[export.index]
        elif export.kind == KIND_GLOBAL and export.index in values:
            addresses[export.name] = values[export.index] & 0xFFFFFFFF
    table_size = offset + len(functions)

    out = bytearray(data[:8])
    for number, start, length in sections(data):
        contents = data[start : start + length]
        if number == TABLE:
            limit = b"" if table_limit is None else leb(max(table_limit, table_size))
            contents = b"\1\x70" + bytes([flags]) + leb(table_size) + limit
        elif number == EXPORT:
            contents = leb(len(kept)) + b"".join(
                leb(len(e.name)) + e.name + bytes([e.kind]) + leb(e.index) for e in kept
            )
        elif number == ELEMENT:
            # The offset is small and not negative: one byte of LEB128.
            expect(0 <= offset < 64, "an element offset of more than one byte")
            contents = b"\1\0\x41" + bytes([offset]) + b"\x0b" + leb(len(functions))
            contents += b"".join(map(leb, functions))
        out += section(number, contents)
    return Shrunk(bytes(out), symbol_file(addresses), frozenset(e.name.decode() for e in kept))
