module

public import Attention.Vectors.TransformerTokens

public section

/-! # Wrong variants of the place of the largest of some numbers, from bounds of them -/

namespace Attention.WrongVariants

open Spec Model Vectors

/-- The claim of `argmax_of_largest`, made of any way to choose a place. -/
abbrev FindsLargest (choose : List (Int × Int) → Except String Nat) : Prop :=
  ∀ (row : List (Int × Int)) (k n : Nat) (x : Vec Rat n), choose row = .ok k →
    Proof.Pointwise (fun b x => (Interval.between b.1 b.2 : Interval published).Contains x) row
      x.toList →
    ∃ j : Fin n, argmax x = some j ∧ j.val = k

/-- Positive control: the program's. -/
theorem largest_findsLargest : FindsLargest largest := fun _ _ _ _ h hrow =>
  argmax_of_largest h hrow

/-- The place of the largest lower bound, whatever the upper ones. -/
@[expose] def largestLower (row : List (Int × Int)) : Except String Nat :=
  let lower : Vec Int row.length := Vec.ofFn fun j => row[j].1
  match argmax lower with
  | some best => .ok best.val
  | none => .error "no logits"

private theorem eq_ok {e : Except String Nat} {k : Nat} (h : e.toOption = some k) : e = .ok k := by
  cases e with
  | error => cases h
  | ok => exact congrArg Except.ok (Option.some.inj h)

theorem largestLower_refuted : ¬ FindsLargest largestLower := fun h => by
  obtain ⟨j, hj, e⟩ := h [(0, 2 ^ published), (1, 2 ^ published)] 1 2 #v[1, 1 / 2]
    (eq_ok (by decide +kernel))
    ⟨⟨by decide +kernel, by decide +kernel⟩, ⟨by decide +kernel, by decide +kernel⟩, trivial⟩
  have : argmax (#v[1, 1 / 2] : Vec Rat 2) = some 0 := by decide +kernel
  rw [this] at hj
  cases hj
  cases e

end Attention.WrongVariants
