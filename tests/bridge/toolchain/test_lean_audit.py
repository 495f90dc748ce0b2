"""The audit finds the faults that it is for: each mutant is written, built, and must be named with
its file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stored_modules import store_another

from bridge.limits import Limit
from bridge.toolchain import embedded
from bridge.toolchain.audit import Audit, on_trust
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError

Make = Callable[[dict[str, str]], EmbeddedLean]

USES_F = (
    "public import Small.Base\npublic section\ntheorem {} (n : Nat) : f n = n + 1 := by rw [f]\n"
)
# Imports come before the modules that import them.
SOURCES = {
    "Good": "public section\n@[expose] def good (n : Nat) : Nat := n + 1\n"
    "theorem good_pos (n : Nat) : 0 < good n := Nat.succ_pos n\n"
    "theorem by_cases (p : Prop) : p ∨ ¬p := Classical.em p\n"
    "def total : List Nat → Nat\n  | [] => 0\n  | n :: rest => n + total rest\n",
    "Axiom": "public section\naxiom planted : 1 = 2\n"
    "theorem from_planted : 2 = 1 := planted.symm\n"
    "private theorem hidden : 1 = 1 := rfl\n",
    "Sorry": "public section\ntheorem unproved : 1 + 1 = 3 := sorry\n",
    "PrivateSorry": "theorem hidden : 1 + 1 = 3 := sorry\n",
    "Unsafe": "public section\nunsafe def risky : Nat := 1\n",
    "Partial": "public section\npartial def endless (n : Nat) : Nat := endless (n + 1)\n",
    "Replaced": "public section\ndef fast : Nat := 2\n@[implemented_by fast] def slow : Nat := 1\n",
    "Compiler": "public section\ntheorem compiled (a b : Bool) (h : Lean.reduceBool a = b) : "
    "a = b := Lean.ofReduceBool a b h\n",
    "Class": "public section\nclass Base (α : Type) where\n  base : α\n"
    "class Derived (α : Type) extends Base α where\n  more : α\n"
    "class Empty' (α : Type) where\n  no : α → False\n"
    "instance : Derived Nat where\n  base := 0\n  more := 1\n"
    "instance pair (α β : Type) [Base α] [Base β] : Base (α × β) := ⟨Base.base, Base.base⟩\n",
    "Core": "public section\n@[expose] def divisor (m n : Nat) : Nat := Nat.gcd m n\n"
    "@[expose] def appended (s : String) : String := s ++ s\n",
    # The equation of `f` is made where it is asked for, and stored there.
    "Base": "public section\n@[expose] def f (n : Nat) : Nat := n + 1\n",
    "One": USES_F.format("one"),
    "Two": USES_F.format("two"),
    "X": "public section\n@[expose] def x : Nat := 1\n",
    "Proof": "public import Small.X\npublic section\ntheorem one_is : x = 1 := rfl\n",
    "Outside": 'public section\n@[extern "outside"] def outside (n : Nat) : Nat := n\n',
}
FINDINGS = {
    "Small/Axiom.lean: planted is an axiom",
    "Small/Axiom.lean: from_planted rests on planted",
    "Small/Sorry.lean: unproved uses sorry",
    "Small/PrivateSorry.lean: hidden uses sorry",
    "Small/Unsafe.lean: risky is unsafe",
    "Small/Partial.lean: endless is opaque or partial: no proof is about the code that runs",
    "Small/Replaced.lean: slow is implemented_by something else",
    "Small/Outside.lean: outside is extern",
    "Small/Compiler.lean: compiled trusts the compiler (Lean.ofReduceBool)",
}


Reached = list[tuple[int, int]]


@pytest.fixture(scope="module")
def reached() -> Reached:
    """How far the kernel was, each time that it was said."""
    return []


@pytest.fixture(scope="module")
def project(exchange_project: Make) -> EmbeddedLean:
    return exchange_project(SOURCES)


@pytest.fixture(scope="module")
def audit(project: EmbeddedLean, reached: Reached) -> Audit:
    lean = project
    with pytest.raises(ToolchainError, match=r"is not built as it stands now: build it first"):
        lean.audit()
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages if m.severity == "error"]
    return lean.audit(on_checked=lambda checked, of: reached.append((checked, of)))


@pytest.mark.thorough
def test_the_kernel_says_after_each_module_how_far_it_is(audit: Audit, reached: Reached) -> None:
    # The modules, and the one that imports them all and declares nothing.
    assert len(reached) == len(SOURCES) + 1
    counts = [checked for checked, _ in reached]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(SOURCES)
    assert {of for _, of in reached} == {counts[-1]} == {audit.replayed}


def test_every_mutant_is_named_with_its_file_and_nothing_else(audit: Audit) -> None:
    assert not audit.ok
    assert set(audit.problems) == FINDINGS


def test_what_is_listed(audit: Audit) -> None:
    found = {d.name: d for d in audit.declarations}
    good = found["good_pos"]
    assert (good.kind, good.module, good.file) == ("theorem", "Small.Good", "Small/Good.lean")
    assert (good.first_line, good.last_line) == (4, 4)
    assert good.mentions == ("good",)
    assert good.axioms == ()
    assert found["good"].kind == "definition"
    assert found["total"].kind == "definition"
    assert not [name for name in found if name.endswith("._unsafe_rec")]
    # Private declarations of the same name in two modules are two declarations.
    for module in ("Small.PrivateSorry", "Small.Axiom"):
        assert found[f"_private.{module}.0.hidden"].module == module
    assert len(found) == len(audit.declarations)
    assert audit.replayed >= len(found)


def test_what_is_taken_on_trust_is_named_by_what_it_is(audit: Audit) -> None:
    names = audit.trusted_names
    assert set(names) == {"theorem", "definition", "opaque constant"}
    assert names["definition"] == ["Nat.gcd"]
    assert names["opaque constant"] == ["Lean.reduceBool"]
    assert "Nat.succ_pos" in names["theorem"]
    # The small library names `String.append` only, whose body names this theorem.
    assert "String.append._proof_1" in names["theorem"]
    # An axiom is no constant whose body is left out.
    assert not any("Lean.ofReduceBool" in of_kind for of_kind in names.values())
    assert names["theorem"] == sorted(names["theorem"])
    assert len(names["theorem"]) < 1000
    assert audit.trusted == on_trust(names)
    assert audit.to_json()["trusted_names"] == names


@pytest.mark.parametrize(
    ("names", "start"),
    [
        ({}, "nothing that is reached of Lean's own modules lacks its proof"),
        ({"theorem": ["a"]}, "1 theorem of Lean's own modules are"),
        (
            {"theorem": ["a", "b"], "opaque constant": ["c"], "definition": ["d", "e"]},
            "2 theorems, 2 definitions and 1 opaque constant of Lean's own modules are taken on",
        ),
    ],
)
def test_the_sentence_on_what_is_taken_on_trust(names: dict[str, list[str]], start: str) -> None:
    assert on_trust(names).startswith(start)


def test_the_classes_and_their_instances(audit: Audit) -> None:
    assert audit.classes() == {"Base": ["pair"], "Derived": ["instDerivedNat"], "Empty'": []}
    assert audit.to_json()["classes"] == audit.classes()


def test_a_lemma_that_two_modules_make_is_checked_in_both(audit: Audit, reached: Reached) -> None:
    counts = dict(zip(SOURCES, (checked for checked, _ in reached), strict=False))
    assert counts["One"] - counts["Base"] == counts["Two"] - counts["One"] > 1
    assert not any("two modules" in problem for problem in audit.problems)


def test_the_kernel_rejects_a_proof_that_does_not_fit(project: EmbeddedLean, audit: Audit) -> None:
    """The stored `x` is another than the one that the stored proof of `x = 1` was made for."""
    assert not any("the kernel" in problem for problem in audit.problems)
    store_another(project, "Small.X", "1", "2")
    (problem,) = project.audit(["Small.Proof"]).problems
    project.stock("Small.X").unlink()
    assert project.build(["Small.X"]).built == ("Small.X",)
    assert problem.startswith("the kernel does not accept the stored proofs: ")
    assert "one_is" in problem


def test_an_audit_that_does_not_end_is_ended(
    project: EmbeddedLean, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "AUDIT_LIMIT", Limit(0.01))
    with pytest.raises(ToolchainError) as caught:
        project.audit(["Small.Good"])
    said = str(caught.value)
    assert said.startswith("the audit was ended, since it used ")
    assert " s of processor time, of 0.01 s allowed, in " in said
    assert said.endswith("; it waited for its first answer")
