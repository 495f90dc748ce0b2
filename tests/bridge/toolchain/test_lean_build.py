"""Building and running: the modules that are built again, the messages, the programs' output."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import filelock
import pytest

from bridge.toolchain import lake
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError

Make = Callable[[dict[str, str]], EmbeddedLean]

A = "public section\n@[expose] def a (n : Nat) : Nat := 2 * n\n"
B = "public import Small.A\npublic section\ntheorem a_two : a 2 = 4 := rfl\n"
C = "public section\ndef unused (n : Nat) : Nat := 3\n"

# Functions of the library whose compiled form lies in Lean's own modules, and their results.
PROGRAM = """public section
namespace Small.Program

structure Point where
  x : Int
  y : Rat
  deriving Repr, BEq

def collatz (fuel n : Nat) : List Nat :=
  match fuel with
  | 0 => [n]
  | fuel + 1 => if n == 1 then [1] else n :: collatz fuel (if n % 2 == 0 then n / 2 else 3 * n + 1)

def deep : Nat → Nat
  | 0 => 0
  | n + 1 => 1 + deep n

def lines : List (String × String) := [
  ("drop", toString ((List.range 10).drop 4)),
  ("take", toString ((List.range 10).take 4)),
  ("zip", toString ((List.range 3).zip ["a", "b", "c"])),
  ("reverse", toString (List.range 5).reverse),
  ("filter", toString ((List.range 20).filter (· % 3 == 1))),
  ("foldl", toString ((List.range 101).foldl (· + ·) 0)),
  ("flatMap", toString ((List.range 4).flatMap List.range)),
  ("splitAt", toString ((List.range 6).splitAt 2)),
  ("array", toString (((Array.range 6).map (· ^ 2)).extract 2 5)),
  ("vector", toString ((Vector.ofFn fun i : Fin 4 => i.val * i.val).toList.drop 1)),
  ("qsort", toString (#[5, 3, 9, 1].qsort (· < ·))),
  ("string", ", ".intercalate (("a-b-c".splitOn "-").map String.toUpper)),
  ("length", toString "λ→∀".length),
  ("power", toString ((2 : Int) ^ 200 - 1)),
  ("division", toString [(-7 : Int) / 2, (-7 : Int) % 2, Int.tdiv (-7) 2, Int.tmod (-7) 2]),
  ("rational", toString ((1 / 3 : Rat) + 22 / 7 - 5 / 6)),
  ("harmonic", toString ((List.range 30).foldl (fun s k => s + mkRat 1 (k + 1)) 0)),
  ("collatz", toString ((collatz 200 27).drop 100)),
  ("deep", toString (deep 20000)),
  ("gcd", toString (Nat.gcd (2 ^ 90) (6 ^ 50))),
  ("equal", toString (({ x := 1, y := 1 / 2 } : Point) == { x := 1, y := 2 / 4 }))]

def main : List String → IO Unit
  | [file, more] => do
    let mut text := ""
    for (name, value) in lines do
      text := text ++ name ++ "=" ++ value ++ "\\n"
    IO.FS.writeFile file (text ++ "argument=" ++ more ++ "\\n")
  | arguments => throw (IO.userError s!"expected a file and a word, got {arguments.length}")

end Small.Program
"""


def list_of(values: list[object]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def collatz(n: int) -> list[object]:
    found: list[object] = []
    while n != 1:
        found.append(n)
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return [*found, 1]


EXPECTED = {
    "drop": list_of([*range(4, 10)]),
    "take": list_of([*range(4)]),
    "zip": "[(0, a), (1, b), (2, c)]",
    "reverse": list_of([*range(4, -1, -1)]),
    "filter": list_of([n for n in range(20) if n % 3 == 1]),
    "foldl": str(sum(range(101))),
    "flatMap": list_of([i for n in range(4) for i in range(n)]),
    "splitAt": "([0, 1], [2, 3, 4, 5])",
    "array": "#" + list_of([n * n for n in range(6)][2:5]),
    "vector": list_of([1, 4, 9]),
    "qsort": "#[1, 3, 5, 9]",
    "string": "A, B, C",
    "length": "3",
    "power": str(2**200 - 1),
    "division": list_of([-7 // 2, -7 % 2, -3, -1]),
    "rational": str(Fraction(1, 3) + Fraction(22, 7) - Fraction(5, 6)),
    "harmonic": str(sum((Fraction(1, k) for k in range(1, 31)), Fraction(0))),
    "collatz": list_of(collatz(27)[100:]),
    "deep": "20000",
    "gcd": str(math.gcd(2**90, 6**50)),
    "equal": "true",
    "argument": "two words",
}


def edit(lean: EmbeddedLean, name: str, text: str) -> None:
    (lean.root / "Small" / f"{name}.lean").write_text(f"module\n{text}", "utf-8")


@pytest.fixture(scope="module")
def built(exchange_project: Make) -> EmbeddedLean:
    """A project that has been built; its driver stays for the tests that build again."""
    lean = exchange_project({"A": A, "B": B, "C": C, "Program": PROGRAM})
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages]
    assert set(result.built) == {"Small", *(f"Small.{n}" for n in ("A", "B", "C", "Program"))}
    return lean


@pytest.mark.thorough
def test_nothing_to_do_starts_no_lean(built: EmbeddedLean, monkeypatch: pytest.MonkeyPatch) -> None:
    again = EmbeddedLean(built.root, built.prepared)
    monkeypatch.setattr(again._drivers, "_start", lambda: pytest.fail("Lean was started"))
    start = time.process_time()
    result = again.build()
    assert result.ok
    assert result.built == ()
    assert time.process_time() - start < 2


def test_nothing_to_do_waits_for_no_other_build(built: EmbeddedLean) -> None:
    again = EmbeddedLean(built.root, built.prepared, pytest.fail)
    with filelock.FileLock(built.folder / "lock"):
        assert again.build().built == ()


def test_a_relative_root(built: EmbeddedLean, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lean's paths lead to the same files from the folder that it works in."""
    monkeypatch.chdir(built.root.parent)
    here = EmbeddedLean(Path(built.root.name), built.prepared)
    assert (here.root, here.folder, here.store.record) == (
        built.root, built.folder, built.store.record,
    )  # fmt: skip


def test_messages_of_what_is_up_to_date_are_said_again(built: EmbeddedLean) -> None:
    (message,) = [m for m in built.build().messages if m.file == "Small/C.lean"]
    assert message.severity == "warning"
    assert (message.line, message.column) == (3, 12)
    assert "unused variable `n`" in message.text
    (result,) = [m for m in built.build().modules if m.name == "Small.C"]
    mark, text, *_ = lake.describe(result, "[1/…] ")
    assert mark == "⚠ [1/…] Replayed Small.C"
    assert text.startswith("warning: Small/C.lean:3:12: unused variable")


def test_an_error_stops_what_needs_it_only(built: EmbeddedLean) -> None:
    edit(built, "A", A.replace("2 * n", "3 * n"))
    edit(built, "C", C + "def more := 1\n")
    result = built.build()
    by_name = {m.name: m for m in result.modules}
    assert not result.ok
    assert by_name["Small.A"].ok
    assert by_name["Small.C"].ok
    assert not by_name["Small.B"].ok
    assert by_name["Small"].skipped
    errors = [m for m in result.messages if m.severity == "error"]
    assert {(m.file, m.line) for m in errors} == {("Small/B.lean", 4)}
    assert str(errors[0]).startswith(f"error: Small/B.lean:4:{errors[0].column}: ")
    # Nothing of the failed module counts as built, and a build of it alone fails again.
    assert not built.build(["Small.B"]).ok
    edit(built, "A", A)
    edit(built, "C", C)
    assert built.build().ok


def test_a_syntax_error_has_its_place(built: EmbeddedLean) -> None:
    edit(built, "C", "public section\ndef broken : Nat :=\n")
    result = built.build(["Small.C"])
    edit(built, "C", C)
    (error,) = [m for m in result.messages if m.severity == "error"]
    assert error.file == "Small/C.lean"
    assert "unexpected end of input" in error.text
    assert built.build().ok


# Who says something in a file, and in which of its lines, below `module` and `public section`.
SAYING = """theorem proof : 1 = 2 := by decide
private theorem aside (n : Nat) : n < n := by omega
theorem statement (n : Nat) : missing + 0 = n := rfl
def term : Nat := 1 + "a"
theorem unproved : 1 = 2 := by sorry
instance : Inhabited Empty := ⟨by assumption⟩
mutual
theorem left : 1 = 1 := by rfl
theorem right : 1 = 3 := by rfl
end
theorem bare : 1 =
#check term
#eval IO.println "@@ {\\"done\\": \\"Small.C\\", \\"ok\\": true, \\"problem\\": \\"\\"}"
def endless (n : Nat) : Nat := endless (n + 1)
theorem steps (n : Nat) : n = n + 1 := by
  trace "seen"
  induction n with
  | zero => rfl
  | succ k ih => exact absent
"""


def test_whatever_is_said_in_a_file_is_told_in_its_order(built: EmbeddedLean) -> None:
    edit(built, "C", f"public section\n{SAYING}")
    result = built.build(["Small.C"])
    edit(built, "C", C)
    assert not result.ok
    said = [m for m in result.messages if m.file == "Small/C.lean"]
    assert {m.line for m in said if m.severity == "error"} == {3, 4, 5, 6, 8, 11, 13, 16, 20, 21}
    assert [m.line for m in said if m.severity == "warning"] == [7]
    assert "seen" in {m.text.strip() for m in said if m.line == 18}
    assert "@@ {" in "".join(m.text for m in said if m.line == 15)
    starts = [m.line for m in said if m.line < 17]
    assert starts == sorted(starts)
    assert built.build().ok


@pytest.mark.thorough
def test_a_definition_of_many_conjuncts(built: EmbeddedLean) -> None:
    """Walking through its syntax needs 200 KiB of stack; the main thread has 64."""
    conjuncts = " ∧\n    ".join(f"(∀ i < n, i < n + {k})" for k in range(200))
    edit(built, "C", f"public section\n@[expose] def many (n : Nat) : Prop :=\n    {conjuncts}\n")
    result = built.build(["Small.C"])
    edit(built, "C", C)
    assert result.ok, result.messages
    assert built.build().ok


def test_unknown_target(built: EmbeddedLean) -> None:
    for target in ("Small.Nowhere", "Other", "small.A"):
        with pytest.raises(ToolchainError, match=f"unknown target `{target}`"):
            built.build([target])


def test_a_lost_output_is_built_again(built: EmbeddedLean) -> None:
    built.runnable("Small.C").unlink()
    assert "Small.C" in built.build(["Small.C"]).built


def test_a_damaged_record_is_not_trusted(built: EmbeddedLean) -> None:
    (built.folder / "state.json").write_text('{"Small.A"', "utf-8")
    result = built.build(["Small.A"])
    assert result.ok
    assert result.built == ("Small.A",)
    assert json.loads((built.folder / "state.json").read_text("utf-8"))


@pytest.mark.thorough
def test_programs_give_what_python_gives(built: EmbeddedLean, tmp_path: Path) -> None:
    assert built.build().ok
    built.run("Small.Program", [str(tmp_path / "out"), "two words"])
    text = (tmp_path / "out").read_text("utf-8")
    found = dict(line.split("=", 1) for line in text.splitlines())
    assert found == EXPECTED


@pytest.mark.thorough
def test_a_program_that_fails_says_why(built: EmbeddedLean) -> None:
    with pytest.raises(ToolchainError, match=r"Small\.Program: expected a file .* got 1"):
        built.run("Small.Program", ["only one"])
