"""A statement that says nothing is found, and why; one that says something is not. A statement is
printed with all that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bridge.audit.statements import Statement, read
from bridge.toolchain import find
from bridge.toolchain.embedded import EmbeddedLean

ROOT = Path(__file__).resolve().parents[3]
DEFINITIONS = """module
public section
class Exp (R : Type) where
  exp : R → R
export Exp (exp)
@[expose] def double (n : Nat) : Nat := n + n
@[expose] def twice (n : Nat) : Nat := 2 * n
abbrev other (n : Nat) : Nat := double n
abbrev Same (n : Nat) : Prop := n = n
structure Small where
  val : Nat
class Doubling (R : Type) [Add R] extends Exp R where
  exp_eq : ∀ x : R, exp x = x + x
instance doubling : Doubling Nat where
  exp := double
  exp_eq _ := rfl
"""
# Statements with their proofs, by their errors; with each the conclusion as it is told.
SAME_TERM = {
    # Meant of `doubling`; but `e` is an instance too, and nearer.
    "local_instance (e : Doubling Nat) (x : Nat) : e.exp x = exp x := rfl": "exp x = exp x",
    "bound (f : Nat → Nat) : (fun x => f x) = (fun y => f y) := rfl": (
        "(fun x => f x) = fun y => f y"
    ),
    "same_iff (p : Prop) : True → (p ↔ p) := fun _ => Iff.rfl": "p ↔ p",
    "same_le : ∀ n : Nat, n ≤ n := Nat.le_refl": "n ≤ n",
    "same_ge : ∀ n : Nat, n ≥ n := Nat.le_refl": "n ≥ n",
    "same_heq (n : Nat) : HEq n n := HEq.rfl": "n ≍ n",
    "hidden (n : Nat) : Same n := rfl": "Same n",
    "with_let (n : Nat) : let m := n; m = n := rfl": "have m := n; m = n",
}
SAME_UNFOLDED = {
    "named (n : Nat) : other n = double n := rfl": "other n = double n",
    "instance_field (n : Nat) : doubling.exp n = double n := rfl": "exp n = double n",
}
OF_A_TERM = {
    "result (n : Nat) : ∃ r, r = double n := ⟨_, rfl⟩": "∃ r, r = double n",
    "result_on_the_right : ∀ n : Nat, 0 < n → ∃ r, double n = r := fun _ _ => ⟨_, rfl⟩": (
        "∃ r, double n = r"
    ),
    "result_for_all (n : Nat) (standard : Fin n → Nat) : ∃ result : Fin n → Nat, "
    "∀ i, result i = standard i := ⟨_, fun _ => rfl⟩": (
        "∃ result, ∀ (i : Fin n), result i = standard i"
    ),
    "result_of_two : ∃ f : Nat → Nat → Nat, ∀ m n, 0 < m → f n m = m + double n := "
    "⟨fun n m => m + double n, fun _ _ _ => rfl⟩": (
        "∃ f, ∀ (m n : Nat), 0 < m → f n m = m + double n"
    ),
    "results (n : Nat) : ∃ r, r = double n ∧ ∃ s t, (s = r + t ∧ t = n) := "
    "⟨_, rfl, _, _, rfl, rfl⟩": "∃ r, r = double n ∧ ∃ s t, s = r + t ∧ t = n",
    "result_vector (n : Nat) (standard : Fin n → Nat) : ∃ result : Vector Nat n, "
    "∀ i : Fin n, result[i] = standard i := ⟨Vector.ofFn standard, by simp⟩": (
        "∃ result, ∀ (i : Fin n), result[i] = standard i"
    ),
    "result_matrix (x : Vector Nat 3) : ∃ r : Vector (Vector Nat 2) 3, "
    "∀ (j : Fin 2) (i : Fin 3), x[i] + j = r[i][j] := "
    "⟨Vector.ofFn fun i => Vector.ofFn fun j => x[i] + j, by simp⟩": (
        "∃ r, ∀ (j : Fin 2) (i : Fin 3), x[i] + ↑j = r[i][j]"
    ),
    "result_of_any : ∃ m r, r = double m := ⟨0, _, rfl⟩": "∃ m r, r = double m",
    "some_property (p : Nat → Prop) : ∃ q : Nat → Prop, ∀ n, p n ↔ q n := ⟨p, fun _ => Iff.rfl⟩": (
        "∃ q, ∀ (n : Nat), p n ↔ q n"
    ),
}
ASSUMED = {
    "assumed (n : Nat) (h : 0 < n) : 0 < n := h": "0 < n",
    "assumed_all (p : Nat → Prop) (h : ∀ n, p n) : ∀ m, p m := h": "∀ (m : Nat), p m",
    "assumed_part (p q : Prop) (h : p ∧ q) : q := h.2": "q",
}
REASONS = (
    (SAME_TERM, "has the same term on both sides"),
    (SAME_UNFOLDED, "has the same on both sides, abbreviations and instances unfolded"),
    (OF_A_TERM, "says only that something equals a term"),
    (ASSUMED, "is one of its hypotheses"),
)
# By statement: all that is wrong, also where it is no conclusion alone.
EMPTY = {
    theorem: f"its conclusion `{conclusion}` {reason}"
    for theorems, reason in REASONS
    for theorem, conclusion in theorems.items()
} | {
    "anything (n : Nat) : 0 < n → True := fun _ => trivial": (
        "its conclusion `True` holds of anything"
    ),
    "assumed_of_all (n : Nat) (h : ∀ m : Nat, double m = twice m) : double n = twice n := h n": (
        "its conclusion `double n = twice n` is an instance of its hypothesis "
        "`∀ (m : Nat), double m = twice m`"
    ),
    "assumed_exchanged (n : Nat) (h : ∀ m : Nat, twice m = double m) : double n = twice n := "
    "(h n).symm": (
        "its conclusion `double n = twice n` is an instance of its hypothesis "
        "`∀ (m : Nat), twice m = double m`"
    ),
    "one_part (n : Nat) : double n = twice n ∧ ∀ m : Nat, m = m := "
    "⟨by simp only [double, twice]; omega, fun _ => rfl⟩": (
        "the part `m = m` of its conclusion has the same term on both sides"
    ),
    "nested_part (p q : Prop) (h : p) (k : q) : (True ∧ p) ∧ q := ⟨⟨trivial, h⟩, k⟩": (
        "the part `True` of its conclusion holds of anything"
    ),
    "result_part (n : Nat) : double n = twice n ∧ ∃ r, r = twice n := "
    "⟨by simp only [double, twice]; omega, _, rfl⟩": (
        "the part `∃ r, r = twice n` of its conclusion says only that something equals a term"
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
    "assumed_of_some (h : ∀ n, n < 5 → double n = twice n) : double 1 = twice 1 := h 1 (by decide)",
    "positive_result (n : Nat) (h : 0 < n) : ∃ r, r = double n ∧ 0 < r := "
    "⟨_, rfl, by simp only [double]; omega⟩",
    "preimage : ∃ r, double r = 4 := ⟨2, by decide⟩",
    "one_result_two_terms (n : Nat) : ∃ r, r = double n ∧ r = twice n := "
    "⟨_, rfl, by simp only [double, twice]; omega⟩",
    "fixed : ∃ r, r = double r := ⟨0, by decide⟩",
    "fixed_together : ∃ r s, r = double s ∧ s = r := ⟨0, 0, by decide⟩",
    "constant : ∃ r, ∀ n, r = double n - twice n := "
    "⟨0, fun n => by simp only [double, twice]; omega⟩",
    "of_one_argument : ∃ f : Nat → Nat, ∀ m n, f n = double n + (m - m) := "
    "⟨double, fun m n => by omega⟩",
    "constant_vector : ∃ r : Vector Nat 2, ∀ i j : Fin 2, r[i] = double j - twice j := "
    "⟨#v[0, 0], by decide⟩",
    "first_of_a_vector : ∃ r : Vector Nat 2, r[0] = 1 ∧ r[1] = double r[0] := "
    "⟨#v[1, 2], by decide⟩",
    "fixed_vector : ∃ r : Vector Nat 2, ∀ i : Fin 2, r[i] = double r[i] := ⟨#v[0, 0], by decide⟩",
    "of_a_proof (n : Nat) (h : 0 < n) : ∃ (_ : 0 < double n) (r : Nat), r = n := "
    "⟨by simp only [double]; omega, _, rfl⟩",
    "an_element (n : Nat) (h : 0 < n) : ∃ (i : Fin n) (r : Nat), r = i := ⟨⟨0, h⟩, _, rfl⟩",
    "one_of_two (n : Nat) : ∃ r, r = double n ∨ r = 0 := ⟨_, Or.inl rfl⟩",
    "denied (n : Nat) (h : n ≠ 0) (k : n ≠ 1) : 1 < n := by omega",
    "within : ∃ k, ∀ n, double n = k → double n < k + 1 := ⟨0, fun _ h => by omega⟩",
    "of_a_field (a : Small) (h : 0 < a.val) : double a.val ≠ 0 ∧ a.val ≠ 0 := "
    "⟨by simp only [double]; omega, by omega⟩",
    "refuted : ¬ ∀ n, double n = n := fun h => absurd (h 1) (by decide)",
)


# Theorems in the places that hide parts of their statements, and all of each.
PRINTED_IN = """
namespace Outer.Inner
class Law (R : Type) [Add R] [Mul R] : Prop where
  add_self : ∀ x : R, x + x = x * x
@[expose] def square {R : Type} [Mul R] (x : R) : R := x * x
end Outer.Inner
namespace Outer.Proof
open Inner
section
variable {R : Type} [Add R] [Mul R] [Law R] (h : ∀ x : R, square x = x)
include h in
theorem included (x : R) : x + x = x := (Law.add_self x).trans (h x)
end
theorem explicit {α : Type} {f : α → α} (involution : ∀ x, f (f x) = x)
    (commutes_with_the_square : ∀ x, f x = x) (x : α) : f x = x := commutes_with_the_square x
end Outer.Proof
"""
PRINTED = {
    "Outer.Proof.included": "Outer.Proof.included {R : Type} [Add R] [Mul R] [Law R] "
    "(h : ∀ (x : R), square x = x) (x : R) :\n  x + x = x",
    "Outer.Proof.explicit": "Outer.Proof.explicit {α : Type} {f : α → α} "
    "(involution : ∀ (x : α), f (f x) = x)\n"
    "  (commutes_with_the_square : ∀ (x : α), f x = x) (x : α) : f x = x",
}


def name(theorem: str) -> str:
    return theorem.split()[0]


@pytest.fixture(scope="module")
def found(exchange_project: Callable[[dict[str, str]], EmbeddedLean]) -> Mapping[str, Statement]:
    lean = exchange_project({})
    text = DEFINITIONS + "".join(f"theorem {one}\n" for one in (*EMPTY, *FULL)) + PRINTED_IN
    (lean.root / "Small.lean").write_text(text, "utf-8")
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages if m.severity == "error"]
    names = [*map(name, (*EMPTY, *FULL)), *PRINTED]
    return read(lean, dict.fromkeys(names, "Small.lean"))


@pytest.mark.parametrize(("theorem", "why"), EMPTY.items(), ids=map(name, EMPTY))
def test_a_statement_that_says_nothing_is_found(
    theorem: str, why: str, found: Mapping[str, Statement]
) -> None:
    assert found[name(theorem)].empty == why


@pytest.mark.parametrize("theorem", FULL, ids=name)
def test_a_statement_that_says_something_passes(
    theorem: str, found: Mapping[str, Statement]
) -> None:
    assert found[name(theorem)].empty is None


@pytest.mark.parametrize(
    ("theorem", "names"),
    [
        # A hypothesis that has premises of its own is no instance, and supposes all the same.
        ("assumed_of_some", {"double", "twice"}),
        ("parts_of_it", set()),
        ("positive_result", set()),
        # A hypothesis within the conclusion is one, too.
        ("within", {"double"}),
        # The field of a structure, and a mere conclusion, are not supposed.
        ("of_a_field", set()),
    ],
)
def test_what_is_both_supposed_and_concluded_is_told(
    theorem: str, names: set[str], found: Mapping[str, Statement]
) -> None:
    assert {"double", "twice", "other", "Small.val"} & set(found[theorem].supposed) == names


@pytest.mark.parametrize(("theorem", "text"), PRINTED.items())
def test_a_statement_is_printed_with_its_classes_and_hypotheses(
    theorem: str, text: str, found: Mapping[str, Statement]
) -> None:
    assert found[theorem].text == text


# Theorems whose hypotheses or classes come from `variable` and `include`: the file, and a part.
HIDDEN = {
    "Attention.Proof.attention_real": (
        "Attention/Proof/Real/Exact.lean",
        "(hmodify : ModIsReal modify modify')",
    ),
    "Attention.Proof.vjp_real": (
        "Attention/Proof/Real/Backward.lean",
        "(hslope : SlopeIsReal slope slope')",
    ),
    "Attention.Claims.transformer_memorises": (
        "Attention/Claims/Memorise/Theorem.lean",
        "(root : ∀ (x : R), 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε) (positive : 0 < exp 0) "
        "(width : memoryWidth s t s_vocab t_vocab ≤ d_model)",
    ),
    "Attention.Claims.Bounded.encodePostNorm": (
        "Attention/Claims/Approximation/Bounded.lean",
        "[OrderedField R] [Exponential R R] {sqrt : R → R} {ε σ₀ : R} (h₀ : 0 < σ₀) "
        "(hsqrt : ∀ (z : R), ε ≤ z → σ₀ ≤ sqrt z)",
    ),
    "Attention.Proof.encoder_enclosed": (
        "Attention/Proof/Enclosure/Stacks.lean",
        "[OrderedField R] [NaturalExp R] {p n d_model num_heads d d_ff : Nat} {root : R → R} "
        "(hroot : Interval.IsSqrt root)",
    ),
    "Attention.Proof.decoder_enclosed": (
        "Attention/Proof/Enclosure/Stacks.lean",
        "(hscale : scale'.Contains scale)",
    ),
    "Attention.Vectors.transformer_vectors_sound": (
        "Attention/Vectors/TransformerSound.lean",
        "[NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root) {number : Rat → R} "
        "(hnumber : IsNumber number)",
    ),
    "Attention.Vectors.transformer_tokens_sound": (
        "Attention/Vectors/TransformerTokens.lean",
        "[OrderedField R] [NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root)",
    ),
}


@pytest.mark.thorough
def test_theorems_of_the_library_show_what_variable_and_include_add() -> None:
    lean = find(ROOT, announce=print)
    assert lean.build().ok
    found = read(lean, {theorem: file for theorem, (file, _) in HIDDEN.items()})
    for theorem, (_, part) in HIDDEN.items():
        assert part in " ".join(found[theorem].text.split())
