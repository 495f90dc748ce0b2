module

public import Attention.Proof.Derivative.Tangent
public import Attention.Proof.Rounding.RescaledSums

public section

/-! # Mean rates, within their tolerance

Weights, the sums of what they multiply, and the rate of a log-sum-exp, which is such a sum. Every
number is near to the exact one in the sense of `Near`; what is left is to compare the factors that
it has gone through with those that the tolerance counts.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-! ## Weights and the sums of what they multiply -/

/-- How large the weight of a key is at most, with what it and its product are stored in. -/
abbrev grownWeight (k : BoundedRate R) : R :=
  (1 + k.stored) * (1 + k.stored) * (k.weight + k.weight * k.weightError + 2 * k.tiny)

/-- How large the product of the weight of a key, a number of at most `b` and one of size `y` is at
most, where `L` sums and products of sums may be below the normal numbers besides. -/
@[expose] def grownTerm (L : R) (k : BoundedRate R) (b y : R) : R :=
  grownWeight k * b * y + (1 + k.stored) * (1 + k.stored)
    * (k.tiny * (2 * y + 1) + L * (k.flushed * (1 + 2 * (b * y))))

private theorem tangent_numeral_le {m n : Nat} (h : m + 1 ≤ n) :
    (numeral m : R) + 1 ≤ numeral n := by
  induction h with
  | refl => exact le_of_eq (numeral_succ m).symm
  | step _ ih =>
    rw [numeral_succ]
    have := OrderedRing.zero_lt_one (R := R)
    grind

variable {p : Precision R} {cols : List α} {key : α → BoundedRate R}

/-- Weights, the unit roundoffs that they are stored with, and what is lost of them below the normal
numbers, are not negative. -/
abbrev NotNegativeRates (cols : List α) (key : α → BoundedRate R) : Prop :=
  ∀ j ∈ cols, 0 ≤ (key j).weight ∧ 0 ≤ (key j).stored ∧ 0 ≤ (key j).tiny ∧ 0 ≤ (key j).flushed

private theorem tangent_once_le {t g τ : R} (hτ : 0 ≤ τ) (ht : 0 ≤ t) :
    (1 + τ) * (g + t) + t ≤ (1 + τ) * (g + 2 * t) := by
  have := OrderedRing.mul_nonneg hτ ht
  grind

private theorem tangent_weight_near (nonneg : NotNegativeRates cols key) {w : α → R}
    (h : ComputedWeights cols key w) : ∀ j ∈ cols,
      Near ((1 + (key j).stored)
          * ((key j).weight + (key j).weight * (key j).weightError + 2 * (key j).tiny))
        (key j).weight (key j).weight (w j) := fun j hj => by
  obtain ⟨x, hx, hw⟩ := h j hj
  obtain ⟨hn, hτ, ht, -⟩ := nonneg j hj
  have h₁ := (Near.of_error ⟨by grind, Std.le_refl _⟩ hx).storedNear hw
  refine h₁.mono ?_
  rw [← Semiring.add_assoc (key j).weight]
  exact tangent_once_le hτ ht

private theorem grown_nonneg (nonneg : NotNegativeRates cols key) {w : α → R}
    (h : ComputedWeights cols key w) : ∀ j ∈ cols, 0 ≤ grownWeight (key j) := fun j hj => by
  have h₁ := (tangent_weight_near nonneg h j hj).nonneg
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₂ := OrderedRing.mul_nonneg (a := 1 + (key j).stored) (by have := nonneg j hj; grind) h₁
  rwa [← Semiring.mul_assoc] at h₂

/-- A weight that is not multiplied is stored once. -/
theorem weight_near_grown (nonneg : NotNegativeRates cols key)
    {w : α → R} (h : ComputedWeights cols key w) : ∀ j ∈ cols,
      Near (grownWeight (key j)) (key j).weight (key j).weight (w j) := fun j hj => by
  have h₁ := tangent_weight_near nonneg h j hj
  refine h₁.mono ?_
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (one_le_one_plus (nonneg j hj).2.1) h₁.nonneg
  simp only [grownWeight]
  rwa [Semiring.one_mul, ← Semiring.mul_assoc] at h₂

theorem tangent_rate_near (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {s : α → R}
    (h : ComputedRates cols key s) : ∀ j ∈ cols,
      Near ((key j).size + (key j).rateError) (key j).size (key j).rate (s j) := fun j hj =>
  .of_error (sizes j hj) (h j hj)

private theorem tangent_product_le {u τ g M t : R} (hu : 0 ≤ u) (hτ : 0 ≤ τ) (ht : 0 ≤ t) :
    (1 + τ) * ((1 + u) * ((1 + τ) * g * M) + t) + t
      ≤ (1 + u) * ((1 + τ) * (1 + τ) * g * M + (1 + τ) * (1 + τ) * (2 * t)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_nonneg hτ ht
  have h₂ := OrderedRing.mul_nonneg hτ h₁
  have h₃ := OrderedRing.mul_nonneg hu
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := 1 + τ) (b := 1 + τ) (by grind)
      (by grind)) (b := 2 * t) (by grind))
  grind

/-- A weight times a number that is near to an exact one. -/
theorem storedProduct_near (hp : Precise p) (nonneg : NotNegativeRates cols key)
    {w : α → R} (hw : ComputedWeights cols key w) {j : α} (hj : j ∈ cols) {M S e x y : R}
    (h : Near M S e x) (hy : StoredProduct p (key j) (w j * x) y) :
    Near ((1 + p.unit) * (grownWeight (key j) * M
        + (1 + (key j).stored) * (1 + (key j).stored) * (2 * (key j).tiny)))
      ((key j).weight * S) ((key j).weight * e) y := by
  obtain ⟨z, hz, hy⟩ := hy
  obtain ⟨-, hτ, ht, -⟩ := nonneg j hj
  exact ((((tangent_weight_near nonneg hw j hj).mul h).storedNear hz).storedNear hy).mono
    (tangent_product_le hp.unit hτ ht)

private theorem loss_nonneg {φ b y : R} (hφ : 0 ≤ φ) (hb : 0 ≤ b) (hy : 0 ≤ y) :
    0 ≤ φ * (1 + 2 * (b * y)) := by
  have := OrderedRing.mul_nonneg hb hy
  have := OrderedRing.zero_lt_one (R := R)
  exact OrderedRing.mul_nonneg hφ (by grind)

/-- What a sum loses of a key, by the size of what its weight meets. -/
private theorem sumLoss_le {k : BoundedRate R} (hφ : 0 ≤ k.flushed) {b x y : R}
    (hx : absolute x ≤ b) : sumLoss k (x * y) ≤ k.flushed * (1 + 2 * (b * absolute y)) := by
  have h := absolute_le (((atMost_absolute x).mono hx).mul (atMost_absolute y))
  rw [sumLoss]
  exact OrderedRing.mul_le_mul_of_nonneg_left (by grind) hφ

private theorem sumLoss_nonneg {k : BoundedRate R} (hφ : 0 ≤ k.flushed) (x : R) :
    0 ≤ sumLoss k x := by
  have := absolute_nonneg x
  have := OrderedRing.zero_lt_one (R := R)
  exact OrderedRing.mul_nonneg hφ (by grind)

/-- What a term loses adds to it. -/
theorem grown_le_grownTerm (nonneg : NotNegativeRates cols key) {j : α} (hj : j ∈ cols) {b y : R}
    (hb : 0 ≤ b) (hy : 0 ≤ y) (losses : Nat) :
    grownWeight (key j) * b * y ≤ grownTerm (numeral losses) (key j) b y := by
  obtain ⟨-, hτ, ht, hφ⟩ := nonneg j hj
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_nonneg ht (b := 2 * y + 1) (by grind)
  have h₂ := OrderedRing.mul_nonneg (numeral_nonneg losses) (loss_nonneg hφ hb hy)
  have h₃ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := 1 + (key j).stored)
    (b := 1 + (key j).stored) (by grind) (by grind)) (b := (key j).tiny * (2 * y + 1)
      + numeral losses * ((key j).flushed * (1 + 2 * (b * y)))) (by clear hτ ht hφ; grind)
  rw [grownTerm]
  generalize grownWeight (key j) * b * y = g
  clear h₁ h₂ hτ ht hφ
  grind

theorem grown_term_nonneg (nonneg : NotNegativeRates cols key) {w : α → R}
    (h : ComputedWeights cols key w) {j : α} (hj : j ∈ cols) {b y : R} (hb : 0 ≤ b) (hy : 0 ≤ y)
    (losses : Nat) : 0 ≤ grownTerm (numeral losses) (key j) b y :=
  Std.le_trans (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (grown_nonneg nonneg h j hj) hb) hy)
    (grown_le_grownTerm nonneg hj hb hy losses)

/-- The factor of a sum over keys comes out of it. -/
private theorem sum_factor (T F : R) (f : α → R) :
    T * sumOver (fun j => F * f j) cols = T * F * sumOver f cols := by
  rw [sumOver_mul_left]
  generalize sumOver f cols = s
  grind

private theorem tangent_lost_le {a F g B τ t y m L q Q : R} (ha : 0 ≤ a) (hF : 1 ≤ F) (hτ : 0 ≤ τ)
    (ht : 0 ≤ t) (hm : 0 ≤ m) (hL : m ≤ L) (hq : q ≤ Q) (hQ : 0 ≤ Q) :
    (1 + a) * (F * (g * B + (1 + τ) * (1 + τ) * (2 * t)) * y) + t + m * q
      ≤ (1 + a) * F * (g * B * y + (1 + τ) * (1 + τ) * (t * (2 * y + 1) + L * Q)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) (b := 1 + a) (by grind)
    (c := 1) (Std.le_of_lt h₀) hF
  have h₂ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) (b := 1 + τ) (by grind)
    (c := 1) (Std.le_of_lt h₀) (d := 1 + τ) (by grind)
  have h₃ := OrderedField.mul_le_mul (a := (1 * 1 : R)) (by grind) h₁ (c := 1 * 1) (by grind) h₂
  have h₄ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hq hm)
    (OrderedRing.mul_le_mul_of_nonneg_right hL hQ)
  have h₅ := OrderedField.add_nonneg ht (OrderedRing.mul_nonneg (a := L) (by grind) hQ)
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₃ h₅
  clear h₁ h₂ h₃ h₅ hL hq
  generalize (1 + τ) * (1 + τ) = X at *
  have e : (1 + a) * (F * (g * B + X * (2 * t)) * y)
      = (1 + a) * F * (g * B * y + X * (t * (2 * y))) := by
    clear h₆ h₄
    grind
  rw [e]
  generalize (1 + a) * F = Y at *
  clear e
  grind

theorem weighed_near (hp : Precise p) {ν : R} (hν : 0 ≤ ν) (nonneg : NotNegativeRates cols key)
    {F : R} (hF : 1 ≤ F) {B b y t v x : α → R} {k r m losses : Nat} (hm : m + 1 ≤ losses) {z : R}
    (hB : ∀ j ∈ cols, absolute (t j) ≤ B j)
    (hx : ∀ j ∈ cols, Near (F * (grownWeight (key j) * B j
        + (1 + (key j).stored) * (1 + (key j).stored) * (2 * (key j).tiny)))
      ((key j).weight * b j) ((key j).weight * y j) (x j))
    (hz : WeighedSum p ν k r m cols key t x v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r * F
        * sumOver (fun j => grownTerm (numeral losses) (key j) (B j) (absolute (v j))) cols)
      (sumOver (fun j => (key j).weight * b j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * y j * v j) cols) z := by
  obtain ⟨products, h₁, h₂⟩ := hz
  have h := Near.rescaled hp.accumulation hp.exponential hν (fun j hj =>
    ((hx j hj).mul (Near.refl (atMost_absolute (v j)))).storedNear (h₁ j hj))
    (fun j hj => sumLoss_nonneg (nonneg j hj).2.2.2 _) h₂
  refine h.mono ?_
  have h₃ : sumOver (fun j => (1 + p.accumulation) * (F * (grownWeight (key j) * B j
        + (1 + (key j).stored) * (1 + (key j).stored) * (2 * (key j).tiny)) * absolute (v j))
        + (key j).tiny + (numeral m + 1) * sumLoss (key j) (t j * v j)) cols
      ≤ sumOver (fun j => (1 + p.accumulation) * F
        * grownTerm (numeral losses) (key j) (B j) (absolute (v j))) cols :=
    sumOver_le_sumOver fun j hj => by
      rw [grownTerm]
      obtain ⟨-, hτ, ht, hφ⟩ := nonneg j hj
      exact tangent_lost_le hp.accumulation hF hτ ht
        (by have := numeral_nonneg (R := R) m; have := OrderedRing.zero_lt_one (R := R); grind)
        (tangent_numeral_le hm) (sumLoss_le hφ (hB j hj))
        (loss_nonneg hφ (Std.le_trans (absolute_nonneg _) (hB j hj)) (absolute_nonneg _))
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₃
    (c := (1 + p.accumulation) ^ k * (1 + p.exponential) ^ r) (by
      have h₀ := OrderedRing.zero_lt_one (R := R)
      exact OrderedRing.mul_nonneg
        (Std.le_trans (Std.le_of_lt h₀)
          (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k))
        (Std.le_trans (Std.le_of_lt h₀)
          (OrderedField.one_le_pow (one_le_one_plus hp.exponential) r)))
  refine Std.le_trans h₄ (le_of_eq ?_)
  rw [sum_factor, Semiring.pow_succ]
  generalize sumOver (fun j => grownTerm (numeral losses) (key j) (B j) (absolute (v j))) cols = s
  generalize (1 + p.accumulation) ^ k = A
  generalize (1 + p.exponential) ^ r = E
  clear h h₃ h₄ hx
  grind

/-! ## Factors -/

private theorem tangent_three_le {a b c a' b' c' : R} (ha : 1 ≤ a) (hb : 1 ≤ b) (hc : 1 ≤ c)
    (h₁ : a ≤ a') (h₂ : b ≤ b') (h₃ : c ≤ c') : a * b * c ≤ a' * b' * c' := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have i₁ := OrderedField.mul_le_mul (a := a) (by grind) h₁ (c := b) (by grind) h₂
  have n₁ := OrderedRing.mul_nonneg (a := a) (b := b) (by grind) (by grind)
  exact OrderedField.mul_le_mul n₁ i₁ (by grind) h₃

/-- What a number goes through, against what the tolerance counts. -/
theorem rateFactor_le (hp : Precise p) {i k r roundings rescalings : Nat} (hi : i ≤ 5)
    (hk : k ≤ roundings) (hr : r ≤ rescalings) :
    (1 + p.unit) ^ i * (1 + p.accumulation) ^ k * (1 + p.exponential) ^ r
      ≤ rateFactor p roundings rescalings := by
  have h₁ := one_le_one_plus hp.unit
  have h₃ := one_le_one_plus hp.accumulation
  have h₄ := one_le_one_plus hp.exponential
  rw [rateFactor, power_eq, power_eq, power_eq]
  exact tangent_three_le (OrderedField.one_le_pow h₁ i) (OrderedField.one_le_pow h₃ k)
    (OrderedField.one_le_pow h₄ r) (OrderedField.pow_le_pow h₁ hi) (OrderedField.pow_le_pow h₃ hk)
    (OrderedField.pow_le_pow h₄ hr)

/-! ## The tolerance is M − S -/

theorem weighedError_eq (factor : R) (losses : Nat)
    (size error other : BoundedRate R → R) :
    weighedError factor losses size error other (cols.map key)
      = factor * sumOver (fun j => grownTerm (numeral losses) (key j) (size (key j) + error (key j))
          (other (key j))) cols
        - sumOver (fun j => (key j).weight * size (key j) * other (key j)) cols := by
  rw [weighedError, weighedLoss, sumOver_map, sumOver_map, ← sumOver_mul_left, ← sumOver_mul_left,
    ← sumOver_add, ← sumOver_sub]
  refine sumOver_congr fun j _ => ?_
  rw [grownTerm, power_eq, Semiring.pow_two, numeral_two]
  simp only [grownWeight]
  generalize size (key j) = s
  generalize error (key j) = d
  generalize other (key j) = y
  generalize (key j).tiny = t
  generalize (key j).flushed = φ
  generalize (key j).stored = τ
  generalize numeral losses = L
  grind

private theorem tangent_mean_le {u g B τ t m L q Q : R} (hu : 0 ≤ u) (hτ : 0 ≤ τ) (ht : 0 ≤ t)
    (hm : 0 ≤ m) (hL : m ≤ L) (hq : q ≤ Q) (hQ : 0 ≤ Q) :
    (1 + u) * (g * B + (1 + τ) * (1 + τ) * (2 * t)) + m * q
      ≤ (1 + u) * (g * B * 1 + (1 + τ) * (1 + τ) * (t * (2 * 1 + 1) + L * Q)) := by
  have h := tangent_lost_le (a := 0) (F := 1 + u) (g := g) (B := B) (y := 1) (Std.le_refl _)
    (by grind) hτ ht hm hL hq hQ
  generalize (1 + τ) * (1 + τ) = X at *
  clear hL hq hτ hm
  grind

/-- A computed μ is near to the exact one. -/
theorem meanRate_near (hp : Precise p) {ν : R} (hν : 0 ≤ ν) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate)
    {k r m roundings rescalings losses : Nat} (hk : k ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {μ : R} (h : ComputedMeanRate p ν k r m cols key μ) :
    Near (rateFactor p roundings rescalings * sumOver (fun j =>
          grownTerm (numeral losses) (key j) ((key j).size + (key j).rateError) 1) cols)
      (sumOver (fun j => (key j).weight * (key j).size) cols)
      (sumOver (fun j => (key j).weight * (key j).rate) cols) μ := by
  obtain ⟨w, s, x, hw, hs, hx, hμ⟩ := h
  have h := Near.rescaled hp.accumulation hp.exponential hν (fun j hj =>
    storedProduct_near hp nonneg hw hj (tangent_rate_near sizes hs j hj) (hx j hj))
    (fun j hj => sumLoss_nonneg (nonneg j hj).2.2.2 _) hμ
  have hn : 0 ≤ sumOver (fun j =>
      grownTerm (numeral losses) (key j) ((key j).size + (key j).rateError) 1) cols :=
    sumOver_nonneg fun j hj => grown_term_nonneg nonneg hw hj
      (tangent_rate_near sizes hs j hj).nonneg (Std.le_of_lt OrderedRing.zero_lt_one) _
  have h₃ : sumOver (fun j => (1 + p.unit) * (grownWeight (key j)
        * ((key j).size + (key j).rateError)
        + (1 + (key j).stored) * (1 + (key j).stored) * (2 * (key j).tiny))
        + (numeral m + 1) * sumLoss (key j) (s j)) cols
      ≤ sumOver (fun j => (1 + p.unit)
        * grownTerm (numeral losses) (key j) ((key j).size + (key j).rateError) 1) cols :=
    sumOver_le_sumOver fun j hj => by
      rw [grownTerm]
      obtain ⟨-, hτ, ht, hφ⟩ := nonneg j hj
      have hr := tangent_rate_near sizes hs j hj
      have hl := sumLoss_le (y := 1) hφ (absolute_le hr.most)
      rw [Semiring.mul_one,
        absolute_of_nonneg (Std.le_of_lt (OrderedRing.zero_lt_one (R := R)))] at hl
      exact tangent_mean_le hp.unit hτ ht
        (by have := numeral_nonneg (R := R) m; have := OrderedRing.zero_lt_one (R := R); grind)
        (tangent_numeral_le hm) hl
        (loss_nonneg hφ hr.nonneg (Std.le_of_lt OrderedRing.zero_lt_one))
  refine h.mono (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left h₃ ?_) ?_)
  · have h₀ := OrderedRing.zero_lt_one (R := R)
    exact OrderedRing.mul_nonneg
      (Std.le_trans (Std.le_of_lt h₀) (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k))
      (Std.le_trans (Std.le_of_lt h₀) (OrderedField.one_le_pow (one_le_one_plus hp.exponential) r))
  rw [sum_factor]
  refine OrderedRing.mul_le_mul_of_nonneg_right ?_ hn
  refine Std.le_trans (le_of_eq ?_) (rateFactor_le hp (i := 1) (by decide) hk hr)
  rw [Semiring.pow_one]
  generalize (1 + p.accumulation) ^ k = A
  generalize (1 + p.exponential) ^ r = E
  grind

/-- A mean rate, in whatever order, is within its tolerance. -/
theorem rounded_meanRate (hp : Precise p) {ν : R} (hν : 0 ≤ ν) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate)
    {k r m roundings rescalings losses : Nat} (hk : k ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {μ : R} (h : ComputedMeanRate p ν k r m cols key μ) :
    AtMost (meanRateTolerance p roundings rescalings losses (cols.map key))
      (μ - meanRate (cols.map key)) := by
  have h := (meanRate_near hp hν nonneg sizes hk hr hm h).error
  rw [meanRateTolerance, weighedError_eq, meanRate, sumOver_map]
  simp only [Semiring.mul_one]
  exact h

end Attention.Proof
