module

public import Attention.Proof.Rounding.GradientMatrices
public import Attention.Proof.Rounding.OverflowGradientRows
import Attention.Proof.Rounding.OverflowSizes

public section

/-! # Gradients that overflow nowhere, from matrices to the tolerance

The sums over keys and queries, and the whole.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-! ## Sums -/

section
variable {n d_v : Nat} {p : GradientPrecision R} {largest : LargestGradient R}
variable (hp : PreciseGradient p)
include hp

/-- **gradient-sum-finite**: where the sizes of the numbers that meet, with the growth by all
roundings, fit together, no number of scale · Σ xⱼ yⱼ overflows: it is a number, no larger than that
of the result's format, and one that a function without a largest number may compute. -/
theorem limitedGradient {roundings stores : Nat} {part rest scale reach total : R}
    (hscale : part * rest = scale) (hreach : AtMost reach rest) {b x' y : Fin n → R}
    (hx : ∀ j, AtMost (b j) (x' j))
    (ht : sumOver (fun j => b j * operandSize p stores part (y j)) (List.finRange n) ≤ total)
    (fits : gradientSumFits p largest roundings stores part rest y total)
    {x : Fin n → Option R} (hx' : ∀ j, x j = some (x' j)) {z : Option R}
    (h : LimitedGradient p largest roundings stores part rest x y z) :
    ∃ w, z = some w ∧ ComputedGradient p roundings stores scale reach x' y w ∧
      AtMost largest.output w := by
  obtain ⟨k, a, c, e, f, y', y'', products, sum, sum', h⟩ := h
  obtain ⟨hk, hn, hac, hef, hy, hy', hprod, hsum, hsum', hz⟩ := h
  simp only [gradientSumFits, Bool.and_eq_true, List.all_eq_true, decide_eq_true_eq] at fits
  obtain ⟨⟨f₁, f₂⟩, f₃⟩ := fits
  have op : ∀ j, ∃ v v', y' j = some v ∧ y'' j = some v' ∧
      BelowTimes p.unit p.tiny e (part * y j) v ∧
      BelowTimes p.operands p.operandsTiny a v v' ∧
      AtMost (operandSize p stores part (y j)) v' := fun j => by
    obtain ⟨f₄, f₅⟩ := le_of_le_smaller (f₁ j (List.mem_finRange j))
    have h₁ := (atMost_absolute part).mul (atMost_absolute (y j))
    have h₂ := le_belowSize hp.operands hp.operandsTiny stores
      (belowSize_nonneg hp.unit hp.tiny 3 h₁.nonneg)
    obtain ⟨v, e₁, h₃, h₄⟩ := limitedBelowTimes hp.unit hp.tiny (show e ≤ 3 by omega) (hy j) h₁
      (Std.le_trans h₂ f₄)
    obtain ⟨v', e₂, h₅, h₆⟩ := limitedBelowTimes hp.operands hp.operandsTiny
      (show a ≤ stores by omega) (hy' j v e₁) h₄ f₅
    exact ⟨v, v', e₁, e₂, h₃, h₅, h₆⟩
  let v := fun j => (y' j).getD 0
  let v' := fun j => (y'' j).getD 0
  have ops : ∀ j, y'' j = some (v' j) ∧ BelowTimes p.unit p.tiny e (part * y j) (v j) ∧
      BelowTimes p.operands p.operandsTiny a (v j) (v' j) ∧
      AtMost (operandSize p stores part (y j)) (v' j) := fun j => by
    obtain ⟨_, _, e₁, e₂, h⟩ := op j
    simp only [v, v', e₁, e₂, Option.getD_some, true_and]
    exact h
  obtain ⟨f₄, f₅⟩ := le_of_le_smaller f₂
  obtain ⟨f₆, f₇⟩ := le_of_le_smaller f₃
  have each : ∀ j, AtMost (b j * operandSize p stores part (y j)) (x' j * v' j) := fun j =>
    (hx j).mul (ops j).2.2.2
  have h₀ : 0 ≤ total :=
    Std.le_trans (sumOver_nonneg fun j _ => (each j).nonneg) ht
  have h₁ := Std.le_trans h₀ (le_sumSize hp roundings h₀)
  have h₂ := le_belowSize hp.operands hp.operandsTiny stores h₁
  obtain ⟨terms, s, h₃, rfl, h₄, h₅⟩ := limitedProducts_sumSize hp hk hn
    (f := fun j => x' j * v' j) (fun j => hprod j _ (hx' j) _ (ops j).1) hsum each ht
    (Std.le_trans h₂ f₄)
  obtain ⟨s', rfl, h₆, h₇⟩ := limitedBelowTimes hp.operands hp.operandsTiny
    (show c ≤ stores by omega) (hsum' s rfl) h₅ f₅
  obtain ⟨w, rfl, h₈, h₉⟩ := limitedBelowTimes hp.unit hp.tiny (show f ≤ 3 by omega) (hz s' rfl)
    ((atMost_absolute rest).mul h₇) f₆
  exact ⟨w, rfl, ⟨k, a, c, e, f, part, rest, v, v', terms, s, s', hk, hn, hac, hef, hscale, hreach,
    fun j => (ops j).2.1, fun j => (ops j).2.2.1, h₃, h₄, h₆, h₈⟩, h₉.mono f₇⟩

omit hp in
/-- The size of dS times a slope is a share of the weight, and a little. -/
private theorem slopedSize_eq (e slope inner w : R) : slopedSize p e slope inner w
    = (slopedSize p e slope inner 1 - slopedSize p e slope inner 0) * w
      + slopedSize p e slope inner 0 := by
  simp only [slopedSize, scoreGradientSize, recomputedSize, belowSize]
  generalize power (1 + p.stored) 1 = a
  generalize power (1 + p.unit) 2 = b
  generalize power (1 + p.weights) 1 = f
  generalize numeral 1 * p.storedTiny = g
  generalize numeral 2 * p.tiny = h
  generalize numeral 1 * p.weightsTiny = k
  generalize p.tiny = l
  grind

/-- No sum over a row's keys is larger. -/
private theorem row_total {stores : Nat} {part e slope inner : R} (he : 0 ≤ e) (hi : 0 ≤ inner)
    (hs : 0 ≤ slope) {weight y : Fin n → R} (hw : ∀ j, 0 ≤ weight j)
    (hsum : sumOver weight (List.finRange n) ≤ 1) :
    sumOver (fun j => slopedSize p e slope inner (weight j) * operandSize p stores part (y j))
      (List.finRange n) ≤ rowTotal p stores part e slope inner y := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := (slopedSize_mono hp he hi hs (Std.le_refl 0) (Std.le_of_lt one)).2.2
  obtain ⟨h₂, h₃⟩ := Overflow.le_foldl (b := 0)
    (f := fun x j => max x (operandSize p stores part (y j)))
    (fun x j => (Overflow.le_max _ _).1) (List.finRange n)
  have h₄ := h₃ (fun j => operandSize p stores part (y j)) (fun x j => (Overflow.le_max _ _).2)
  have e₁ : sumOver (fun j => slopedSize p e slope inner (weight j)
      * operandSize p stores part (y j)) (List.finRange n)
      = (slopedSize p e slope inner 1 - slopedSize p e slope inner 0)
          * sumOver (fun j => weight j * operandSize p stores part (y j)) (List.finRange n)
        + slopedSize p e slope inner 0
          * sumOver (fun j => operandSize p stores part (y j)) (List.finRange n) := by
    rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
    refine sumOver_congr fun j _ => ?_
    rw [slopedSize_eq e slope inner (weight j)]
    generalize slopedSize p e slope inner 1 - slopedSize p e slope inner 0 = a
    generalize slopedSize p e slope inner 0 = b
    clear h₁ h₂ h₃ h₄ hp
    grind
  have h₅ : sumOver (fun j => weight j * operandSize p stores part (y j)) (List.finRange n)
      ≤ (List.finRange n).foldl (fun x j => max x (operandSize p stores part (y j))) 0 := by
    have i₁ : sumOver (fun j => weight j * operandSize p stores part (y j)) (List.finRange n)
        ≤ sumOver (fun j => weight j
          * (List.finRange n).foldl (fun x j => max x (operandSize p stores part (y j))) 0)
          (List.finRange n) :=
      sumOver_le_sumOver fun j _ => OrderedRing.mul_le_mul_of_nonneg_left
        (h₄ j (List.mem_finRange j)) (hw j)
    rw [sumOver_mul_right] at i₁
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hsum h₂
    rw [Semiring.one_mul] at i₂
    exact Std.le_trans i₁ i₂
  rw [e₁, rowTotal]
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅
    (c := slopedSize p e slope inner 1 - slopedSize p e slope inner 0) (by grind)
  clear e₁ h₁ h₂ h₃ h₄ h₅ hsum
  grind

/-- A weight that meets dO and fits is a number. -/
private theorem limitedWeightTerm {r : BackwardRow R n d_v} (hr : r.Valid)
    (hsum : sumOver r.weight (List.finRange n) ≤ 1) {e : R} (he₀ : 0 ≤ e) {j : Fin n}
    (he : r.error j ≤ e)
    (fits₁ : recomputedSize p e 1 ≤ smaller largest.accumulator largest.weights)
    (fits₂ : weightTermSize p e (r.factor j) ≤ smaller largest.accumulator largest.stored)
    {w : Option R} (h : r.LimitedWeight p largest j w) :
    ∃ w', w = some w' ∧ r.ComputedWeight p j w' ∧
      AtMost (weightTermSize p e (r.factor j)) w' := by
  obtain ⟨x, y, hx, hy, hw⟩ := h
  have one := OrderedRing.zero_lt_one (R := R)
  have hw₁ := weight_le_one hr hsum j
  obtain ⟨x', rfl, h₁, h₂⟩ := limitedWeight hp.weights hp.weightsTiny (hr.weight j) hw₁
    (hr.error j) he hp.tiny fits₁ hx
  have h₃ : AtMost (recomputedSize p e 1) x' := by
    refine h₂.mono (belowSize_mono hp.weights hp.weightsTiny (Nat.le_refl _) ?_ ?_)
    · have i₁ := OrderedRing.mul_nonneg (a := 1 + e) (by grind) (hr.weight j)
      have := hp.tiny
      grind
    · have := OrderedRing.mul_le_mul_of_nonneg_left hw₁ (c := 1 + e) (by grind)
      grind
  have h₄ := (atMost_self (hr.factor j)).mul h₃
  have hF := nonneg_of_one_le (one_le_one_plus hp.factors)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right (absolute_le h₄) hF
  have h₆ := OrderedRing.mul_nonneg h₄.nonneg hF
  have hν := hp.tiny
  obtain ⟨f₁, f₂⟩ := le_of_le_smaller fits₂
  have h₇ := le_belowSize hp.stored hp.storedTiny 1
    (b := r.factor j * recomputedSize p e 1 * (1 + p.factors) + p.tiny) (by grind)
  change _ ≤ weightTermSize p e (r.factor j) at h₇
  obtain ⟨t, y', rfl, ht, hy'⟩ := hy x' rfl (by grind)
  have h₈ : AtMost (r.factor j * recomputedSize p e 1 * (1 + p.factors) + p.tiny) y' := by
    have i₁ : AtMost (1 + p.factors) t := ⟨by have := ht.1; grind, by have := ht.2; grind⟩
    have i₂ := (h₄.mul i₁).add hy'
    rw [show r.factor j * x' * t + (y' - r.factor j * x' * t) = y' by grind] at i₂
    refine i₂.mono ?_
    have : tinyOf (r.weight j) p.tiny ≤ p.tiny := by
      rw [tinyOf]
      split
      · exact hν
      · exact Std.le_refl _
    grind
  obtain ⟨w', e', h₉, i₁⟩ := limitedBelow hp.stored hp.storedTiny (hw y' rfl) h₈
    (Std.le_trans h₇ f₂)
  exact ⟨w', e', ⟨x', t, y', h₁, ht, hy'.mono (tinyOf_mono (le_grown hp).1),
    storedBelow_mono h₉ (le_grown hp).2⟩, i₁⟩

end

/-! ## Matrices -/

variable [Exponential R R] {q_len kv_len d d_v : Nat}
variable (scale : R) (modify : ScoreMod R q_len kv_len) (slope : ScoreSlope R R q_len kv_len)
variable (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- The weights of a row are 1 together, or all 0. -/
private theorem weights_le_one (i : Fin q_len) :
    sumOver (fun j => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j])
      (List.finRange kv_len) ≤ 1 := by
  have h₁ : ∀ j ∈ List.finRange kv_len,
      (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
        = weight (score scale modify Q K i j)
          * (denominator ((List.finRange kv_len).map (score scale modify Q K i)) : R)⁻¹ :=
    fun j _ => by rw [getElem_probabilities, Field.div_eq_mul_inv]
  have h₂ : sumOver (fun j => (weight (score scale modify Q K i j) : R)) (List.finRange kv_len)
      = denominator ((List.finRange kv_len).map (score scale modify Q K i)) :=
    (sumOver_map ..).symm
  rw [sumOver_congr h₁, sumOver_mul_right, h₂]
  generalize (denominator ((List.finRange kv_len).map (score scale modify Q K i)) : R) = y
  by_cases h : y = 0
  · rw [h, Semiring.zero_mul]
    exact Std.le_of_lt OrderedRing.zero_lt_one
  · rw [Field.mul_inv_cancel h]
    exact Std.le_refl _

/-- **gradient-overflow-excluded**: of inputs that fit, what a backward pass with largest numbers
computes are numbers: dS, dQ, dK and dV, none of the last three past the largest number of the
result's format, and within the tolerance of a function that has no largest number
(`rounded-gradients`), also where numbers underflow. No computed weight is off by more than `e`, as
a share of itself, and no computed slope is larger than `s`. -/
theorem limited_gradients {p : GradientPrecision R} (hp : PreciseGradient p)
    {largest : LargestGradient R} {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ i j, 0 ≤ Z i j)
    {error slopeError : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j) {e s : R}
    (he₀ : 0 ≤ e) (he' : ∀ i j, error i j ≤ e) (hs₀ : 0 ≤ s)
    (hs : ∀ i j, absolute (slope i j (scale * Vec.dot Q[i] K[j])) + slopeError i j ≤ s)
    {part rest reach : R} (hscale : part * rest = scale) (hr : 1 ≤ reach)
    (hreach : AtMost reach rest) {roundings stores : Nat}
    (hc : numeral roundings * p.accumulation < 1) {S X : Fin q_len → Fin kv_len → Option R} :
    let row := backwardRow scale modify slope Q K V Z dO dLse error slopeError
    let g := vjpDropout scale modify slope Q K V Z id dO dLse
    (∀ i, gradientRowFits p largest c e s (Z i) (fun j => V[j]) dO[i] dLse[i] →
      (row i).Limited p largest c (S i) (X i) → ∀ j, ∃ y, S i j = some y ∧
        AtMost (scoreGradientError p c (row i).reach dLse[i] (row i).keys ((row i).key j))
          (y - g.dBias[i][j]))
    ∧ (∀ (i : Fin q_len) (t : Fin d) (z : Option R),
      queryGradientFits p largest c roundings stores e s part rest K V Z dO dLse i t →
      (row i).Limited p largest c (S i) (X i) →
      LimitedGradient p largest roundings stores part rest (X i) (fun j => K[j][t]) z →
      ∃ y, z = some y ∧ AtMost largest.output y ∧
        AtMost (gradientError p roundings stores scale reach ((List.finRange kv_len).map fun j =>
          scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) K[j][t]))
          (y - g.dQ[i][t]))
    ∧ (∀ (j : Fin kv_len) (t : Fin d) (z : Option R),
      keyGradientFits p largest c roundings stores e s part rest Q V Z dO dLse t →
      (∀ i, (row i).Limited p largest c (S i) (X i)) →
      LimitedGradient p largest roundings stores part rest (fun i => X i j) (fun i => Q[i][t]) z →
      ∃ y, z = some y ∧ AtMost largest.output y ∧
        AtMost (gradientError p roundings stores scale reach ((List.finRange q_len).map fun i =>
          scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) Q[i][t]))
          (y - g.dK[j][t]))
    ∧ ∀ (j : Fin kv_len) (t : Fin d_v) (w : Fin q_len → Option R) (z : Option R),
      valueGradientFits p largest roundings stores e Z dO j t →
      (∀ i, (row i).LimitedWeight p largest j (w i)) →
      LimitedGradient p largest roundings stores 1 1 w (fun i => dO[i][t]) z →
      ∃ y, z = some y ∧ AtMost largest.output y ∧
        AtMost (gradientError p roundings stores 1 1 ((List.finRange q_len).map fun i =>
          weightTerm p ((row i).key j) dO[i][t])) (y - g.dV[j][t]) := by
  intro row g
  obtain ⟨-, hdV, hdQ, hdK⟩ := vjpDropout_formulas scale modify slope Q K V Z id dO dLse
  have valid : ∀ i, (row i).Valid :=
    backwardRow_valid scale modify slope Q K V Z dO dLse hZ he
  have exact : ∀ i j, (row i).scoreGradient j = g.dBias[i][j] :=
    scoreGradient_eq scale modify slope Q K V Z dO dLse id error slopeError
  have weights : ∀ i, sumOver (row i).weight (List.finRange kv_len) ≤ 1 :=
    weights_le_one scale modify Q K
  have finite : ∀ i, gradientRowFits p largest c e s (Z i) (fun j => V[j]) dO[i] dLse[i] →
      (row i).Limited p largest c (S i) (X i) → ∃ S' X' : Fin kv_len → R,
        (∀ j, S i j = some (S' j)) ∧ (∀ j, X i j = some (X' j)) ∧ (row i).Computed p c S' X' ∧
        0 ≤ rowInnerSize p c e (Z i) (fun j => V[j]) dO[i] dLse[i] ∧
        ∀ j, AtMost (slopedSize p e s (rowInnerSize p c e (Z i) (fun j => V[j]) dO[i] dLse[i])
          ((row i).weight j)) (X' j) := fun i fits h =>
    limitedGradientRow hp (valid i) (weights i) he₀ (he' i) (hs i) fits h
  refine ⟨fun i fits h j => ?_, fun i t z fits h hz => ?_, fun j t z fits h hz => ?_,
    fun j t w z fits hw hz => ?_⟩
  · obtain ⟨S', X', e₁, -, h₁, -⟩ := finite i fits h
    refine ⟨S' j, e₁ j, ?_⟩
    rw [← exact]
    exact rounded_scoreGradient hp hc₁ hc₂ hu (valid i) h₁ j
  · simp only [queryGradientFits, Bool.and_eq_true] at fits
    obtain ⟨S', X', -, e₂, h₁, h₂, h₃⟩ := finite i fits.1 h
    obtain ⟨y, rfl, h₄, h₅⟩ := limitedGradient hp hscale hreach h₃
      (row_total hp he₀ h₂ hs₀ (valid i).weight (weights i)) fits.2 e₂ hz
    refine ⟨y, rfl, h₅, ?_⟩
    have h₆ := rounded_gradient hp hc hu hr (y := fun j => K[j][t])
      (e := fun j => (row i).scoreGradient j * (row i).slope j)
      (t := fun j =>
        scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) K[j][t])
      (fun j => ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) h₁ j K[j][t]).1,
        (rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) h₁ j K[j][t]).2, rfl⟩) h₄
    simp only [exact] at h₆
    rw [hdQ i t]
    exact h₆
  · simp only [keyGradientFits, Bool.and_eq_true, List.all_eq_true] at fits
    have rows := fun i => finite i (fits.1 i (List.mem_finRange i)) (h i)
    let X' := fun i => (X i j).getD 0
    have each : ∀ i, X i j = some (X' i) ∧
        AtMost (slopedSize p e s (rowInnerSize p c e (Z i) (fun j => V[j]) dO[i] dLse[i]) 1)
          (X' i) ∧
        ∃ S'' X'' : Fin kv_len → R, (row i).Computed p c S'' X'' ∧ X'' j = X' i := fun i => by
      obtain ⟨S'', X'', -, e₂, h₁, h₂, h₃⟩ := rows i
      simp only [X', e₂, Option.getD_some, true_and]
      exact ⟨(h₃ j).mono (slopedSize_mono hp he₀ h₂ hs₀ ((valid i).weight j)
        (weight_le_one (valid i) (weights i) j)).2.2, S'', X'', h₁, rfl⟩
    obtain ⟨y, rfl, h₄, h₅⟩ := limitedGradient hp hscale hreach (fun i => (each i).2.1)
      (Std.le_refl _) fits.2 (fun i => (each i).1) hz
    refine ⟨y, rfl, h₅, ?_⟩
    have h₆ := rounded_gradient hp hc hu hr (y := fun i => Q[i][t])
      (e := fun i => (row i).scoreGradient j * (row i).slope j)
      (t := fun i =>
        scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) Q[i][t])
      (fun i => by
        obtain ⟨S'', X'', h₁, e₁⟩ := (each i).2.2
        have h₇ := rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) h₁ j Q[i][t]
        rw [e₁] at h₇
        exact ⟨h₇.1, h₇.2, rfl⟩) h₄
    simp only [exact] at h₆
    rw [hdK j t]
    exact h₆
  · simp only [valueGradientFits, Bool.and_eq_true, List.all_eq_true, decide_eq_true_eq] at fits
    obtain ⟨⟨f₁, f₂⟩, f₃⟩ := fits
    let w' := fun i => (w i).getD 0
    have each : ∀ i, w i = some (w' i) ∧ (row i).ComputedWeight p j (w' i) ∧
        AtMost (weightTermSize p e (Z i j)) (w' i) := fun i => by
      obtain ⟨w'', e₁, h⟩ := limitedWeightTerm hp (valid i) (weights i) he₀ (he' i j) f₁
        (f₂ i (List.mem_finRange i)) (hw i)
      simp only [w', e₁, Option.getD_some, true_and]
      exact h
    obtain ⟨y, rfl, h₄, h₅⟩ := limitedGradient hp (Semiring.one_mul (1 : R))
      (atMost_self (Std.le_of_lt OrderedRing.zero_lt_one)) (fun i => (each i).2.2)
      (Std.le_refl _) f₃ (fun i => (each i).1) hz
    refine ⟨y, rfl, h₅, ?_⟩
    exact ((rounded_gradients scale modify slope Q K V Z dO dLse hp hc₁ hc₂ hu hZ he
      (S := fun _ _ => 0) (X := fun _ _ => 0) hr hc).2 j t w' y (fun i => (each i).2.1) h₄)

end Attention.Proof
