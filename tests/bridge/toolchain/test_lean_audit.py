"""The audit finds what it is for: each fault is planted, built, and must be named with its file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.toolchain.audit import Audit
from bridge.toolchain.embedded import EmbeddedLean

Make = Callable[[dict[str, str]], EmbeddedLean]

SOURCES = {
    "Good": "public section\n@[expose] def good (n : Nat) : Nat := n + 1\n"
    "theorem good_pos (n : Nat) : 0 < good n := Nat.succ_pos n\n"
    "theorem by_cases (p : Prop) : p ∨ ¬p := Classical.em p\n",
    "Axiom": "public section\naxiom planted : 1 = 2\n"
    "theorem from_planted : 2 = 1 := planted.symm\n",
    "Sorry": "public section\ntheorem unproved : 1 + 1 = 3 := sorry\n",
    "PrivateSorry": "theorem hidden : 1 + 1 = 3 := sorry\n",
    "Unsafe": "public section\nunsafe def risky : Nat := unsafeCast ()\n",
    "Partial": "public section\npartial def endless (n : Nat) : Nat := endless (n + 1)\n",
    "Replaced": "public section\ndef fast : Nat := 2\n@[implemented_by fast] def slow : Nat := 1\n",
    "Outside": 'public section\n@[extern "outside"] def outside (n : Nat) : Nat := n\n',
}
FINDINGS = {
    "Small/Axiom.lean: planted is an axiom",
    "Small/Axiom.lean: from_planted rests on planted",
    "Small/Sorry.lean: unproved uses sorry",
    "Small/PrivateSorry.lean: hidden uses sorry",
    "Small/Unsafe.lean: risky is unsafe",
    "Small/Partial.lean: endless is opaque or partial: what runs is not what is proved",
    "Small/Replaced.lean: slow is implemented_by something else",
    "Small/Outside.lean: outside is extern",
}

# Adds a theorem without asking the kernel, as a faulty or hostile elaborator might.
FORGED = """public meta import Lean
public section
open Lean Elab Command

set_option debug.skipKernelTC true in
run_cmd liftCoreM do
  addDecl <| .thmDecl {
    name := `forged, levelParams := [], type := mkConst ``False, value := mkConst ``True.intro }
"""


@pytest.fixture(scope="module")
def audit(make_project: Make) -> Audit:
    lean = make_project(SOURCES)
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages if m.severity == "error"]
    return lean.audit()


def test_every_fault_is_named_with_its_file(audit: Audit) -> None:
    assert not audit.ok
    assert set(audit.problems) >= FINDINGS


def test_nothing_is_said_of_what_is_sound(audit: Audit) -> None:
    assert [p for p in audit.problems if "Small/Good.lean" in p] == []


def test_what_is_listed(audit: Audit) -> None:
    found = {d.name: d for d in audit.declarations}
    good = found["good_pos"]
    assert (good.kind, good.module, good.file) == ("theorem", "Small.Good", "Small/Good.lean")
    assert (good.first_line, good.last_line) == (4, 4)
    assert good.mentions == ("good",)
    assert good.axioms == ()
    assert found["good"].kind in ("def", "definition")
    assert "_private.Small.PrivateSorry.0.hidden" in found


def test_core_theorems_taken_on_trust_are_counted(audit: Audit) -> None:
    count = int(audit.trusted.split()[0])
    assert 0 < count < 10_000


def test_the_kernel_rejects_a_forged_proof(make_project: Make) -> None:
    lean = make_project({"Good": SOURCES["Good"], "Forged": FORGED})
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages]
    audit = lean.audit()
    assert not audit.ok
    assert any("kernel does not accept" in p and "forged" in p for p in audit.problems)
