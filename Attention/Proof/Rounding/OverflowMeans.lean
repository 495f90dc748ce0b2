module

public import Attention.Proof.Rounding.OverflowBelow
import Attention.Proof.Rounding.GradientMeans
import Attention.Proof.Rounding.OverflowSizes

public section

/-! # D that stays in the range

The weights of a row are 1 together at most. So the sum of sizes of which D is made is no larger
than the largest dP, with its growth and with all that may underflow.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}
variable {p : GradientPrecision R} {largest : LargestGradient R} {c : GradientCounts}
variable {r : BackwardRow R n d_v} {e : R}

/-! ## Weights of a row -/

/-- A weight is at most the sum of all. -/
theorem weight_le_one (hr : r.Valid) (hsum : sumOver r.weight (List.finRange n) ≤ 1)
    (j : Fin n) : r.weight j ≤ 1 :=
  Std.le_trans (le_sumOver (fun j _ => hr.weight j) (List.mem_finRange j)) hsum

/-- A sum of numbers of the size T at most by weights that are a share of the exact ones, and a
little. -/
theorem weighted_le {q B : Fin n → R} {g τ T : R} (hg : 0 ≤ g) (hτ : 0 ≤ τ) (hT : 0 ≤ T)
    (hq : ∀ j, 0 ≤ q j) (hsum : sumOver q (List.finRange n) ≤ 1) (hB : ∀ j, B j ≤ T) :
    sumOver (fun j => (g * q j + τ) * B j) (List.finRange n) ≤ (g + numeral n * τ) * T := by
  have h₁ : sumOver (fun j => (g * q j + τ) * B j) (List.finRange n)
      ≤ sumOver (fun j => (g * q j + τ) * T) (List.finRange n) :=
    sumOver_le_sumOver fun j _ => OrderedRing.mul_le_mul_of_nonneg_left (hB j) (by
      have := OrderedRing.mul_nonneg hg (hq j)
      grind)
  have h₂ : sumOver (fun j => (g * q j + τ) * T) (List.finRange n)
      = (g * sumOver q (List.finRange n) + numeral n * τ) * T := by
    rw [sumOver_mul_right, sumOver_add, sumOver_mul_left, sumOver_numeral]
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_left hsum hg) hT
  rw [h₂] at h₁
  refine Std.le_trans h₁ ?_
  generalize sumOver q (List.finRange n) = s at *
  clear h₁ h₂ hsum hB
  grind

/-! ## dP and D -/

/-- No dP of a row is larger than the largest, which is not negative. -/
theorem outerSize_le_row (factor : Fin n → R) (value : Fin n → Vec R d_v) (dO : Vec R d_v) :
    0 ≤ rowOuterSize p c factor value dO ∧
      ∀ j, outerSize p c (factor j) dO (value j) ≤ rowOuterSize p c factor value dO := by
  obtain ⟨h₁, h₂⟩ := Overflow.le_foldl (b := 0)
    (f := fun x j => max x (outerSize p c (factor j) dO (value j)))
    (fun x j => (Overflow.le_max _ _).1) (List.finRange n)
  exact ⟨h₁, fun j => h₂ (fun j => outerSize p c (factor j) dO (value j))
    (fun x j => (Overflow.le_max _ _).2) j (List.mem_finRange j)⟩

/-- No dP is larger than the sum of its exact products, nor is the factor's share of it. -/
private theorem size_le_outerSize (hp : PreciseGradient p) {factor : R} (hf : 0 ≤ factor)
    (dO v : Vec R d_v) : factor * magnitude dO v ≤ outerSize p c factor dO v := by
  have h₀ : 0 ≤ magnitude dO v := (dot_atMost_magnitude dO v).nonneg
  have h₁ := le_sumSize hp c.products h₀
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ hf
  have h₃ := OrderedRing.mul_nonneg hf h₀
  have h₄ := le_mul_of_one_le h₃ h₂ (one_le_one_plus hp.factors)
  have h₅ := hp.tiny
  have h₆ := le_belowSize hp.scores hp.scoresTiny 1
    (b := factor * sumSize p c.products (magnitude dO v) * (1 + p.factors) + p.tiny) (by grind)
  refine Std.le_trans ?_ h₆
  grind

private theorem meanWeightSize_eq (c : GradientCounts) (e w : R) :
    meanWeightSize p c e w = (1 + p.stored) * (1 + e) * w + meanWeightSize p c e 0 := by
  simp only [meanWeightSize, belowSize, power_eq]
  rw [show (1 + p.stored) ^ 1 = 1 + p.stored by rw [Semiring.pow_succ, Semiring.pow_zero]; grind]
  generalize numeral 2 * meanLost p c e = l
  generalize numeral 1 * (p.storedTiny * meanGrowth p c e) = m
  grind

private theorem times_tiny_nonneg (hp : PreciseGradient p) (k : Nat) : 0 ≤ numeral k * p.tiny :=
  OrderedRing.mul_nonneg (numeral_nonneg k) hp.tiny

/-- What a weight of D loses is not less than an operation may lose. -/
private theorem tiny_le_lost (hp : PreciseGradient p) (c : GradientCounts) (he₀ : 0 ≤ e) :
    p.tiny ≤ meanLost p c e := by
  have h₁ := times_tiny_nonneg hp (c.rescalings + 5)
  have h₂ := hp.tiny
  rw [meanLost, numeral_succ]
  exact le_mul_of_one_le h₂ (by grind) (one_le_meanGrowth hp c he₀)

private theorem lost_nonneg (hp : PreciseGradient p) (c : GradientCounts) (he₀ : 0 ≤ e) :
    0 ≤ meanLost p c e :=
  Std.le_trans hp.tiny (tiny_le_lost hp c he₀)

private theorem grown_bound (hp : PreciseGradient p) (c : GradientCounts) (he₀ : 0 ≤ e) :
    0 ≤ p.storedTiny * meanGrowth p c e :=
  OrderedRing.mul_nonneg hp.storedTiny (nonneg_of_one_le (one_le_meanGrowth hp c he₀))

/-- A larger error grows more. -/
private theorem meanGrowth_mono (hp : PreciseGradient p) (c : GradientCounts) {e' : R}
    (h : e' ≤ e) : meanGrowth p c e' ≤ meanGrowth p c e := by
  have hε := hp.exponential_lt
  have h₁ := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) (3 * c.rescalings + 2)
  rw [meanGrowth, meanGrowth, power_eq, OrderedField.le_div_iff h₁,
    OrderedField.mul_div_cancel (by grind)]
  grind

private theorem meanLost_mono (hp : PreciseGradient p) (c : GradientCounts) {e' : R}
    (h : e' ≤ e) : meanLost p c e' ≤ meanLost p c e :=
  OrderedRing.mul_le_mul_of_nonneg_left (meanGrowth_mono hp c h) (times_tiny_nonneg hp _)

private theorem belowSize_le {u η η' b b' : R} (hu : 0 ≤ u) (hη : η ≤ η') (hb : b ≤ b') :
    belowSize u η 1 b ≤ belowSize u η' 1 b' := by
  have h := OrderedRing.mul_le_mul_of_nonneg_left hη (numeral_nonneg (R := R) 1)
  rw [belowSize, belowSize, power_eq]
  exact OrderedRing.mul_le_mul_of_nonneg_left (by grind)
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hu) 1))

private theorem meanWeightSize_nonneg (hp : PreciseGradient p) (c : GradientCounts) (he₀ : 0 ≤ e) :
    0 ≤ meanWeightSize p c e 0 :=
  belowSize_nonneg hp.stored (grown_bound hp c he₀) 1 (by
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 2) (lost_nonneg hp c he₀)
    grind)

/-- A weight that fits is a number, and no larger than its size. -/
private theorem limitedMeanWeight (hp : PreciseGradient p) {j : Fin n} (hr : r.Valid)
    (hw₁ : r.weight j ≤ 1) (he : r.error j ≤ e)
    (fits : meanWeightSize p c e 1 ≤ smaller largest.accumulator largest.stored) {w : Option R}
    (h : r.LimitedMeanWeight p largest c j w) :
    ∃ z, w = some z ∧ r.MeanWeight p c j z ∧ AtMost (meanWeightSize p c e (r.weight j)) z := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (meanGrowth_mono hp c he) hp.storedTiny
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (meanLost_mono hp c he)
    (numeral_nonneg (R := R) 2)
  obtain ⟨z, e₁, h₃, h₄⟩ := limitedWeight hp.stored (grown_bound hp c (hr.error j)) (hr.weight j)
    hw₁ (hr.error j) he
    (OrderedRing.mul_nonneg (numeral_nonneg 2) (lost_nonneg hp c (hr.error j)))
    (Std.le_trans (belowSize_le hp.stored h₁ (by grind)) fits) h
  exact ⟨z, e₁, h₃, h₄.mono (belowSize_le hp.stored h₁ (by grind))⟩

/-- The part of a key of an output is no larger than its weight for D times its value, and as much
as is lost, both with the growth of an output. -/
private theorem output_part (hp : PreciseGradient p) {j : Fin n} {i : Fin d_v} (hr : r.Valid)
    (he₀ : 0 ≤ e) (he : r.error j ≤ e) {m : Nat} {w t l : R} (hT : 0 ≤ outputFactor p c m)
    (hw : r.OutputWeight p c j w) (ht : AtMost (outputFactor p c m - 1) (t - 1))
    (hl : AtMost (outputFactor p c m * r.outputLost p c j i) l) :
    AtMost ((((1 + p.stored) * (1 + e) * r.weight j + meanWeightSize p c e 0)
      * (r.factor j * absolute (r.value j)[i]) + meanLost p c e) * outputFactor p c m)
      (w * (r.factor j * (r.value j)[i]) * t + l) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (meanGrowth_mono hp c he) hp.storedTiny
  have h₂ := meanLost_mono hp c he
  have h₃ := lost_nonneg hp c he₀
  have h₄ := OrderedRing.mul_nonneg (hr.factor j) (absolute_nonneg (r.value j)[i])
  have h₅ := (storedWeight_atMost hp.stored (grown_bound hp c (hr.error j)) (hr.weight j) he
    (Std.le_refl _) hw).mono (belowSize_le hp.stored h₁ (Std.le_refl _))
  have h₆ : AtMost (outputFactor p c m) t :=
    ⟨by have := ht.1; grind, by have := ht.2; grind⟩
  have h₇ : r.outputLost p c j i
      ≤ meanLost p c e * (numeral 2 * (r.factor j * absolute (r.value j)[i]) + 1) := by
    have i₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 2) h₄
    have i₂ : 0 ≤ numeral 2 * (r.factor j * absolute (r.value j)[i]) + 1 := by
      have := OrderedRing.zero_lt_one (R := R)
      grind
    rw [BackwardRow.outputLost, tinyOf]
    split
    · exact OrderedRing.mul_nonneg h₃ i₂
    · exact OrderedRing.mul_le_mul_of_nonneg_right h₂ i₂
  have h₈ := OrderedRing.mul_le_mul_of_nonneg_left h₇ hT
  have h₉ := (((h₅.mul ((atMost_self (hr.factor j)).mul (atMost_absolute (r.value j)[i]))).mul
    h₆).add (hl.mono h₈))
  refine h₉.mono ?_
  rw [← meanWeightSize_eq]
  have i₃ : belowSize p.stored (p.storedTiny * meanGrowth p c e) 1 ((1 + e) * r.weight j + 0)
      + numeral 2 * meanLost p c e ≤ meanWeightSize p c e (r.weight j) := by
    have i₄ := OrderedRing.mul_nonneg hp.stored
      (OrderedRing.mul_nonneg (numeral_nonneg (R := R) 2) h₃)
    simp only [meanWeightSize, belowSize, power_eq]
    rw [show (1 + p.stored) ^ 1 = 1 + p.stored by rw [Semiring.pow_succ, Semiring.pow_zero]; grind]
    clear h₁ h₂ h₄ h₅ h₆ h₇ h₈ h₉ hl ht hw
    generalize numeral 1 * (p.storedTiny * meanGrowth p c e) = g
    generalize numeral 2 * meanLost p c e = l at *
    grind
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_right i₃ h₄) hT
  generalize belowSize p.stored (p.storedTiny * meanGrowth p c e) 1 ((1 + e) * r.weight j + 0) = a
    at *
  generalize meanWeightSize p c e (r.weight j) = b at *
  generalize r.factor j * absolute (r.value j)[i] = x at *
  generalize outputFactor p c m = T at *
  generalize meanLost p c e = L at *
  generalize (numeral 2 : R) = two at *
  clear h₁ h₂ h₃ h₅ h₆ h₇ h₈ h₉ hl ht hw i₃
  grind

/-- The factor of D is at least 1. -/
private theorem one_le_deltaFactor (hp : PreciseGradient p) (k : Nat) :
    1 ≤ (1 + p.factors) * (1 + p.output) / (1 - p.exponential) ^ k := by
  have he := hp.exponential
  have he' := hp.exponential_lt
  have h₁ := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) k
  have h₂ := OrderedField.pow_le_one (x := 1 - p.exponential) (by grind) (by grind) k
  have h₃ := le_mul_of_one_le (Std.le_of_lt OrderedRing.zero_lt_one) (one_le_one_plus hp.factors)
    (one_le_one_plus hp.output)
  rw [OrderedField.le_div_iff h₁, Semiring.mul_one]
  exact Std.le_trans h₂ h₃

/-- No size of D is negative. -/
theorem rowDeltaSize_nonneg (hp : PreciseGradient p) (he₀ : 0 ≤ e) (factor : Fin n → R)
    (value : Fin n → Vec R d_v) (dO : Vec R d_v) : 0 ≤ rowDeltaSize p c e factor value dO := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := (outerSize_le_row (p := p) (c := c) factor value dO).1
  have h₂ : 0 ≤ sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v) :=
    sumOver_nonneg fun _ _ => absolute_nonneg _
  have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) (meanWeightSize_nonneg hp c he₀)
  have h₄ := OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus hp.stored))
    (show 0 ≤ 1 + e by grind)
  have h₅ := OrderedRing.mul_nonneg (a := (1 + p.stored) * (1 + e)
    + numeral n * meanWeightSize p c e 0) (by grind) h₁
  have h₆ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (numeral_nonneg (R := R) n)
    (lost_nonneg hp c he₀)) (show 0 ≤ numeral 2
      + sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v) by
        rw [numeral_two]
        grind)
  have h₇ := OrderedRing.mul_nonneg hp.outputTiny h₂
  have h₈ := times_tiny_nonneg hp (2 * c.products)
  rw [rowDeltaSize, deltaSize, power_eq, power_eq]
  exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) _))
    (nonneg_of_one_le (one_le_deltaFactor hp (c.rescalings + 1))))
    (OrderedField.add_nonneg (OrderedField.add_nonneg h₅ h₆) (OrderedField.add_nonneg h₇ h₈))

/-- The size of D, from that of its terms. -/
private theorem delta_bound {A F a M m n x y : R} (hF : 1 ≤ F) (ha₀ : 0 ≤ a) (ha : a ≤ A)
    (hm₀ : 0 ≤ m) (hm : m ≤ M) (hn : 0 ≤ n) (hx : n ≤ x) (hy : 0 ≤ y) :
    a * (m + n) ≤ A * F * (M + x + y) := by
  have h₁ := OrderedField.mul_le_mul ha₀ ha (c := m + n) (d := M + x + y) (by grind) (by grind)
  have h₂ := le_mul_of_one_le (OrderedRing.mul_nonneg ha₀ (show 0 ≤ m + n by grind)) h₁ hF
  clear h₁ hm hx
  grind

variable (hp : PreciseGradient p) (hr : r.Valid)
  (hsum : sumOver r.weight (List.finRange n) ≤ 1) (he₀ : 0 ≤ e) (he : ∀ j, r.error j ≤ e)
include hp hr hsum he₀ he

private theorem delta_ofProducts
    (fits₁ : ∀ j, outerFits p largest c (r.factor j) r.dO (r.value j))
    (fits₂ : meanWeightSize p c e 1 ≤ smaller largest.accumulator largest.stored)
    (fits₃ : rowDeltaSize p c e r.factor r.value r.dO ≤ largest.accumulator)
    {k : Nat} {w x y : Fin n → Option R} {D : Option R}
    (hw : ∀ j, r.LimitedMeanWeight p largest c j (w j))
    (hx : ∀ j, LimitedProduct p largest c (r.factor j) r.dO (r.value j) (x j))
    (hy : ∀ j, ∀ a ∈ w j, ∀ b ∈ x j,
      Limited largest.accumulator (StoredBelow p.accumulation p.tiny) (a * b) (y j))
    (hD : ∀ terms : Fin n → R, (∀ j, y j = some (terms j)) →
      LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange n) D)
    (hk : c.products + k + 1 ≤ c.delta) :
    ∃ z, D = some z ∧ ComputedMean p c r z ∧
      AtMost (rowDeltaSize p c e r.factor r.value r.dO) z := by
  have weights : ∀ j, ∃ z, w j = some z ∧ r.MeanWeight p c j z ∧
      AtMost (meanWeightSize p c e (r.weight j)) z := fun j =>
    limitedMeanWeight hp hr (weight_le_one hr hsum j) (he j) fits₂ (hw j)
  have products : ∀ j, ∃ z, x j = some z ∧ ComputedProduct p c (r.factor j) r.dO (r.value j) z ∧
      AtMost (outerSize p c (r.factor j) r.dO (r.value j)) z := fun j =>
    limitedProduct hp (hr.factor j) (fits₁ j) (hx j)
  let w' := fun j => (w j).getD 0
  let x' := fun j => (x j).getD 0
  have hw' : ∀ j, w j = some (w' j) ∧ r.MeanWeight p c j (w' j) ∧
      AtMost (meanWeightSize p c e (r.weight j)) (w' j) := fun j => by
    obtain ⟨z, h, h'⟩ := weights j
    simp only [w', h, Option.getD_some, true_and]
    exact h'
  have hx' : ∀ j, x j = some (x' j) ∧ ComputedProduct p c (r.factor j) r.dO (r.value j) (x' j) ∧
      AtMost (outerSize p c (r.factor j) r.dO (r.value j)) (x' j) := fun j => by
    obtain ⟨z, h, h'⟩ := products j
    simp only [x', h, Option.getD_some, true_and]
    exact h'
  obtain ⟨outer₀, outer⟩ := outerSize_le_row (p := p) (c := c) r.factor r.value r.dO
  have hτ := meanWeightSize_nonneg hp c he₀
  have hg : 0 ≤ (1 + p.stored) * (1 + e) :=
    OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus hp.stored)) (by
      have := OrderedRing.zero_lt_one (R := R)
      grind)
  have total := weighted_le hg hτ outer₀ hr.weight hsum outer
  have reach : 0 ≤ sumOver (fun i : Fin d_v => absolute r.dO[i]) (List.finRange d_v) :=
    sumOver_nonneg fun _ _ => absolute_nonneg _
  have each : ∀ j, AtMost (((1 + p.stored) * (1 + e) * r.weight j + meanWeightSize p c e 0)
      * outerSize p c (r.factor j) r.dO (r.value j)) (w' j * x' j) := fun j => by
    rw [← meanWeightSize_eq]
    exact (hw' j).2.2.mul (hx' j).2.2
  obtain ⟨terms, D', h₁, rfl, h₂, h₃⟩ := limitedProducts hp.accumulation hp.tiny
    (f := fun j => w' j * x' j)
    (fun j => hy j _ (hw' j).1 _ (hx' j).1) hD each
    (B := rowDeltaSize p c e r.factor r.value r.dO) (by
      rw [rowDeltaSize, deltaSize, power_eq, power_eq]
      have i₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) hp.tiny
      have i₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) (lost_nonneg hp c he₀)
      have i₃ := OrderedRing.mul_le_mul_of_nonneg_left (tiny_le_lost hp c he₀)
        (numeral_nonneg (R := R) n)
      have i₆ := OrderedRing.mul_nonneg i₂ reach
      have i₄ := OrderedRing.mul_nonneg hp.outputTiny reach
      have i₅ := times_tiny_nonneg hp (2 * c.products)
      refine delta_bound (one_le_deltaFactor hp (c.rescalings + 1))
        (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) (k + 1)))
        (OrderedField.pow_le_pow (one_le_one_plus hp.accumulation) (by omega))
        (sumOver_nonneg fun j _ => (each j).nonneg) total
        (OrderedField.add_nonneg i₁ i₁) ?_ (OrderedField.add_nonneg i₄ i₅)
      rw [numeral_two]
      generalize sumOver (fun i : Fin d_v => absolute r.dO[i]) (List.finRange d_v) = ρ at *
      generalize meanLost p c e = a at *
      generalize (numeral n : R) = b at *
      clear total each hτ hg outer outer₀ i₄ i₅ hw hx hy hD
      grind) fits₃
  exact ⟨D', rfl, .ofProducts (fun j => (hw' j).2.1) (fun j => (hx' j).2.1) h₁ h₂ hk, h₃⟩

omit hp hr hsum he₀ he in
/-- The sizes of the products of dO with the components of an output. -/
private theorem output_sizes {q z : Fin n → R} {v : Fin n → Vec R d_v} {dO : Vec R d_v}
    (a t E η : R) :
    sumOver (fun i : Fin d_v => absolute dO[i] * (a * sumOver (fun j =>
        (q j * (z j * absolute (v j)[i]) + E) * t) (List.finRange n) + η)) (List.finRange d_v)
      = a * t * (sumOver (fun j => q j * (z j * magnitude dO (v j))) (List.finRange n)
          + numeral n * E * sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v))
        + η * sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v) := by
  have h₁ : ∀ i ∈ List.finRange d_v, absolute dO[i] * (a * sumOver (fun j =>
      (q j * (z j * absolute (v j)[i]) + E) * t) (List.finRange n) + η)
      = a * t * (absolute dO[i] * sumOver (fun j => q j * (z j * absolute (v j)[i]))
          (List.finRange n)) + (a * t * (numeral n * E) + η) * absolute dO[i] := fun i _ => by
    rw [sumOver_mul_right, sumOver_add, sumOver_numeral]
    generalize sumOver (fun j => q j * (z j * absolute (v j)[i])) (List.finRange n) = s
    generalize absolute dO[i] = x
    generalize (numeral n : R) * E = y
    grind
  rw [sumOver_congr h₁, sumOver_add, sumOver_mul_left, sumOver_mul_left,
    sum_exchange (u := fun j i => absolute (v j)[i])]
  simp only [← magnitude_eq_sum]
  generalize sumOver (fun j => q j * (z j * magnitude dO (v j))) (List.finRange n) = s
  generalize sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v) = x
  generalize (numeral n : R) * E = y
  clear h₁
  grind

omit hp hr hsum he₀ he in
/-- The growth of D from an output. -/
private theorem output_growth {A a F o t M S E ρ η n ν : R} (ha : 1 ≤ a) (hF : 1 ≤ F)
    (hf : a * ((1 + o) * t) ≤ A * F) (ha' : a ≤ A) (hS : S ≤ M) (hS₀ : 0 ≤ S) (hE : 0 ≤ E)
    (hρ : 0 ≤ ρ) (hη : 0 ≤ η) (hn : 0 ≤ n) (hν : n ≤ ν) :
    a * ((1 + o) * t * (S + E * ρ) + η * ρ + n)
      ≤ A * F * (M + E * (numeral 2 + ρ) + (η * ρ + ν)) := by
  have i₀ := nonneg_of_one_le ha
  have i₁ := OrderedRing.mul_nonneg hE hρ
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_right hf (c := S + E * ρ) (by grind)
  have i₄ := le_mul_of_one_le i₀ ha' hF
  have i₅ := OrderedRing.mul_nonneg hη hρ
  have i₆ := OrderedField.mul_le_mul i₀ i₄ (c := η * ρ + n) (d := η * ρ + ν) (by grind) (by grind)
  rw [numeral_two]
  have i₇ := OrderedRing.mul_le_mul_of_nonneg_left (a := S + E * ρ) (b := M + E * (2 + ρ))
    (c := A * F) (by grind) (Std.le_trans i₀ i₄)
  clear hf hS ha' hν i₄ i₅ i₁
  grind

private theorem delta_ofOutput
    (fits₃ : rowDeltaSize p c e r.factor r.value r.dO ≤ largest.accumulator)
    {m k : Nat} {o : Fin d_v → R} {y : Fin d_v → Option R} {D : Option R}
    (ho : ∀ i, r.OutputComponent p c m i (o i))
    (hy : ∀ i : Fin d_v, Limited largest.accumulator (StoredBelow p.accumulation p.tiny)
      (r.dO[i] * o i) (y i))
    (hD : ∀ terms : Fin d_v → R, (∀ i, y i = some (terms i)) →
      LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange d_v) D)
    (hk : m + k + 1 ≤ c.delta) (hd : d_v ≤ c.products) :
    ∃ z, D = some z ∧ ComputedMean p c r z ∧
      AtMost (rowDeltaSize p c e r.factor r.value r.dO) z := by
  obtain ⟨outer₀, outer⟩ := outerSize_le_row (p := p) (c := c) r.factor r.value r.dO
  have one := OrderedRing.zero_lt_one (R := R)
  have hτ := meanWeightSize_nonneg hp c he₀
  have hg : 0 ≤ (1 + p.stored) * (1 + e) :=
    OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus hp.stored)) (by grind)
  have hq : ∀ j, 0 ≤ (1 + p.stored) * (1 + e) * r.weight j + meanWeightSize p c e 0 := fun j => by
    have := OrderedRing.mul_nonneg hg (hr.weight j)
    grind
  have total := weighted_le hg hτ outer₀ hr.weight hsum fun j =>
    Std.le_trans (size_le_outerSize hp (c := c) (hr.factor j) r.dO (r.value j)) (outer j)
  have reach : 0 ≤ sumOver (fun i : Fin d_v => absolute r.dO[i]) (List.finRange d_v) :=
    sumOver_nonneg fun _ _ => absolute_nonneg _
  have growth := one_le_one_plus hp.accumulation
  have hT : 0 ≤ outputFactor p c m := OrderedField.div_nonneg (OrderedRing.mul_nonneg
    (nonneg_of_one_le (OrderedField.one_le_pow growth m))
    (nonneg_of_one_le (one_le_one_plus hp.factors)))
    (OrderedField.pow_pos (by have := hp.exponential_lt; grind) _)
  have component : ∀ i : Fin d_v, AtMost (absolute r.dO[i] * ((1 + p.output) * sumOver (fun j =>
      (((1 + p.stored) * (1 + e) * r.weight j + meanWeightSize p c e 0)
        * (r.factor j * absolute (r.value j)[i]) + meanLost p c e) * outputFactor p c m)
        (List.finRange n) + p.outputTiny)) (r.dO[i] * o i) := fun i => by
    obtain ⟨w, t, l, hw, ht, hl, ho⟩ := ho i
    exact (atMost_absolute _).mul (storedBelow_atMost
      (sumOver_atMost fun j _ => output_part hp hr he₀ (he j) hT (hw j) (ht j) (hl j)) ho)
  obtain ⟨terms, D', h₁, rfl, h₂, h₃⟩ := limitedProducts hp.accumulation hp.tiny hy hD component
    (B := rowDeltaSize p c e r.factor r.value r.dO) (by
      rw [output_sizes, rowDeltaSize, deltaSize, power_eq, power_eq]
      have i₁ := OrderedField.pow_le_pow growth (show k + 1 ≤ c.delta by omega)
      have i₂ := OrderedField.pow_le_pow growth hk
      have i₃ : (1 + p.accumulation) ^ (k + 1) * ((1 + p.output) * outputFactor p c m)
          ≤ (1 + p.accumulation) ^ c.delta
            * ((1 + p.factors) * (1 + p.output) / (1 - p.exponential) ^ (c.rescalings + 1)) := by
        have h := OrderedRing.mul_le_mul_of_nonneg_right i₂
          (nonneg_of_one_le (one_le_deltaFactor hp (c.rescalings + 1)))
        refine Std.le_trans (le_of_eq ?_) h
        rw [outputFactor, show m + k + 1 = k + 1 + m by omega, Semiring.pow_add _ (k + 1),
          Field.div_eq_mul_inv, Field.div_eq_mul_inv]
        generalize ((1 - p.exponential) ^ (c.rescalings + 1))⁻¹ = I
        generalize (1 + p.accumulation) ^ (k + 1) = a
        generalize (1 + p.accumulation) ^ m = b
        clear h i₁ i₂ hT component growth total reach hq hg hτ outer outer₀ ho hy hD
        grind
      have bound := output_growth (E := numeral n * meanLost p c e)
        (n := numeral d_v * p.tiny + numeral d_v * p.tiny) (ν := numeral (2 * c.products) * p.tiny)
        (η := p.outputTiny)
        (OrderedField.one_le_pow growth (k + 1)) (one_le_deltaFactor hp (c.rescalings + 1)) i₃ i₁
        total
        (sumOver_nonneg fun j _ => OrderedRing.mul_nonneg (hq j) (key_size_nonneg hr j))
        (OrderedRing.mul_nonneg (numeral_nonneg n) (lost_nonneg hp c he₀)) reach hp.outputTiny
        (by
          have := times_tiny_nonneg hp d_v
          grind) (twice_lost_le hd hp.tiny)
      exact bound) fits₃
  exact ⟨D', rfl, .ofOutput ho h₁ h₂ hk hd, h₃⟩

/-- **delta-finite**: a D of a row that fits is a number, and one that a function without a largest
number may compute, whether as the sum of P dP or from an output. -/
theorem limitedMean (fits₁ : ∀ j, outerFits p largest c (r.factor j) r.dO (r.value j))
    (fits₂ : meanWeightSize p c e 1 ≤ smaller largest.accumulator largest.stored)
    (fits₃ : rowDeltaSize p c e r.factor r.value r.dO ≤ largest.accumulator) {D : Option R}
    (h : LimitedMean p largest c r D) :
    ∃ z, D = some z ∧ ComputedMean p c r z ∧
      AtMost (rowDeltaSize p c e r.factor r.value r.dO) z := by
  cases h with
  | ofProducts hw hx hy hD hk =>
    exact delta_ofProducts hp hr hsum he₀ he fits₁ fits₂ fits₃ hw hx hy hD hk
  | ofOutput ho hy hD hk hd => exact delta_ofOutput hp hr hsum he₀ he fits₃ ho hy hD hk hd

end Attention.Proof
