"""Keep calls that may throw inside WebAssembly.

Emscripten has C++ call each function that may throw by an import `invoke_…`, a function of
`lean.js` with a `try` in it: WebAssembly calls JavaScript, which calls WebAssembly. A build spent a
seventh of its time so. Here these imports are functions of a second, small module, `calls.wasm`,
which catch what JavaScript throws by WebAssembly's own `try`. It holds the table of functions and
the pointer of the stack, which the two modules share; `lean.wasm` imports them in the place of its
own. The code section is copied byte for byte.

JavaScript drops the arguments that a function does not take, and C++ relies on it in some places
(`run_shell_main` gives Lean's main function one too many). WebAssembly ends there. So the small
module has a byte for each place of the table, the type of its function, and takes the way through
JavaScript where that is not the type of the call.

Layout: WebAssembly core specification, section 5.5; `try` and `catch_all`: the legacy exceptions,
which Node has since version 17.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.toolchain.binary import (
    CODE,
    DATA,
    ELEMENT,
    EXPORT,
    FUNCTION,
    GLOBAL,
    IMPORT,
    KIND_FUNCTION,
    KIND_GLOBAL,
    KIND_TABLE,
    MEMORY,
    TABLE,
    TYPE,
    Reader,
    expect,
    leb,
    name,
    section,
    sections,
    sleb,
    vector,
)

_HEADER = b"\0asm\1\0\0\0"
_PAGE = 65536
_I32, _I64, _F32, _F64 = 0x7F, 0x7E, 0x7D, 0x7C
# The instructions that the small module is made of.
_RETURN, _CALL, _CALL_INDIRECT = b"\x0f", b"\x10", b"\x11"
_LOCAL_GET, _LOCAL_SET, _GLOBAL_GET, _GLOBAL_SET = b"\x20", b"\x21", b"\x23", b"\x24"
_LOAD_BYTE, _NOT_EQUAL, _IS_ZERO = b"\x2d\0\0", b"\x47", b"\x45"
_IF, _TRY, _CATCH_ALL, _END, _NO_RESULT = b"\x04", b"\x06", b"\x19", b"\x0b", b"\x40"
_RETHROW_OUTSIDE_THE_IF = b"\x09\1"
_ZERO = {
    _I32: b"\x41\0",
    _I64: b"\x42\0",
    _F32: b"\x43" + bytes(4),
    _F64: b"\x44" + bytes(8),
}


@dataclass(frozen=True)
class Split:
    """`lean.wasm` without the table and the stack's pointer, and `calls.wasm`, which has them."""

    module: bytes
    calls: bytes


@dataclass(frozen=True)
class _Type:
    parameters: bytes
    results: bytes

    def encode(self) -> bytes:
        return b"\x60" + b"".join(leb(len(part)) + part for part in (self.parameters, self.results))


@dataclass(frozen=True)
class _Table:
    """The limits of the table as they are encoded, where its elements begin, and the types of the
    functions there."""

    limits: bytes
    size: int
    first: int
    types: list[_Type]


def split(data: bytes) -> Split:
    """Raises ToolchainError for a module that is laid out in another way than the one this was made
    for."""
    places = {number: start for number, start, _ in sections(data) if number}
    types = _types(Reader(data, places[TYPE]))
    imports = Reader(data, places[IMPORT])
    count = imports.uleb128()
    first_import = imports.at
    imported, num_globals = _imports(imports, count)
    of_functions = [number for _, number in imported]
    defined = Reader(data, places[FUNCTION])
    of_functions += [defined.uleb128() for _ in range(defined.uleb128())]
    invokes = [(field, types[number]) for field, number in imported if field.startswith("invoke_")]
    table = _table(data, places, [types[number] for number in of_functions])
    # The first global after those that are imported: as the last import it keeps its number.
    variables = Reader(data, places[GLOBAL])
    num_variables = variables.uleb128()
    mutable = variables.byte(), variables.byte()
    constant = variables.byte()
    top = variables.sleb128()
    variables.end_of_expression()
    exports = Reader(data, places[EXPORT])
    named = {
        (exports.string(), exports.byte(), exports.uleb128()) for _ in range(exports.uleb128())
    }
    expect(
        (b"__stack_pointer", KIND_GLOBAL, num_globals) in named
        and (mutable, constant) == ((_I32, 1), 0x41),
        "the first global is not the stack's pointer",
    )

    out = bytearray(data[: len(_HEADER)])
    for number, start, length in sections(data):
        contents = data[start : start + length]
        if number == IMPORT:
            pointer = bytes([KIND_GLOBAL, _I32, 1])
            functions = bytes([KIND_TABLE, 0x70]) + table.limits
            contents = leb(count + 2) + data[first_import : imports.at]
            contents += name("env") + name("__stack_pointer") + pointer
            contents += name("env") + name("__indirect_function_table") + functions
        elif number == TABLE:
            continue
        elif number == GLOBAL:
            contents = leb(num_variables - 1) + data[variables.at : start + length]
        out += section(number, contents)
    return Split(bytes(out), _calls(invokes, table, top))


def _types(reader: Reader) -> list[_Type]:
    found = []
    for _ in range(reader.uleb128()):
        expect(reader.byte() == 0x60, "a type that is no function's")
        found.append(_Type(reader.string(), reader.string()))
    return found


def _imports(reader: Reader, count: int) -> tuple[list[tuple[str, int]], int]:
    """The functions that are imported, each with the number of its type, and how many globals."""
    functions, num_globals = [], 0
    for _ in range(count):
        _, field, kind = reader.string(), reader.string(), reader.byte()
        num_globals += kind == KIND_GLOBAL
        if kind == KIND_FUNCTION:
            functions.append((field.decode(), reader.uleb128()))
        else:
            reader.skip_import(kind)
    return functions, num_globals


def _table(data: bytes, places: dict[int, int], types: list[_Type]) -> _Table:
    flags, size, most = Reader(data, places[TABLE]).table()
    limits = bytes([flags]) + leb(size) + (b"" if most is None else leb(most))
    first, functions = Reader(data, places[ELEMENT]).elements()
    return _Table(limits, size, first, [types[function] for function in functions])


def _calls(invokes: list[tuple[str, _Type]], table: _Table, top: int) -> bytes:
    """The small module. It imports `caught`, which tells whether it was C++ that threw, and the
    functions of JavaScript that it takes the place of."""
    numbers: dict[_Type, int] = {}

    def number(of: _Type) -> int:
        return numbers.setdefault(of, len(numbers))

    caught = number(_Type(b"", bytes([_I32])))
    # The type that each call asks for, and the byte that stands for it; 0 is any other.
    bytes_of: dict[_Type, int] = {}
    functions, bodies = [], []
    for at, (_, its) in enumerate(invokes):
        called = _Type(its.parameters[1:], its.results)
        byte = bytes_of.setdefault(called, len(bytes_of) + 1)
        functions.append(number(its))
        bodies.append(_body(its, byte, number(called), 1 + at))
    expect(len(bytes_of) < 256, "more types of calls than a byte tells")
    env = name("env")
    from_javascript = [env + name("caught") + bytes([KIND_FUNCTION]) + leb(caught)]
    for (field, _), its_type in zip(invokes, functions, strict=True):
        from_javascript.append(env + name(field) + bytes([KIND_FUNCTION]) + leb(its_type))
    exported = [
        name(field) + bytes([KIND_FUNCTION]) + leb(1 + len(invokes) + at)
        for at, (field, _) in enumerate(invokes)
    ]
    exported.append(name("__indirect_function_table") + bytes([KIND_TABLE, 0]))
    exported.append(name("__stack_pointer") + bytes([KIND_GLOBAL, 0]))
    kinds = bytes(bytes_of.get(of, 0) for of in table.types)
    # A page more than the table: a place beyond it has no function, and ends the program there.
    pages = table.size // _PAGE + 2
    return _HEADER + b"".join(
        [
            section(TYPE, vector([of.encode() for of in numbers])),
            section(IMPORT, vector(from_javascript)),
            section(FUNCTION, vector([leb(its_type) for its_type in functions])),
            section(TABLE, vector([b"\x70" + table.limits])),
            section(MEMORY, vector([b"\0" + leb(pages)])),
            section(GLOBAL, vector([bytes([_I32, 1]) + b"\x41" + sleb(top) + _END])),
            section(EXPORT, vector(exported)),
            section(CODE, vector([leb(len(body)) + body for body in bodies])),
            section(DATA, vector([b"\0\x41" + sleb(table.first) + _END + leb(len(kinds)) + kinds])),
        ]
    )


def _body(its: _Type, byte: int, called: int, in_javascript: int) -> bytes:
    """A function that takes a place in the table and the arguments of the function there, calls it,
    and answers 0 where C++ threw; then `caught` has told C++ so."""
    place, stack = _LOCAL_GET + leb(0), leb(len(its.parameters))
    arguments = b"".join(_LOCAL_GET + leb(at) for at in range(1, len(its.parameters)))
    another_type = place + _LOAD_BYTE + b"\x41" + sleb(byte) + _NOT_EQUAL
    other_way = place + arguments + _CALL + leb(in_javascript) + _RETURN
    call = arguments + place + _CALL_INDIRECT + leb(called) + leb(0)
    unwind = _LOCAL_GET + stack + _GLOBAL_SET + leb(0)
    not_ours = _CALL + leb(0) + _IS_ZERO + _IF + _NO_RESULT + _RETHROW_OUTSIDE_THE_IF + _END
    result = its.results or _NO_RESULT
    nothing = _ZERO[its.results[0]] if its.results else b""
    return b"".join(
        [
            vector([leb(1) + bytes([_I32])]),  # one local, the stack's pointer before the call
            another_type + _IF + _NO_RESULT + other_way + _END,
            _GLOBAL_GET + leb(0) + _LOCAL_SET + stack,
            _TRY + result + call + _CATCH_ALL + unwind + not_ours + nothing + _END,
            _END,
        ]
    )
