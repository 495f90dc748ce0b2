module

public import Attention.Proof.Rounding.Gamma

public section

/-! # Quotients of numbers that are off

A quotient N / L whose numerator is near L · o is near o; and so is one whose denominator adds
weights as they are stored. Of numbers alone: `Proof/Rounding/Shares.lean` says which weights.
Source: docs/tolerances.md, sections 3 and 4. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- A quotient is off by what its numerator is off, over what the denominator keeps. -/
theorem quotient_sub {W N L o T g : R} (hW : 0 < W) (hg : g < 1) (hL : W * (1 - g) ≤ L)
    (hT : AtMost (W * T) (N - L * o)) : AtMost (T / (1 - g)) (N / L - o) := by
  have hL₀ : 0 < L := by
    have := OrderedRing.mul_pos hW (b := 1 - g) (by grind)
    grind
  have e₁ := OrderedField.mul_div_cancel (b := 1 - g) (by grind) T
  have e₂ := OrderedField.mul_div_cancel (b := L) (by grind) N
  generalize T / (1 - g) = a at *
  generalize N / L = q at *
  have e₃ : N - L * o = L * (q - o) := by grind
  rw [← e₁, e₃, ← Semiring.mul_assoc] at hT
  have hT₀ := hT.nonneg
  have ha : 0 ≤ a := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos (OrderedRing.mul_pos hW (b := 1 - g) (by grind)) (b := -a)
      (by grind)
    grind
  have h₁ := hT.mono (OrderedRing.mul_le_mul_of_nonneg_right hL ha)
  constructor
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hL₀ (b := -a - (q - o)) (by grind)
    have := h₁.1
    grind
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hL₀ (b := (q - o) - a) (by grind)
    have := h₁.2
    grind

/-- The terms of the tolerance, over what the denominator keeps. -/
theorem terms_eq {s σ a b g n o : R} (hg : g < 1) :
    (s + (σ + n * (a + b)) + g * o) / (1 - g)
      = s + σ + (n * (a + b) + g * (o + s + σ)) / (1 - g) := by
  have : 1 - g ≠ 0 := by grind
  grind

/-- A sum B that is at most W (y + X) and at most D (y + most), where W (1 − e) ≤ D. -/
private theorem le_overRemainder {W D y X e most B : R} (hX : 0 ≤ X) (hy : 0 ≤ y)
    (he : 0 ≤ e) (hD : W * (1 - e) ≤ D) (h₁ : B ≤ W * (y + X)) (h₂ : B ≤ D * (y + most)) :
    B ≤ D * (y + overRemainder (X + e * y) e most) := by
  rw [overRemainder]
  split
  · exact h₂
  next hn =>
    rw [smaller]
    split
    · have hq := OrderedField.div_nonneg (a := X + e * y) (b := 1 - e)
        (by have := OrderedRing.mul_nonneg he hy; grind) (by grind)
      have e₁ := OrderedField.mul_div_cancel (b := 1 - e) (by grind) (X + e * y)
      generalize (X + e * y) / (1 - e) = q at *
      have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hD (c := y + q) (by grind)
      have e₂ : W * (1 - e) * (y + q) = W * (y + X) := by grind
      rw [e₂] at h₃
      exact Std.le_trans h₁ h₃
    · exact h₂

/-- A mean by stored weights of which the denominator D is the sum, and that of the sizes. -/
theorem rounded_mean {W D M N S o O s F Φ P T a σ : R} (hW : 0 < W) (hσ : 0 ≤ σ)
    (half : 2 * σ ≤ 1) (hs : 0 ≤ s) (hsF : s ≤ F) (hO : 0 ≤ O) (ha : 0 ≤ a) (haF : a ≤ F + O)
    (hP : W ≤ W * P) (hD : AtMost (σ * W) (D - W)) (hM : AtMost (W * s) (M - W * o))
    (hN : AtMost (σ * Φ) (N - D * o - (M - W * o))) (hΦ : 0 ≤ Φ) (hΦF : Φ ≤ W * F)
    (hΦT : Φ ≤ W * T) (hS : 0 ≤ S) (hSa : S ≤ W * a) {Q : R} (hSQ : S ≤ W * Q) :
    0 < D ∧
      AtMost (D * (s + overRemainder (σ * T + σ * P * s) (σ * P) (2 * (F + O)))) (N - D * o) ∧
      (1 + σ) * S ≤ D * (a + overRemainder (σ * Q + σ * P * a) (σ * P) (2 * (F + O))) := by
  have hD₁ := hD.1
  have hD₂ : W * (1 - σ) ≤ D := by grind
  have hσP := OrderedRing.mul_le_mul_of_nonneg_left hP hσ
  have hD₃ : W * (1 - σ * P) ≤ D := by grind
  have hP₁ : 0 ≤ P := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -P) (by grind)
    grind
  have nonneg : ∀ {x y : R}, 0 ≤ y → y ≤ W * x → 0 ≤ x := fun {x y} h₁ h₂ => by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -x) (by grind)
    grind
  have hT := OrderedRing.mul_nonneg hσ (nonneg hΦ hΦT)
  have hQ := OrderedRing.mul_nonneg hσ (nonneg hS hSQ)
  have hσP₀ := OrderedRing.mul_nonneg hσ hP₁
  have hWσ := OrderedRing.mul_nonneg (Std.le_of_lt hW) (b := 1 - 2 * σ) (by grind)
  have hWσ' := OrderedRing.mul_nonneg (Std.le_of_lt hW) hσ
  have hND := hN.add hM
  have e : N - D * o - (M - W * o) + (M - W * o) = N - D * o := by grind
  rw [e] at hND
  refine ⟨?_, hND.mono ?_, ?_⟩
  · have := OrderedRing.zero_lt_one (R := R)
    have := OrderedRing.mul_pos hW (b := 1 - σ) (by grind)
    grind
  · exact le_overRemainder hT hs hσP₀ hD₃ (B := σ * Φ + W * s) (by
      have := OrderedRing.mul_le_mul_of_nonneg_left hΦT hσ
      grind) (by
      have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hD₂ (c := s + 2 * (F + O)) (by grind)
      have i₂ := OrderedRing.mul_le_mul_of_nonneg_left hΦF hσ
      have i₃ := OrderedRing.mul_nonneg hWσ' (b := F - s) (by grind)
      have i₄ := OrderedRing.mul_nonneg hWσ (b := F) (by grind)
      have i₅ := OrderedRing.mul_nonneg hWσ hO
      have i₆ := OrderedRing.mul_nonneg (Std.le_of_lt hW) hO
      grind)
  · exact le_overRemainder hQ ha hσP₀ hD₃ (by
      have := OrderedRing.mul_le_mul_of_nonneg_left hSQ hσ
      grind) (by
      have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hD₂ (c := a + 2 * (F + O)) (by grind)
      have i₂ := OrderedRing.mul_le_mul_of_nonneg_left hSa (c := 1 + σ) (by
        have := OrderedRing.zero_lt_one (R := R)
        grind)
      have i₃ := OrderedRing.mul_nonneg hWσ ha
      have i₄ := OrderedRing.mul_nonneg hWσ (b := F + O - a) (by grind)
      have i₅ := OrderedRing.mul_nonneg (Std.le_of_lt hW) (b := F + O - a) (by grind)
      grind)

end Attention.Proof
