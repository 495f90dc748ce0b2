"""The embedded Lean's output arrives whole."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bridge.toolchain.prepare import Embedded
from bridge.toolchain.process import LeanProcess

# 1,000 answers of 4 kB, and one of 120 kB: more than a pipe holds, however large it may be made.
SCRIPT = """module

def answer (n size : Nat) : String :=
  let text := String.ofList (List.replicate size 'x')
  "@@ {\\"n\\": " ++ toString n ++ ", \\"text\\": \\"" ++ text ++ "\\"}"

def printAll : Nat → IO Unit
  | 0 => return ()
  | n + 1 => do
    IO.println (answer n 4000)
    printAll n

public def main (_ : List String) : IO Unit := do
  printAll 1000
  IO.println (answer 1000 120000)
  (← IO.getStdout).flush
  IO.Process.exit 0
"""


@pytest.mark.thorough
def test_what_is_printed_faster_than_it_is_read(prepared: Embedded, tmp_path: Path) -> None:
    script = tmp_path / "Print.lean"
    script.write_text(SCRIPT, "utf-8")
    path = [prepared.runnable, prepared.drivers]
    with LeanProcess(
        prepared.runtime, ["--run", str(script)], lean_path=path, cwd=tmp_path
    ) as process:
        lines = process.lines()
        first = next(line for line in lines if line.startswith("@@"))
        # Nothing is read for a while, as when a reader has other work.
        time.sleep(5)
        found = [json.loads(line[3:]) for line in (first, *lines) if line.startswith("@@")]
    assert [a["n"] for a in found] == [*range(999, -1, -1), 1000]
    assert [len(a["text"]) for a in found] == [4000] * 1000 + [120000]
