module

public import Attention.Proof.Rounding.InnerGradients

public section

/-! # dS and the terms of sums, within their tolerance

The slope of softcap, the gradient by a score of a query row, and what it and a weight are off by
where they meet keys, queries and dO.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}

/-! ## The slope of softcap -/

/-- The slope where nothing underflows. -/
private theorem slope_close {u t t' e y z : R} (hu : u ≤ 1) (ht : AtMost 1 t)
    (ht' : AtMost 1 t') (he : AtMost e (t' - t)) (hy : Rounded u (t' * t') y)
    (hz : Rounded u (1 - y) z) : AtMost
      (smaller ((numeral 2 * absolute t + e) * e + numeral 2 * u) (1 + numeral 2 * u))
      (z - (1 - t * t)) := by
  obtain ⟨θ, hθ, rfl⟩ := hy
  obtain ⟨τ, hτ, rfl⟩ := hz
  have h₁ : AtMost 1 (t' * t') := by
    have := ht'.mul ht'
    rwa [Semiring.mul_one] at this
  have h₂ := ht.mul ht
  rw [Semiring.mul_one] at h₂
  have n₁ := mul_self_nonneg t
  have n₂ := mul_self_nonneg t'
  have h₃ : AtMost ((numeral 2 * absolute t + e) * e) (t' * t' - t * t) := by
    have i₁ := (atMost_absolute t).add ((atMost_absolute t).add he)
    have i₂ := i₁.mul he
    have e₁ : (t + (t + (t' - t))) * (t' - t) = t' * t' - t * t := by grind
    have e₂ : numeral 2 * absolute t + e = absolute t + (absolute t + e) := by
      rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
      generalize absolute t = a
      grind
    rwa [e₁, ← e₂] at i₂
  have h₄ := h₁.mul hθ
  rw [Semiring.one_mul] at h₄
  have h₅ : AtMost 1 (1 - t' * t' * (1 + θ)) := by
    have i₁ := OrderedRing.mul_nonneg n₂ (b := 1 + θ) (by have := hθ.1; grind)
    have i₂ : t' * t' * θ ≤ u := h₄.2
    have i₃ := h₁.2
    generalize t' * t' = a at *
    clear h₂ n₁ h₃ h₄
    exact ⟨by grind, by grind⟩
  have h₆ := h₅.mul hτ
  rw [Semiring.one_mul] at h₆
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [smaller, e₂]
  rw [e₂] at h₃
  generalize absolute t = a at *
  generalize (2 * a + e) * e = b at *
  have l₁ : (1 - t' * t' * (1 + θ)) * (1 + τ) - (1 - t * t)
      = (1 - t' * t' * (1 + θ)) * τ - t' * t' * θ - (t' * t' - t * t) := by
    clear h₁ h₂ h₃ h₄ h₅ h₆ n₁ n₂ ht ht' he hθ hτ
    grind
  rw [l₁]
  clear l₁ h₅ ht ht' he hθ hτ
  generalize (1 - t' * t' * (1 + θ)) * τ = v at *
  generalize t' * t' * θ = w at *
  generalize t' * t' = x at *
  generalize t * t = x' at *
  obtain ⟨i₁, i₂⟩ := h₃
  obtain ⟨i₃, i₄⟩ := h₄
  obtain ⟨i₅, i₆⟩ := h₆
  obtain ⟨i₇, i₈⟩ := h₁
  obtain ⟨i₉, i₀⟩ := h₂
  split
  · exact ⟨by grind, by grind⟩
  · exact ⟨by grind, by grind⟩

/-- **rounded-softcap-slope**: the slope 1 − t² of softcap, from a t that is off and at most 1, the
square and the difference rounded, is within its bound, also where the square underflows. -/
theorem rounded_softcapSlope {u ν t t' e y z : R} (hu : u ≤ 1) (ht : AtMost 1 t)
    (ht' : AtMost 1 t') (he : AtMost e (t' - t)) (hy : StoredBelow u ν (t' * t') y)
    (hz : Rounded u (1 - y) z) : AtMost (softcapSlopeError u ν t e) (z - (1 - t * t)) := by
  obtain ⟨x, hx, hν, -⟩ := hy
  obtain ⟨τ, hτ, rfl⟩ := hz
  have h₁ := slope_close hu ht ht' he hx ⟨τ, hτ, rfl⟩
  have h₂ : AtMost 2 (1 + τ) := by
    obtain ⟨i₁, i₂⟩ := hτ
    exact ⟨by have := OrderedRing.zero_lt_one (R := R); grind, by grind⟩
  have h₃ := hν.mul h₂
  rw [softcapSlopeError, show (numeral 2 : R) * ν = ν * 2 by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind]
  generalize smaller ((numeral 2 * absolute t + e) * e + numeral 2 * u) (1 + numeral 2 * u) = b at *
  rw [show (1 - y) * (1 + τ) - (1 - t * t)
    = (1 - x) * (1 + τ) - (1 - t * t) - (y - x) * (1 + τ) by
      clear h₁ h₂ h₃ hν hx hτ ht ht' he
      grind]
  exact h₁.sub h₃

/-! ## dS -/

private theorem majorised_of_error {e x y : R} (h : AtMost e (y - x)) :
    Majorised (absolute x + e) (absolute x) y x :=
  ⟨by rwa [show absolute x + e - absolute x = e by grind], atMost_absolute x⟩

private theorem two_units {p : GradientPrecision R} (hp : PreciseGradient p)
    (hu : numeral 3 * p.unit < 1) : numeral 2 * p.unit < 1 := by
  have := hp.unit
  rw [numeral_succ] at hu
  grind

/-- Products with G and the slope: a factor, and what underflows. -/
private theorem times_close {p : GradientPrecision R} (hp : PreciseGradient p)
    (hu : numeral 2 * p.unit < 1) {k : GradientKey R} {a : Nat} {x y : R}
    (hx : k.weight ≤ 0 → x = 0) (h : BelowTimes p.unit p.tiny a x y) :
    ∃ t, AtMost ((1 + p.unit) ^ a - 1) (t - 1) ∧ ∀ (b : Nat) (t' : R), a + b ≤ 2 →
      AtMost ((1 + p.unit) ^ b - 1) (t' - 1) → AtMost (timesTiny p k) ((y - x * t) * t') := by
  obtain ⟨t, ht, hy⟩ := belowTimes_factor hp.unit hp.tiny h
  refine ⟨t, ht, fun b t' hab ht' => ?_⟩
  have hg := gamma_nonneg (k := 2) hp.unit hu
  by_cases hn : k.weight ≤ 0
  · obtain rfl := hx hn
    obtain rfl := belowTimes_zero h
    rw [timesTiny, tinyOf_zero hn]
    rw [show ((0 : R) - 0 * t) * t' = 0 by grind,
      show (1 + gamma 2 p.unit) * (numeral 2 * 0) = 0 by grind]
    exact .zero (Std.le_refl _)
  rw [timesTiny, tinyOf_pos hn]
  have h₁ : AtMost ((1 + p.unit) ^ b) t' := by
    have := ht'.add (⟨by have := OrderedRing.zero_lt_one (R := R); grind, Std.le_refl _⟩ :
      AtMost 1 (1 : R))
    rwa [show (1 + p.unit) ^ b - 1 + 1 = (1 + p.unit) ^ b by grind,
      show t' - 1 + 1 = t' by grind] at this
  refine (hy.mul h₁).mono ?_
  have h₂ := pow_le_gamma hp.unit hab hu
  rw [Semiring.pow_add] at h₂
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right
    (numeral_le_numeral (R := R) (show a ≤ 2 by omega)) hp.tiny
  have h₄ := OrderedField.mul_le_mul (OrderedRing.mul_nonneg
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.unit) a))
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.unit) b))) h₂
    (OrderedRing.mul_nonneg (numeral_nonneg a) hp.tiny) h₃
  generalize (1 + p.unit) ^ a = f at *
  generalize (1 + p.unit) ^ b = g at *
  generalize (numeral a : R) * p.tiny = m at *
  clear h₁ h₂ h₃ hy ht ht' h
  rwa [show f * m * g = f * g * m by grind]

/-- dS, with roundings that come to a factor `t`, and what underflows. -/
private theorem scoreGradient_close {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {reach dL : R} {keys : List (GradientKey R)} {k : GradientKey R}
    (hw : 0 ≤ k.weight) {G w t S : R}
    (hG : AtMost (innerError p c reach dL keys k) (G - innerGradient dL keys k))
    (hs : StoredWeight p.weights p.weightsTiny k.weight k.error p.tiny w)
    (ht : AtMost (gamma 2 p.unit) (t - 1)) (hS : AtMost (timesTiny p k) (S - w * G * t)) :
    AtMost (scoreGradientError p c reach dL keys k)
      (S - k.weight * innerGradient dL keys k) := by
  have h := ((((storedWeight_majorised hp.weights hw hs).mul (majorised_of_error hG)).mul_factor
    ht).near hS).error
  rw [scoreGradientError, weightTiny]
  clear hG hs ht hw hS
  generalize innerError p c reach dL keys k = e at *
  generalize innerGradient dL keys k = I at *
  generalize absolute I = A at *
  generalize gamma 2 p.unit = g at *
  generalize tinyOf k.weight (p.tiny * (1 + p.weights) + p.weightsTiny) = L at *
  generalize timesTiny p k = τ at *
  generalize k.weight = P at *
  generalize 1 + p.weights = u at *
  generalize 1 + k.error = v at *
  rwa [show (P * (v * u) + L) * (A + e) * (1 + g) + τ - P * A
    = P * ((v * u * (1 + g) - 1) * (A + e) + e) + ((1 + g) * L * (A + e) + τ) by
      clear h; grind] at h

/-- |G| ≤ A + W + |dL|. -/
theorem innerGradient_size {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    AtMost (innerSize r.dL r.keys (r.key j)) (innerGradient r.dL r.keys (r.key j)) := by
  have one : ∀ i, AtMost (r.key i).size (r.key i).product := fun i =>
    (atMost_self (hr.factor i)).mul (dot_atMost_magnitude r.dO (r.value i))
  have mean : AtMost (meanSize r.keys) (meanProduct r.keys) := by
    refine sumOver_atMost fun k hk => ?_
    obtain ⟨i, -, rfl⟩ := List.mem_map.mp hk
    exact (atMost_self (hr.weight i)).mul (one i)
  exact ((one j).sub mean).add (atMost_absolute r.dL)

/-- **rounded-score-gradients**: dS of a query row, with every operation rounded, and the weights
computed again with relative errors, is within its bound, however D was come by. -/
theorem rounded_scoreGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R} (h : r.Computed p c S X)
    (j : Fin n) :
    AtMost (scoreGradientError p c r.reach r.dL r.keys (r.key j)) (S j - r.scoreGradient j) := by
  obtain ⟨D, hD, hj⟩ := h
  obtain ⟨a, b, x, G, w, slope, y, hab, hx, hG, hw, hS, -, -, -⟩ := hj j
  have h₁ := rounded_innerGradient hp hc₁ hc₂ hu hr hD hx hG
  have h2 := two_units hp hu
  obtain ⟨t, ht, hS'⟩ := times_close (k := r.key j) hp h2 (fun hn => by
    rw [storedWeight_eq_zero (hr.weight j) hn hw, Semiring.zero_mul]) hS
  have h₂ := hS' 0 1 (by omega) (by rw [Semiring.pow_zero]; exact ⟨by grind, by grind⟩)
  rw [Semiring.mul_one] at h₂
  exact scoreGradient_close hp (hr.weight j) h₁ hw
    (ht.mono (pow_sub_one_le_gamma hp.unit (show a ≤ 2 by omega) h2)) h₂

/-! ## Terms -/

/-- What dS times the slope is off by where it meets keys and queries, and its size, of a G that is
within its bound. -/
theorem scoreGradientTerm_close {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hu : numeral 3 * p.unit < 1) {r : BackwardRow R n d_v} (hr : r.Valid)
    {j : Fin n} {a b : Nat} {G w S slope y X : R} (hab : a + b ≤ 2)
    (h₁ : AtMost (innerError p c r.reach r.dL r.keys (r.key j))
      (G - innerGradient r.dL r.keys (r.key j)))
    (hw : r.EarlyWeight p j w) (hS : BelowTimes p.unit p.tiny a (w * G) S)
    (hslope : AtMost (r.slopeError j) (slope - r.slope j))
    (hy : BelowTimes p.unit p.grown.tiny b (S * slope) y)
    (hX : StoredBelow p.stored p.grown.storedTiny y X) (other : R) :
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).error
        (X - r.scoreGradient j * r.slope j) ∧
      AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).size
        (r.scoreGradient j * r.slope j) := by
  have h2 := two_units hp hu
  have masked : (r.key j).weight ≤ 0 → w * G = 0 := fun hn => by
    rw [storedWeight_eq_zero (hr.weight j) hn hw, Semiring.zero_mul]
  have masked' : (r.key j).weight ≤ 0 → S * slope = 0 := fun hn => by
    rw [masked hn] at hS
    rw [belowTimes_zero hS, Semiring.zero_mul]
  obtain ⟨t, ht, hS'⟩ := times_close hp h2 masked hS
  obtain ⟨t', ht', hy'⟩ := times_close (grown_precise hp) h2 masked' hy
  replace ht' : AtMost ((1 + p.unit) ^ b - 1) (t' - 1) := ht'
  have h₂ := factor_mul ht ht'
  rw [← Semiring.pow_add] at h₂
  have h₃ := scoreGradient_close hp (S := S * t') (hr.weight j) h₁ hw
    (h₂.mono (pow_sub_one_le_gamma hp.unit hab h2)) (by
      rw [show S * t' - w * G * (t * t') = (S - w * G * t) * t' by grind]
      exact hS' b t' hab ht')
  have hy₂ := hy' 0 1 (by omega) (by rw [Semiring.pow_zero]; exact ⟨by grind, by grind⟩)
  rw [Semiring.mul_one, show S * slope * t' = S * t' * slope by grind] at hy₂
  have h₄ := (((majorised_of_error h₃).mul (majorised_of_error hslope)).near hy₂).below_tinyOf
    (weight := (r.key j).weight) hp.stored (fun hn => by
      rw [masked' hn] at hy
      exact belowTimes_zero hy) hX
  have h₅ := h₄.error
  have n₁ := h₃.nonneg
  have n₂ := hslope.nonneg
  refine ⟨?_, ?_⟩
  · rw [scoreGradientTerm]
    show AtMost _ (X - (r.key j).weight * innerGradient r.dL r.keys (r.key j) * r.slope j)
    clear h₁ h₂ h₃ h₄ hX hS hy hS' hy' ht ht' hw hslope masked masked' hy₂
    show AtMost (scoreGradientError p c r.reach r.dL r.keys (r.key j) * (absolute (r.slope j)
      + r.slopeError j) + absolute ((r.key j).weight * innerGradient r.dL r.keys (r.key j))
        * r.slopeError j + timesTiny p.grown (r.key j) + p.stored * (absolute ((r.key j).weight
          * innerGradient r.dL r.keys (r.key j)) * absolute (r.slope j)
          + (scoreGradientError p c r.reach r.dL r.keys (r.key j) * (absolute (r.slope j)
            + r.slopeError j) + absolute ((r.key j).weight
              * innerGradient r.dL r.keys (r.key j)) * r.slopeError j
              + timesTiny p.grown (r.key j)))
          + tinyOf (r.key j).weight p.grown.storedTiny) _
    generalize scoreGradientError p c r.reach r.dL r.keys (r.key j) = e at *
    generalize (r.key j).weight * innerGradient r.dL r.keys (r.key j) = s at *
    generalize absolute s = A at *
    generalize absolute (r.slope j) = B at *
    generalize r.slopeError j = f at *
    generalize timesTiny p.grown (r.key j) = τ at *
    generalize tinyOf (r.key j).weight p.grown.storedTiny = η at *
    rwa [show ((A + e) * (B + f) + τ) * (1 + p.stored) + η - A * B
      = e * (B + f) + A * f + τ + p.stored * (A * B + (e * (B + f) + A * f + τ)) + η by
        clear h₅; grind] at h₅
  · have h₆ := ((atMost_self (hr.weight j)).mul (innerGradient_size hr j)).mul
      ((atMost_absolute (r.slope j)).mono (b := absolute (r.slope j) + r.slopeError j) (by
        clear h₁ h₂ h₃ h₄ h₅; grind))
    exact h₆

/-- The same of a row. -/
theorem rounded_scoreGradientTerm {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R} (h : r.Computed p c S X)
    (j : Fin n) (other : R) :
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).error
        (X j - r.scoreGradient j * r.slope j) ∧
      AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).size
        (r.scoreGradient j * r.slope j) := by
  obtain ⟨D, hD, hj⟩ := h
  obtain ⟨a, b, x, G, w, slope, y, hab, hx, hG, hw, hS, hslope, hy, hX⟩ := hj j
  exact scoreGradientTerm_close hp hu hr hab (rounded_innerGradient hp hc₁ hc₂ hu hr hD hx hG) hw
    hS hslope hy hX other

/-- What a weight is off by where it meets dO, and its size. -/
theorem rounded_weightTerm {p : GradientPrecision R} (hp : PreciseGradient p)
    {r : BackwardRow R n d_v} (hr : r.Valid)
    {j : Fin n} {w : R} (h : r.ComputedWeight p j w) (other : R) :
    AtMost (weightTerm p (r.key j) other).error (w - r.factor j * r.weight j) ∧
      AtMost (weightTerm p (r.key j) other).size (r.factor j * r.weight j) := by
  obtain ⟨x, t, y, hx, ht, hy, hw⟩ := h
  have hf := atMost_self (hr.factor j)
  refine ⟨?_, hf.mul (atMost_self (hr.weight j))⟩
  have h₁ := (((((Majorised.exact hf).mul (storedWeight_majorised hp.weights (hr.weight j)
    hx)).mul_factor ht).near hy).below_tinyOf (weight := r.weight j) hp.stored (fun hn => by
      rw [tinyOf_zero hn, storedWeight_eq_zero (hr.weight j) hn hx] at hy
      obtain ⟨i₁, i₂⟩ := hy
      grind) hw).error
  show AtMost (r.factor j * r.weight j
    * ((1 + r.error j) * (1 + p.weights) * (1 + p.factors) * (1 + p.stored) - 1)
    + ((r.factor j * tinyOf (r.weight j) (p.tiny * (1 + p.weights) + p.weightsTiny)
      * (1 + p.factors) + tinyOf (r.weight j) p.grown.tiny) * (1 + p.stored)
      + tinyOf (r.weight j) p.grown.storedTiny)) _
  generalize tinyOf (r.weight j) (p.tiny * (1 + p.weights) + p.weightsTiny) = L at *
  generalize tinyOf (r.weight j) p.grown.tiny = n at *
  generalize tinyOf (r.weight j) p.grown.storedTiny = η at *
  generalize 1 + r.error j = a at *
  generalize 1 + p.weights = b at *
  generalize 1 + p.factors = e at *
  generalize 1 + p.stored = f at *
  generalize r.factor j = z at *
  generalize r.weight j = v at *
  rwa [show (z * (v * (a * b) + L) * e + n) * f + η - z * v
    = z * v * (a * b * e * f - 1) + ((z * L * e + n) * f + η) by
      clear h₁; grind] at h₁

end Attention.Proof
