module

public import Attention.Kernel.Ops
public import Attention.Proof.Online.Attention

public section

/-! # Floats without rounding are the Spec's scores and numbers -/

namespace Attention.Kernel.Flt

open Spec Proof

universe u

variable {R : Type u} [OrderedField R]

/-- A score of the Spec as a float: masked is −∞. -/
@[expose] def ofScore : Option R → Flt R
  | none => ninf
  | some x => num x

theorem max_ofScore (a b : Option R) : max (ofScore a) (ofScore b) = ofScore (maxScore a b) := by
  cases a <;> cases b <;> rfl

theorem sum_num {n : Nat} {f : Nat → Flt R} {g : Nat → R} (h : ∀ j < n, f j = num (g j)) :
    sum n f = num (sumOver g (List.range n)) := by
  suffices ∀ l : List Nat, (∀ j ∈ l, f j = num (g j)) →
      l.foldr (fun j s => add (f j) s) (num 0) = num (sumOver g l) from
    this _ fun j hj => h j (List.mem_range.mp hj)
  intro l
  induction l with
  | nil => intro _; rfl
  | cons j l ih =>
    intro h
    rw [List.foldr_cons, ih fun j' hj' => h j' (List.mem_cons_of_mem _ hj'), h j (by simp)]
    rfl

theorem maxOver_ofScore {n : Nat} {f : Nat → Flt R} {g : Nat → Option R}
    (h : ∀ j < n, f j = ofScore (g j)) :
    maxOver n f = ofScore (rowMax ((List.range n).map g)) := by
  suffices ∀ l : List Nat, (∀ j ∈ l, f j = ofScore (g j)) →
      l.foldr (fun j s => max (f j) s) ninf = ofScore (rowMax (l.map g)) from
    this _ fun j hj => h j (List.mem_range.mp hj)
  intro l
  induction l with
  | nil => intro _; rfl
  | cons j l ih =>
    intro h
    rw [List.foldr_cons, ih fun j' hj' => h j' (List.mem_cons_of_mem _ hj'), h j (by simp),
      max_ofScore]
    rfl

/-- A product of numbers onto a number. -/
theorem dot_num {n : Nat} {a b : Nat → Flt R} {x y : Nat → R} {c : Flt R} {z : R}
    (ha : ∀ j < n, a j = num (x j)) (hb : ∀ j < n, b j = num (y j)) (hc : c = num z) :
    dot n a b c = num (z + sumOver (fun j => x j * y j) (List.range n)) := by
  rw [dot, hc, sum_num (g := fun j => x j * y j) fun j hj => by rw [ha j hj, hb j hj]; rfl]
  rfl

/-- A numerator times a factor is a number exactly if the numerator is one, or 0 times it. -/
theorem mul_maxScore {f : R} (hf : 0 ≤ f) {y : R} {p q : Option R}
    (h : mul (ofScore p) (num f) = ofScore q) :
    mul (ofScore (maxScore (some y) p)) (num f) = ofScore (maxScore (some (y * f)) q) := by
  cases p with
  | none =>
    cases q with
    | none => rfl
    | some q =>
      have h' : (if f ≤ 0 then undef else ninf) = num q := h
      split at h' <;> cases h'
  | some p =>
    cases q with
    | none => cases h
    | some q =>
      have h' : num (p * f) = num q := h
      injection h' with h'
      subst h'
      show num ((if y ≤ p then p else y) * f) = num (if y * f ≤ p * f then p * f else y * f)
      have h₁ := Lean.Grind.OrderedRing.mul_le_mul_of_nonneg_right (a := y) (b := p) (c := f)
      have h₂ := Lean.Grind.OrderedRing.mul_le_mul_of_nonneg_right (a := p) (b := y) (c := f)
      congr 1
      by_cases h₃ : y ≤ p
      · rw [if_pos h₃, if_pos (h₁ h₃ hf)]
      · have h₄ : p ≤ y := by grind
        have h₅ := h₂ h₄ hf
        rw [if_neg h₃]
        split <;> grind

/-- The largest of some numbers times a factor ≥ 0 is the largest of the products. -/
theorem mul_maxOver {f : R} (hf : 0 ≤ f) {n : Nat} (hn : 0 < n) {s : Nat → Flt R} {x : Nat → R}
    (hs : ∀ j < n, s j = num (x j)) :
    mul (maxOver n s) (num f)
      = ofScore (rowMax ((List.range n).map fun j => some (x j * f))) := by
  have h : ∀ (l : List Nat) (j : Nat), mul (ofScore (rowMax ((j :: l).map fun j => some (x j))))
      (num f) = ofScore (rowMax ((j :: l).map fun j => some (x j * f))) := by
    intro l
    induction l with
    | nil => intro _; rfl
    | cons j' l ih => intro _; exact mul_maxScore hf (ih j')
  rw [maxOver_ofScore (g := fun j => some (x j)) hs]
  cases e : List.range n with
  | nil => simp at e; omega
  | cons j l => exact h l j

/-- A kernel's 2^(s − m), with 0 in place of an infinite m, is the Spec's `rescale`; its argument is
never above 0. -/
theorem exp2_sub [Exponential R R] {s m : Option R} (h : ScoreLE s m) :
    exp2 (sub (ofScore s) (if oeq (ofScore m) ninf then num 0 else ofScore m))
      = num (rescale s m) := by
  cases m with
  | none => cases s with
    | none => rfl
    | some x => cases h
  | some y => cases s with
    | none => rfl
    | some x =>
      have h : x ≤ y := h
      have h' : x - y ≤ 0 := by grind
      show (if x - y ≤ 0 then num (Exp.exp (x - y)) else undef) = _
      rw [if_pos h']
      rfl

end Attention.Kernel.Flt
