module

public import Attention.Spec.ScoreMods

public section

/-! # The hyperbolic tangent, written with exp -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

private theorem exp_add_one_pos (x : R) : (0 : R) < exp x + 1 := by
  have := exp_pos (R := R) x
  grind

/-- 1 + tanh x = exp 2x · (1 − tanh x). -/
theorem one_add_tanh (x : R) : 1 + tanh x = exp (x + x) * (1 - tanh x) := by
  have := exp_add_one_pos (x + x)
  rw [tanh]
  grind

/-- (1 − tanh x) (exp 2x + 1) = 2. -/
private theorem one_sub_tanh_mul (x : R) : (1 - tanh x) * (exp (x + x) + 1) = 2 := by
  have := exp_add_one_pos (x + x)
  rw [tanh]
  grind

omit [Exponential R R] in
private theorem pos_of_mul_pos {a b : R} (hb : 0 < b) (h : 0 < a * b) : 0 < a := by
  apply Classical.byContradiction
  intro ha
  have := OrderedRing.mul_nonneg (a := -a) (b := b) (by grind) (by grind)
  grind

/-- tanh x < 1. -/
theorem tanh_lt_one (x : R) : tanh x < 1 := by
  have h := one_sub_tanh_mul x
  have := pos_of_mul_pos (exp_add_one_pos (x + x)) (a := 1 - tanh x) (by grind)
  grind

/-- −1 < tanh x. -/
theorem neg_one_lt_tanh (x : R) : -1 < tanh x := by
  have h₁ := tanh_lt_one x
  have h₂ := OrderedRing.mul_pos (exp_pos (R := R) (x + x)) (b := 1 - tanh x) (by grind)
  rw [← one_add_tanh] at h₂
  grind

/-- tanh is odd. -/
theorem tanh_neg (x : R) : tanh (-x) = -tanh x := by
  have h₁ := one_add_tanh x
  have h₂ := one_add_tanh (-x)
  have h₃ : (exp (x + x) : R) * exp (-x + -x) = 1 := by
    rw [← exp_add, ← exp_zero (S := R)]
    congr 1
    grind
  have h₄ := exp_add_one_pos (x + x)
  have h₅ : (1 + exp (x + x)) * (tanh (-x) + tanh x) = 0 := by grind
  grind

/-- tanh is strictly monotone. -/
theorem tanh_lt {x y : R} (h : x < y) : tanh x < tanh y := by
  have hx := one_sub_tanh_mul x
  have hy := one_sub_tanh_mul y
  have he := exp_lt (R := R) (x + x) (y + y) (by grind)
  have h₁ := tanh_lt_one x
  have h₂ := OrderedRing.mul_pos (a := 1 - tanh x)
    (b := exp (y + y) - exp (x + x)) (by grind) (by grind)
  have e : (tanh y - tanh x) * (exp (y + y) + 1)
      = (1 - tanh x) * (exp (y + y) - exp (x + x)) := by
    clear h he h₁ h₂
    grind
  have h₃ := pos_of_mul_pos (exp_add_one_pos (y + y)) (a := tanh y - tanh x) (e ▸ h₂)
  clear e hx hy h₂ he
  grind

end Attention.Proof
