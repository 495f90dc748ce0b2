module

public import Attention.Algebra.Ordered

public section

/-! # Products, quotients and powers, and the order -/

namespace Attention.OrderedField

open Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- Products of larger non-negative numbers are larger. -/
theorem mul_le_mul {a b c d : R} (ha : 0 ≤ a) (hab : a ≤ b) (hc : 0 ≤ c) (hcd : c ≤ d) :
    a * c ≤ b * d :=
  Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hcd ha)
    (OrderedRing.mul_le_mul_of_nonneg_right hab (Std.le_trans hc hcd))

/-- A power of a positive number is positive. -/
theorem pow_pos {x : R} (hx : 0 < x) (n : Nat) : 0 < x ^ n := by
  induction n with
  | zero =>
    rw [Semiring.pow_zero]
    exact OrderedRing.zero_lt_one
  | succ n ih =>
    rw [Semiring.pow_succ]
    exact OrderedRing.mul_pos ih hx

/-- A power of a number from 1 on is at least 1. -/
theorem one_le_pow {x : R} (hx : 1 ≤ x) (n : Nat) : 1 ≤ x ^ n := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  induction n with
  | zero =>
    rw [Semiring.pow_zero]
    exact Std.le_refl _
  | succ n ih =>
    have := mul_le_mul (Std.le_of_lt h₁) ih (Std.le_of_lt h₁) hx
    rw [Semiring.pow_succ]
    grind

/-- More factors from 1 on give a larger power. -/
theorem pow_le_pow {x : R} (hx : 1 ≤ x) {k n : Nat} (h : k ≤ n) : x ^ k ≤ x ^ n := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨d, rfl⟩ := Nat.exists_eq_add_of_le h
  have := OrderedRing.mul_le_mul_of_nonneg_left (one_le_pow hx d)
    (Std.le_of_lt (pow_pos (x := x) (by grind) k))
  rw [Semiring.pow_add]
  grind

/-- A power of a positive number up to 1 is at most 1. -/
theorem pow_le_one {x : R} (hx : 0 < x) (hx₁ : x ≤ 1) (n : Nat) : x ^ n ≤ 1 := by
  induction n with
  | zero =>
    rw [Semiring.pow_zero]
    exact Std.le_refl _
  | succ n ih =>
    have := mul_le_mul (Std.le_of_lt (pow_pos hx n)) ih (Std.le_of_lt hx) hx₁
    rw [Semiring.pow_succ]
    grind

/-- More factors up to 1 give a smaller power. -/
theorem pow_le_pow_of_le_one {x : R} (hx : 0 < x) (hx₁ : x ≤ 1) {k n : Nat} (h : k ≤ n) :
    x ^ n ≤ x ^ k := by
  obtain ⟨d, rfl⟩ := Nat.exists_eq_add_of_le h
  have := OrderedRing.mul_le_mul_of_nonneg_left (pow_le_one hx hx₁ d)
    (Std.le_of_lt (pow_pos hx k))
  rw [Semiring.pow_add]
  grind

/-- A positive number divided by a positive one is positive. -/
theorem div_pos {a b : R} (ha : 0 < a) (hb : 0 < b) : 0 < a / b := by
  have h := div_nonneg (Std.le_of_lt ha) hb
  have := mul_div_cancel (b := b) (by grind) a
  have : a / b ≠ 0 := fun h₀ => by
    rw [h₀] at this
    grind
  grind

/-- A larger denominator gives a smaller quotient. -/
theorem div_le_div_left {a b c : R} (ha : 0 ≤ a) (hb : 0 < b) (hbc : b ≤ c) :
    a / c ≤ a / b := by
  rw [div_le_iff (by grind)]
  have h₁ := mul_div_cancel (b := b) (by grind) a
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hbc (div_nonneg ha hb)
  grind

end Attention.OrderedField
