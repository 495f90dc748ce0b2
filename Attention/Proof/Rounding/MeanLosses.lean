module

public import Attention.Proof.Rounding.GradientProducts

public section

/-! # What weights lose of which D is made

Bounds of what underflows of a weight, as D counts it, whether a backward pass computes the weight
again or a forward pass has stored its output.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}

/-- Rescalings enlarge what they multiply. -/
theorem one_le_rescalings {e : R} (h₀ : 0 ≤ e) (h : e < 1) (k : Nat) :
    1 ≤ 1 / (1 - e) ^ k := by
  have h₁ := OrderedField.pow_pos (x := 1 - e) (by grind) k
  have h₂ := OrderedField.pow_le_one (x := 1 - e) (by grind) (by grind) k
  rw [OrderedField.le_div_iff h₁]
  rwa [Semiring.mul_one]

/-- To divide by them is to multiply. -/
theorem div_rescalings (y e : R) (k : Nat) : y / (1 - e) ^ k = y * (1 / (1 - e) ^ k) := by
  generalize (1 - e) ^ k = x
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]

/-- An error of a weight grows. -/
theorem one_le_meanGrowth {p : GradientPrecision R} (hp : PreciseGradient p) (c : GradientCounts)
    {error : R} (he : 0 ≤ error) : 1 ≤ meanGrowth p c error := by
  rw [meanGrowth, power_eq, div_rescalings]
  exact le_mul_of_one_le (Std.le_of_lt OrderedRing.zero_lt_one) (one_le_one_plus he)
    (one_le_rescalings hp.exponential hp.exponential_lt _)

/-- No less is lost than once. -/
theorem tiny_le_meanLost {p : GradientPrecision R} (hp : PreciseGradient p)
    (c : GradientCounts) {error : R} (he : 0 ≤ error) : p.tiny ≤ meanLost p c error := by
  have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (c.rescalings + 5)) hp.tiny
  have h₂ := one_le_meanGrowth hp c he
  rw [meanLost, numeral_succ]
  generalize meanGrowth p c error = g at *
  generalize (numeral (c.rescalings + 5) : R) = m at *
  have h₃ := hp.tiny
  exact le_mul_of_one_le h₃ (by grind) h₂

/-- Not negative. -/
theorem meanLost_nonneg {p : GradientPrecision R} (hp : PreciseGradient p)
    (c : GradientCounts) {error : R} (he : 0 ≤ error) : 0 ≤ meanLost p c error :=
  Std.le_trans hp.tiny (tiny_le_meanLost hp c he)

/-- A weight that is computed again and stored is one of which D may be made. -/
theorem meanWeight_of_stored {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {r : BackwardRow R n d_v} (hr : r.Valid) {j : Fin n} {w : R}
    (h : StoredWeight p.stored p.storedTiny (r.weight j) (r.error j) p.tiny w) :
    r.MeanWeight p c j w := by
  obtain ⟨x, hx, z, hz, hw, h₀⟩ := h
  refine ⟨x, hx.mono ?_, z, hz, hw.mono (le_mul_of_one_le hp.storedTiny (Std.le_refl _)
    (one_le_meanGrowth hp c (hr.error j))), h₀⟩
  have h₁ := tiny_le_meanLost hp c (hr.error j)
  have h₂ := Std.le_trans hp.tiny h₁
  by_cases hn : r.weight j ≤ 0
  · rw [tinyOf_zero hn, tinyOf_zero hn]
    exact Std.le_refl _
  · rw [tinyOf_pos hn, tinyOf_pos hn, numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    generalize meanLost p c (r.error j) = l at *
    grind

/-- Not negative. -/
theorem meanWeightTiny_nonneg {p : GradientPrecision R} (hp : PreciseGradient p)
    (c : GradientCounts) {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    0 ≤ meanWeightTiny p c (r.key j) := by
  refine tinyOf_nonneg ?_
  have h₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (numeral_nonneg 2)
    (meanLost_nonneg hp c (hr.error j))) (nonneg_of_one_le (one_le_one_plus hp.stored))
  have h₂ := OrderedRing.mul_nonneg hp.storedTiny
    (nonneg_of_one_le (one_le_meanGrowth hp c (hr.error j)))
  exact (show ∀ x y : R, 0 ≤ x → 0 ≤ y → 0 ≤ x + y from fun x y h₁ h₂ => by grind) _ _ h₁ h₂

/-- What a product of a weight and dP loses, and its addition. -/
theorem rowTiny_le {p : GradientPrecision R} (hp : PreciseGradient p) (c : GradientCounts)
    {error : R} (he : 0 ≤ error) {w z : R} (hz : 0 ≤ z) : tinyOf w p.tiny + tinyOf w p.tiny
      ≤ tinyOf w (meanLost p c error) * (numeral 2 + z) := by
  have h₁ := tinyOf_nonneg (weight := w) (meanLost_nonneg hp c he)
  have h₂ := OrderedRing.mul_nonneg h₁ hz
  rw [show (numeral 2 : R) = 2 by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind]
  have h : tinyOf w p.tiny ≤ tinyOf w (meanLost p c error) := by
    by_cases hn : w ≤ 0
    · rw [tinyOf_zero hn, tinyOf_zero hn]
      exact Std.le_refl _
    · rw [tinyOf_pos hn, tinyOf_pos hn]
      exact tiny_le_meanLost hp c he
  generalize tinyOf w p.tiny = x at *
  generalize tinyOf w (meanLost p c error) = y at *
  clear hz hp he
  grind

end Attention.Proof
