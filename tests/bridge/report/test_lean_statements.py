"""A statement that says nothing is found, and why; one that says something is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridge.report.statements import findings
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.prepare import prepare

LAKEFILE = "package small\n@[default_target]\nlean_lib Small\n"
DEFINITIONS = """module
public section
class Exp (R : Type) where
  exp : R → R
export Exp (exp)
@[expose] def double (n : Nat) : Nat := n + n
@[expose] def twice (n : Nat) : Nat := 2 * n
abbrev other (n : Nat) : Nat := double n
abbrev Same (n : Nat) : Prop := n = n
class Doubling (R : Type) [Add R] extends Exp R where
  exp_eq : ∀ x : R, exp x = x + x
instance doubling : Doubling Nat where
  exp := double
  exp_eq _ := rfl
"""
# By name: the statement with its proof, and what is wrong with it.
EMPTY = {
    # Meant of `doubling`; but `e` is an instance too, and nearer.
    "local_instance (e : Doubling Nat) (x : Nat) : e.exp x = exp x := rfl": (
        "its conclusion `exp x = exp x` has the same term on both sides"
    ),
    "bound (f : Nat → Nat) : (fun x => f x) = (fun y => f y) := rfl": (
        "its conclusion `(fun x => f x) = fun y => f y` has the same term on both sides"
    ),
    "same_iff (p : Prop) : True → (p ↔ p) := fun _ => Iff.rfl": (
        "its conclusion `p ↔ p` has the same term on both sides"
    ),
    "same_le : ∀ n : Nat, n ≤ n := Nat.le_refl": (
        "its conclusion `n ≤ n` has the same term on both sides"
    ),
    "same_ge : ∀ n : Nat, n ≥ n := Nat.le_refl": (
        "its conclusion `n ≥ n` has the same term on both sides"
    ),
    "same_heq (n : Nat) : HEq n n := HEq.rfl": (
        "its conclusion `n ≍ n` has the same term on both sides"
    ),
    "named (n : Nat) : other n = double n := rfl": (
        "its conclusion `other n = double n` has the same on both sides, "
        "abbreviations and instances unfolded"
    ),
    "hidden (n : Nat) : Same n := rfl": "its conclusion `Same n` has the same term on both sides",
    "instance_field (n : Nat) : doubling.exp n = double n := rfl": (
        "its conclusion `exp n = double n` has the same on both sides, "
        "abbreviations and instances unfolded"
    ),
    "with_let (n : Nat) : let m := n; m = n := rfl": (
        "its conclusion `have m := n; m = n` has the same term on both sides"
    ),
    "anything (n : Nat) : 0 < n → True := fun _ => trivial": (
        "its conclusion `True` holds of anything"
    ),
    "assumed (n : Nat) (h : 0 < n) : 0 < n := h": (
        "its conclusion `0 < n` is one of its hypotheses"
    ),
    "assumed_all (p : Nat → Prop) (h : ∀ n, p n) : ∀ m, p m := h": (
        "its conclusion `∀ (m : Nat), p m` is one of its hypotheses"
    ),
    "assumed_part (p q : Prop) (h : p ∧ q) : q := h.2": (
        "its conclusion `q` is one of its hypotheses"
    ),
    "one_part (n : Nat) : double n = twice n ∧ ∀ m : Nat, m = m := "
    "⟨by simp only [double, twice]; omega, fun _ => rfl⟩": (
        "the part `m = m` of its conclusion has the same term on both sides"
    ),
    "nested_part (p q : Prop) (h : p) (k : q) : (True ∧ p) ∧ q := ⟨⟨trivial, h⟩, k⟩": (
        "the part `True` of its conclusion holds of anything"
    ),
    "contradicting (n : Nat) (h : n = 0) (k : n ≠ 0) : double n = 1 := absurd h k": (
        "its hypotheses `n = 0` and `n ≠ 0` contradict each other"
    ),
    "contradicting' (p : Prop) (k : p → False) (h : p) : double 0 = 1 := absurd h k": (
        "its hypotheses `p` and `p → False` contradict each other"
    ),
    "absurdly (n : Nat) (h : n = 1 ∧ False) : double n = 1 := h.2.elim": (
        "its hypothesis `False` cannot hold"
    ),
    "unlike_itself (n : Nat) (h : n ≠ n) : double n = 1 := absurd rfl h": (
        "its hypothesis `n ≠ n` cannot hold"
    ),
}
FULL = (
    "two_definitions (n : Nat) : double n = twice n := by simp only [double, twice]; omega",
    "by_computation : double 2 = 4 := by decide",
    "of_instances (e : Doubling Nat) (x : Nat) : e.exp x = doubling.exp x := e.exp_eq x",
    "of_sum (e : Doubling Nat) (x : Nat) : e.exp x = x + x := e.exp_eq x",
    "parts_of_it (n : Nat) (h : 0 < n) : double n = twice n ∧ 0 < double n := "
    "⟨by simp only [double, twice]; omega, by simp only [double]; omega⟩",
    "not_assumed (p : Nat → Prop) (h : p 0) (k : ∀ n, p n → p (n + 1)) : p 1 := k 0 h",
    "denied (n : Nat) (h : n ≠ 0) (k : n ≠ 1) : 1 < n := by omega",
    "refuted : ¬ ∀ n, double n = n := fun h => absurd (h 1) (by decide)",
)


def name(theorem: str) -> str:
    return theorem.split()[0]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    root = tmp_path_factory.mktemp("statements")
    (root / "lakefile.lean").write_text(LAKEFILE, "utf-8")
    text = DEFINITIONS + "".join(f"theorem {one}\n" for one in (*EMPTY, *FULL))
    (root / "Small.lean").write_text(text, "utf-8")
    lean = EmbeddedLean(root, prepare(print))
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages if m.severity == "error"]
    return findings(lean, [name(one) for one in (*EMPTY, *FULL)])


@pytest.mark.parametrize(("theorem", "why"), EMPTY.items(), ids=map(name, EMPTY))
def test_a_statement_that_says_nothing_is_found(
    theorem: str, why: str, found: Mapping[str, str]
) -> None:
    assert found.get(name(theorem)) == why


@pytest.mark.parametrize("theorem", FULL, ids=name)
def test_a_statement_that_says_something_passes(theorem: str, found: Mapping[str, str]) -> None:
    assert name(theorem) not in found
