module

public import Attention.Spec.ScoreMods

public section

/-! # Softcap squeezes scores into (−cap, cap)

`cap · tanh (s / cap)` is the y with (cap + y) / (cap − y) = exp (2 s / cap). -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]
variable {q_len kv_len : Nat}

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
  have h₃ := pos_of_mul_pos (exp_add_one_pos (y + y)) (a := tanh y - tanh x) (by grind)
  grind

/-- **softcap**: the capped score y of s lies strictly between −cap and cap, and
cap + y = exp (2 s / cap) · (cap − y), which determines it. -/
theorem softcap_eq {cap : R} (hcap : 0 < cap) (i : Fin q_len) (j : Fin kv_len) (s : R) :
    ∃ y, ScoreMod.softcap cap i j s = some y ∧ -cap < y ∧ y < cap ∧
      cap + y = exp (2 * s / cap) * (cap - y) := by
  refine ⟨_, rfl, ?_, ?_, ?_⟩
  · have := OrderedRing.mul_pos hcap (b := 1 + tanh (s / cap))
      (by have := neg_one_lt_tanh (s / cap); grind)
    grind
  · have := OrderedRing.mul_pos hcap (b := 1 - tanh (s / cap))
      (by have := tanh_lt_one (s / cap); grind)
    grind
  · have h := one_add_tanh (s / cap)
    have h₁ : s / cap + s / cap = 2 * s / cap := by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
      grind
    rw [h₁] at h
    grind

/-- **softcap-monotone**: softcap keeps the order of the scores strictly, and is odd. -/
theorem softcap_lt {cap : R} (hcap : 0 < cap) (i : Fin q_len) (j : Fin kv_len) {s s' : R}
    (h : s < s') :
    ∃ y y', ScoreMod.softcap cap i j s = some y ∧ ScoreMod.softcap cap i j s' = some y' ∧
      ScoreMod.softcap cap i j (-s) = some (-y) ∧ y < y' := by
  refine ⟨_, _, rfl, rfl, ?_, ?_⟩
  · have h₁ : -s / cap = -(s / cap) := by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Ring.neg_mul]
    rw [ScoreMod.softcap, h₁, tanh_neg, Ring.mul_neg]
  · have h₁ : s / cap < s' / cap := by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
      exact OrderedRing.mul_lt_mul_of_pos_right h (Field.IsOrdered.inv_pos_iff.mpr hcap)
    exact OrderedRing.mul_lt_mul_of_pos_left (tanh_lt h₁) hcap

end Attention.Proof
