module

public import Attention.Model.UnderflowWeights
public import Attention.Proof.Rounding.GradientMatrices
public import Attention.Proof.Rounding.OutputParts
public import Attention.Spec.UnderflowTolerance
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.OutputNumbers

public section

/-! # The weight of one key in an output

It is as close to the exact one as a weight that a backward pass computes again: exp (s − m) / l is
off by the error of the score and by that of the denominator, which the log-sum-exp has, too.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-! ## One weight -/

/-- A weight is off by the error of its score, by that of the denominator, and by the arguments of
its exponentials. -/
theorem weight_close [Exponential R R] {s s' m l L E F a X u G : R} (hl : 0 < l)
    (h₁ : exp m * l ≤ exp L * F) (h₂ : exp L ≤ exp m * l * F) (hF : F ≤ exp E)
    (hs : AtMost a (s' - s)) (hG₁ : G ≤ exp (s' - m) * exp (u * (m - s')))
    (hG₂ : exp (s' - m) ≤ G * exp (u * (m - s'))) (hX : a + E + u * (m - s') ≤ X) :
    AtMost ((exp X - 1) * exp (s - L)) (G / l - exp (s - L)) := by
  have hm := exp_pos (R := R) m
  have hP := exp_pos (R := R) (s - L)
  have hU := exp_pos (R := R) (u * (m - s'))
  have hml := OrderedRing.mul_pos hm hl
  have upper : G ≤ l * (exp (s - L) * exp X) := by
    have i₁ : (exp (L - m - E) : R) ≤ l := by
      have j := Std.le_trans h₂ (OrderedRing.mul_le_mul_of_nonneg_left hF (Std.le_of_lt hml))
      have e₁ : (exp L : R) = exp (L - m - E) * (exp m * exp E) := by
        rw [← exp_add, ← exp_add]
        congr 1
        grind
      rw [e₁] at j
      have hmE := OrderedRing.mul_pos hm (exp_pos (R := R) E)
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos (a := (exp (L - m - E) : R) - l) (by grind) hmE
      grind
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right i₁
      (Std.le_of_lt (OrderedRing.mul_pos hP (exp_pos (R := R) X)))
    refine Std.le_trans hG₁ (Std.le_trans ?_ i₂)
    rw [← exp_add, ← exp_add, ← exp_add]
    have := hs.2
    exact exp_le (by grind)
  have lower : l * (exp (s - L) * exp (-X)) ≤ G := by
    have i₁ : l ≤ exp (L - m + E) := by
      have j := Std.le_trans h₁ (OrderedRing.mul_le_mul_of_nonneg_left hF
        (Std.le_of_lt (exp_pos (R := R) L)))
      have e₁ : (exp L : R) * exp E = exp m * exp (L - m + E) := by
        rw [← exp_add, ← exp_add]
        congr 1
        grind
      rw [e₁] at j
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos (b := l - (exp (L - m + E) : R)) hm (by grind)
      grind
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right i₁
      (Std.le_of_lt (OrderedRing.mul_pos hP (exp_pos (R := R) (-X))))
    refine Std.le_trans i₂ ?_
    have i₃ : (exp (s' - m - u * (m - s')) : R) ≤ G := by
      have e₁ : (exp (s' - m) : R) = exp (s' - m - u * (m - s')) * exp (u * (m - s')) :=
        (exp_sub_mul _ _).symm
      rw [e₁] at hG₂
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos (a := (exp (s' - m - u * (m - s')) : R) - G) (by grind) hU
      grind
    refine Std.le_trans ?_ i₃
    rw [← exp_add, ← exp_add]
    have := hs.1
    exact exp_le (by grind)
  have hX₀ : 0 ≤ X := by
    -- Otherwise the bounds would cross.
    refine Classical.byContradiction fun hn => ?_
    have h := Std.le_trans lower upper
    have hlP := OrderedRing.mul_pos hl hP
    have j : (exp X : R) < exp (-X) := exp_lt _ _ (by grind)
    have := OrderedRing.mul_pos (a := l * exp (s - L)) (b := (exp (-X) : R) - exp X) hlP (by grind)
    grind
  have k := (exp_majorised (R := R) (E := X) (δ := -X) ⟨by grind, by grind⟩).1
  refine ⟨?_, ?_⟩
  · have i : exp (s - L) * exp (-X) ≤ G / l := by
      rw [OrderedField.le_div_iff hl]
      exact lower
    have j := OrderedRing.mul_le_mul_of_nonneg_left k (Std.le_of_lt hP)
    generalize (exp (s - L) : R) = w at *
    generalize (exp X : R) = x at *
    generalize (exp (-X) : R) = x' at *
    clear lower upper h₁ h₂ hG₁ hG₂ k
    grind
  · have i : G / l ≤ exp (s - L) * exp X := by
      rw [OrderedField.div_le_iff hl]
      exact upper
    generalize (exp (s - L) : R) = w at *
    generalize (exp X : R) = x at *
    clear lower upper h₁ h₂ hG₁ hG₂ k
    grind

/-- A factor that is off up or down is 1 at least. -/
theorem one_le_of_both {a b F : R} (hb : 0 < b) (h₁ : a ≤ b * F) (h₂ : b ≤ a * F)
    (ha : 0 < a) : 1 ≤ F := by
  refine Classical.byContradiction fun hn => ?_
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hF : 0 < F := by
    refine Classical.byContradiction fun hn' => ?_
    have := OrderedRing.mul_nonneg (a := a) (b := -F) (Std.le_of_lt ha) (by grind)
    grind
  have i₁ := OrderedRing.mul_pos (a := b) (b := 1 - F) hb (by grind)
  have i₂ := OrderedRing.mul_pos (a := a) (b := 1 - F) ha (by grind)
  grind

private theorem mul_le_gamma {u : R} (hu : 0 ≤ u) {k : Nat} (hk : numeral (k + 1) * u < 1) :
    u ≤ gamma (k + 1) u := by
  have h := pow_le_gamma hu (j := 1) (by omega) hk
  rw [Semiring.pow_succ, Semiring.pow_zero, Semiring.one_mul] at h
  grind

/-- The arguments of the exponentials of a weight are off by no more than the exponent of one that
is computed again. -/
theorem exponent_le {p : Precision R} {ν s s' m M L E Δ a : R} (hp : Precise p)
    (hν : 0 ≤ ν) (h4 : numeral 4 * p.unit < 1) (h3 : numeral 3 * p.unit < 1)
    (hs : AtMost a (s' - s)) (hΔ : 0 ≤ Δ) (hm : m - M ≤ Δ) (hML : M ≤ L) (hE : 0 ≤ E) :
    a + E + p.unit * (m - s')
      ≤ exponentError p.unit ν s L a (underflowLogSumExpTolerance p ν E (L - M) M Δ) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu := hp.unit
  have ha := hs.nonneg
  have n₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 3) hν
  have n₈ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 9) hν
  have g₃ := mul_le_gamma hu (k := 2) h3
  have g₄ := mul_le_gamma hu (k := 3) h4
  have v₁ := absolute_nonneg s
  have v₂ := absolute_nonneg M
  have v₃ := absolute_nonneg L
  have v₄ := (atMost_absolute s).1
  have v₅ := (atMost_absolute M).2
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left
    (show m - s' ≤ (absolute M + Δ) + (absolute s + a) by
      have := hs.1
      grind) hu
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  have i₂ : p.unit * (absolute M + Δ)
      ≤ gamma 4 p.unit * (L - M + 1 + absolute M + E + numeral 2 * Δ) := by
    rw [e₂]
    exact OrderedField.mul_le_mul hu g₄ (by grind) (by grind)
  have hL : E + p.unit * (absolute M + Δ)
      ≤ underflowLogSumExpTolerance p ν E (L - M) M Δ := by
    rw [underflowLogSumExpTolerance, logSumExpTolerance]
    have := OrderedRing.mul_nonneg (a := 1 + gamma 4 p.unit) (by grind) n₈
    grind
  have hL₀ : 0 ≤ underflowLogSumExpTolerance p ν E (L - M) M Δ := by
    have := OrderedRing.mul_nonneg hu (b := absolute M + Δ) (by grind)
    grind
  rw [exponentError]
  generalize underflowLogSumExpTolerance p ν E (L - M) M Δ = t at *
  have i₃ := OrderedField.mul_le_mul (a := p.unit) (b := gamma 3 p.unit) (c := absolute s + a)
    (d := absolute s + (a + numeral 3 * ν) + (absolute L + (t + numeral 3 * ν))) hu g₃ (by grind)
    (by grind)
  generalize gamma 3 p.unit = g at *
  generalize gamma 4 p.unit = g' at *
  generalize numeral 3 * ν = n at *
  clear i₂ g₃ g₄ hm hs
  grind

/-! ## One key -/

/-- What rescalings and the denominator make of an error of a weight. -/
private theorem key_growth_le {e F η q : R} {r B : Nat} {l : R} (hq : 0 < q) (hq₁ : q ≤ 1)
    (hl : 0 < l) (hη : 0 ≤ η) (hr : r ≤ B) (hF : F ≤ 1 + e)
    (h : η / q ^ r ≤ l * (F * (η * (1 / q ^ (2 * B + 1))))) :
    η / q ^ r / l ≤ η * ((1 + e) / q ^ (2 * B + 1)) ∧
      η / q ^ r / l * (1 / q ^ (r + 1)) ≤ η * ((1 + e) / q ^ (3 * B + 2)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have q₁ := OrderedField.pow_pos hq (2 * B + 1)
  have q₂ := OrderedField.pow_pos hq (r + 1)
  have q₃ := OrderedField.pow_pos hq (B + 1)
  have i₁ : η / q ^ r / l ≤ η * ((1 + e) / q ^ (2 * B + 1)) := by
    rw [OrderedField.div_le_iff hl]
    refine Std.le_trans h ?_
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hF (OrderedRing.mul_nonneg hη
      (OrderedField.div_nonneg (Std.le_of_lt h₀) q₁))
    have i₃ := OrderedRing.mul_le_mul_of_nonneg_left i₂ (Std.le_of_lt hl)
    rwa [show (1 + e) * (η * (1 / q ^ (2 * B + 1))) = η * ((1 + e) / q ^ (2 * B + 1)) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]
      generalize (q ^ (2 * B + 1))⁻¹ = x
      grind] at i₃
  refine ⟨i₁, ?_⟩
  have i₂ : 1 / q ^ (r + 1) ≤ 1 / q ^ (B + 1) :=
    OrderedField.div_le_div_left (Std.le_of_lt h₀) q₃
      (OrderedField.pow_le_pow_of_le_one hq hq₁ (Nat.succ_le_succ hr))
  have i₃ := OrderedField.mul_le_mul (OrderedField.div_nonneg (OrderedField.div_nonneg hη
    (OrderedField.pow_pos hq r)) hl) i₁ (OrderedField.div_nonneg (Std.le_of_lt h₀) q₂) i₂
  refine Std.le_trans i₃ ?_
  rw [show 3 * B + 2 = 2 * B + 1 + (B + 1) by omega,
    Semiring.pow_add _ (2 * B + 1) (B + 1)]
  generalize q ^ (2 * B + 1) = x at *
  generalize q ^ (B + 1) = y at *
  have e₁ : (1 + e) / x * (1 / y) = (1 + e) / (x * y) := by
    clear i₁ i₂ i₃ h
    have d₁ := OrderedField.mul_div_cancel (b := x) (ne_zero_of_pos q₁) (1 + e)
    have d₂ := OrderedField.mul_div_cancel (b := y) (ne_zero_of_pos q₃) (1 : R)
    have d₃ := OrderedField.mul_div_cancel (b := x * y)
      (ne_zero_of_pos (OrderedRing.mul_pos q₁ q₃)) (1 + e)
    generalize (1 + e) / x = c₁ at *
    generalize 1 / y = c₂ at *
    generalize (1 + e) / (x * y) = c₃ at *
    have hz : x * y * (c₁ * c₂ - c₃) = 0 := by grind
    rcases Field.of_mul_eq_zero hz with h | h
    · exact absurd h (ne_zero_of_pos (OrderedRing.mul_pos q₁ q₃))
    · grind
  rw [Semiring.mul_assoc, e₁]
  exact Std.le_refl _

variable [Exponential R R] {p : Precision R} {ν : R}

/-- The part of one key of a component. -/
theorem output_key {g : GradientPrecision R} (hg : PreciseGradient g)
    (same : OfForward p ν g) (hp : Precise p) (hν : 0 ≤ ν) {c : GradientCounts} {m l F : R}
    {n N r : Nat} (hl : 0 < l) (hr : r ≤ c.rescalings) (hN : n ≤ N) {key : ComputedKey R}
    {w t e z v φ : R} (hz : 0 ≤ z) (hφ : AtMost g.factors (φ - 1)) (hv : key.value = z * v * φ)
    (h : OutputPart p ν m l n r key w t e) {P δ : R} (hδ : 0 ≤ δ)
    (hmasked : key.score = none → P = 0)
    (hseen : key.score ≠ none → 0 < P ∧ F ≤ 1 + δ ∧ ∀ G,
      G ≤ exp (key.computed - m) * exp (p.unit * (m - key.computed)) →
      exp (key.computed - m) ≤ G * exp (p.unit * (m - key.computed)) →
      AtMost (δ * P) (G / l - P))
    (hgrow : ∀ η, 0 ≤ η → η / (1 - p.exponential) ^ r
      ≤ l * (F * (η * (1 / (1 - p.exponential) ^ (2 * c.rescalings + 1))))) :
    StoredWeight g.stored (g.storedTiny * meanGrowth g c δ) P δ 0 w ∧
      AtMost (outputFactor g c N - 1) (t * φ - 1) ∧
      AtMost (outputFactor g c N * tinyOf P (meanLost g c δ
        * (numeral 2 * (z * absolute v) + 1))) e := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have hq₁ : 1 - p.exponential ≤ 1 := by have := hp.exponential; grind
  have ha := one_le_one_plus hp.accumulation
  have hpow := OrderedField.pow_le_pow ha hN
  have hpow₀ := OrderedField.one_le_pow ha n
  have hQ : 1 / (1 - p.exponential) ^ (r + 1) ≤ 1 / (1 - p.exponential) ^ (c.rescalings + 1) :=
    OrderedField.div_le_div_left (Std.le_of_lt h₀) (OrderedField.pow_pos hq _)
      (OrderedField.pow_le_pow_of_le_one hq hq₁ (Nat.succ_le_succ hr))
  have hQ₀ : 1 ≤ 1 / (1 - p.exponential) ^ (r + 1) := by
    rw [OrderedField.le_div_iff (OrderedField.pow_pos hq _), Semiring.mul_one]
    exact OrderedField.pow_le_one hq hq₁ _
  have hf := one_le_one_plus hg.factors
  have hT : outputFactor g c N = (1 + p.accumulation) ^ N
      * (1 / (1 - p.exponential) ^ (c.rescalings + 1)) * (1 + g.factors) := by
    rw [outputFactor, same.accumulation, same.exponential, Field.div_eq_mul_inv,
      Field.div_eq_mul_inv]
    generalize ((1 - p.exponential) ^ (c.rescalings + 1))⁻¹ = x
    generalize (1 + p.accumulation) ^ N = y
    clear hQ hQ₀ hpow hpow₀ h hgrow hseen
    grind
  have hT₁ : (1 + p.accumulation) ^ n * (1 / (1 - p.exponential) ^ (r + 1))
      ≤ (1 + p.accumulation) ^ N * (1 / (1 - p.exponential) ^ (c.rescalings + 1)) :=
    OrderedField.mul_le_mul (nonneg_of_one_le hpow₀) hpow (nonneg_of_one_le hQ₀) hQ
  refine ⟨?_, ?_, ?_⟩
  · rw [same.stored, same.storedTiny, meanGrowth, same.exponential, power_eq]
    by_cases hs : key.score = none
    · rw [hmasked hs, (h.masked hs).1]
      exact storedWeight_zero hp.stored (OrderedRing.mul_nonneg hp.storedTiny
        (OrderedField.div_nonneg (by grind) (OrderedField.pow_pos hq _))) _ _
    · obtain ⟨hP, hFδ, hclose⟩ := hseen hs
      obtain ⟨G, k₁, k₂, k₃⟩ := h.weight hs
      refine ⟨G / l, (hclose G k₁ k₂).mono ?_, storedBelow_mono k₃ (key_growth_le hq hq₁ hl
        hp.storedTiny hr hFδ (hgrow _ hp.storedTiny)).2⟩
      rw [tinyOf_pos (show ¬P ≤ 0 by grind), Semiring.add_zero]
      exact Std.le_refl _
  · have h₁ := factor_mul (B := 1 + g.factors) (t := φ) h.factor (by
      rwa [show 1 + g.factors - 1 = g.factors by grind])
    refine h₁.mono ?_
    have := OrderedRing.mul_le_mul_of_nonneg_right hT₁ (nonneg_of_one_le hf)
    rw [hT]
    exact (show ∀ x y : R, x ≤ y → x - 1 ≤ y - 1 from fun x y h => by grind) _ _ this
  · by_cases hs : key.score = none
    · rw [(h.masked hs).2, hmasked hs, tinyOf_zero (Std.le_refl _), Semiring.mul_zero]
      exact .zero (Std.le_refl _)
    · obtain ⟨hP, hFδ, -⟩ := hseen hs
      rw [tinyOf_pos (show ¬P ≤ 0 by grind)]
      refine h.lost.mono ?_
      have k₁ := (key_growth_le hq hq₁ hl hν hr hFδ (hgrow _ hν)).1
      have k₂ : (1 + δ) / (1 - p.exponential) ^ (2 * c.rescalings + 1) ≤ meanGrowth g c δ := by
        rw [meanGrowth, power_eq, same.exponential]
        exact OrderedField.div_le_div_left (by grind) (OrderedField.pow_pos hq _)
          (OrderedField.pow_le_pow_of_le_one hq hq₁ (by omega))
      have k₃ := Std.le_trans k₁ (OrderedRing.mul_le_mul_of_nonneg_left k₂ hν)
      have k₄ := OrderedField.mul_le_mul (numeral_nonneg (R := R) (r + 6))
        (numeral_le_numeral (R := R) (show r + 6 ≤ c.rescalings + 6 by omega))
        (OrderedField.div_nonneg (OrderedField.div_nonneg hν (OrderedField.pow_pos hq r)) hl) k₃
      have hv' : absolute key.value ≤ z * absolute v * (1 + g.factors) := by
        rw [hv]
        refine absolute_le (((atMost_self hz).mul (atMost_absolute v)).mul ?_)
        have := hφ.add (atMost_self (Std.le_of_lt h₀))
        rwa [show g.factors + 1 = 1 + g.factors by grind, show φ - 1 + 1 = φ by grind] at this
      have hzv := OrderedRing.mul_nonneg hz (absolute_nonneg v)
      have k₅ : 2 * absolute key.value + 1
          ≤ (numeral 2 * (z * absolute v) + 1) * (1 + g.factors) := by
        rw [show (numeral 2 : R) = 2 by
          rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
          grind]
        have := hg.factors
        grind
      have n₁ := absolute_nonneg key.value
      have n₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 6))
        (OrderedField.div_nonneg (OrderedField.div_nonneg hν (OrderedField.pow_pos hq r)) hl)
      have k₆ := OrderedField.mul_le_mul n₂ k₄ (by grind) k₅
      have k₇ : (1 + p.accumulation) ^ n
          ≤ (1 + p.accumulation) ^ N * (1 / (1 - p.exponential) ^ (c.rescalings + 1)) :=
        Std.le_trans (by
          have := OrderedRing.mul_le_mul_of_nonneg_left hQ₀ (nonneg_of_one_le hpow₀)
          rwa [Semiring.mul_one] at this) hT₁
      have k₈ := OrderedField.mul_le_mul (nonneg_of_one_le hpow₀) k₇
        (OrderedRing.mul_nonneg n₂ (by grind)) k₆
      refine Std.le_trans k₈ ?_
      rw [hT, meanLost, same.tiny]
      clear k₁ k₂ k₃ k₄ k₅ k₆ k₇ k₈ n₁ n₂ hv hv' hzv h hgrow hseen hmasked hT₁ hT
      generalize meanGrowth g c δ = x
      generalize (1 + p.accumulation) ^ N * (1 / (1 - p.exponential) ^ (c.rescalings + 1)) = y
      generalize (numeral (c.rescalings + 6) : R) = k
      generalize (numeral 2 : R) * (z * absolute v) + 1 = b
      grind

end Attention.Proof
