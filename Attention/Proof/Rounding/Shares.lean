module

public import Attention.Proof.Rounding.Quotients

public section

/-! # A mean whose weights and sums are off

Of weights ŵ that are off by a factor each, apart from one that all share, a mean of the values is
within `Spec.tolerance` of that with the exact weights w, whatever has computed it. With the exact
mean o = Σ w v / Σ w it rests on Σ ŵ v − o Σ ŵ = Σ (ŵ − κ w) (v − o), since Σ w (v − o) = 0. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- Weights with what was computed in their place: each off by its factor, up or down, apart from
the factor `κ` that all share. -/
structure OffByFactors (κ : R) (xs : List (BoundedWeight R × R)) : Prop where
  /-- What all share. -/
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

/-! ## What the tolerance is made of -/

private def exactMean (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight * k.value) keys / sumOver (fun k => k.weight) keys

private def far (keys : List (BoundedWeight R)) (k : BoundedWeight R) : R :=
  absolute (k.value - exactMean keys)

private def lowTotal (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight / k.factor) keys

private def share (keys : List (BoundedWeight R)) (k : BoundedWeight R) : R :=
  smaller (k.weight * k.factor / lowTotal keys) 1

private def excess (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight * (k.factor - 1) * far keys k) keys

private def farMax (negligible : R) (keys : List (BoundedWeight R)) : R :=
  keys.foldl (fun x k => if share keys k ≤ negligible then x else max x (far keys k)) 0

private def farRest (negligible : R) (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => if share keys k ≤ negligible then share keys k * far keys k else 0) keys

private def sharedError (negligible : R) (keys : List (BoundedWeight R)) : R :=
  smaller (excess keys / lowTotal keys) (farMax negligible keys + farRest negligible keys)

private def meanOfSizes (negligible : R) (keys : List (BoundedWeight R)) : R :=
  smaller (sumOver (fun k => share keys k * absolute k.value) keys)
    (farMax negligible keys + farRest negligible keys + absolute (exactMean keys))

private def storingError (p : Precision R) (keys : List (BoundedWeight R)) : R :=
  p.stored * sumOver (share keys) keys

private def mostMoved (negligible : R) (keys : List (BoundedWeight R)) : R :=
  numeral 2 * (farMax negligible keys + farRest negligible keys + absolute (exactMean keys))

private def storedError (p : Precision R) (negligible : R) (keys : List (BoundedWeight R)) : R :=
  match p.denominator with
  | .unrounded => p.stored * meanOfSizes negligible keys
  | .rounded => overRemainder (p.stored * sumOver (fun k => share keys k * far keys k) keys
      + storingError p keys * sharedError negligible keys) (storingError p keys)
      (mostMoved negligible keys)

private def sizeGrowth (p : Precision R) (negligible : R) (keys : List (BoundedWeight R)) : R :=
  match p.denominator with
  | .unrounded => storedError p negligible keys
  | .rounded => overRemainder (p.stored * sumOver (fun k => share keys k * absolute k.value) keys
      + storingError p keys * meanOfSizes negligible keys) (storingError p keys)
      (mostMoved negligible keys)

private theorem tolerance_eq [Exp R R] (p : Precision R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) {keys : List (BoundedWeight R)}
    (h : keys = boundedWeights p rescalings row) :
    tolerance p roundings rescalings negligible row
      = sharedError negligible keys + storedError p negligible keys
        + (gamma (roundings + 6) p.accumulation
              * (meanOfSizes negligible keys + sizeGrowth p negligible keys)
            + gamma roundings p.unit * (absolute (exactMean keys) + sharedError negligible keys
              + storedError p negligible keys)) / (1 - gamma roundings p.unit) := by
  subst h
  rfl

private theorem sumOver_mul_sub {α : Type v} (f g : α → R) (c : R) (xs : List α) :
    sumOver (fun x => f x * (g x - c)) xs = sumOver (fun x => f x * g x) xs - sumOver f xs * c := by
  rw [← sumOver_mul_right, ← sumOver_sub]
  exact sumOver_congr fun x _ => by grind

private theorem sub_zero (x : R) : x - 0 = x := by grind

private theorem far_nonneg (keys : List (BoundedWeight R)) (k : BoundedWeight R) :
    0 ≤ far keys k := absolute_nonneg _

private theorem farMax_nonneg (negligible : R) (keys : List (BoundedWeight R)) :
    0 ≤ farMax negligible keys :=
  (le_foldl_max (far keys) (fun k => share keys k ≤ negligible) 0 keys).1

private theorem far_le_farMax {negligible : R} {keys : List (BoundedWeight R)}
    {k : BoundedWeight R} (hk : k ∈ keys) (h : ¬ share keys k ≤ negligible) :
    far keys k ≤ farMax negligible keys :=
  (le_foldl_max (far keys) (fun k => share keys k ≤ negligible) 0 keys).2 k hk h

namespace OffByFactors

variable {κ : R} {xs : List (BoundedWeight R × R)} (hx : OffByFactors κ xs)
include hx

private theorem nonneg : ∀ x ∈ xs, 0 ≤ x.2 := fun x h => by
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

private theorem lowTotal_pos : 0 < lowTotal (xs.map (·.1)) := by
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
private theorem lowTotal_le : κ * lowTotal (xs.map (·.1)) ≤ sumOver (fun x => x.2) xs := by
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
private theorem le_share : ∀ x ∈ xs,
    x.2 ≤ sumOver (fun x => x.2) xs * share (xs.map (·.1)) x.1 := fun x h => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := hx.one_le_factor x h
  have h₂ := OrderedRing.mul_nonneg (hx.weight_nonneg x h) (b := x.1.factor) (by grind)
  have h₃ := hx.le_mul_div h₂
  have h₄ := le_sumOver (f := fun x : BoundedWeight R × R => x.2) hx.nonneg h
  rw [share, smaller]
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

/-- Σ ŵ |v| ≤ W · `size`. -/
private theorem sum_size_le (negligible : R) :
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

/-- Σ ŵ v is at most W · `shared` off W o. -/
private theorem sum_sub (negligible : R) :
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

/-! ## Weights that are stored -/

/-- Σ ŵ' f against Σ ŵ f. -/
private theorem stored_sum_sub {σ : R} {zs : List (BoundedWeight R × R × R)}
    (hstored : ∀ z ∈ zs, AtMost (σ * z.2.1) (z.2.2 - z.2.1)) (f : BoundedWeight R → R) :
    AtMost (σ * sumOver (fun z => z.2.1 * absolute (f z.1)) zs)
      (sumOver (fun z => z.2.2 * f z.1) zs - sumOver (fun z => z.2.1 * f z.1) zs) := by
  rw [← sumOver_mul_left]
  refine sumOver_error fun z hz => ?_
  have h := (hstored z hz).mul (atMost_absolute (f z.1))
  have e₁ : σ * z.2.1 * absolute (f z.1) = σ * (z.2.1 * absolute (f z.1)) := by grind
  have e₂ : (z.2.2 - z.2.1) * f z.1 = z.2.2 * f z.1 - z.2.1 * f z.1 := by grind
  rwa [e₁, e₂] at h

/-- Σ ŵ f ≤ W Σ P f. -/
private theorem OffByFactors.sum_le_shares {κ : R} {xs : List (BoundedWeight R × R)}
    (hx : OffByFactors κ xs) {f : BoundedWeight R → R} (hf : ∀ k, 0 ≤ f k) :
    sumOver (fun x => x.2 * f x.1) xs ≤ sumOver (fun x => x.2) xs
      * sumOver (fun k => share (xs.map (·.1)) k * f k) (xs.map (·.1)) := by
  rw [sumOver_map, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun x h => ?_
  have := OrderedRing.mul_le_mul_of_nonneg_right (hx.le_share x h) (hf x.1)
  rwa [Semiring.mul_assoc] at this

/-- What the mean is made of: the denominator D that adds weights as they were, or as they were
stored, the sum of stored weights times values, and that of the sizes. -/
private theorem stored_mean {p : Precision R} (hp : Precise p) {κ : R}
    {zs : List (BoundedWeight R × R × R)} (hx : OffByFactors κ (zs.map fun z => (z.1, z.2.1)))
    (hstored : ∀ z ∈ zs, AtMost (p.stored * z.2.1) (z.2.2 - z.2.1)) (negligible : R) :
    0 < sumOver (fun z => added p.denominator z.2.1 z.2.2) zs ∧
      AtMost (sumOver (fun z => added p.denominator z.2.1 z.2.2) zs
          * (sharedError negligible (zs.map (·.1)) + storedError p negligible (zs.map (·.1))))
        (sumOver (fun z => z.2.2 * z.1.value) zs
          - sumOver (fun z => added p.denominator z.2.1 z.2.2) zs * exactMean (zs.map (·.1))) ∧
      (1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) zs
        ≤ sumOver (fun z => added p.denominator z.2.1 z.2.2) zs
          * (meanOfSizes negligible (zs.map (·.1)) + sizeGrowth p negligible (zs.map (·.1))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hW := hx.weights_pos
  have h₁ := hx.sum_sub negligible
  have h₂ := hx.sum_size_le negligible
  have h₃ := hx.sum_far_le negligible
  have b₁ := hx.sum_le_shares (far_nonneg (zs.map (·.1)))
  have b₂ := hx.sum_le_shares (f := fun k => absolute k.value) fun k => absolute_nonneg _
  have b₃ := hx.sum_le_shares (f := fun _ => 1) fun _ => Std.le_of_lt h₀
  simp only [sumOver_map, List.map_map, Function.comp_def, Semiring.mul_one]
    at hW h₁ h₂ h₃ b₁ b₂ b₃
  have hw : ∀ z ∈ zs, 0 ≤ z.2.1 := fun z hz =>
    hx.nonneg _ (List.mem_map_of_mem (f := fun z : BoundedWeight R × R × R => (z.1, z.2.1)) hz)
  have hΦ := sumOver_nonneg fun z hz =>
    OrderedRing.mul_nonneg (hw z hz) (far_nonneg (zs.map (·.1)) z.1)
  have hS := sumOver_nonneg fun z hz =>
    OrderedRing.mul_nonneg (hw z hz) (absolute_nonneg z.1.value)
  have hs : 0 ≤ sharedError negligible (zs.map (·.1)) := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -sharedError negligible (zs.map (·.1))) (by grind)
    have := h₁.nonneg
    grind
  have ha : 0 ≤ meanOfSizes negligible (zs.map (·.1)) := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -meanOfSizes negligible (zs.map (·.1))) (by grind)
    grind
  cases hd : p.denominator with
  | unrounded =>
    have a₁ := stored_sum_sub hstored fun k => k.value
    simp only [added, storedError, sizeGrowth, hd]
    have i := OrderedRing.mul_le_mul_of_nonneg_left h₂ hp.stored
    have h := (a₁.mono i).add h₁
    have e : ∀ x y z : R, x - y + (y - z) = x - z := fun x y z => by grind
    rw [e] at h
    exact ⟨hW, h.mono (by grind), by grind⟩
  | rounded =>
    have a₂ := stored_sum_sub hstored fun k => k.value - exactMean (zs.map (·.1))
    have a₃ := stored_sum_sub hstored fun _ => 1
    have one : absolute (1 : R) = 1 := by
      rw [absolute, OrderedField.max_def]
      split <;> grind
    have two : (numeral 2 : R) = 2 := by
      rw [numeral_succ, numeral_succ, numeral_eq, Semiring.natCast_zero]
      grind
    have e₁ : ∀ f : BoundedWeight R × R × R → R,
        sumOver (fun z => f z * (z.1.value - exactMean (zs.map (·.1)))) zs
          = sumOver (fun z => f z * z.1.value) zs - sumOver f zs * exactMean (zs.map (·.1)) :=
      fun f => sumOver_mul_sub ..
    simp only [e₁, Semiring.mul_one, one] at a₂ a₃
    have := rounded_mean hW hp.stored (hp.remaining hd) hs (F := farMax negligible (zs.map (·.1))
      + farRest negligible (zs.map (·.1))) (by
        rw [sharedError, smaller]
        split <;> grind) (absolute_nonneg (exactMean (zs.map (·.1)))) ha (by
        rw [meanOfSizes, smaller]
        split <;> grind) b₃ a₃ h₁ a₂ hΦ h₃ b₁ hS h₂ b₂
    simp only [added, storedError, sizeGrowth, hd, storingError, mostMoved, sumOver_map, two]
    exact this

/-- A numerator and a denominator made of such weights, with sums that are off, have a quotient
within the tolerance of the exact mean. -/
theorem OffByFactors.quotient [Exp R R] {p : Precision R} (hp : Precise p) {rescalings : Nat}
    {row : List (BoundedKey R)} {κ : R} {zs : List (BoundedWeight R × R × R)}
    (hx : OffByFactors κ (zs.map fun z => (z.1, z.2.1)))
    (hrow : zs.map (·.1) = boundedWeights p rescalings row)
    (hstored : ∀ z ∈ zs, AtMost (p.stored * z.2.1) (z.2.2 - z.2.1))
    {roundings k : Nat} {A : R} (hk : k ≤ roundings)
    (hA : A - 1 ≤ gamma (roundings + 6) p.accumulation)
    (hN : 0 ≤ gamma (roundings + 6) p.accumulation) (hD : 2 * numeral roundings * p.unit < 1)
    {N L : R}
    (hNumerator : AtMost ((A - 1)
        * ((1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) zs))
      (N - sumOver (fun z => z.2.2 * z.1.value) zs))
    (hDenominator : AtMost (((1 + p.unit) ^ k - 1)
        * sumOver (fun z => added p.denominator z.2.1 z.2.2) zs)
      (L - sumOver (fun z => added p.denominator z.2.1 z.2.2) zs))
    (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible row)
      (N / L - sumOver (fun z => z.1.weight * z.1.value) zs
        / sumOver (fun z => z.1.weight) zs) := by
  have ho : sumOver (fun z => z.1.weight * z.1.value) zs / sumOver (fun z => z.1.weight) zs
      = exactMean (zs.map (·.1)) := by
    rw [exactMean, sumOver_map, sumOver_map]
  have hu := hp.unit
  have hn₀ : 0 ≤ numeral roundings * p.unit := OrderedRing.mul_nonneg (numeral_nonneg _) hu
  have hn : numeral roundings * p.unit < 1 := by grind
  have hg := gamma_lt_one hD hn
  obtain ⟨hW, h₁, h₂⟩ := stored_mean hp hx hstored negligible
  have h₃ := pow_sub_one_le_gamma hu hk hn
  have h₆ : 0 ≤ (1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) zs := by
    have := OrderedRing.zero_lt_one (R := R)
    refine OrderedRing.mul_nonneg (by have := hp.stored; grind) (sumOver_nonneg fun z h => ?_)
    exact OrderedRing.mul_nonneg (hx.nonneg _ (List.mem_map_of_mem
      (f := fun z : BoundedWeight R × R × R => (z.1, z.2.1)) h)) (absolute_nonneg _)
  rw [ho, tolerance_eq p roundings rescalings negligible row hrow, ← terms_eq hg]
  generalize (1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) zs = S at *
  generalize sumOver (fun z => z.2.2 * z.1.value) zs = M at *
  generalize sumOver (fun z => added p.denominator z.2.1 z.2.2) zs = W at *
  generalize exactMean (zs.map (·.1)) = o at *
  generalize sharedError negligible (zs.map (·.1)) = s at *
  generalize storedError p negligible (zs.map (·.1)) = σ at *
  generalize sizeGrowth p negligible (zs.map (·.1)) = b at *
  generalize meanOfSizes negligible (zs.map (·.1)) = a at *
  generalize gamma roundings p.unit = g at *
  generalize gamma (roundings + 6) p.accumulation = γ at *
  generalize (1 + p.unit) ^ k = B at *
  have h₇ := hDenominator.mono (OrderedRing.mul_le_mul_of_nonneg_right h₃ (Std.le_of_lt hW))
  have h₈ := hNumerator.mono (b := W * (γ * (a + b))) (by
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hA h₆
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left h₂ hN
    grind)
  refine quotient_sub hW hg ?_ ?_
  · have := h₇.1
    grind
  · have := (h₈.add h₁).sub (h₇.mul (atMost_absolute o))
    have e₁ : N - M + (M - W * o) - (L - W) * o = N - L * o := by grind
    have e₂ : W * (γ * (a + b)) + W * (s + σ) + g * W * absolute o
        = W * (s + (σ + γ * (a + b)) + g * absolute o) := by grind
    rwa [e₁, e₂] at this

end Attention.Proof
