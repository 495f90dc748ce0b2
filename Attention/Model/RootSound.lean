module

public import Attention.Model.IntervalSound

public section

/-! # The interval of an inverse root contains it -/

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

end Attention.Model.Interval
