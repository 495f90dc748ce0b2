module

public import Attention.Proof.Rounding.OverflowMeans

public section

/-! # dS that stays in the range

Of a query row, from its dP and D on: G, dS and what of dS meets keys and queries.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}
variable {p : GradientPrecision R} {largest : LargestGradient R} {c : GradientCounts}
variable {r : BackwardRow R n d_v} {e slope : R}

/-- No size of G is negative. -/
theorem rowInnerSize_nonneg (hp : PreciseGradient p) (he₀ : 0 ≤ e) {factor : Fin n → R}
    {value : Fin n → Vec R d_v} {dO : Vec R d_v} {dL : R} :
    0 ≤ rowInnerSize p c e factor value dO dL := by
  have hδ := rowDeltaSize_nonneg (c := c) hp he₀ factor value dO
  have h₁ := (outerSize_le_row (p := p) (c := c) factor value dO).1
  have h₂ := absolute_nonneg dL
  have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 3) hp.tiny
  rw [rowInnerSize, power_eq]
  exact OrderedRing.mul_nonneg (nonneg_of_one_le
    (OrderedField.one_le_pow (one_le_one_plus hp.unit) 3)) (by grind)

/-- Nor is a D larger than a G. -/
private theorem rowDeltaSize_le (hp : PreciseGradient p) (he₀ : 0 ≤ e) {factor : Fin n → R}
    {value : Fin n → Vec R d_v} {dO : Vec R d_v} {dL : R} :
    rowDeltaSize p c e factor value dO ≤ rowInnerSize p c e factor value dO dL := by
  have h₁ := (outerSize_le_row (p := p) (c := c) factor value dO).1
  have h₂ := absolute_nonneg dL
  have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 3) hp.tiny
  have hδ := rowDeltaSize_nonneg (c := c) hp he₀ factor value dO
  rw [rowInnerSize, power_eq, CommSemiring.mul_comm]
  exact le_mul_of_one_le hδ (by grind) (OrderedField.one_le_pow (one_le_one_plus hp.unit) 3)

private theorem recomputed_nonneg (hp : PreciseGradient p) (he₀ : 0 ≤ e) {w : R} (hw : 0 ≤ w) :
    0 ≤ (1 + e) * w + p.tiny := by
  have h₁ := OrderedRing.mul_nonneg (a := 1 + e) (b := w)
    (by have := OrderedRing.zero_lt_one (R := R); grind) hw
  have h₂ := hp.tiny
  grind

/-- The sizes of weights and dS grow with the exact weight. -/
theorem scoreGradientSize_mono (hp : PreciseGradient p) (he₀ : 0 ≤ e) {inner w : R}
    (hi : 0 ≤ inner) (hw : 0 ≤ w) (hw₁ : w ≤ 1) :
    0 ≤ recomputedSize p e w * inner ∧ 0 ≤ scoreGradientSize p e inner w ∧
      scoreGradientSize p e inner w ≤ scoreGradientSize p e inner 1 := by
  have h₁ := recomputed_nonneg hp he₀ hw
  have h₂ : (1 + e) * w + p.tiny ≤ (1 + e) * 1 + p.tiny := by
    have := OrderedRing.mul_le_mul_of_nonneg_left hw₁ (c := 1 + e)
      (by have := OrderedRing.zero_lt_one (R := R); grind)
    grind
  have h₃ := OrderedRing.mul_nonneg (belowSize_nonneg hp.weights hp.weightsTiny 1 h₁) hi
  refine ⟨h₃, belowSize_nonneg hp.unit hp.tiny 2 h₃, belowSize_mono hp.unit hp.tiny
    (Nat.le_refl _) h₃ (OrderedRing.mul_le_mul_of_nonneg_right ?_ hi)⟩
  exact belowSize_mono hp.weights hp.weightsTiny (Nat.le_refl _) h₁ h₂

/-- No G is larger than dS of a weight of 1. -/
private theorem inner_le (hp : PreciseGradient p) (he₀ : 0 ≤ e) {inner : R} (hi : 0 ≤ inner) :
    inner ≤ scoreGradientSize p e inner 1 := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := recomputed_nonneg hp he₀ (Std.le_of_lt one)
  have h₂ := le_belowSize hp.weights hp.weightsTiny 1 h₁
  have h₃ := hp.tiny
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right
    (show 1 ≤ recomputedSize p e 1 by rw [recomputedSize]; grind) hi
  have h₅ := le_belowSize hp.unit hp.tiny 2 (b := recomputedSize p e 1 * inner) (by grind)
  rw [scoreGradientSize]
  grind

/-- So do those of dS times a slope. -/
theorem slopedSize_mono (hp : PreciseGradient p) (he₀ : 0 ≤ e) {inner w : R}
    (hi : 0 ≤ inner) (hs : 0 ≤ slope) (hw : 0 ≤ w) (hw₁ : w ≤ 1) :
    0 ≤ scoreGradientSize p e inner w * slope ∧ 0 ≤ slopedSize p e slope inner w ∧
      slopedSize p e slope inner w ≤ slopedSize p e slope inner 1 := by
  obtain ⟨-, h₁, h₂⟩ := scoreGradientSize_mono hp he₀ hi hw hw₁
  have h₃ := OrderedRing.mul_nonneg h₁ hs
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hs
  have h₅ := belowSize_nonneg hp.unit hp.tiny 2 h₃
  exact ⟨h₃, belowSize_nonneg hp.stored hp.storedTiny 1 h₅,
    belowSize_mono hp.stored hp.storedTiny (Nat.le_refl _) h₅
      (belowSize_mono hp.unit hp.tiny (Nat.le_refl _) h₃ h₄)⟩

variable (hp : PreciseGradient p) (hr : r.Valid)
  (hsum : sumOver r.weight (List.finRange n) ≤ 1) (he₀ : 0 ≤ e) (he : ∀ j, r.error j ≤ e)
include hp hr hsum he₀ he

private theorem limitedScoreGradient (hs : ∀ j, absolute (r.slope j) + r.slopeError j ≤ slope)
    (fits : gradientRowFits p largest c e slope r.factor r.value r.dO r.dL) {D' : R}
    (hD : AtMost (rowDeltaSize p c e r.factor r.value r.dO) D') {j : Fin n} {S X : Option R}
    (h : LimitedScoreGradient p largest c r (some D') j S X) :
    ∃ s x, S = some s ∧ X = some x ∧ ComputedScoreGradient p c r D' j s x ∧
      AtMost (slopedSize p e slope (rowInnerSize p c e r.factor r.value r.dO r.dL) (r.weight j))
        x := by
  obtain ⟨a, b, x, G, w, y, slope', hab, hx, hG, hw, hS, hslope, hy, hX⟩ := h
  simp only [gradientRowFits, Bool.and_eq_true, List.all_eq_true, decide_eq_true_eq] at fits
  obtain ⟨⟨⟨⟨f₁, -⟩, f₅⟩, f₆⟩, f₇⟩ := fits
  have hw₁ := weight_le_one hr hsum j
  obtain ⟨outer₀, outer⟩ := outerSize_le_row (p := p) (c := c) r.factor r.value r.dO
  have hi := rowInnerSize_nonneg (c := c) (factor := r.factor) (value := r.value) (dO := r.dO)
    (dL := r.dL) hp he₀
  obtain ⟨x', rfl, h₁, h₂⟩ := limitedProduct hp (hr.factor j) (f₁ j (List.mem_finRange j)) hx
  have f₄ := Std.le_trans (inner_le hp he₀ hi) f₆
  obtain ⟨G', rfl, h₃, h₄⟩ : ∃ z, G = some z ∧ FlushedSum p.unit p.tiny id 3 [x', -D', r.dL] z ∧
      AtMost (rowInnerSize p c e r.factor r.value r.dO r.dL) z := by
    have exact : ∀ x ∈ [x', -D', r.dL], AtMost (absolute x) (id x) := fun x _ => atMost_absolute x
    have sizes : (1 + p.unit) ^ 3 * sumOver (fun x => absolute x + p.tiny) [x', -D', r.dL]
        ≤ rowInnerSize p c e r.factor r.value r.dO r.dL := by
      have i₁ := absolute_le (h₂.mono (outer j))
      have i₂ : absolute (-D') ≤ rowDeltaSize p c e r.factor r.value r.dO := by
        refine absolute_le ⟨?_, ?_⟩
        · have := hD.2
          grind
        · have := hD.1
          grind
      have three : (numeral 3 : R) = 3 := by
        rw [numeral_succ, numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
        grind
      rw [rowInnerSize, power_eq, three]
      refine OrderedRing.mul_le_mul_of_nonneg_left ?_ (nonneg_of_one_le
        (OrderedField.one_le_pow (one_le_one_plus hp.unit) 3))
      simp only [sumOver_cons, sumOver_nil]
      grind
    obtain ⟨z, e', i₁⟩ := limitedFlushedSum hp.unit hp.tiny (hG x' rfl D' rfl) exact
      (Std.le_trans sizes f₄)
    exact ⟨z, e', i₁, (flushedSum_atMost hp.unit hp.tiny i₁ exact).mono sizes⟩
  obtain ⟨w', rfl, h₅, h₆⟩ := limitedWeight hp.weights hp.weightsTiny (hr.weight j) hw₁
    (hr.error j) (he j) hp.tiny f₅ hw
  change AtMost (recomputedSize p e (r.weight j)) w' at h₆
  obtain ⟨i₀, i₁, i₂⟩ := scoreGradientSize_mono hp he₀ hi (hr.weight j) hw₁
  obtain ⟨S', rfl, h₇, h₈⟩ := limitedBelowTimes hp.unit hp.tiny (show a ≤ 2 by omega)
    (hS w' rfl G' rfl) (h₆.mul h₄) (Std.le_trans i₂ f₆)
  have hslope' : AtMost slope slope' := by
    have i₃ := hslope.add (atMost_absolute (r.slope j))
    rw [show slope' - r.slope j + r.slope j = slope' by grind] at i₃
    exact i₃.mono (by have := hs j; grind)
  obtain ⟨i₃, i₄, i₅⟩ := slopedSize_mono hp he₀ hi hslope'.nonneg (hr.weight j) hw₁
  obtain ⟨f₈, f₉⟩ := le_of_le_smaller f₇
  have i₆ := le_belowSize hp.stored hp.storedTiny 1 (belowSize_nonneg hp.unit hp.tiny 2 i₃)
  obtain ⟨y', rfl, h₉, k₁⟩ := limitedBelowTimes hp.unit hp.tiny (show b ≤ 2 by omega)
    (hy S' rfl) (h₈.mul hslope') (Std.le_trans i₆ (Std.le_trans i₅ f₈))
  obtain ⟨X', rfl, k₂, k₃⟩ := limitedBelow hp.stored hp.storedTiny (hX y' rfl) k₁
    (Std.le_trans i₆ (Std.le_trans i₅ f₉))
  exact ⟨S', X', rfl, rfl, ⟨a, b, x', G', w', slope', y', hab, h₁, h₃, h₅, h₇, hslope,
    belowTimes_mono (le_grown hp).1 h₉, storedBelow_mono k₂ (le_grown hp).2⟩, k₃⟩

/-- **gradient-row-finite**: of a query row that fits, whose weights are 1 together at most, no
number overflows: D, and of each key dP, G, dS and what of it meets keys and queries are numbers,
and ones that a function without a largest number may compute. -/
theorem limitedGradientRow (hs : ∀ j, absolute (r.slope j) + r.slopeError j ≤ slope)
    (fits : gradientRowFits p largest c e slope r.factor r.value r.dO r.dL)
    {S X : Fin n → Option R} (h : r.Limited p largest c S X) :
    ∃ S' X' : Fin n → R, (∀ j, S j = some (S' j)) ∧ (∀ j, X j = some (X' j)) ∧
      r.Computed p c S' X' ∧ 0 ≤ rowInnerSize p c e r.factor r.value r.dO r.dL ∧
      ∀ j, AtMost (slopedSize p e slope
        (rowInnerSize p c e r.factor r.value r.dO r.dL) (r.weight j)) (X' j) := by
  obtain ⟨D, hD, hrow⟩ := h
  have fits' := fits
  simp only [gradientRowFits, Bool.and_eq_true, List.all_eq_true, decide_eq_true_eq] at fits'
  obtain ⟨⟨⟨⟨f₁, f₂⟩, -⟩, f₃⟩, -⟩ := fits'
  obtain ⟨D', rfl, h₁, h₂⟩ := limitedMean hp hr hsum he₀ he (fun j => f₁ j (List.mem_finRange j))
    f₂ (Std.le_trans (rowDeltaSize_le hp he₀)
      (Std.le_trans (inner_le hp he₀ (rowInnerSize_nonneg hp he₀)) f₃)) hD
  have row : ∀ j, S j = some ((S j).getD 0) ∧ X j = some ((X j).getD 0) ∧
      ComputedScoreGradient p c r D' j ((S j).getD 0) ((X j).getD 0) ∧
      AtMost (slopedSize p e slope (rowInnerSize p c e r.factor r.value r.dO r.dL) (r.weight j))
        ((X j).getD 0) := fun j => by
    obtain ⟨s, x, e₁, e₂, h⟩ := limitedScoreGradient hp hr hsum he₀ he hs fits h₂ (hrow j)
    simp only [e₁, e₂, Option.getD_some, true_and]
    exact h
  exact ⟨_, _, fun j => (row j).1, fun j => (row j).2.1, ⟨D', h₁, fun j => (row j).2.2.1⟩,
    rowInnerSize_nonneg hp he₀, fun j => (row j).2.2.2⟩

end Attention.Proof
