"""Files that are only read are read by the thread that asks; all others by Lean's main thread."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridge.toolchain.javascript import OWN_CALLS
from bridge.toolchain.prepare import Embedded
from bridge.toolchain.process import LeanProcess

# The parts of `lean.js` that the calls use, and a memory: paths from 256 on, numbers below.
HARNESS = """
const fs=require("fs"),[,,file,folder]=process.argv;
const memory=new SharedArrayBuffer(8192);
const HEAPU8=new Uint8Array(memory),HEAPU32=new Uint32Array(memory);
const HEAP64=new BigInt64Array(memory),growMemViews=()=>{};
const UTF8ToString=at=>{const all=Buffer.from(HEAPU8.slice(at));
return all.toString("utf8",0,all.indexOf(0))};
const put=(at,text)=>{HEAPU8.set(Buffer.from(text+"\\0"),at);return at};
const SYSCALLS={writeStat(buf,stat){HEAPU32[buf>>2]=stat.size;return 0}};
const ___syscall_stat64=()=>0,___syscall_openat=()=>0,___syscall_fstat64=()=>0;
const _fd_read=()=>0,_fd_seek=()=>0,_fd_close=()=>0,_fd_write=()=>0;
const proxiedFunctionTable=[_fd_write,___syscall_stat64,___syscall_openat,___syscall_fstat64,
_fd_read,_fd_seek,_fd_close];
OWN_CALLS
const [WRITE,STAT,OPEN,FSTAT,READ,SEEK,CLOSE]=[0,1,2,3,4,5,6];
const call=(...a)=>{const own=ownCall(a[0],a.slice(1));return own===undefined?"main":own};
const of=path=>put(256,path),said={};
said.stat=[call(STAT,of(file),8),HEAPU32[2]];
said.statMissing=call(STAT,of(folder+"/none"),8);
said.statRelative=call(STAT,of("a.txt"),8);
said.statDevice=call(STAT,of("/proc/version"),8);
said.openToWrite=call(OPEN,-100,of(file),1,0);
said.openToMake=call(OPEN,-100,of(folder+"/new"),64,0);
said.openMissing=call(OPEN,-100,of(folder+"/none"),0,0);
said.openFolder=call(OPEN,-100,of(folder),0,0);
const fd=call(OPEN,-100,of(file),32768|524288,0);
said.opened=fd>=1e6;
said.size=[call(FSTAT,fd,8),HEAPU32[2]];
// Two buffers, of three and four bytes, at 4096 and 5000.
HEAPU32.set([4096,3,5000,4],16>>2);
const text=(at,n)=>Buffer.from(HEAPU8.slice(at,at+n)).toString();
said.read=[call(READ,fd,16,2,8),HEAPU32[2],text(4096,3),text(5000,4)];
said.seekEnd=[call(SEEK,fd,-2n,2,8),Number(HEAP64[1])];
said.readEnd=[call(READ,fd,16,2,8),HEAPU32[2],text(4096,2)];
said.readNothing=[call(READ,fd,16,2,8),HEAPU32[2]];
said.seekBack=[call(SEEK,fd,-3n,1,8),Number(HEAP64[1])];
said.seekBefore=call(SEEK,fd,-1n,0,8);
said.seekStart=[call(SEEK,fd,4n,0,8),Number(HEAP64[1])];
said.close=call(CLOSE,fd);
said.closeAgain=call(CLOSE,fd);
said.readClosed=call(READ,fd,16,2,8);
said.readOther=call(READ,0,16,2,8);
said.write=call(WRITE,1,16,2,8);
console.log(JSON.stringify(said));
"""

PROGRAM = """module

open IO FS

public def report (folder : System.FilePath) : IO (List String) := do
  let file := folder / "numbers.txt"
  let first ← Handle.mk file .read
  let line ← first.getLine
  -- Another thread has the same file, and a file that is written is read again.
  let task ← IO.asTask (prio := .dedicated) (readFile file)
  let whole ← IO.ofExcept task.get
  writeFile (folder / "new.txt") (whole ++ "5\\n")
  let again ← readFile (folder / "new.txt")
  (← Handle.mk (folder / "new.txt") .append).putStr "6\\n"
  let appended ← readFile (folder / "new.txt")
  first.rewind
  let missing ← try readFile (folder / "none.txt") catch error => pure (toString error)
  let found := [← file.pathExists, ← (folder / "none.txt").pathExists, ← folder.isDir, ← file.isDir]
  return [line, whole, again, appended, ← first.readToEnd, missing, toString found,
    toString (← file.metadata).byteSize]

public def main (arguments : List String) : IO Unit := do
  let task ← IO.asTask (prio := .dedicated) (report arguments.head!)
  let said ← IO.ofExcept task.get
  for one in said do
    IO.println ("@@ {\\"said\\": " ++ String.quote one ++ "}")
  (← IO.getStdout).flush
  IO.Process.exit 0
"""


@pytest.fixture(scope="module")
def calls(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each call of the harness gives: a result, or "main" for those left to the main
    thread."""
    folder = tmp_path_factory.mktemp("own-calls")
    (folder / "a.txt").write_text("0123456789")
    script = folder / "harness.js"
    script.write_text(HARNESS.replace("OWN_CALLS", OWN_CALLS))
    command = [str(prepared.runtime.node.node), str(script), str(folder / "a.txt"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_file_is_read_by_the_thread_that_asks(calls: dict[str, Any]) -> None:
    assert calls["stat"] == [0, 10]
    assert calls["opened"]
    assert calls["size"] == [0, 10]
    assert calls["read"] == [0, 7, "012", "3456"]
    assert calls["seekEnd"] == [0, 8]
    assert calls["readEnd"] == [0, 2, "89"]
    assert calls["readNothing"] == [0, 0]
    assert calls["seekBack"] == [0, 7]
    # EINVAL, in the numbers of the runtime.
    assert calls["seekBefore"] == 28
    assert calls["seekStart"] == [0, 4]
    assert calls["close"] == 0


def test_all_else_is_left_to_the_main_thread(calls: dict[str, Any]) -> None:
    left = {name for name, result in calls.items() if result == "main"}
    assert left == {
        *("statMissing", "statRelative", "statDevice", "openToWrite", "openToMake"),
        *("openMissing", "openFolder", "closeAgain", "readClosed", "readOther", "write"),
    }


@pytest.mark.thorough
def test_lean_reads_writes_and_misses_files(prepared: Embedded, tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("1\n2\n3\n4\n")
    script = tmp_path / "Files.lean"
    script.write_text(PROGRAM, "utf-8")
    path = [prepared.runnable, prepared.drivers]
    with LeanProcess(
        prepared.runtime, ["--run", str(script), str(tmp_path)], lean_path=path, cwd=tmp_path
    ) as process:
        answers = process.answers()
        line, whole, again, appended, rest, missing, found, size = (
            next(answers)["said"] for _ in range(8)
        )
    assert line == "1\n"
    assert whole == rest == "1\n2\n3\n4\n"
    assert again == whole + "5\n"
    assert appended == again + "6\n"
    assert missing.startswith("no such file or directory")
    assert found == "[true, false, true, false]"
    assert size == "8"
