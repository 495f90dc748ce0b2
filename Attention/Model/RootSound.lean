module

public import Attention.Model.IntervalSound

public section

/-! # The intervals of a root and of an inverse root contain them

A root is said by its square, so that no field has to have roots. -/

namespace Attention.Model.Interval

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p : Nat}

private theorem le_of_square_le {a b : R} (hb : 0 ≤ b) (h : a * a ≤ b * b) : a ≤ b := by
  refine Classical.byContradiction fun hn => ?_
  have hba : b < a := Std.not_le.mp hn
  have h₁ := OrderedRing.mul_lt_mul_of_pos_left hba (Std.lt_of_le_of_lt hb hba)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_of_lt hba) hb
  exact Std.not_lt.mpr (Std.le_refl _) (Std.lt_of_lt_of_le h₁ (Std.le_trans h h₂))

/-- **inv-sqrt-enclosed**: the interval contains 1 / √d, the number s ≥ 0 with d · s² = 1. -/
theorem contains_invSqrt {d : Nat} {s : R} (h₀ : 0 ≤ s) (h : ((d : Int) : R) * (s * s) = 1) :
    (invSqrt d : Interval p).Contains s := by
  simp only [invSqrt]
  split
  · next hr =>
    generalize sqrtCandidate _ _ _ = r at hr
    obtain ⟨_, h₁, h₂⟩ := hr
    have hU : (0 : R) < unit R p := unit_pos
    have hs : (0 : R) ≤ s * unit R p := OrderedRing.mul_nonneg h₀ (Std.le_of_lt hU)
    have hd : (0 : R) < ((d : Int) : R) := by
      refine OrderedRing.pos_intCast_of_pos _ (Int.natCast_pos.mpr (Nat.pos_of_ne_zero ?_))
      rintro rfl
      rw [Int.natCast_zero, Ring.intCast_zero, Semiring.zero_mul] at h
      exact Field.zero_ne_one h
    have e : unit R p * unit R p = s * unit R p * (s * unit R p) * ((d : Int) : R) := by
      have : s * unit R p * (s * unit R p) * ((d : Int) : R)
          = ((d : Int) : R) * (s * s) * (unit R p * unit R p) := by grind only
      rw [this, h, Semiring.one_mul]
    have l₁ := intCast_le (R := R) h₁
    have l₂ := intCast_le (R := R) h₂
    have h₅ : ((2 ^ p * 2 ^ p : Int) : R) = unit R p * unit R p := by rw [Ring.intCast_mul]; rfl
    rw [h₅, e, Ring.intCast_mul] at l₁ l₂
    have m₁ := (Field.IsOrdered.mul_le_mul_iff_of_pos_right hd).mp l₁
    have m₂ := (Field.IsOrdered.mul_le_mul_iff_of_pos_right hd).mp l₂
    rw [Ring.intCast_mul] at m₁ m₂
    exact ⟨le_of_square_le hs m₁,
      le_of_square_le (OrderedRing.nonneg_intCast_of_nonneg _ (by omega)) m₂⟩
  · trivial

/-! ## Roots -/

/-- **sqrt-enclosed**: the interval of square roots contains every r ≥ 0 with r² in the interval. -/
theorem contains_sqrt {I : Interval p} {r : R} (h₀ : 0 ≤ r) (h : I.Contains (r * r)) :
    (sqrt I).Contains r := by
  cases I with
  | all => trivial
  | between a b =>
    simp only [sqrt]
    generalize sqrtFloor (a * 2 ^ p) = lo
    generalize (if b * 2 ^ p ≤ _ then _ else _) = hi
    split
    · next hr =>
      obtain ⟨-, hhi, h₁, h₂⟩ := hr
      obtain ⟨h₃, h₄⟩ := h
      have hU := Std.le_of_lt (unit_pos (R := R) (p := p))
      have hs : (0 : R) ≤ r * unit R p := OrderedRing.mul_nonneg h₀ hU
      have e : r * unit R p * (r * unit R p) = r * r * unit R p * unit R p := by grind only
      have l₁ := intCast_le (R := R) h₁
      have l₂ := intCast_le (R := R) h₂
      rw [Ring.intCast_mul, Ring.intCast_mul] at l₁ l₂
      have m₁ := OrderedRing.mul_le_mul_of_nonneg_right h₃ hU
      have m₂ := OrderedRing.mul_le_mul_of_nonneg_right h₄ hU
      rw [← e] at m₁ m₂
      exact ⟨le_of_square_le hs (Std.le_trans l₁ m₁),
        le_of_square_le (OrderedRing.nonneg_intCast_of_nonneg _ hhi) (Std.le_trans m₂ l₂)⟩
    · trivial

/-- A square root of the numbers that are not negative; of the others nothing is said. -/
@[expose] def IsSqrt (root : R → R) : Prop :=
  ∀ a : R, 0 ≤ a → 0 ≤ root a ∧ root a * root a = a

/-- The roots of the numbers of an interval lie in its interval of square roots. -/
theorem contains_root {root : R → R} (hroot : IsSqrt root) {I : Interval p} {x : R}
    (h : I.Contains x) : (sqrt I).Contains (root x) := by
  rcases Std.le_total (a := (0 : R)) (b := x) with hx | hx
  · obtain ⟨h₀, e⟩ := hroot x hx
    exact contains_sqrt h₀ (by rwa [e])
  · cases I with
    | all => trivial
    | between a b =>
      by_cases ha : 0 ≤ a
      · have hU := Std.le_of_lt (unit_pos (R := R) (p := p))
        have h₁ := Std.le_trans (OrderedRing.nonneg_intCast_of_nonneg (R := R) a ha) h.1
        have h₀ : x = 0 := by
          refine Std.le_antisymm hx (le_of_mul_unit_le (p := p) ?_)
          rwa [Semiring.zero_mul]
        obtain ⟨h₂, e⟩ := hroot x (by rw [h₀]; exact Std.le_refl _)
        exact contains_sqrt h₂ (by rwa [e])
      · simp only [sqrt, ha, false_and, if_false]
        trivial

end Attention.Model.Interval
