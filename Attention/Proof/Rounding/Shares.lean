module

public import Attention.Proof.Rounding.Gamma

public section

/-! # A mean whose weights are off

Of weights ŵ that are off by a factor each, apart from one that all share, W = Σ ŵ: how far Σ ŵ v is
from W times the exact mean o = Σ w v / Σ w, and how large Σ ŵ |v| is, whatever has computed them.
The first rests on Σ ŵ v − o Σ ŵ = Σ (ŵ − κ w) (v − o), since Σ w (v − o) = 0.
`Proof/Rounding/StoredShares.lean` has the quotient, once the weights are stored.
Source: docs/tolerances.md, sections 2 and 4. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- Weights with what was computed in their place: each off by its factor, up or down, apart from
the factor `κ` that all share. -/
structure OffByFactors (κ : R) (xs : List (BoundedWeight R × R)) : Prop where
  /-- The common factor is positive. -/
  positive : 0 < κ
  /-- Weights are not negative. -/
  weight_nonneg : ∀ x ∈ xs, 0 ≤ x.1.weight
  /-- Nor do factors lie below 1. -/
  one_le_factor : ∀ x ∈ xs, 1 ≤ x.1.factor
  /-- Not too large. -/
  upper : ∀ x ∈ xs, x.2 ≤ κ * (x.1.weight * x.1.factor)
  /-- Not too small. -/
  lower : ∀ x ∈ xs, κ * x.1.weight ≤ x.2 * x.1.factor
  /-- Some key is not masked. -/
  unmasked : ∃ x ∈ xs, 0 < x.1.weight

/-! ## The parts of the tolerance -/

namespace Shares

/-- The mean with the exact weights, o = Σ w v / Σ w. -/
@[expose] def exactMean (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight * k.value) keys / sumOver (fun k => k.weight) keys

/-- The distance |v − o| of a key's value from the exact mean. -/
@[expose] def far (keys : List (BoundedWeight R)) (k : BoundedWeight R) : R :=
  absolute (k.value - exactMean keys)

/-- P: at most this share of the sum of the computed weights has a key. -/
@[expose] def share (keys : List (BoundedWeight R)) (k : BoundedWeight R) : R :=
  mostShare (lowTotal keys) k

/-- Σ w (E − 1) |v − o|. -/
@[expose] def excess (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight * (k.factor - 1) * far keys k) keys

/-- The largest distance |v − o| of the keys whose share is not negligible. -/
@[expose] def farMax (negligible : R) (keys : List (BoundedWeight R)) : R :=
  keys.foldl (fun x k => if share keys k ≤ negligible then x else max x (far keys k)) 0

/-- Σ P |v − o| over the keys whose share is negligible. -/
@[expose] def farRest (negligible : R) (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => if share keys k ≤ negligible then share keys k * far keys k else 0) keys

/-- The tolerance's bound of Σ ŵ v / Σ ŵ − o. -/
@[expose] def sharedError (negligible : R) (keys : List (BoundedWeight R)) : R :=
  smaller (excess keys / lowTotal keys) (farMax negligible keys + farRest negligible keys)

/-- The tolerance's bound of Σ ŵ |v| / Σ ŵ. -/
@[expose] def meanOfSizes (negligible : R) (keys : List (BoundedWeight R)) : R :=
  smaller (sumOver (fun k => share keys k * absolute k.value) keys)
    (farMax negligible keys + farRest negligible keys + absolute (exactMean keys))

/-- Σ f (g − c) = Σ f g − c Σ f. -/
theorem sumOver_mul_sub {α : Type v} (f g : α → R) (c : R) (xs : List α) :
    sumOver (fun x => f x * (g x - c)) xs = sumOver (fun x => f x * g x) xs - sumOver f xs * c := by
  rw [← sumOver_mul_right, ← sumOver_sub]
  exact sumOver_congr fun x _ => by grind

/-- Distances are not negative. -/
theorem far_nonneg (keys : List (BoundedWeight R)) (k : BoundedWeight R) :
    0 ≤ far keys k := absolute_nonneg _

/-- Nor is the largest of them. -/
theorem farMax_nonneg (negligible : R) (keys : List (BoundedWeight R)) :
    0 ≤ farMax negligible keys :=
  (le_foldl_max (far keys) (fun k => share keys k ≤ negligible) 0 keys).1

/-- A key whose share is not negligible is no farther than `farMax`. -/
theorem far_le_farMax {negligible : R} {keys : List (BoundedWeight R)}
    {k : BoundedWeight R} (hk : k ∈ keys) (h : ¬ share keys k ≤ negligible) :
    far keys k ≤ farMax negligible keys :=
  (le_foldl_max (far keys) (fun k => share keys k ≤ negligible) 0 keys).2 k hk h

end Shares

open Shares

private theorem sub_zero (x : R) : x - 0 = x := by grind

namespace OffByFactors

variable {κ : R} {xs : List (BoundedWeight R × R)} (hx : OffByFactors κ xs)
include hx

/-- The computed weights are not negative. -/
theorem nonneg : ∀ x ∈ xs, 0 ≤ x.2 := fun x h => by
  have h₁ := hx.lower x h
  have h₂ := hx.one_le_factor x h
  have h₃ := OrderedRing.mul_nonneg (Std.le_of_lt hx.positive) (hx.weight_nonneg x h)
  refine Classical.byContradiction fun hn => ?_
  have h₄ := OrderedRing.mul_nonneg (a := -x.2) (b := x.1.factor - 1) (by grind) (by grind)
  grind

private theorem total_pos : 0 < sumOver (fun x => x.1.weight) xs := by
  obtain ⟨x, h, hw⟩ := hx.unmasked
  have := le_sumOver (f := fun x : BoundedWeight R × R => x.1.weight) hx.weight_nonneg h
  grind

private theorem low_nonneg : ∀ x ∈ xs, 0 ≤ x.1.weight / x.1.factor := fun x h => by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have h₂ := hx.one_le_factor x h
  exact OrderedField.div_nonneg (hx.weight_nonneg x h) (by grind)

/-- Σ w / E is positive. -/
theorem lowTotal_pos : 0 < lowTotal (xs.map (·.1)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨x, h, hw⟩ := hx.unmasked
  have h₁ := le_sumOver (f := fun x : BoundedWeight R × R => x.1.weight / x.1.factor)
    hx.low_nonneg h
  have h₂ := hx.one_le_factor x h
  have h₃ : x.1.weight / x.1.factor ≠ 0 := fun h₃ => by
    have := OrderedField.mul_div_cancel (b := x.1.factor) (by grind) x.1.weight
    grind
  have h₄ := hx.low_nonneg x h
  rw [lowTotal, sumOver_map]
  simp only at h₁
  grind

/-- κ Σ w / E ≤ Σ ŵ. -/
theorem lowTotal_le : κ * lowTotal (xs.map (·.1)) ≤ sumOver (fun x => x.2) xs := by
  rw [lowTotal, sumOver_map, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun x h => ?_
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := hx.one_le_factor x h
  have h₂ := hx.lower x h
  have e : κ * (x.1.weight / x.1.factor) = κ * x.1.weight / x.1.factor := by
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.mul_assoc]
  rw [e, OrderedField.div_le_iff (by grind)]
  grind

/-- The computed weights have a positive sum. -/
theorem weights_pos : 0 < sumOver (fun x => x.2) xs := by
  have h₁ := hx.lowTotal_le
  have h₂ := OrderedRing.mul_pos hx.positive hx.lowTotal_pos
  grind

/-- κ y ≤ W y / Σ (w / E). -/
private theorem le_mul_div {y : R} (hy : 0 ≤ y) :
    κ * y ≤ sumOver (fun x => x.2) xs * (y / lowTotal (xs.map (·.1))) := by
  have h₁ := hx.lowTotal_pos
  have h₂ := OrderedField.div_nonneg hy h₁
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hx.lowTotal_le h₂
  have h₄ := OrderedField.mul_div_cancel (b := lowTotal (xs.map (·.1))) (by grind) y
  rwa [Semiring.mul_assoc, h₄] at h₃

/-- ŵ ≤ W P. -/
theorem le_share : ∀ x ∈ xs,
    x.2 ≤ sumOver (fun x => x.2) xs * share (xs.map (·.1)) x.1 := fun x h => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := hx.one_le_factor x h
  have h₂ := OrderedRing.mul_nonneg (hx.weight_nonneg x h) (b := x.1.factor) (by grind)
  have h₃ := hx.le_mul_div h₂
  have h₄ := le_sumOver (f := fun x : BoundedWeight R × R => x.2) hx.nonneg h
  rw [share, mostShare, smaller]
  split
  · exact Std.le_trans (hx.upper x h) h₃
  · rwa [Semiring.mul_one]

/-- Σ ŵ |v − o| ≤ W · `farthest`. -/
private theorem sum_far_le (negligible : R) :
    sumOver (fun x => x.2 * far (xs.map (·.1)) x.1) xs
      ≤ sumOver (fun x => x.2) xs
        * (farMax negligible (xs.map (·.1)) + farRest negligible (xs.map (·.1))) := by
  have h₁ := farMax_nonneg negligible (xs.map (·.1))
  rw [Semiring.left_distrib, ← sumOver_mul_right, farRest, sumOver_map, ← sumOver_mul_left,
    ← sumOver_add]
  refine sumOver_le_sumOver fun x h => ?_
  have h₂ := hx.le_share x h
  have h₃ := hx.nonneg x h
  have h₄ := far_nonneg (xs.map (·.1)) x.1
  by_cases hq : share (xs.map (·.1)) x.1 ≤ negligible
  · have h₅ := OrderedRing.mul_le_mul_of_nonneg_right h₂ h₄
    have h₆ := OrderedRing.mul_nonneg h₃ h₁
    rw [if_pos hq]
    grind
  · have h₅ := OrderedRing.mul_le_mul_of_nonneg_left
      (far_le_farMax (List.mem_map_of_mem (f := (·.1)) h) hq) h₃
    rw [if_neg hq]
    grind

/-- Σ ŵ |v| ≤ W · `meanOfSizes`. -/
theorem sum_size_le (negligible : R) :
    sumOver (fun x => x.2 * absolute x.1.value) xs
      ≤ sumOver (fun x => x.2) xs * meanOfSizes negligible (xs.map (·.1)) := by
  rw [meanOfSizes]
  generalize hW : sumOver (fun x => x.2) xs = W
  have hW₀ : 0 ≤ W := hW ▸ Std.le_of_lt hx.weights_pos
  rw [smaller]
  split
  · rw [sumOver_map, ← sumOver_mul_left]
    refine sumOver_le_sumOver fun x h => ?_
    have := OrderedRing.mul_le_mul_of_nonneg_right (hx.le_share x h) (absolute_nonneg x.1.value)
    rwa [hW, Semiring.mul_assoc] at this
  · have h₁ := hx.sum_far_le negligible
    rw [hW] at h₁
    refine Std.le_trans (b := sumOver (fun x => x.2 * far (xs.map (·.1)) x.1
      + x.2 * absolute (exactMean (xs.map (·.1)))) xs) (sumOver_le_sumOver fun x h => ?_) ?_
    · rw [← Semiring.left_distrib]
      refine OrderedRing.mul_le_mul_of_nonneg_left (absolute_le ?_) (hx.nonneg x h)
      have := (atMost_absolute (x.1.value - exactMean (xs.map (·.1)))).add
        (atMost_absolute (exactMean (xs.map (·.1))))
      have e : x.1.value - exactMean (xs.map (·.1)) + exactMean (xs.map (·.1)) = x.1.value := by
        grind
      rwa [e] at this
    · rw [sumOver_add, sumOver_mul_right, hW]
      grind

/-- Σ w (v − o) = 0. -/
private theorem sum_exact_eq_zero :
    sumOver (fun x => x.1.weight * (x.1.value - exactMean (xs.map (·.1)))) xs = 0 := by
  have h₁ := hx.total_pos
  have h₂ : exactMean (xs.map (·.1)) = sumOver (fun x => x.1.weight * x.1.value) xs
      / sumOver (fun x => x.1.weight) xs := by
    rw [exactMean, sumOver_map, sumOver_map]
  have h₃ := OrderedField.mul_div_cancel (b := sumOver (fun x => x.1.weight) xs) (by grind)
    (sumOver (fun x => x.1.weight * x.1.value) xs)
  rw [← h₂] at h₃
  generalize exactMean (xs.map (·.1)) = o at *
  rw [sumOver_mul_sub, h₃]
  grind

/-- ŵ and κ w are not further apart than κ w (E − 1). -/
private theorem weight_sub : ∀ x ∈ xs,
    AtMost (κ * (x.1.weight * (x.1.factor - 1))) (x.2 - κ * x.1.weight) := fun x h => by
  have h₁ := hx.upper x h
  have h₂ := hx.lower x h
  have h₃ := hx.one_le_factor x h
  have h₄ := OrderedRing.mul_nonneg (Std.le_of_lt hx.positive) (hx.weight_nonneg x h)
  refine ⟨?_, by grind⟩
  refine Classical.byContradiction fun hn => ?_
  have h₅ := OrderedRing.mul_nonneg (a := κ * x.1.weight - x.2) (b := x.1.factor - 1)
  have h₆ := OrderedRing.mul_nonneg h₄ (b := x.1.factor - 1) (by grind)
  grind

/-- Σ ŵ v is at most W · `sharedError` off W o. -/
theorem sum_sub (negligible : R) :
    AtMost (sumOver (fun x => x.2) xs * sharedError negligible (xs.map (·.1)))
      (sumOver (fun x => x.2 * x.1.value) xs
        - sumOver (fun x => x.2) xs * exactMean (xs.map (·.1))) := by
  have e₁ : sumOver (fun x => x.2 * x.1.value) xs
      - sumOver (fun x => x.2) xs * exactMean (xs.map (·.1))
      = sumOver (fun x => x.2 * (x.1.value - exactMean (xs.map (·.1)))) xs := by
    rw [sumOver_mul_sub]
  have e₂ : sumOver (fun x => x.2 * (x.1.value - exactMean (xs.map (·.1)))) xs
      = sumOver (fun x => (x.2 - κ * x.1.weight)
        * (x.1.value - exactMean (xs.map (·.1)))) xs := by
    have h := sumOver_sub (fun x : BoundedWeight R × R =>
        x.2 * (x.1.value - exactMean (xs.map (·.1))))
      (fun x => κ * (x.1.weight * (x.1.value - exactMean (xs.map (·.1))))) xs
    rw [sumOver_mul_left, hx.sum_exact_eq_zero, Semiring.mul_zero, sub_zero] at h
    rw [← h]
    exact sumOver_congr fun x _ => by grind
  rw [e₁, sharedError, smaller]
  split
  · rw [e₂]
    refine (sumOver_atMost fun x h => (hx.weight_sub x h).mul (atMost_absolute _)).mono ?_
    have e₃ : sumOver (fun x : BoundedWeight R × R => κ * (x.1.weight * (x.1.factor - 1))
        * absolute (x.1.value - exactMean (xs.map (·.1)))) xs = κ * excess (xs.map (·.1)) := by
      rw [excess, sumOver_map, ← sumOver_mul_left]
      exact sumOver_congr fun x _ => Semiring.mul_assoc ..
    rw [e₃]
    refine hx.le_mul_div ?_
    rw [excess, sumOver_map]
    refine sumOver_nonneg fun x h => ?_
    have := hx.one_le_factor x h
    exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (hx.weight_nonneg x h) (by grind))
      (far_nonneg _ _)
  · exact (sumOver_atMost fun x h => atMost_mul_left (hx.nonneg x h) (atMost_absolute _)).mono
      (hx.sum_far_le negligible)

end OffByFactors

end Attention.Proof
