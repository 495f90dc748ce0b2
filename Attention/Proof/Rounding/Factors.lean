module

public import Attention.Proof.Rounding.Gamma

public section

/-! # Relative errors that come to 1 / (1 − e) − 1

Errors of this form multiply to one of the same form, of the sum of what they are made of. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- 1 ≤ 1 / (1 − e). -/
theorem one_le_one_div {e : R} (he : 0 ≤ e) (h : e < 1) : 1 ≤ 1 / (1 - e) := by
  rw [OrderedField.le_div_iff (by grind)]
  grind

/-- 1 + e ≤ 1 / (1 − e). -/
theorem one_add_le_one_div {e : R} (h : e < 1) : 1 + e ≤ 1 / (1 - e) := by
  rw [OrderedField.le_div_iff (by grind)]
  have := mul_self_nonneg e
  grind

/-- 1 / (1 + θ) is off by at most 1 / (1 − e) − 1. -/
theorem one_div_close {e θ : R} (h : AtMost e θ) (he : e < 1) :
    AtMost (1 / (1 - e) - 1) (1 / (1 + θ) - 1) := by
  obtain ⟨h₁, h₂⟩ := h
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have i₁ : 1 - e ≤ 1 / (1 + θ) := by
    rw [OrderedField.le_div_iff (by grind)]
    have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 + θ) (b := 1 + e) (c := 1 - e)
      (by grind) (by grind)
    have := mul_self_nonneg e
    grind
  have i₂ := one_add_le_one_div he
  have i₃ := OrderedField.div_le_div_left (a := 1) (Std.le_of_lt h₀) (show 0 < 1 - e by grind)
    (show 1 - e ≤ 1 + θ by grind)
  exact ⟨by grind, by grind⟩

/-- So is 1 + θ. -/
theorem one_add_close {e θ : R} (h : AtMost e θ) (he : e < 1) :
    AtMost (1 / (1 - e) - 1) (1 + θ - 1) := by
  have := one_add_le_one_div he
  have e₁ : 1 + θ - 1 = θ := by grind
  rw [e₁]
  exact h.mono (by grind)

/-- 1 / (1 − a) · 1 / (1 − b) ≤ 1 / (1 − (a + b)). -/
theorem one_div_mul_le {a b : R} (ha : 0 ≤ a) (hb : 0 ≤ b) (h : a + b < 1) :
    1 / (1 - a) * (1 / (1 - b)) ≤ 1 / (1 - (a + b)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : 1 / (1 - a) * (1 / (1 - b)) = 1 / ((1 - a) * (1 - b)) := by
    have : 1 - a ≠ 0 := by grind
    have : 1 - b ≠ 0 := by grind
    generalize 1 - a = x at *
    generalize 1 - b = y at *
    grind
  rw [e]
  refine OrderedField.div_le_div_left (Std.le_of_lt h₀) (by grind) ?_
  have := OrderedRing.mul_nonneg ha hb
  grind

/-- A product of two such factors. -/
theorem close_mul {a b s t : R} (ha : 0 ≤ a) (hb : 0 ≤ b) (h : a + b < 1)
    (hs : AtMost (1 / (1 - a) - 1) (s - 1)) (ht : AtMost (1 / (1 - b) - 1) (t - 1)) :
    AtMost (1 / (1 - (a + b)) - 1) (s * t - 1) := by
  have h₁ := (AtMost.mul hs ht).add (hs.add ht)
  have e₁ : (s - 1) * (t - 1) + (s - 1 + (t - 1)) = s * t - 1 := by grind
  rw [e₁] at h₁
  have h₂ := one_div_mul_le ha hb h
  exact h₁.mono (by grind)

/-- (1 + u)ᵏ ≤ 1 / (1 − k u). -/
theorem pow_le_one_div {u : R} (hu : 0 ≤ u) {k : Nat} (h : numeral k * u < 1) :
    (1 + u) ^ k ≤ 1 / (1 - numeral k * u) := by
  rw [OrderedField.le_div_iff (by grind)]
  have := pow_mul_one_sub_le hu k
  grind

end Attention.Proof
