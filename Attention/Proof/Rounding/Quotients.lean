module

public import Attention.Proof.Rounding.Gamma

public section

/-! # Quotients of numbers that are off

A quotient N / L whose numerator is near L · o is near o; and so is one whose denominator adds
weights as they are stored. Of numbers alone: `Proof/Rounding/StoredShares.lean` says which weights.
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

private theorem of_mean {s e Fm Fr O : R} (hs : s ≤ Fm + Fr) (hO : 0 ≤ O) (hFm : 0 ≤ Fm)
    (hFr : 0 ≤ Fr) (he : 0 ≤ e) (third : 3 * e ≤ 1) :
    s + (e * Fm + Fr) ≤ (1 - e) * (s + 2 * (Fm + Fr + O)) := by
  have i₁ := OrderedRing.mul_nonneg he (b := Fm + Fr - s) (by grind)
  have i₂ := OrderedRing.mul_nonneg hFm (b := 1 - 3 * e) (by grind)
  have i₃ := OrderedRing.mul_nonneg hFr (b := 1 - 3 * e) (by grind)
  have i₄ := OrderedRing.mul_nonneg hO (b := 1 - 3 * e) (by grind)
  have i₅ := OrderedRing.mul_nonneg he hFm
  have i₆ := OrderedRing.mul_nonneg he hO
  grind

private theorem of_sizes {a e Fm Fr O : R} (ha : a ≤ Fm + Fr + O) (hO : 0 ≤ O) (hFm : 0 ≤ Fm)
    (hFr : 0 ≤ Fr) (he : 0 ≤ e) (third : 3 * e ≤ 1) :
    a + (e * Fm + Fr + e * O) ≤ (1 - e) * (a + 2 * (Fm + Fr + O)) := by
  have i₁ := OrderedRing.mul_nonneg he (b := Fm + Fr + O - a) (by grind)
  have i₂ := OrderedRing.mul_nonneg hFm (b := 1 - 3 * e) (by grind)
  have i₃ := OrderedRing.mul_nonneg hFr (b := 1 - 3 * e) (by grind)
  have i₄ := OrderedRing.mul_nonneg hO (b := 1 - 3 * e) (by grind)
  have i₅ := OrderedRing.mul_nonneg he hFm
  have i₆ := OrderedRing.mul_nonneg he hO
  grind

/-- A mean by stored weights of which the denominator D is the sum, and that of the sizes: `e` of
the sum W of the weights is what storing them takes from it or adds. -/
theorem rounded_mean {W D M N o O s Fm Fr X Q S S' a e x y : R} (hW : 0 < W) (he : 0 ≤ e)
    (third : 3 * e ≤ 1) (hs : 0 ≤ s) (hsF : s ≤ Fm + Fr) (hFm : 0 ≤ Fm) (hFr : 0 ≤ Fr) (hO : 0 ≤ O)
    (ha : 0 ≤ a) (haF : a ≤ Fm + Fr + O) (hD : AtMost (e * W) (D - W))
    (hM : AtMost (W * s) (M - W * o)) (hN : AtMost x (N - D * o - (M - W * o)))
    (hx₀ : 0 ≤ x) (hX : x ≤ W * X) (hxF : x ≤ W * (e * Fm + Fr))
    (hS : S ≤ W * a) (hS' : S' - S ≤ y) (hy₀ : 0 ≤ y) (hQ : y ≤ W * Q)
    (hyF : y ≤ W * (e * Fm + Fr + e * O)) :
    0 < D ∧
      AtMost (D * (s + overRemainder (X + e * s) e (2 * (Fm + Fr + O)))) (N - D * o) ∧
      S' ≤ D * (a + overRemainder (Q + e * a) e (2 * (Fm + Fr + O))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hD₁ : W * (1 - e) ≤ D := by have := hD.1; grind
  have nonneg : ∀ {x y : R}, 0 ≤ y → y ≤ W * x → 0 ≤ x := fun {x y} h₁ h₂ => by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -x) (by grind)
    grind
  have hND := hN.add hM
  rw [show N - D * o - (M - W * o) + (M - W * o) = N - D * o by grind] at hND
  refine ⟨?_, hND.mono ?_, Std.le_trans (b := S + y) (by grind) ?_⟩
  · have := OrderedRing.mul_pos hW (b := 1 - e) (by grind)
    grind
  · refine le_overRemainder (nonneg hx₀ hX) hs he hD₁
      (by clear hxF hyF hQ hS hD hN hND hM; grind) ?_
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hD₁ (c := s + 2 * (Fm + Fr + O)) (by grind)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left (of_mean hsF hO hFm hFr he third)
      (Std.le_of_lt hW)
    rw [Semiring.mul_assoc] at i₁
    rw [Semiring.left_distrib] at i₂
    refine Std.le_trans ?_ (Std.le_trans i₂ i₁)
    clear i₁ i₂ hyF hQ hS hD hN hND hM
    grind
  · refine le_overRemainder (nonneg hy₀ hQ) ha he hD₁
      (by clear hxF hyF hX hD hN hND hM; grind) ?_
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hD₁ (c := a + 2 * (Fm + Fr + O)) (by grind)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left (of_sizes haF hO hFm hFr he third)
      (Std.le_of_lt hW)
    rw [Semiring.mul_assoc] at i₁
    rw [Semiring.left_distrib] at i₂
    refine Std.le_trans ?_ (Std.le_trans i₂ i₁)
    clear i₁ i₂ hX hxF hD hN hND hM
    grind

end Attention.Proof
