module

public import Attention.Proof.Rounding.ScoreRates
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the rates of scores through softcap

Bounds of two roundings where there are three, of losses that the cap does not multiply and of
slopes that are exact, and functions without the slope or without the product with the cap.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- The claim of `rounded_throughCap`, of any function and any bound. -/
abbrev CappedRatesStay
    (computes : Precision R → ScoreFormats R → R → R → R → R → Prop := CappedRate)
    (bound : Precision R → ScoreFormats R → R → R → R → BoundedScoreRate R → R :=
      fun p f cap g γ b => (b.throughCap p f cap g γ).error) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R), Precise p → 0 ≤ f.scores → 0 ≤ f.scoresTiny →
    ∀ (b : BoundedScoreRate R) (cap g γ g' x z : R), AtMost b.size b.rate →
    AtMost b.error (x - b.rate) → 0 < cap → 0 ≤ g → g ≤ 1 → AtMost γ (g' - g) →
    computes p f cap g' x z → AtMost (bound p f cap g γ b) (z - g * b.rate)

/-- Positive control: the functions and the bound of the theorem. -/
theorem cappedRates_stay : CappedRatesStay (R := R) :=
  fun _ _ hp hs hη _ _ _ _ _ _ _ h₁ h₂ hcap hg hg' hγ h =>
    (Proof.rounded_throughCap hp hs hη h₁ h₂ hcap hg hg' hγ h).2

private def cappedUnit (u : R) : Precision R := ⟨u, 0, 0, 0, 0, .unrounded⟩

private theorem cappedUnit_precise {u : R} (hu : 0 ≤ u) : Precise (cappedUnit u) :=
  have h := Std.le_refl (0 : R)
  ⟨hu, h, h, OrderedRing.zero_lt_one, h, h⟩

private def cappedFormats (tiny : R) : ScoreFormats R :=
  { roundings := 0, operands := 0, operandsTiny := 0, reach := 1, scores := 0, scoresTiny := tiny }

/-- A rate of 1 that is exact. -/
private def rateOne : BoundedScoreRate R := ⟨1, 1, 0⟩

private theorem rateOne_size : AtMost (rateOne : BoundedScoreRate R).size 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact (⟨by grind, Std.le_refl _⟩ : AtMost (1 : R) 1)

private theorem capped_same (x : R) : AtMost (0 : R) (x - x) := ⟨by grind, by grind⟩

private theorem capped_kept (x : R) : StoredNear (0 : R) 0 x x :=
  ⟨x, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨by grind, by grind⟩⟩

private theorem capped_raised (x : R) : StoredNear (0 : R) 1 x (x + 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨x, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨by grind, by grind⟩⟩

/-- The bound of the theorem for that rate. -/
private theorem capped_error (u tiny cap g γ : R) :
    ((rateOne : BoundedScoreRate R).throughCap (cappedUnit u) (cappedFormats tiny) cap g γ).error
      = ((1 + u) ^ 3 - 1) * (g + γ) + γ
        + (1 + u) ^ 3 * (3 * (max 1 cap * (1 + γ)) * tiny) := by
  simp only [BoundedScoreRate.throughCap, cappedRateFactor, Proof.power_eq, cappedUnit,
    cappedFormats, rateOne, Proof.numeral_three]
  generalize (1 + u) ^ 3 = F
  generalize max 1 cap = m
  grind

/-! ## Bounds -/

/-- A bound of two roundings, as of a product with the slope alone. -/
@[expose] def cappedTwice (p : Precision R) (f : ScoreFormats R) (_ g γ : R)
    (b : BoundedScoreRate R) : R :=
  (b.through p f g γ).error

theorem cappedTwice_refuted : ¬ CappedRatesStay (R := R) (bound := cappedTwice) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have up : ∀ x : R, Rounded (1 / 2) x (x * (1 + 1 / 2)) := fun x =>
    ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, rfl⟩
  have h := (claim (cappedUnit (1 / 2)) (cappedFormats 0) (cappedUnit_precise (by grind)) z z
    rateOne 1 1 0 1 1 (27 / 8) rateOne_size (capped_same 1) h₀ (by grind) (Std.le_refl _)
    (capped_same 1) (.inr ⟨3 / 2, 3 / 2, 9 / 4, 9 / 4, 27 / 8,
      by have := up (1 / 1); rwa [show (1 : R) / 1 * (1 + 1 / 2) = 3 / 2 by grind] at this,
      capped_kept _,
      by have := up (1 * (3 / 2)); rwa [show (1 : R) * (3 / 2) * (1 + 1 / 2) = 9 / 4 by grind]
        at this,
      capped_kept _,
      by have := up (1 * (9 / 4)); rwa [show (1 : R) * (9 / 4) * (1 + 1 / 2) = 27 / 8 by grind]
        at this,
      capped_kept _⟩)).2
  have e : cappedTwice (cappedUnit (1 / 2 : R)) (cappedFormats 0) 1 1 0 rateOne = 5 / 4 := by
    simp only [cappedTwice, BoundedScoreRate.through, changeFactor, Proof.power_eq, cappedUnit,
      cappedFormats, rateOne, Proof.numeral_two]
    grind
  rw [e] at h
  have h' : (27 / 8 : R) - 1 * 1 ≤ 5 / 4 := h
  clear claim h e
  grind

/-- A bound in which the cap does not multiply what is lost before it. -/
@[expose] def lossWithoutCap (p : Precision R) (f : ScoreFormats R) (_ g γ : R)
    (b : BoundedScoreRate R) : R :=
  (b.throughCap p f 1 g γ).error

theorem lossWithoutCap_refuted :
    ¬ CappedRatesStay (R := R) (bound := lossWithoutCap) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have exactly : ∀ x y : R, x = y → Rounded 0 x y := fun x y h =>
    ⟨0, .zero z, by rw [h]; grind⟩
  have h := (claim (cappedUnit 0) (cappedFormats 1) (cappedUnit_precise z) z (Std.le_of_lt h₀)
    rateOne 4 1 0 1 1 10 rateOne_size (capped_same 1) (by grind) (by grind) (Std.le_refl _)
    (capped_same 1) (.inr ⟨1 / 4, 1 / 4 + 1, 1 / 4 + 1, 1 / 4 + 1 + 1, 9,
      exactly _ _ rfl, capped_raised _, exactly _ _ (by grind), capped_raised _,
      exactly _ _ (by grind), by have := capped_raised (9 : R); rwa [show (9 : R) + 1 = 10 by
        grind] at this⟩)).2
  have e : lossWithoutCap (cappedUnit (0 : R)) (cappedFormats 1) 4 1 0 rateOne = 3 := by
    have e₁ : max (1 : R) 1 = 1 := by rw [OrderedField.max_def]; split <;> rfl
    rw [lossWithoutCap, capped_error, e₁]
    grind
  rw [e] at h
  have h' : (10 : R) - 1 * 1 ≤ 3 := h
  clear claim h e exactly
  grind

/-- A bound of a slope that is exact. -/
@[expose] def cappedSlopeExact (p : Precision R) (f : ScoreFormats R) (cap g _ : R)
    (b : BoundedScoreRate R) : R :=
  (b.throughCap p f cap g 0).error

private theorem nothing_lost (γ g : R) :
    ((rateOne : BoundedScoreRate R).throughCap (cappedUnit 0) (cappedFormats 0) 1 g γ).error
      = γ := by
  rw [capped_error]
  generalize max (1 : R) 1 = m
  grind

private theorem product_alone (g : R) :
    CappedRate (cappedUnit (0 : R)) (cappedFormats 0) 1 g 1 (g * 1) :=
  .inl ⟨g * 1, ⟨g * 1, ⟨g * 1, rfl, ⟨0, .zero (Std.le_refl _), by grind⟩⟩,
    ⟨0, .zero (Std.le_refl _), by grind⟩⟩, ⟨g * 1, ⟨g * 1, rfl, capped_kept _⟩, capped_kept _⟩⟩

theorem cappedSlopeExact_refuted :
    ¬ CappedRatesStay (R := R) (bound := cappedSlopeExact) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have h := (claim (cappedUnit 0) (cappedFormats 0) (cappedUnit_precise z) z z rateOne 1 0 1 1 1
    (1 * 1) rateOne_size (capped_same 1) h₀ z (by grind) ⟨by grind, by grind⟩
    (product_alone 1)).2
  rw [cappedSlopeExact, nothing_lost] at h
  have h' : (1 : R) * 1 - 0 * 1 ≤ 0 := h
  clear claim h
  grind

/-! ## Functions -/

/-- The rate of the score as it is, without the slope. -/
@[expose] def slopeNotMultiplied (_ : Precision R) (_ : ScoreFormats R) (_ _ x z : R) : Prop :=
  z = x

theorem slopeNotMultiplied_refuted :
    ¬ CappedRatesStay (R := R) slopeNotMultiplied := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have h := (claim (cappedUnit 0) (cappedFormats 0) (cappedUnit_precise z) z z rateOne 1 0 0 0 1 1
    rateOne_size (capped_same 1) h₀ z (by grind) (capped_same 0) rfl).2
  have h' : (1 : R) - 0 * 1 ≤ ((rateOne : BoundedScoreRate R).throughCap (cappedUnit 0)
    (cappedFormats 0) 1 0 0).error := h
  rw [nothing_lost] at h'
  clear claim h
  grind

/-- A rate without the product with the cap. -/
@[expose] def capNotMultiplied (_ : Precision R) (_ : ScoreFormats R) (cap g x z : R) : Prop :=
  z = g * (x / cap)

theorem capNotMultiplied_refuted : ¬ CappedRatesStay (R := R) capNotMultiplied := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have h := (claim (cappedUnit 0) (cappedFormats 0) (cappedUnit_precise z) z z rateOne 2 1 0 1 1
    (1 * (1 / 2)) rateOne_size (capped_same 1) (by grind) (by grind) (Std.le_refl _)
    (capped_same 1) rfl).1
  have e : ((rateOne : BoundedScoreRate R).throughCap (cappedUnit 0) (cappedFormats 0) 2 1
      0).error = 0 := by
    rw [capped_error]
    generalize max (1 : R) 2 = m
    grind
  have h' : -((rateOne : BoundedScoreRate R).throughCap (cappedUnit 0) (cappedFormats 0) 2 1
    0).error ≤ 1 * (1 / 2) - 1 * 1 := h
  rw [e] at h'
  clear claim h e
  grind

end Attention.WrongVariants
