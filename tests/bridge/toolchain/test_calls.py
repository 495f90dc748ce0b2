"""Calls that may throw, in WebAssembly: what is caught there, what is not, and what goes through
JavaScript as before."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.toolchain.binary import (
    CODE,
    ELEMENT,
    EXPORT,
    FUNCTION,
    GLOBAL,
    IMPORT,
    KIND_FUNCTION,
    KIND_GLOBAL,
    KIND_TABLE,
    TABLE,
    TYPE,
    Reader,
    leb,
    name,
    section,
    sleb,
    vector,
)
from bridge.toolchain.calls import split
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.javascript import QUICK_CALLS
from bridge.toolchain.prepare import Embedded

# At the places 1 to 4 of the table: double a number; use the stack and throw; answer 7 of no
# argument; throw of no argument. The stack's pointer is the global 1.
BODIES = (
    b"\0\x20\0\x41\2\x6c\x0b",
    b"\0\x41\1\x24\1\x20\0\x10\1\x41\x09\x0b",
    b"\0\x41\7\x0b",
    b"\0\x41\1\x10\1\x41\x09\x0b",
    b"\0\x20\0\x20\1\x10\0\x0b",  # exported: call
    b"\0\x23\1\x0b",  # exported: stack
)
POINTER = b"\x7f\1\x41" + sleb(1000) + b"\x0b"

HARNESS = """
const fs=require("fs");let threw=0,slow=0;const _setThrew=a=>{threw=a};
QUICK_CALLS
const thrown={1:5,2:"unwind"};
const throw_=what=>{if(what==1)throwing=true;throw thrown[what]};
// As emscripten writes it.
const invoke_ii=(place,a)=>{slow++;try{return its.__indirect_function_table.get(place)(a)}
catch(e){if(e!==e+0)throw e;_setThrew(1,0)}};
const imports={invoke_ii,throw_};
quickCalls(imports);
const global=new WebAssembly.Global({value:"i32",mutable:true},0);
const lean=new WebAssembly.Module(fs.readFileSync(__dirname+"/lean.wasm"));
const its=new WebAssembly.Instance(lean,{env:imports,"GOT.mem":{x:global}}).exports;
const said={};
function call(label,place,argument){threw=slow=0;let answer;
try{answer=its.call(place,argument)}catch(e){answer=String(e)}
said[label]={answer,threw,slow,stack:its.stack(),throwing}}
call("returns",1,21);
call("throws",2,1);
call("ends",2,2);
call("another type",3,5);
call("another type throws",4,0);
call("ends after that",2,2);
call("no function",0,0);
call("beyond the table",70000,0);
said.other=its.other.value;
console.log(JSON.stringify(said));
"""


def module(variables: bytes = POINTER) -> bytes:
    types = [b"\x60\1\x7f\1\x7f", b"\x60\0\1\x7f", b"\x60\2\x7f\x7f\1\x7f", b"\x60\1\x7f\0"]
    imports = [
        name("env") + name("invoke_ii") + bytes([KIND_FUNCTION, 2]),
        name("env") + name("throw_") + bytes([KIND_FUNCTION, 3]),
        name("GOT.mem") + name("x") + bytes([KIND_GLOBAL, 0x7F, 1]),
    ]
    exports = [
        name("__stack_pointer") + bytes([KIND_GLOBAL, 1]),
        name("other") + bytes([KIND_GLOBAL, 2]),
        name("__indirect_function_table") + bytes([KIND_TABLE, 0]),
        name("call") + bytes([KIND_FUNCTION, 6]),
        name("stack") + bytes([KIND_FUNCTION, 7]),
    ]
    return b"\0asm\1\0\0\0" + b"".join(
        [
            section(TYPE, vector(types)),
            section(IMPORT, vector(imports)),
            section(FUNCTION, vector([leb(of) for of in (0, 0, 1, 1, 2, 1)])),
            section(TABLE, vector([b"\x70\0\5"])),
            section(GLOBAL, vector([variables, b"\x7f\0\x41\5\x0b"])),
            section(EXPORT, vector(exports)),
            section(ELEMENT, vector([b"\0\x41\1\x0b" + vector([leb(f) for f in (2, 3, 4, 5)])])),
            section(CODE, vector([leb(len(body)) + body for body in BODIES])),
        ]
    )


@pytest.fixture(scope="module")
def said(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("calls")
    parts = split(module())
    (folder / "lean.wasm").write_bytes(parts.module)
    (folder / "calls.wasm").write_bytes(parts.calls)
    script = folder / "harness.js"
    script.write_text(HARNESS.replace("QUICK_CALLS", QUICK_CALLS))
    command = [str(prepared.runtime.node.node), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def outcome(answer: int | str | None, threw: int, slow: int) -> dict[str, Any]:
    """The stack is always as it was before the call, and nothing is left to be caught."""
    return {"answer": answer, "threw": threw, "slow": slow, "stack": 1000, "throwing": False}


def test_a_call_stays_in_webassembly(said: dict[str, Any]) -> None:
    assert said["returns"] == outcome(42, threw=0, slow=0)


def test_an_exception_of_cpp_is_caught_there(said: dict[str, Any]) -> None:
    assert said["throws"] == outcome(0, threw=1, slow=0)


def test_whatever_else_is_thrown_goes_on(said: dict[str, Any]) -> None:
    assert said["ends"] == outcome("unwind", threw=0, slow=0)


def test_a_function_of_another_type_is_called_by_javascript(said: dict[str, Any]) -> None:
    """It drops the argument that the function does not take."""
    assert said["another type"] == outcome(7, threw=0, slow=1)
    assert said["another type throws"] == outcome(0, threw=1, slow=1)
    # That exception has been caught: the next is not taken for it.
    assert said["ends after that"] == outcome("unwind", threw=0, slow=0)


def test_a_place_without_a_function_ends_the_program(said: dict[str, Any]) -> None:
    """As before: through JavaScript, which finds nothing to call."""
    for label in ("no function", "beyond the table"):
        assert "Error" in said[label]["answer"], said[label]
        assert said[label]["slow"] == 1


def test_the_other_global_keeps_its_number(said: dict[str, Any]) -> None:
    assert said["other"] == 5


def test_the_code_is_copied_byte_for_byte() -> None:
    code = section(CODE, vector([leb(len(body)) + body for body in BODIES]))
    assert code in module()
    assert code in split(module()).module


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (module(b"\x7f\0\x41\1\x0b"), "the first global is not the stack's pointer"),
        (module(b"\x7e\1\x42\1\x0b"), "the first global is not the stack's pointer"),
        (module().replace(b"\x60\0", b"\x5e\0", 1), "a type that is no function"),
        (module().replace(b"\x70\0\5", b"\x6f\0\5", 1), "not one table of functions"),
    ],
)
def test_another_layout_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ToolchainError, match=f"not laid out as expected \\({reason}"):
        split(data)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_signed_number_is_read_as_it_was_written(value: int) -> None:
    reader = Reader(sleb(value) + b"\xff")
    assert reader.sleb128() == value
    assert reader.at == len(sleb(value))


@given(st.integers(0, 2**32 - 1))
def test_a_number_is_read_as_it_was_written(value: int) -> None:
    reader = Reader(leb(value) + b"\xff")
    assert reader.uleb128() == value
    assert reader.at == len(leb(value))
