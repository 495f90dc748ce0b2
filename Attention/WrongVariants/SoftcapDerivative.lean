module

public import Attention.Proof.Derivative.Softcap
public import Attention.WrongVariants.Derivative

public section

/-! # A wrong variant of the slope of softcap -/

namespace Attention.WrongVariants

open Spec Proof Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- The claim of `movesBySlope_softcap` for some constants, made of any slope. -/
abbrev SlopeOfSoftcap (cap : R) (slope : ScoreSlope R R 1 1) : Prop :=
  ∃ r L E : R, 0 < r ∧ MovesBySlope (ScoreMod.softcap cap) slope r L E

/-- Positive control: 1 − tanh². -/
theorem softcap_slopeOfSoftcap {cap : R} (hcap : 0 < cap) :
    SlopeOfSoftcap cap (ScoreSlope.softcap cap) :=
  ⟨cap / 4, 1, 64 / cap, by grind, movesBySlope_softcap hcap⟩

/-- tanh 1 is positive. -/
private theorem tanh_one_pos : 0 < (tanh 1 : R) := by
  have h : (1 : R) + (1 + 1) ≤ exp ((1 : R) + 1) := NaturalExp.one_add_le_exp _
  rw [tanh]
  generalize (exp ((1 : R) + 1) : R) = e at h
  rw [Field.div_eq_mul_inv]
  exact OrderedRing.mul_pos (by grind) (Field.IsOrdered.inv_pos_iff.mpr (by grind))

/-- Softcap taken for the identity: the gradients by queries and keys are those without it. -/
theorem softcapSlopeLeftOut_refuted {cap : R} (hcap : 0 < cap) :
    ¬ SlopeOfSoftcap cap ScoreSlope.one := by
  intro ⟨r, L, E, hr, h⟩
  obtain ⟨ρ, hρ, hρr, hρc⟩ : ∃ ρ : R, 0 < ρ ∧ ρ ≤ r ∧ ρ ≤ cap / 4 := by
    by_cases hle : r ≤ cap / 4
    · exact ⟨r, hr, Std.le_refl _, hle⟩
    · exact ⟨cap / 4, by grind, by grind, Std.le_refl _⟩
  let T : R := tanh 1
  have hT : 0 < T := tanh_one_pos
  have hone : cap / cap = 1 := by grind
  have hslope : ScoreSlope.softcap (q_len := 1) (kv_len := 1) cap 0 0 cap = 1 - T * T := by
    rw [ScoreSlope.softcap, hone]
  have hE := h.error_nonneg
  have hc : 0 ≤ 64 / cap := OrderedField.div_nonneg (by grind) hcap
  refine not_pos_of_short (x := ρ * (T * T)) (C := (E + 64 / cap) * (ρ * ρ))
    (OrderedRing.mul_nonneg (by grind) (mul_self_nonneg ρ)) (fun t ht ht' => ?_)
    (OrderedRing.mul_pos hρ (OrderedRing.mul_pos hT hT))
  have hx : 0 < t * ρ := OrderedRing.mul_pos ht hρ
  have hle : t * ρ ≤ ρ := by
    have := OrderedRing.mul_le_mul_of_nonneg_right (a := t) (b := 1) (by grind) (Std.le_of_lt hρ)
    grind
  have hx' : AtMost (t * ρ) (t * ρ) := ⟨by grind, Std.le_refl _⟩
  obtain ⟨e, he, h₁⟩ := h.moved 0 0 cap hx' (by grind)
  obtain ⟨e', he', h₂⟩ := (movesBySlope_softcap (q_len := 1) (kv_len := 1) hcap).moved 0 0 cap hx'
    (by grind)
  rw [hslope] at h₂
  have h₃ := h₁.symm.trans h₂
  simp only [ScoreMod.softcap, Option.map_some, Option.some.injEq, ScoreSlope.one] at h₃
  have h₄ := he.1
  have h₅ := he'.2
  generalize cap * tanh (cap / cap) = y at h₃
  generalize 64 / cap = b at h₅
  clear h h₁ h₂ hslope he he' hx' hone
  grind

end Attention.WrongVariants
