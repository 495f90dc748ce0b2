module

public import Attention.Proof.Rounding.Quotients
public import Attention.Proof.Rounding.Shares

public section

/-! # A mean whose weights are stored

The weights of `Proof/Rounding/Shares.lean` stored in a narrower format, and sums of them that are
off: their quotient is within `Spec.tolerance` of the mean with the exact weights, whatever has
computed it. The names w, ŵ, W, P and o are as there; ŵ' are the weights as they are stored.
Source: docs/tolerances.md, sections 3 and 4. -/

namespace Attention.Proof

open Spec Model Lean.Grind Shares

universe u

variable {R : Type u} [OrderedField R]

/-! ## The cost of storing, in the tolerance -/

private def error (p : Precision R) (rescalings : Nat) (keys : List (BoundedWeight R))
    (k : BoundedWeight R) : R :=
  storingError p (tinyShare p rescalings keys) (share keys k)

private def mostMoved (negligible : R) (keys : List (BoundedWeight R)) : R :=
  numeral 2 * (farMax negligible keys + farRest negligible keys + absolute (exactMean keys))

private def storedError (p : Precision R) (rescalings : Nat) (negligible : R)
    (keys : List (BoundedWeight R)) : R :=
  match p.denominator with
  | .unrounded => smaller (smaller (sumOver (fun k => error p rescalings keys k * absolute k.value)
        keys) (p.stored * meanOfSizes negligible keys + sumOver
          (fun k => smaller (share keys k) (tinyShare p rescalings keys) * absolute k.value) keys))
      (meanOfSizes negligible keys)
  | .rounded => overRemainder (sumOver (fun k => error p rescalings keys k * far keys k) keys
      + storingErrors p rescalings keys * sharedError negligible keys)
      (storingErrors p rescalings keys) (mostMoved negligible keys)

private def sizeGrowth (p : Precision R) (rescalings : Nat) (negligible : R)
    (keys : List (BoundedWeight R)) : R :=
  match p.denominator with
  | .unrounded => storedError p rescalings negligible keys
  | .rounded => overRemainder (sumOver (fun k => error p rescalings keys k * absolute k.value) keys
      + storingErrors p rescalings keys * meanOfSizes negligible keys)
      (storingErrors p rescalings keys) (mostMoved negligible keys)

private theorem tolerance_eq [Exp R R] (p : Precision R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) {keys : List (BoundedWeight R)}
    (h : keys = boundedWeights p rescalings row) :
    tolerance p roundings rescalings negligible row
      = sharedError negligible keys + storedError p rescalings negligible keys
        + (gamma (roundings + 6) p.accumulation
              * (meanOfSizes negligible keys + sizeGrowth p rescalings negligible keys)
            + gamma roundings p.unit * (absolute (exactMean keys) + sharedError negligible keys
              + storedError p rescalings negligible keys)) / (1 - gamma roundings p.unit) := by
  subst h
  rfl

/-! ## Weights that are stored -/

private theorem smaller_cases {P : R → Prop} {x y : R} (hx : P x) (hy : P y) :
    P (smaller x y) := by
  rw [smaller]
  split
  · exact hx
  · exact hy

private theorem smaller_nonneg {x y : R} (hx : 0 ≤ x) (hy : 0 ≤ y) : 0 ≤ smaller x y :=
  smaller_cases (P := (0 ≤ ·)) hx hy

private theorem le_mul_smaller {W x y z : R} (hx : z ≤ W * x) (hy : z ≤ W * y) :
    z ≤ W * smaller x y :=
  smaller_cases (P := (z ≤ W * ·)) hx hy

/-- The error of storing a weight, against its share of the sum W of the weights. -/
private theorem stored_share {p : Precision R} (hσ : 0 ≤ p.stored) {T w w' W P t : R} (hw : 0 ≤ w)
    (hW : 0 ≤ W) (h : Stored p.stored T w w') (hP : w ≤ W * P) (hT : T ≤ W * t) :
    absolute (w' - w) ≤ W * storingError p t P := by
  rw [Stored, absolute_of_nonneg hw] at h
  rw [storingError]
  refine le_mul_smaller (Std.le_trans (absolute_le h.2) hP) (Std.le_trans (absolute_le h.1) ?_)
  have i := OrderedRing.mul_le_mul_of_nonneg_left hP hσ
  rw [OrderedField.max_def, OrderedField.max_def]
  split <;> split
  · exact hT
  · have j := OrderedRing.mul_le_mul_of_nonneg_left (a := t) (b := p.stored * P) (by grind) hW
    grind
  · have j := OrderedRing.mul_le_mul_of_nonneg_left (a := p.stored * P) (b := t) (by grind) hW
    grind
  · grind

/-- The same, in two parts. -/
private theorem stored_parts {σ : R} (hσ : 0 ≤ σ) {T w w' W P t : R} (hw : 0 ≤ w) (hP₀ : 0 ≤ P)
    (ht : 0 ≤ t) (hW : 0 ≤ W) (h : Stored σ T w w') (hP : w ≤ W * P) (hT : T ≤ W * t) :
    absolute (w' - w) ≤ σ * w + W * smaller P t := by
  rw [Stored, absolute_of_nonneg hw] at h
  have h₁ := absolute_le h.1
  have h₂ := absolute_le h.2
  have h₃ := OrderedRing.mul_nonneg hσ hw
  rw [OrderedField.max_def] at h₁
  split at h₁
  · have : absolute (w' - w) ≤ W * smaller P t :=
      le_mul_smaller (Std.le_trans h₂ hP) (Std.le_trans h₁ hT)
    grind
  · have := OrderedRing.mul_nonneg hW (smaller_nonneg hP₀ ht)
    grind

private theorem nonneg_of_le_mul {W x y : R} (hW : 0 < W) (h₁ : 0 ≤ y) (h₂ : y ≤ W * x) :
    0 ≤ x := by
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_pos hW (b := -x) (by grind)
  grind

omit [OrderedField R] in
private theorem pair_mem {zs : List (BoundedWeight R × R × R)} {z : BoundedWeight R × R × R}
    (hz : z ∈ zs) : (z.1, z.2.1) ∈ zs.map fun z => (z.1, z.2.1) :=
  List.mem_map_of_mem (f := fun z : BoundedWeight R × R × R => (z.1, z.2.1)) hz

/-- Σ ŵ' f against Σ ŵ f. -/
private theorem stored_sum_sub (zs : List (BoundedWeight R × R × R)) (f : BoundedWeight R → R) :
    AtMost (sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute (f z.1)) zs)
      (sumOver (fun z => z.2.2 * f z.1) zs - sumOver (fun z => z.2.1 * f z.1) zs) := by
  refine sumOver_error fun z _ => ?_
  have h := (atMost_absolute (z.2.2 - z.2.1)).mul (atMost_absolute (f z.1))
  rwa [show (z.2.2 - z.2.1) * f z.1 = z.2.2 * f z.1 - z.2.1 * f z.1 by grind] at h

private theorem stored_far (zs : List (BoundedWeight R × R × R)) :
    AtMost (sumOver (fun z => absolute (z.2.2 - z.2.1) * far (zs.map (·.1)) z.1) zs)
      (sumOver (fun z => z.2.2 * z.1.value) zs
          - sumOver (fun z => z.2.2) zs * exactMean (zs.map (·.1))
        - (sumOver (fun z => z.2.1 * z.1.value) zs
          - sumOver (fun z => z.2.1) zs * exactMean (zs.map (·.1)))) := by
  have h := stored_sum_sub zs fun k => k.value - exactMean (zs.map (·.1))
  rw [sumOver_mul_sub, sumOver_mul_sub] at h
  exact h

private theorem share_nonneg {κ : R} {xs : List (BoundedWeight R × R)} (hx : OffByFactors κ xs) :
    ∀ x ∈ xs, 0 ≤ share (xs.map (·.1)) x.1 := fun x h => by
  refine Classical.byContradiction fun hn => ?_
  have h₁ := hx.le_share x h
  have h₂ := OrderedRing.mul_pos hx.weights_pos (b := -share (xs.map (·.1)) x.1) (by grind)
  have h₃ := hx.nonneg x h
  grind

/-- Weights off by factors, with what is stored of each: `T` is the largest error of storing a
weight below the normal numbers. -/
structure StoredWeights (p : Precision R) (rescalings : Nat) (κ T : R)
    (zs : List (BoundedWeight R × R × R)) : Prop where
  /-- The weights as computed. -/
  off : OffByFactors κ (zs.map fun z => (z.1, z.2.1))
  /-- The weights as stored. -/
  stored : ∀ z ∈ zs, Stored p.stored T z.2.1 z.2.2
  /-- Not too large a share of their sum. -/
  tiny : T ≤ sumOver (fun z => z.2.1) zs * tinyShare p rescalings (zs.map (·.1))
  /-- Not negative. -/
  tiny_nonneg : 0 ≤ tinyShare p rescalings (zs.map (·.1))

namespace StoredWeights

variable {p : Precision R} {rescalings : Nat} {κ T : R} {zs : List (BoundedWeight R × R × R)}

omit [OrderedField R] in
private theorem map_pair (zs : List (BoundedWeight R × R × R)) :
    (zs.map fun z => (z.1, z.2.1)).map (·.1) = zs.map (·.1) := by
  rw [List.map_map]
  rfl

private theorem sum_pos (h : StoredWeights p rescalings κ T zs) :
    0 < sumOver (fun z => z.2.1) zs := by
  have := h.off.weights_pos
  rwa [sumOver_map] at this

private theorem nonneg (h : StoredWeights p rescalings κ T zs) : ∀ z ∈ zs, 0 ≤ z.2.1 :=
  fun _ hz => h.off.nonneg _ (pair_mem hz)

private theorem le_share (h : StoredWeights p rescalings κ T zs) :
    ∀ z ∈ zs, z.2.1 ≤ sumOver (fun z => z.2.1) zs * share (zs.map (·.1)) z.1 := fun z hz => by
  have := h.off.le_share _ (pair_mem hz)
  rwa [sumOver_map, map_pair] at this

private theorem share_nonneg (h : StoredWeights p rescalings κ T zs) :
    ∀ z ∈ zs, 0 ≤ share (zs.map (·.1)) z.1 := fun z hz => by
  have := Proof.share_nonneg h.off _ (pair_mem hz)
  rwa [map_pair] at this

/-- Stored weights are not negative. -/
theorem stored_nonneg (h : StoredWeights p rescalings κ T zs) : ∀ z ∈ zs, 0 ≤ z.2.2 :=
  fun z hz => by
    have := (h.stored z hz).2.1
    rw [absolute_of_nonneg (h.nonneg z hz)] at this
    grind

/-- The error of storing a weight. -/
private theorem error_le (hp : Precise p) (h : StoredWeights p rescalings κ T zs) :
    ∀ z ∈ zs, absolute (z.2.2 - z.2.1)
      ≤ sumOver (fun z => z.2.1) zs * error p rescalings (zs.map (·.1)) z.1 := fun z hz =>
  stored_share hp.stored (h.nonneg z hz) (Std.le_of_lt h.sum_pos) (h.stored z hz)
    (h.le_share z hz) h.tiny

private theorem errors_le_error (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    {f : BoundedWeight R → R} (hf : ∀ k, 0 ≤ f k) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * f z.1) zs ≤ sumOver (fun z => z.2.1) zs
      * sumOver (fun k => error p rescalings (zs.map (·.1)) k * f k) (zs.map (·.1)) := by
  rw [sumOver_map, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun z hz => ?_
  have := OrderedRing.mul_le_mul_of_nonneg_right (h.error_le hp z hz) (hf z.1)
  rwa [Semiring.mul_assoc] at this

private theorem errors_le_parts (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    {f : BoundedWeight R → R} (hf : ∀ k, 0 ≤ f k) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * f z.1) zs
      ≤ p.stored * sumOver (fun z => z.2.1 * f z.1) zs + sumOver (fun z => z.2.1) zs
        * sumOver (fun k => smaller (share (zs.map (·.1)) k)
          (tinyShare p rescalings (zs.map (·.1))) * f k) (zs.map (·.1)) := by
  rw [sumOver_map, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
  refine sumOver_le_sumOver fun z hz => ?_
  have := OrderedRing.mul_le_mul_of_nonneg_right (stored_parts hp.stored (h.nonneg z hz)
    (h.share_nonneg z hz) h.tiny_nonneg (Std.le_of_lt h.sum_pos) (h.stored z hz) (h.le_share z hz)
    h.tiny) (hf z.1)
  rwa [Semiring.right_distrib, Semiring.mul_assoc, Semiring.mul_assoc] at this

private theorem error_le_weight (h : StoredWeights p rescalings κ T zs) :
    ∀ z ∈ zs, absolute (z.2.2 - z.2.1) ≤ z.2.1 := fun z hz => by
  have := absolute_le (h.stored z hz).2
  rwa [absolute_of_nonneg (h.nonneg z hz)] at this

private theorem errors_le_weights (h : StoredWeights p rescalings κ T zs)
    {f : BoundedWeight R → R} (hf : ∀ k, 0 ≤ f k) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * f z.1) zs
      ≤ sumOver (fun z => z.2.1 * f z.1) zs :=
  sumOver_le_sumOver fun z hz =>
    OrderedRing.mul_le_mul_of_nonneg_right (h.error_le_weight z hz) (hf z.1)

/-- Σ |ŵ' − ŵ| is at most the share of W that `storingErrors` has. -/
theorem errors_le (hp : Precise p) (h : StoredWeights p rescalings κ T zs) :
    sumOver (fun z => absolute (z.2.2 - z.2.1)) zs
      ≤ sumOver (fun z => z.2.1) zs * storingErrors p rescalings (zs.map (·.1)) := by
  have one : ∀ _ : BoundedWeight R, (0 : R) ≤ 1 := fun _ =>
    Std.le_of_lt OrderedRing.zero_lt_one
  have h₁ := h.errors_le_error hp one
  have h₂ := h.errors_le_parts hp one
  simp only [Semiring.mul_one] at h₁ h₂
  rw [storingErrors]
  refine le_mul_smaller h₁ (Std.le_trans h₂ ?_)
  rw [Semiring.left_distrib, CommSemiring.mul_comm p.stored]
  exact Std.le_refl _

/-- So that share is not negative. -/
theorem storingErrors_nonneg (hp : Precise p) (h : StoredWeights p rescalings κ T zs) :
    0 ≤ storingErrors p rescalings (zs.map (·.1)) :=
  nonneg_of_le_mul h.sum_pos (sumOver_nonneg fun z _ => absolute_nonneg (z.2.2 - z.2.1))
    (h.errors_le hp)

/-- The sum of the stored weights against that of the computed ones. -/
theorem sum_sub (hp : Precise p) (h : StoredWeights p rescalings κ T zs) :
    AtMost (sumOver (fun z => z.2.1) zs * storingErrors p rescalings (zs.map (·.1)))
      (sumOver (fun z => z.2.2) zs - sumOver (fun z => z.2.1) zs) :=
  (sumOver_error fun z _ => atMost_absolute (z.2.2 - z.2.1)).mono (h.errors_le hp)

/-- Σ |ŵ' − ŵ| |v − o| ≤ W (E · `farMax` + `farRest`). -/
private theorem errors_far (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    (negligible : R) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * far (zs.map (·.1)) z.1) zs
      ≤ sumOver (fun z => z.2.1) zs * (storingErrors p rescalings (zs.map (·.1))
        * farMax negligible (zs.map (·.1)) + farRest negligible (zs.map (·.1))) := by
  have hF := farMax_nonneg negligible (zs.map (·.1))
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right (h.errors_le hp) hF
  rw [← sumOver_mul_right] at h₁
  rw [Semiring.left_distrib, ← Semiring.mul_assoc]
  refine Std.le_trans (b := sumOver (fun z => absolute (z.2.2 - z.2.1)
      * farMax negligible (zs.map (·.1)) + sumOver (fun z => z.2.1) zs
        * (if share (zs.map (·.1)) z.1 ≤ negligible
          then share (zs.map (·.1)) z.1 * far (zs.map (·.1)) z.1 else 0)) zs)
    (sumOver_le_sumOver fun z hz => ?_) ?_
  · have i₁ := far_nonneg (zs.map (·.1)) z.1
    have i₂ := absolute_nonneg (z.2.2 - z.2.1)
    by_cases hq : share (zs.map (·.1)) z.1 ≤ negligible
    · rw [if_pos hq]
      have j₁ := OrderedRing.mul_le_mul_of_nonneg_right
        (Std.le_trans (h.error_le_weight z hz) (h.le_share z hz)) i₁
      have j₂ := OrderedRing.mul_nonneg i₂ hF
      rw [Semiring.mul_assoc] at j₁
      grind
    · rw [if_neg hq]
      have j₁ := OrderedRing.mul_le_mul_of_nonneg_left
        (far_le_farMax (List.mem_map_of_mem (f := (·.1)) hz) hq) i₂
      grind
  · rw [sumOver_add, sumOver_mul_left, farRest, sumOver_map]
    grind

/-- Σ |ŵ' − ŵ| |v|, by the distances and the mean. -/
private theorem errors_size (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    (negligible : R) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute z.1.value) zs
      ≤ sumOver (fun z => z.2.1) zs * (storingErrors p rescalings (zs.map (·.1))
          * farMax negligible (zs.map (·.1)) + farRest negligible (zs.map (·.1))
        + storingErrors p rescalings (zs.map (·.1)) * absolute (exactMean (zs.map (·.1)))) := by
  have h₁ := h.errors_far hp negligible
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (h.errors_le hp)
    (absolute_nonneg (exactMean (zs.map (·.1))))
  rw [← sumOver_mul_right] at h₂
  have h₃ : sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute z.1.value) zs
      ≤ sumOver (fun z => absolute (z.2.2 - z.2.1) * far (zs.map (·.1)) z.1
        + absolute (z.2.2 - z.2.1) * absolute (exactMean (zs.map (·.1)))) zs :=
    sumOver_le_sumOver fun z _ => by
      rw [← Semiring.left_distrib]
      refine OrderedRing.mul_le_mul_of_nonneg_left (absolute_le ?_) (absolute_nonneg _)
      have := (atMost_absolute (z.1.value - exactMean (zs.map (·.1)))).add
        (atMost_absolute (exactMean (zs.map (·.1))))
      rwa [show z.1.value - exactMean (zs.map (·.1)) + exactMean (zs.map (·.1)) = z.1.value by
        grind] at this
  rw [sumOver_add] at h₃
  rw [Semiring.left_distrib, ← Semiring.mul_assoc]
  grind

/-- The errors of storing where the denominator adds the weights as they were. -/
private theorem unrounded_error (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    (negligible : R) (hd : p.denominator = .unrounded) :
    sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute z.1.value) zs
      ≤ sumOver (fun z => z.2.1) zs * storedError p rescalings negligible (zs.map (·.1)) := by
  have hv : ∀ k : BoundedWeight R, 0 ≤ absolute k.value := fun k => absolute_nonneg _
  have h₁ := h.off.sum_size_le negligible
  rw [sumOver_map, sumOver_map, map_pair] at h₁
  have h₂ := h.errors_le_weights hv
  have h₃ := h.errors_le_parts hp hv
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₁ hp.stored
  simp only [storedError, hd]
  refine le_mul_smaller (le_mul_smaller (h.errors_le_error hp hv) (Std.le_trans h₃ ?_))
    (Std.le_trans h₂ h₁)
  rw [Semiring.left_distrib]
  simp only at h₄
  generalize sumOver (fun k => smaller (share (zs.map (·.1)) k)
    (tinyShare p rescalings (zs.map (·.1))) * absolute k.value) (zs.map (·.1)) = y
  clear h₁ h₂ h₃
  grind

/-- Parts of the mean: the denominator D that adds weights as they were, or as they were stored,
the sum of stored weights times values, and that of the sizes. -/
private theorem quotient_mean (hp : Precise p) (h : StoredWeights p rescalings κ T zs)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (zs.map (·.1)) ≤ 1)
    (negligible : R) :
    0 < sumOver (fun z => added p.denominator z.2.1 z.2.2) zs ∧
      AtMost (sumOver (fun z => added p.denominator z.2.1 z.2.2) zs
          * (sharedError negligible (zs.map (·.1))
            + storedError p rescalings negligible (zs.map (·.1))))
        (sumOver (fun z => z.2.2 * z.1.value) zs
          - sumOver (fun z => added p.denominator z.2.1 z.2.2) zs * exactMean (zs.map (·.1))) ∧
      sumOver (fun z => z.2.2 * absolute z.1.value) zs
        ≤ sumOver (fun z => added p.denominator z.2.1 z.2.2) zs
          * (meanOfSizes negligible (zs.map (·.1))
            + sizeGrowth p rescalings negligible (zs.map (·.1))) := by
  have hW := h.sum_pos
  have h₁ := h.off.sum_sub negligible
  have h₂ := h.off.sum_size_le negligible
  simp only [sumOver_map, map_pair] at h₁ h₂
  have hv : ∀ k : BoundedWeight R, 0 ≤ absolute k.value := fun k => absolute_nonneg _
  have hgrow : sumOver (fun z => z.2.2 * absolute z.1.value) zs
      - sumOver (fun z => z.2.1 * absolute z.1.value) zs
      ≤ sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute z.1.value) zs := by
    rw [← sumOver_sub]
    refine sumOver_le_sumOver fun z _ => ?_
    have := OrderedRing.mul_le_mul_of_nonneg_right (atMost_absolute (z.2.2 - z.2.1)).2 (hv z.1)
    grind
  cases hd : p.denominator with
  | unrounded =>
    have a₁ := (stored_sum_sub zs fun k => k.value).mono (h.unrounded_error hp negligible hd)
    have a₂ := h.unrounded_error hp negligible hd
    simp only [added, sizeGrowth, hd]
    have i := a₁.add h₁
    rw [show ∀ x y z : R, x - y + (y - z) = x - z from fun x y z => by grind] at i
    refine ⟨hW, i.mono (by grind), ?_⟩
    rw [Semiring.left_distrib]
    grind
  | rounded =>
    have hD := h.sum_sub hp
    rw [CommSemiring.mul_comm] at hD
    have hFr : 0 ≤ farRest negligible (zs.map (·.1)) := by
      rw [farRest, sumOver_map]
      refine sumOver_nonneg fun z hz => ?_
      split
      · exact OrderedRing.mul_nonneg (h.share_nonneg z hz) (far_nonneg _ _)
      · exact Std.le_refl _
    have hx₀ : 0 ≤ sumOver (fun z => absolute (z.2.2 - z.2.1) * far (zs.map (·.1)) z.1) zs :=
      sumOver_nonneg fun z _ => OrderedRing.mul_nonneg (absolute_nonneg _) (far_nonneg _ _)
    have hy₀ : 0 ≤ sumOver (fun z => absolute (z.2.2 - z.2.1) * absolute z.1.value) zs :=
      sumOver_nonneg fun z _ => OrderedRing.mul_nonneg (absolute_nonneg _) (hv _)
    have ha : 0 ≤ sumOver (fun z => z.2.1 * absolute z.1.value) zs :=
      sumOver_nonneg fun z hz => OrderedRing.mul_nonneg (h.nonneg z hz) (hv z.1)
    have := rounded_mean hW (h.storingErrors_nonneg hp) (third hd)
      (nonneg_of_le_mul hW h₁.nonneg (Std.le_refl _)) (by
        rw [sharedError, smaller]
        split <;> grind) (farMax_nonneg negligible _) hFr (absolute_nonneg (exactMean _))
      (nonneg_of_le_mul hW ha h₂) (by
        rw [meanOfSizes, smaller]
        split <;> grind) hD h₁ (stored_far zs) hx₀ (h.errors_le_error hp (far_nonneg _))
      (h.errors_far hp negligible) h₂ hgrow hy₀ (h.errors_le_error hp hv)
      (h.errors_size hp negligible)
    simp only [added, storedError, sizeGrowth, hd, mostMoved, numeral_two]
    exact this

end StoredWeights

/-- A numerator and a denominator made of such weights, with sums that are off, have a quotient
within the tolerance of the exact mean. -/
theorem StoredWeights.quotient [Exp R R] {p : Precision R} (hp : Precise p) {rescalings : Nat}
    {row : List (BoundedKey R)} {κ T : R} {zs : List (BoundedWeight R × R × R)}
    (h : StoredWeights p rescalings κ T zs)
    (hrow : zs.map (·.1) = boundedWeights p rescalings row)
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    {roundings k : Nat} {A : R} (hk : k ≤ roundings)
    (hA : A - 1 ≤ gamma (roundings + 6) p.accumulation)
    (hN : 0 ≤ gamma (roundings + 6) p.accumulation) (hD : 2 * numeral roundings * p.unit < 1)
    {N L : R}
    (hNumerator : AtMost ((A - 1) * sumOver (fun z => z.2.2 * absolute z.1.value) zs)
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
  obtain ⟨hW, h₁, h₂⟩ := h.quotient_mean hp (hrow ▸ third) negligible
  have h₃ := pow_sub_one_le_gamma hu hk hn
  have h₆ : 0 ≤ sumOver (fun z => z.2.2 * absolute z.1.value) zs :=
    sumOver_nonneg fun z hz => OrderedRing.mul_nonneg (h.stored_nonneg z hz) (absolute_nonneg _)
  rw [ho, tolerance_eq p roundings rescalings negligible row hrow, ← terms_eq hg]
  clear third h
  generalize sumOver (fun z => z.2.2 * absolute z.1.value) zs = S at *
  generalize sumOver (fun z => z.2.2 * z.1.value) zs = M at *
  generalize sumOver (fun z => added p.denominator z.2.1 z.2.2) zs = W at *
  generalize exactMean (zs.map (·.1)) = o at *
  generalize sharedError negligible (zs.map (·.1)) = s at *
  generalize storedError p rescalings negligible (zs.map (·.1)) = σ at *
  generalize sizeGrowth p rescalings negligible (zs.map (·.1)) = b at *
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
