module

public import Attention.Proof.Backward.Dropout
public import Attention.Proof.Dropout.Basic
public import Attention.Proof.Rounding.GradientRows
public import Attention.Proof.Rounding.GradientSums
public import Attention.Spec.LogSumExp

public section

/-! # The gradients of whole matrices, within their tolerance

The rows of the backward pass, and the weights that it computes again.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {q_len kv_len d d_v : Nat}

/-! ## Weights -/

/-- eᵟ is off from 1 by at most eᴱ − 1, where |δ| ≤ E, for any base. -/
theorem exp_majorised {E δ : R} (h : AtMost E δ) :
    AtMost ((exp E : R) - 1) ((exp δ : R) - 1) := by
  have h₁ : (exp δ : R) ≤ exp E := exp_le h.2
  have h₂ : (exp (-E) : R) ≤ exp δ := exp_le h.1
  have h₃ : (exp E : R) * exp (-E) = 1 := by
    rw [← exp_add, show E + -E = 0 by grind, exp_zero]
  have h₄ := exp_pos (R := R) (-E)
  have h₅ := mul_self_nonneg ((exp (-E) : R) - 1)
  have h₆ : 2 ≤ (exp E : R) + exp (-E) := by
    generalize (exp E : R) = a at *
    generalize (exp (-E) : R) = b at *
    clear h₁ h₂ h
    have e : b * (a + b) = 1 + b * b := by grind
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_lt_mul_of_pos_left (a := a + b) (b := 2) (by grind) h₄
    rw [e] at this
    grind
  generalize (exp E : R) = a at *
  generalize (exp (-E) : R) = b at *
  generalize (exp δ : R) = x at *
  clear h₃ h₅
  exact ⟨by grind, by grind⟩

omit [Exponential R R] in
private theorem three_roundings {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h3 : numeral 3 * u < 1)
    {e s s' x : R} (hs : AtMost e (s' - s)) (hx : BelowTimes u ν 3 s' x) :
    AtMost (e + numeral 3 * ν + gamma 3 u * (absolute s + (e + numeral 3 * ν))) (x - s) := by
  have h₁ : Majorised (absolute s + e) (absolute s) s' s :=
    ⟨by rwa [show absolute s + e - absolute s = e by grind], atMost_absolute s⟩
  have h₂ := (h₁.belowTimes hu hν hx).error
  have h₃ := pow_sub_one_le_gamma hu (Nat.le_refl 3) h3
  have h₅ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 3) hν
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₃ (c := absolute s + e + numeral 3 * ν) (by
    have := h₁.computed.nonneg
    grind)
  refine h₂.mono ?_
  clear h₁ h₂ h₃ hs hx hu h3 hν h₅
  generalize absolute s = v at *
  generalize (1 + u) ^ 3 = f at *
  generalize numeral 3 * ν = t at *
  grind

/-- **rounded-recomputed-weight**: the weight exp (s − L) computed again, from a score and a
log-sum-exp that are off and are rounded, also below the normal numbers, is off by at most its
bound, and by what the exponential may be off there. -/
theorem rounded_recomputed {u ν ue η : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h3 : numeral 3 * u < 1)
    {s L ofScore ofLse s' L' P : R} (hs : AtMost ofScore (s' - s)) (hL : AtMost ofLse (L' - L))
    (h : RecomputedWeight u ν ue η s' L' P) :
    AtMost (recomputedError u ν ue s L ofScore ofLse * exp (s - L) + η) (P - exp (s - L)) := by
  obtain ⟨x, y, hx, hy, hP⟩ := h
  have h₁ := (three_roundings hu hν h3 hs hx).sub (three_roundings hu hν h3 hL hy)
  have e₁ : x - s - (y - L) = x - y - (s - L) := by grind
  have e₂ : ofScore + numeral 3 * ν + gamma 3 u * (absolute s + (ofScore + numeral 3 * ν))
      + (ofLse + numeral 3 * ν + gamma 3 u * (absolute L + (ofLse + numeral 3 * ν)))
        = exponentError u ν s L ofScore ofLse := by
    rw [exponentError]
    clear h₁ hP hx hy hs hL
    grind
  rw [e₁, e₂] at h₁
  have hpos := exp_pos (R := R) (s - L)
  have h₂ := (((Majorised.exact (b := (exp (s - L) : R)) ⟨by grind, Std.le_refl _⟩).mul_factor
    (exp_majorised h₁)).below (u := ue) (η := η) (y := P) (by
      have e₃ : s - L + (x - y - (s - L)) = x - y := by
        clear h₁ hpos e₁ e₂ hP hx hy hs hL
        grind
      rwa [← exp_add, e₃])).error
  rw [recomputedError]
  generalize (exp (s - L) : R) = w at *
  generalize (exp (exponentError u ν s L ofScore ofLse) : R) = E at *
  rwa [show w * (1 + (E - 1)) * (1 + ue) + η - w = (E * (1 + ue) - 1) * w + η by
    clear h₁ h₂; grind] at h₂

variable (scale : R) (modify : ScoreMod R q_len kv_len) (slope : ScoreSlope R R q_len kv_len)
variable (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- The exact weight is exp (s − L). -/
theorem probabilities_eq_exp {i : Fin q_len} {j : Fin kv_len} {s L : R}
    (hs : score scale modify Q K i j = some s)
    (hL : IsLogSumExp R (some L) ((List.finRange kv_len).map (score scale modify Q K i))) :
    (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] = exp (s - L) := by
  rw [getElem_probabilities, hs, ← show exp L = _ from hL]
  have h := exp_sub_mul (R := R) s L
  have := exp_ne_zero (R := R) L
  show exp s / exp L = _
  grind

omit [Exponential R R] in
/-- A masked key has weight 0, whatever its error. -/
theorem storedWeight_zero {u η : R} (hu : 0 ≤ u) (hη : 0 ≤ η) (error lost : R) :
    StoredWeight u η 0 error lost 0 := by
  refine ⟨0, ?_, 0, ⟨0, ⟨by grind, hu⟩, by grind⟩, ?_, fun _ => rfl⟩
  · rw [tinyOf_zero (Std.le_refl _), Semiring.mul_zero]
    exact ⟨by grind, by grind⟩
  · rw [show (0 : R) - 0 = 0 by grind]
    exact .zero hη

/-- The weight of an unmasked key, from a score and a log-sum-exp that were computed, is as
`rounded_gradients` supposes, and its error is not negative. -/
theorem storedWeight_of_recomputed {i : Fin q_len} {j : Fin kv_len} {s L : R}
    (hs : score scale modify Q K i j = some s)
    (hL : IsLogSumExp R (some L) ((List.finRange kv_len).map (score scale modify Q K i)))
    {u ν ue t : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h3 : numeral 3 * u < 1) (hue : 0 ≤ ue)
    {ofScore ofLse s' L' P w uw η : R}
    (hs' : AtMost ofScore (s' - s)) (hL' : AtMost ofLse (L' - L))
    (h : RecomputedWeight u ν ue t s' L' P) (hw : StoredBelow uw η P w) :
    0 ≤ recomputedError u ν ue s L ofScore ofLse ∧
      StoredWeight uw η (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
        (recomputedError u ν ue s L ofScore ofLse) t w := by
  refine ⟨?_, P, ?_, hw⟩
  · have h₁ : 0 ≤ exponentError u ν s L ofScore ofLse := by
      have i₁ := gamma_nonneg hu h3
      have i₂ := absolute_nonneg s
      have i₃ := absolute_nonneg L
      have i₄ := hs'.nonneg
      have i₅ := hL'.nonneg
      have i₇ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 3) hν
      have i₆ := OrderedRing.mul_nonneg (b := absolute s + (ofScore + numeral 3 * ν)
        + (absolute L + (ofLse + numeral 3 * ν))) i₁ (by grind)
      rw [exponentError]
      grind
    have h₂ : (1 : R) ≤ exp (exponentError u ν s L ofScore ofLse) := by
      rw [← exp_zero (S := R)]
      exact exp_le h₁
    have h₃ := OrderedRing.mul_nonneg (a := (exp (exponentError u ν s L ofScore ofLse) : R))
      (b := ue) (by have := OrderedRing.zero_lt_one (R := R); grind) hue
    rw [recomputedError]
    grind
  · rw [probabilities_eq_exp scale modify Q K hs hL, tinyOf_pos (by
      have := exp_pos (R := R) (s - L)
      grind)]
    exact rounded_recomputed hu hν h3 hs' hL' h

/-! ## Rows -/

private theorem probabilities_nonneg (i : Fin q_len) (j : Fin kv_len) :
    0 ≤ (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] := by
  rw [getElem_probabilities]
  have h₁ : (0 : R) ≤ weight (score scale modify Q K i j) := weight_nonneg _
  have h₂ : (0 : R) ≤ denominator ((List.finRange kv_len).map (score scale modify Q K i)) :=
    sumOver_nonneg fun s _ => weight_nonneg s
  generalize (denominator ((List.finRange kv_len).map (score scale modify Q K i)) : R) = y at *
  by_cases h : y = 0
  · rw [h, Field.div_eq_mul_inv, Field.inv_zero, Semiring.mul_zero]
    exact Std.le_refl _
  · exact OrderedField.div_nonneg h₁ (by grind)

/-- The rows of attention with dropout have weights, factors and errors that are not negative. -/
theorem backwardRow_valid (hZ : ∀ i j, 0 ≤ Z i j)
    {error slopeError : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j) (i : Fin q_len) :
    (backwardRow scale modify slope Q K V Z dO dLse error slopeError i).Valid :=
  ⟨probabilities_nonneg scale modify Q K i, hZ i, he i⟩

/-- The mean of dP is the product of dO with the output. -/
private theorem meanProduct_eq (error slopeError : Fin q_len → Fin kv_len → R) (i : Fin q_len) :
    meanProduct (backwardRow scale modify slope Q K V Z dO dLse error slopeError i).keys
      = Vec.dot dO[i] (attentionDropout scale modify Q K V Z)[i] := by
  have h : ∀ c ∈ List.finRange d_v, dO[i][c] * (attentionDropout scale modify Q K V Z)[i][c]
      = dO[i][c] * sumOver (fun j => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
        * (Z i j * V[j][c])) (List.finRange kv_len) := fun c _ => by
    rw [getElem_attentionDropout]
    exact congrArg (dO[i][c] * ·) (sumOver_congr fun j _ => Semiring.mul_assoc _ _ _)
  rw [Vec.dot, sumOver_congr h, sum_exchange (u := fun j c => V[j][c])]
  simp only [meanProduct, BackwardRow.keys, sumOver_map]
  rfl

/-- The exact gradients by scores are those of the Spec. -/
theorem scoreGradient_eq (toValue : R → R) (error slopeError : Fin q_len → Fin kv_len → R)
    (i : Fin q_len) (j : Fin kv_len) :
    (backwardRow scale modify slope Q K V Z dO dLse error slopeError i).scoreGradient j
      = (vjpDropout scale modify slope Q K V Z toValue dO dLse).dBias[i][j] := by
  rw [(vjpDropout_formulas scale modify slope Q K V Z toValue dO dLse).1 i j]
  simp only [BackwardRow.scoreGradient, innerGradient, meanProduct_eq, rowDelta, Fin.getElem_fin,
    Vec.getElem_ofFn]
  simp only [backwardRow, BackwardRow.key, gradientKey, Fin.getElem_fin]
  grind

/-- The exact gradients by values, of what the rows have. -/
theorem valueGradient_eq (toValue : R → R) (error slopeError : Fin q_len → Fin kv_len → R)
    (j : Fin kv_len) (t : Fin d_v) :
    let row := backwardRow scale modify slope Q K V Z dO dLse error slopeError
    (vjpDropout scale modify slope Q K V Z toValue dO dLse).dV[j][t]
      = sumOver (fun i => (row i).factor j * (row i).weight j * dO[i][t])
        (List.finRange q_len) := by
  intro row
  rw [(vjpDropout_formulas scale modify slope Q K V Z toValue dO dLse).2.1 j t]
  refine sumOver_congr fun i _ => ?_
  rw [CommSemiring.mul_comm ((row i).factor j)]
  rfl

/-- **rounded-gradients**: the gradients that a backward pass computes which rounds every operation,
and computes the weights again with a relative error each, are within their bounds, also where
numbers underflow: by scores, by
queries, by keys and by values. -/
theorem rounded_gradients {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ i j, 0 ≤ Z i j)
    {error slopeError : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j)
    {S X : Fin q_len → Fin kv_len → R} {reach : R} (hr : 1 ≤ reach)
    {roundings stores : Nat}
    (hc : numeral roundings * p.accumulation < 1) :
    let row := backwardRow scale modify slope Q K V Z dO dLse error slopeError
    let g := vjpDropout scale modify slope Q K V Z id dO dLse
    ((∀ i, (row i).Computed p c (S i) (X i)) →
      (∀ i j, AtMost (scoreGradientError p c (row i).reach dLse[i] (row i).keys ((row i).key j))
        (S i j - g.dBias[i][j]))
      ∧ (∀ (i : Fin q_len) (t : Fin d) (z : R),
        ComputedGradient p roundings stores scale reach (X i) (fun j => K[j][t]) z →
        AtMost (gradientError p roundings stores scale reach ((List.finRange kv_len).map fun j =>
          scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) K[j][t]))
          (z - g.dQ[i][t]))
      ∧ ∀ (j : Fin kv_len) (t : Fin d) (z : R),
        ComputedGradient p roundings stores scale reach (fun i => X i j) (fun i => Q[i][t]) z →
        AtMost (gradientError p roundings stores scale reach ((List.finRange q_len).map fun i =>
          scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) Q[i][t]))
          (z - g.dK[j][t]))
    ∧ ∀ (j : Fin kv_len) (t : Fin d_v) (w : Fin q_len → R) (z : R),
      (∀ i, (row i).ComputedWeight p j (w i)) →
      ComputedGradient p roundings stores 1 1 w (fun i => dO[i][t]) z →
      AtMost (gradientError p roundings stores 1 1 ((List.finRange q_len).map fun i =>
        weightTerm p ((row i).key j) dO[i][t])) (z - g.dV[j][t]) := by
  intro row g
  obtain ⟨-, -, hdQ, hdK⟩ := vjpDropout_formulas scale modify slope Q K V Z id dO dLse
  have valid : ∀ i, (row i).Valid :=
    backwardRow_valid scale modify slope Q K V Z dO dLse hZ he
  have exact : ∀ i j, (row i).scoreGradient j = g.dBias[i][j] :=
    scoreGradient_eq scale modify slope Q K V Z dO dLse id error slopeError
  refine ⟨fun computed => ⟨fun i j => ?_, fun i t z hz => ?_, fun j t z hz => ?_⟩,
    fun j t w z hw hz => ?_⟩
  · rw [← exact]
    exact rounded_scoreGradient hp hc₁ hc₂ hu (valid i) (computed i) j
  · have h := rounded_gradient hp hc hu hr (y := fun j => K[j][t])
      (e := fun j => (row i).scoreGradient j * (row i).slope j)
      (t := fun j =>
        scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) K[j][t])
      (fun j => ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j K[j][t]).1,
        (rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j K[j][t]).2, rfl⟩) hz
    simp only [exact] at h
    rw [hdQ i t]
    exact h
  · have h := rounded_gradient hp hc hu hr (y := fun i => Q[i][t])
      (e := fun i => (row i).scoreGradient j * (row i).slope j)
      (t := fun i =>
        scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j) Q[i][t])
      (fun i => ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j Q[i][t]).1,
        (rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j Q[i][t]).2, rfl⟩) hz
    simp only [exact] at h
    rw [hdK j t]
    exact h
  · have h := rounded_gradient hp hc hu (Std.le_refl 1) (y := fun i => dO[i][t])
      (e := fun i => (row i).factor j * (row i).weight j)
      (t := fun i => weightTerm p ((row i).key j) dO[i][t])
      (fun i => ⟨(rounded_weightTerm hp (valid i) (hw i) dO[i][t]).1,
        (rounded_weightTerm hp (valid i) (hw i) dO[i][t]).2, rfl⟩) hz
    rw [Semiring.one_mul] at h
    rw [valueGradient_eq scale modify slope Q K V Z dO dLse id error slopeError j t]
    exact h

end Attention.Proof
