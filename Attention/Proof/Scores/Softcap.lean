module

public import Attention.Proof.Softmax.Tanh

public section

/-! # Softcap squeezes scores into (−cap, cap)

`cap · tanh (s / cap)` is the y with (cap + y) / (cap − y) = exp (2 s / cap). Scores and values are
of one type here, so the exact model, with its scores in `Int`, is no instance of these theorems;
the real numbers are. -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]
variable {q_len kv_len : Nat}

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
    generalize tanh (s / cap) = t at h
    generalize (exp (2 * s / cap) : R) = e at h
    clear h₁
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
