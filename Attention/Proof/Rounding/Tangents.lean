module

public import Attention.Proof.Derivative.Tangent
public import Attention.Proof.Rounding.TangentRates
public import Attention.Spec.TangentTolerance

public section

/-! # Tangents, within their tolerance

The rates that `TangentRates.lean` bounds are those of the Spec.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v} {cols : List α}

/-! ## The exact rates are those of the Spec -/

variable [Exponential R R]

/-- The log-sum-exp of a row changes at the mean rate of its scores. -/
theorem lseTangent_eq_meanTangent (row : List (Option (Dual R))) :
    lseTangent row = meanTangent row := by
  rw [lseTangent, denominator_dual, meanTangent, Field.div_eq_mul_inv, ← sumOver_mul_right]
  exact sumOver_congr fun s _ => by rw [Field.div_eq_mul_inv]; grind

variable {d : Nat} {x : α → ScoredValue (Dual R) (Dual R) d} {ε τ t φ S δ : α → R} {c : Fin d}

omit [OrderedField R] [Exponential R R] in
private theorem primal_scores (x : α → ScoredValue (Dual R) (Dual R) d) (cols : List α) :
    (cols.map x).map (fun y => y.score.map (·.val))
      = (cols.map fun j => (x j).score).map primal := by
  rw [List.map_map, List.map_map]
  rfl

/-- The mean rate of the scores is the rate of the log-sum-exp. -/
theorem meanRate_eq_lseTangent : meanRate (cols.map fun j => boundedRate (cols.map x) c (ε j)
    (τ j) (t j) (φ j) (S j) (δ j) (x j)) = lseTangent (cols.map fun j => (x j).score) := by
  rw [lseTangent_eq_meanTangent, meanTangent, meanRate, sumOver_map, sumOver_map]
  simp only [boundedRate, primal_scores]
  rfl

/-- The rate that the tolerance sees is that of attention. -/
theorem outputRate_eq_attend : outputRate (cols.map fun j => boundedRate (cols.map x) c (ε j)
    (τ j) (t j) (φ j) (S j) (δ j) (x j)) = ((attend (cols.map x))[c]).der := by
  have h := getElem_attend_dual (cols.map x) c.isLt
  rw [Fin.getElem_fin, h, Dual.der_sumOver, outputRate, meanRate_eq_lseTangent,
    lseTangent_eq_meanTangent]
  have e₁ : (cols.map x).map (·.score) = cols.map fun j => (x j).score := by
    rw [List.map_map]
    rfl
  rw [e₁, sumOver_map, sumOver_map, sumOver_map, sumOver_map, ← sumOver_mul_left, ← sumOver_sub,
    ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  simp only [boundedRate, Dual.der_mul, Fin.getElem_fin, primal_scores]
  rw [show (x j).score.map (·.val) = primal (x j).score from rfl]
  generalize (weight (primal (x j).score) : R)
    / denominator ((cols.map fun j => (x j).score).map primal) = P
  generalize meanTangent (cols.map fun j => (x j).score) = μ
  grind

private theorem tangent_weight_not_negative (s : Option R) : (0 : R) ≤ weight s := by
  cases s with
  | none => exact Std.le_refl _
  | some s => exact Std.le_of_lt (exp_pos s)

private theorem boundedRate_nonneg (row : List (ScoredValue (Dual R) (Dual R) d))
    (ε τ t φ S δ : R) (y : ScoredValue (Dual R) (Dual R) d) :
    0 ≤ (boundedRate row c ε τ t φ S δ y).weight := by
  have h₁ := tangent_weight_not_negative (y.score.map (·.val))
  have h₂ : (0 : R) ≤ denominator (row.map fun y => y.score.map (·.val)) :=
    sumOver_nonneg fun s _ => tangent_weight_not_negative s
  show 0 ≤ weight (y.score.map (·.val)) / denominator (row.map fun y => y.score.map (·.val))
  generalize (weight (y.score.map (·.val)) : R) = a at *
  generalize (denominator (row.map fun y => y.score.map (·.val)) : R) = b at *
  by_cases hb : b = 0
  · rw [hb, Field.div_eq_mul_inv, Field.inv_zero, Semiring.mul_zero]
    exact Std.le_refl _
  · exact OrderedField.div_nonneg h₁ (Std.lt_of_le_of_ne h₂ fun e => hb e.symm)

/-- The rate of an element of the output is that of attention of its row. -/
theorem jvp_eq_attend {q_len kv_len d d_v : Nat} (scale : R)
    (modify : ScoreMod (Dual R) q_len kv_len) (Q dQ : Matrix R q_len d) (K dK : Matrix R kv_len d)
    (V dV : Matrix R kv_len d_v) (i : Fin q_len) (c : Fin d_v) :
    (jvp scale modify Q dQ K dK V dV)[i][c] = ((attend (scored (Dual.const scale) modify
      (Q.dual dQ) (K.dual dK) (V.dual dV) i (List.finRange kv_len)))[c]).der := by
  simp only [jvp, Matrix.tangent, attention, Fin.getElem_fin, Vec.getElem_ofFn]

/-- With a sink it is that of the row with its sink. -/
theorem jvpSink_eq_attend {q_len kv_len d d_v : Nat} (scale : R)
    (modify : ScoreMod (Dual R) q_len kv_len) (sink dSink : R) (Q dQ : Matrix R q_len d)
    (K dK : Matrix R kv_len d) (V dV : Matrix R kv_len d_v) (i : Fin q_len) (c : Fin d_v) :
    (jvpSink scale modify sink dSink Q dQ K dK V dV)[i][c] = ((attend (withSink ⟨sink, dSink⟩
      (scored (Dual.const scale) modify (Q.dual dQ) (K.dual dK) (V.dual dV) i
        (List.finRange kv_len))))[c]).der := by
  simp only [jvpSink, Matrix.tangent, attentionSink, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential R R] in
/-- The rate that the bounds of a score's rate follow is that of the score over dual numbers;
through a change it is multiplied by the slope, and a rate that is added is added. -/
theorem boundedScoreRate_tangent {q_len kv_len d : Nat} (p : Precision R) (f : ScoreFormats R)
    (ν : R) (additions : Nat) (scale : R) (Q dQ : Matrix R q_len d) (K dK : Matrix R kv_len d)
    (i : Fin q_len) (j : Fin kv_len) :
    (boundedScoreRate p f ν additions scale Q[i] dQ[i] K[j] dK[j]).rate
        = (Dual.const scale * Vec.dot (Q.dual dQ)[i] (K.dual dK)[j]).der ∧
      ∀ (b : BoundedScoreRate R) (x y : Dual R), b.rate = x.der →
        (∀ slope e : R, (b.through p f slope e).rate = slope * x.der) ∧
          (b.plus p f y.der).rate = (x + y).der := by
  refine ⟨?_, fun b x y h => ⟨fun slope e => ?_, ?_⟩⟩
  · rw [dot_dual]
    rfl
  · rw [← h]
    rfl
  · rw [Dual.der_add, ← h]
    rfl

/-- **rounded-tangents**: the rate at which a component of one row of the output changes, which a
function computes with every operation rounded, and stores, is within its tolerance: weights may be
off by the shares `ε` of themselves, are stored with unit roundoffs `τ`, and rates of scores, of
sizes `S` at most, are off by `δ`; below the normal numbers weights and products with them are off
by `t`, sums and products of sums by `φ` times 1 and twice what their weights multiply, factors of
rescalings by `ν`, parts of the result by `lost`, and the stored result by `η`. -/
theorem rounded_tangents {p : Precision R} (hp : Precise p) {ν output apart lost : R}
    (hν : 0 ≤ ν) (ho : 0 ≤ output) (ha : 0 ≤ apart) (hl : 0 ≤ lost) {cols : List α}
    {x : α → ScoredValue (Dual R) (Dual R) d} {c : Fin d} {ε τ t φ S δ : α → R}
    (hτ : ∀ j ∈ cols, 0 ≤ τ j ∧ 0 ≤ t j ∧ 0 ≤ φ j)
    (sizes : ∀ j ∈ cols, AtMost (S j) (scoreTangent (x j).score))
    {k r m roundings rescalings losses : Nat} (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {key : α → BoundedRate R}
    (hkey : key = fun j => boundedRate (cols.map x) c (ε j) (τ j) (t j) (φ j) (S j) (δ j)
      (x j)) {y : R}
    (computed : ComputedTangent p ν output apart lost k r m cols key y) {u η z : R}
    (hz : StoredNear u η y z) :
    AtMost (storedTangentTolerance p u η output apart lost roundings rescalings losses
      (cols.map key)) (z - ((attend (cols.map x))[c]).der) := by
  subst hkey
  have h := rounded_outputRate hp hν ho ha hl (fun j hj => ⟨boundedRate_nonneg .., hτ j hj⟩) sizes
    hk hr hm computed
  rw [storedTangentTolerance, outputRate_eq_attend] at *
  generalize tangentTolerance p output apart lost roundings rescalings losses _ = E at *
  generalize ((attend (cols.map x))[c]).der = e at *
  obtain ⟨z', ⟨θ, hθ, rfl⟩, hz⟩ := hz
  have h₁ := (h.add (hθ.mul ((atMost_absolute e).add h))).add hz
  rwa [show y - e + θ * (e + (y - e)) + (z - y * (1 + θ)) = z - e by grind] at h₁

/-- **rounded-lse-tangents**: so is that of the log-sum-exp. -/
theorem rounded_lse_tangents {p : Precision R} (hp : Precise p) {ν : R} (hν : 0 ≤ ν) {cols : List α}
    {x : α → ScoredValue (Dual R) (Dual R) d} {c : Fin d} {ε τ t φ S δ : α → R}
    (hτ : ∀ j ∈ cols, 0 ≤ τ j ∧ 0 ≤ t j ∧ 0 ≤ φ j)
    (sizes : ∀ j ∈ cols, AtMost (S j) (scoreTangent (x j).score))
    {k r m roundings rescalings losses : Nat} (hk : k ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {key : α → BoundedRate R}
    (hkey : key = fun j => boundedRate (cols.map x) c (ε j) (τ j) (t j) (φ j) (S j) (δ j)
      (x j)) {y : R}
    (computed : ComputedMeanRate p ν k r m cols key y) :
    AtMost (meanRateTolerance p roundings rescalings losses (cols.map key))
      (y - lseTangent (cols.map fun j => (x j).score)) := by
  subst hkey
  have h := rounded_meanRate hp hν (fun j hj => ⟨boundedRate_nonneg .., hτ j hj⟩) sizes hk hr hm
    computed
  rwa [meanRate_eq_lseTangent] at h

end Attention.Proof
