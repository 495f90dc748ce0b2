module

public import Attention.Algebra.Exponential
public import Attention.Algebra.Magnitude

public section

/-! # The natural exponential is its own derivative

From 1 + x ≤ exp x alone: what exp (x + h) differs from exp x + h · exp x by is of the second order
in h. -/

namespace Attention.Proof

open Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- exp h is at least 1 + h, and at most 2 h² more. -/
theorem exp_sub_tangent {h : R} (hh : AtMost 1 h) :
    0 ≤ exp h - 1 - h ∧ exp h - 1 - h ≤ 2 * (h * h) := by
  obtain ⟨h₁, h₂⟩ := hh
  have hlow := NaturalExp.one_add_le_exp h
  refine ⟨by grind, ?_⟩
  have e₁ : (exp h : R) = exp (h / 2) * exp (h / 2) := by
    rw [← exp_add]
    congr 1
    grind
  have e₂ : (exp (h / 2) : R) * exp (-(h / 2)) = 1 := by
    rw [← exp_add, ← exp_zero (S := R)]
    congr 1
    grind
  have hpos := exp_pos (R := R) (h / 2)
  have hneg := NaturalExp.one_add_le_exp (-(h / 2))
  have hc : (0 : R) < 1 - h / 2 := by grind
  have e₃ : exp (h / 2) * (1 - h / 2) ≤ 1 := by
    have := OrderedRing.mul_le_mul_of_nonneg_left hneg (Std.le_of_lt hpos)
    grind
  have e₄ : exp h * ((1 - h / 2) * (1 - h / 2)) ≤ 1 := by
    have h₃ := OrderedRing.mul_nonneg (Std.le_of_lt hpos) (Std.le_of_lt hc)
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_left e₃ h₃
    rw [e₁]
    grind
  have e₅ : 1 ≤ (1 + h + 2 * (h * h)) * ((1 - h / 2) * (1 - h / 2)) := by
    have h₅ := OrderedRing.mul_nonneg (mul_self_nonneg h)
      (OrderedRing.mul_nonneg (a := 1 - h) (b := 5 / 4 - h / 2) (by grind) (by grind))
    grind
  have hcc := OrderedRing.mul_pos hc hc
  have := (Field.IsOrdered.mul_le_mul_iff_of_pos_right (a := exp h)
    (b := 1 + h + 2 * (h * h)) hcc).mp (Std.le_trans e₄ e₅)
  grind

/-- **exp-derivative**: |exp (x + h) − exp x − h · exp x| ≤ 2 h² · exp x for |h| ≤ 1. -/
theorem exp_isDerivative (x : R) {h : R} (hh : AtMost 1 h) :
    AtMost (2 * (h * h) * exp x) (exp (x + h) - exp x - h * exp x) := by
  obtain ⟨h₁, h₂⟩ := exp_sub_tangent hh
  have hx := exp_pos (R := R) x
  have e : exp (x + h) - exp x - h * exp x = (exp h - 1 - h) * exp x := by
    rw [exp_add]
    grind
  have h₃ := OrderedRing.mul_nonneg h₁ (Std.le_of_lt hx)
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ (Std.le_of_lt hx)
  rw [e]
  exact ⟨by grind, h₄⟩

end Attention.Proof
