module

public import Attention.Proof.Derivative.Basic

public section

/-! # The slope of softcap is its derivative

tanh y is the mean of 1 and −1 by the softmax weights of the scores 2 y and 0, so what is known of
such means when the scores move holds of it. So `jvp_isDerivative` holds of attention with
softcap. -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R] {d d_v q_len kv_len : Nat}

omit [NaturalExp R] in
private theorem mean_moved {e f : R} (h₁ : e + 1 ≠ 0) (h₂ : e * f + 1 ≠ 0) :
    e / (e + 1) * (f / (e / (e + 1) * f + 1 / (e + 1)))
      - 1 / (e + 1) * (1 / (e / (e + 1) * f + 1 / (e + 1))) = (e * f - 1) / (e * f + 1) := by
  have hZ : e / (e + 1) * f + 1 / (e + 1) = (e * f + 1) / (e + 1) := by grind
  rw [hZ]
  grind

omit [NaturalExp R] in
private theorem mean_slope {e : R} (h₁ : e + 1 ≠ 0) (t : R) (ht : t = (e - 1) / (e + 1)) :
    e / (e + 1) * (2 - e / (e + 1) * 2) + 1 / (e + 1) * (e / (e + 1) * 2) = 1 - t * t := by
  subst ht
  grind

/-- tanh moves by its slope 1 − tanh², up to 64 z². -/
theorem tanh_isDerivative (y : R) {z ζ : R} (hz : AtMost ζ z) (hζ : ζ ≤ 1 / 4) :
    AtMost (64 * (ζ * ζ)) (tanh (y + z) - tanh y - z * (1 - tanh y * tanh y)) := by
  let e : R := exp (y + y)
  let f : R := exp (z + z)
  have he : (0 : R) < e := exp_pos _
  have hf : (0 : R) < f := exp_pos _
  have h₁ : e + 1 ≠ 0 := by grind
  have h₂ : e * f + 1 ≠ 0 := by
    have := OrderedRing.mul_pos he hf
    grind
  have hp : ∀ b ∈ [true, false], 0 ≤ (if b then e / (e + 1) else 1 / (e + 1)) := fun b _ => by
    cases b
    · exact OrderedField.div_nonneg (by grind) (by grind)
    · exact OrderedField.div_nonneg (by grind) (by grind)
  have hsum : sumOver (fun b : Bool => if b then e / (e + 1) else 1 / (e + 1)) [true, false]
      = 1 := by
    simp only [sumOver_cons, sumOver_nil, if_true, Bool.false_eq_true, if_false]
    grind
  have hζ₀ := hz.nonneg
  have h := moved_mean (ks := [true, false]) (p := fun b => if b then e / (e + 1) else 1 / (e + 1))
    (h := fun b => if b then z + z else 0) (ε := ζ + ζ) (σ := fun b => if b then 2 else 0)
    (v := fun b => if b then 1 else -1) (γ := fun _ => 0) (t := z) (τ := ζ) (T := 0) (B := 1)
    (G := 0) hp hsum (by grind)
    (fun b _ => by
      cases b
      · exact AtMost.zero (by grind)
      · exact hz.add hz)
    (by grind)
    (fun b _ => by
      have e₁ : z + z - z * 2 = 0 := by grind
      have e₂ : (0 : R) - z * 0 = 0 := by grind
      cases b
      · simp only [Bool.false_eq_true, if_false, e₂]
        exact AtMost.zero (Std.le_refl _)
      · simp only [if_true, e₁]
        exact AtMost.zero (Std.le_refl _))
    (Std.le_refl _)
    (fun b _ => by
      cases b
      · show AtMost 1 (-1)
        exact ⟨Std.le_refl _, by grind⟩
      · show AtMost 1 1
        exact ⟨by grind, Std.le_refl _⟩)
    (by grind) (fun _ _ => AtMost.zero (Std.le_refl _)) (Std.le_refl _) hz
  simp only [sumOver_cons, sumOver_nil, if_true, Bool.false_eq_true, if_false, exp_zero,
    Semiring.mul_zero, Semiring.add_zero, Semiring.mul_one] at h
  have k₁ := mean_moved h₁ h₂
  have k₂ := mean_slope h₁ (tanh y) rfl
  have k₃ : ∀ a b : R, a + b * -1 = a - b := fun a b => by grind
  have k₄ : ∀ a b c : R, a - b * (0 - c) = a + b * c := fun a b c => by grind
  have k₅ : e / (e + 1) - 1 / (e + 1) = tanh y := by
    rw [tanh]
    grind
  have k₆ : tanh (y + z) = (e * f - 1) / (e * f + 1) := by
    have k : (exp (y + z + (y + z)) : R) = e * f := by
      rw [← exp_add]
      congr 1
      grind
    rw [tanh]
    simp only [k]
  rw [k₃, k₃, k₃, k₄, k₅, k₁, k₂, ← k₆] at h
  exact h.mono (by grind)

/-- **softcap-derivative**: softcap moves by its slope, up to 64 h² / cap, for |h| ≤ cap / 4. -/
theorem softcap_isDerivative {cap : R} (hcap : 0 < cap) (i : Fin q_len) (j : Fin kv_len) (s : R)
    {h η : R} (hη : AtMost η h) (hle : η ≤ cap / 4) :
    ∃ y y', ScoreMod.softcap cap i j s = some y ∧ ScoreMod.softcap cap i j (s + h) = some y' ∧
      AtMost (64 * (η * η) / cap)
        (y' - y - h * ScoreSlope.softcap (q_len := q_len) (kv_len := kv_len) cap i j s) := by
  refine ⟨_, _, rfl, rfl, ?_⟩
  have hne : cap ≠ 0 := by grind
  have h₁ : (s + h) / cap = s / cap + h / cap := by grind
  have h₂ : AtMost (η / cap) (h / cap) := by
    have hinv : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
    have k := hη.mul (b := cap⁻¹) (y := cap⁻¹) ⟨by grind, Std.le_refl _⟩
    rwa [← Field.div_eq_mul_inv, ← Field.div_eq_mul_inv] at k
  have h₃ : η / cap ≤ 1 / 4 := (OrderedField.div_le_iff hcap).mpr (by grind)
  have h₄ := (AtMost.mul (a := cap) (x := cap) ⟨by grind, Std.le_refl _⟩
    (tanh_isDerivative (s / cap) h₂ h₃))
  rw [h₁, ScoreSlope.softcap]
  have h₅ : cap * (64 * (η / cap * (η / cap))) = 64 * (η * η) / cap := by grind
  have h₆ : cap * (tanh (s / cap + h / cap) - tanh (s / cap)
        - h / cap * (1 - tanh (s / cap) * tanh (s / cap)))
      = cap * tanh (s / cap + h / cap) - cap * tanh (s / cap)
        - h * (1 - tanh (s / cap) * tanh (s / cap)) := by
    generalize tanh (s / cap + h / cap) = a
    generalize tanh (s / cap) = b
    grind
  rwa [h₅, h₆] at h₄

/-- Softcap moves by its slope, which is at most 1. -/
theorem movesBySlope_softcap {cap : R} (hcap : 0 < cap) :
    MovesBySlope (q_len := q_len) (kv_len := kv_len) (ScoreMod.softcap cap)
      (ScoreSlope.softcap cap) (cap / 4) 1 (64 / cap) where
  slope_atMost i j s := by
    have h₁ := neg_one_lt_tanh (s / cap)
    have h₂ := tanh_lt_one (s / cap)
    have h₃ := OrderedRing.mul_pos (a := 1 + tanh (s / cap)) (b := 1 - tanh (s / cap)) (by grind)
      (by grind)
    have h₄ := mul_self_nonneg (tanh (s / cap) : R)
    rw [ScoreSlope.softcap]
    generalize (tanh (s / cap) : R) = y at h₃ h₄
    exact ⟨by grind, by grind⟩
  slope_nonneg := by grind
  error_nonneg := OrderedField.div_nonneg (by grind) hcap
  moved i j s x η hx hη := by
    obtain ⟨y, y', hy, hy', h⟩ := softcap_isDerivative (q_len := q_len) (kv_len := kv_len) hcap i j
      s hx hη
    refine ⟨_, h.mono ?_, ?_⟩
    · rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.mul_assoc,
        CommSemiring.mul_comm (η * η), ← Semiring.mul_assoc]
      exact Std.le_refl _
    · rw [hy', hy, Option.map_some]
      congr 1
      generalize ScoreSlope.softcap cap i j s = σ
      grind

/-- **derivative-is-true-softcap**: what attention with softcap over dual numbers computes is its
derivative, under any mask and bias, after a time `t` so short that no score changes by more than
1/2, nor before softcap by more than cap / 4; the terms of its error that softcap adds are those
with 64 / cap. -/
theorem jvp_softcap_isDerivative {cap scale c M G : R} (hcap : 0 < cap) (hscale : AtMost c scale)
    (B : Matrix (Option R) q_len kv_len) {δB : Matrix R q_len kv_len}
    {Q δQ : Matrix R q_len d} {K δK : Matrix R kv_len d} {V δV : Matrix R kv_len d_v}
    (hQ : ∀ (i : Fin q_len) (x : Fin d), AtMost M Q[i][x])
    (hK : ∀ (k : Fin kv_len) (x : Fin d), AtMost M K[k][x])
    (hV : ∀ (k : Fin kv_len) (j : Fin d_v), AtMost M V[k][j])
    (hδQ : ∀ (i : Fin q_len) (x : Fin d), AtMost G δQ[i][x])
    (hδK : ∀ (k : Fin kv_len) (x : Fin d), AtMost G δK[k][x])
    (hδV : ∀ (k : Fin kv_len) (j : Fin d_v), AtMost G δV[k][j])
    (hδB : ∀ (i : Fin q_len) (k : Fin kv_len), AtMost G δB[i][k])
    (hM : 0 ≤ M) (hG : 0 ≤ G) {t τ : R} (ht : AtMost τ t) (hτ : τ ≤ 1)
    (hr : τ * rawReach d c M G ≤ cap / 4) (hreach : τ * scoreReach d c M G 1 (64 / cap) ≤ 1 / 2)
    (i : Fin q_len) (j : Fin d_v) :
    AtMost (derivativeBound d c M G 1 (64 / cap) * (τ * τ))
      ((attention scale ((ScoreMod.softcap cap).andThen (ScoreMod.bias (biasMoved B t δB)))
          (Q.moved t δQ) (K.moved t δK) (V.moved t δV))[i][j]
        - (attention scale ((ScoreMod.softcap cap).andThen (ScoreMod.bias B)) Q K V)[i][j]
        - t * (jvp scale ((ScoreMod.softcap (Dual.const cap)).andThen
            (ScoreMod.bias (biasDual B δB))) Q δQ K δK V δV)[i][j]) :=
  jvp_isDerivative hscale (isLift_softcap (by grind)) (movesBySlope_softcap hcap) B hQ hK hV hδQ hδK
    hδV hδB hM hG ht hτ hr hreach i j

end Attention.Proof
