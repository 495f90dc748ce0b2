module

public import Attention.Model.Rounding

public section

/-! # Masked rows in a function that rounds -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R]

/-- 0 stays 0, rounded. -/
private theorem rounded_zero_eq {u x : R} (h : Rounded u 0 x) : x = 0 := by
  obtain ⟨θ, -, rfl⟩ := h
  grind

/-- Zeros sum to 0. -/
private theorem roundedSum_zeros {u z : R} {k : Nat} {xs : List R} (h : RoundedSum u k xs z)
    (hx : ∀ x ∈ xs, x = 0) : z = 0 := by
  induction h with
  | nil => rfl
  | one => exact hx _ (by simp)
  | zero _ ih => exact ih fun x h => hx x (by simp [h])
  | add _ _ hx' hy' ihx ihy =>
    rw [ihx fun x h => hx x (by simp [h])] at hx'
    rw [ihy fun x h => hx x (by simp [h])] at hy'
    rw [rounded_zero_eq hx', rounded_zero_eq hy']
    exact Lean.Grind.Semiring.add_zero 0
  | permute _ hp ih => exact ih fun x h => hx x (hp.mem_iff.mp h)

/-- With every key masked, denominator and numerator are exactly 0, whatever is rounded. -/
theorem run_masked [Exp R R] {p : Precision R} {m : R} {part : Part R} (h : Run p m part) :
    (∀ key ∈ part.keys, key.score = none) → part.l = 0 ∧ part.o = 0 := by
  induction h with
  | masked => exact fun _ => ⟨rfl, rfl⟩
  | key hs => exact fun h => absurd (h _ (by simp)) hs
  | @join m l o parts a k r _ _ hl ho ih =>
    intro h
    have h' : ∀ part ∈ parts, part.l = 0 ∧ part.o = 0 := fun part hp => ih part hp
      fun key hk => h key (List.mem_flatMap.mpr ⟨part, hp, hk⟩)
    refine ⟨roundedSum_zeros hl fun x hx => ?_, roundedSum_zeros ho fun x hx => ?_⟩ <;>
      obtain ⟨part, hp, rfl⟩ := List.mem_map.mp hx
    · exact (h' part hp).1
    · exact (h' part hp).2
  | rescale _ _ _ _ hl ho ih =>
    intro h
    obtain ⟨h₁, h₂⟩ := ih h
    rw [h₁, Lean.Grind.Semiring.mul_zero] at hl
    rw [h₂, Lean.Grind.Semiring.mul_zero] at ho
    exact ⟨rounded_zero_eq hl, rounded_zero_eq ho⟩

/-- Where each key that is not masked has the value 0, as a sink has, the numerator is exactly 0. -/
theorem run_valueless [Exp R R] {p : Precision R} {m : R} {part : Part R} (h : Run p m part) :
    (∀ key ∈ part.keys, key.score ≠ none → key.value = 0) → part.o = 0 := by
  induction h with
  | masked => exact fun _ => rfl
  | key hs _ _ _ _ ho =>
    intro h
    rw [h _ (by simp) hs, Lean.Grind.Semiring.mul_zero] at ho
    exact rounded_zero_eq ho
  | @join m l o parts a k r _ _ _ ho ih =>
    intro h
    refine roundedSum_zeros ho fun x hx => ?_
    obtain ⟨part, hp, rfl⟩ := List.mem_map.mp hx
    exact ih part hp fun key hk => h key (List.mem_flatMap.mpr ⟨part, hp, hk⟩)
  | rescale _ _ _ _ _ ho ih =>
    intro h
    rw [ih h, Lean.Grind.Semiring.mul_zero] at ho
    exact rounded_zero_eq ho

end Attention.Proof
