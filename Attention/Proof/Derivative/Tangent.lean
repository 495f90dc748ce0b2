module

public import Attention.Algebra.SumExchange
public import Attention.Proof.Softmax.Attention
public import Attention.Spec.Tangent

public section

/-! # Attention run over dual numbers -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}

/-- The number of a score that changes. -/
@[expose] def primal (s : Option (Dual R)) : Option R := s.map (·.val)

/-- The weight of a score that changes. -/
theorem weight_dual (s : Option (Dual R)) :
    (weight s : Dual R) = ⟨weight (primal s), weight (primal s) * scoreTangent s⟩ := by
  cases s with
  | none =>
    simp only [primal, Option.map, weight, Semiring.zero_mul]
    rfl
  | some s => rfl

/-- The denominator of scores that change. -/
theorem denominator_dual (row : List (Option (Dual R))) :
    (denominator row : Dual R) = ⟨denominator (row.map primal),
      sumOver (fun s => weight (primal s) * scoreTangent s) row⟩ := by
  apply Dual.ext
  · rw [denominator, Dual.val_sumOver, denominator, sumOver_map]
    exact sumOver_congr fun s _ => by rw [weight_dual]
  · rw [denominator, Dual.der_sumOver]
    exact sumOver_congr fun s _ => by rw [weight_dual]

/-- The mean rate at which the scores of a row change, by their softmax weights. -/
@[expose] def meanTangent (row : List (Option (Dual R))) : R :=
  sumOver (fun s => weight (primal s) / denominator (row.map primal) * scoreTangent s) row

omit [Exponential R R] in
private theorem quotient_rule (w l σ l' : R) :
    (w * σ * l - w * l') / (l * l) = w / l * (σ - l' / l) := by
  by_cases hl : l = 0
  · subst hl
    simp only [Field.div_eq_mul_inv, Semiring.mul_zero, Field.inv_zero, Semiring.zero_mul]
  · grind

/-- The softmax of scores that change: p changes at the rate p · (s' − Σ p s'). -/
theorem softmax_dual (row : List (Option (Dual R))) :
    softmax (R := Dual R) row = row.map fun s =>
      ⟨weight (primal s) / denominator (row.map primal),
        weight (primal s) / denominator (row.map primal) * (scoreTangent s - meanTangent row)⟩ := by
  have hm : meanTangent row = sumOver (fun s => weight (primal s) * scoreTangent s) row
      / denominator (row.map primal) := by
    rw [meanTangent, Field.div_eq_mul_inv, ← sumOver_mul_right]
    exact sumOver_congr fun s _ => by rw [Field.div_eq_mul_inv]; grind
  simp only [softmax, denominator_dual]
  refine List.map_congr_left fun s _ => ?_
  rw [hm, ← quotient_rule]
  cases s with
  | none =>
    apply Dual.ext
    · simp only [primal, Option.map, weight, Field.div_eq_mul_inv, Semiring.zero_mul, Dual.val_zero]
    · simp only [primal, Option.map, weight, Field.div_eq_mul_inv, Semiring.zero_mul, Dual.der_zero,
        AddCommGroup.sub_self]
  | some s => rfl

/-- A component of the attention of a row that changes. -/
theorem getElem_attend_dual (row : List (ScoredValue (Dual R) (Dual R) d)) {j : Nat} (h : j < d) :
    (attend row)[j] = sumOver (fun key =>
      (⟨weight (primal key.score) / denominator ((row.map (·.score)).map primal),
        weight (primal key.score) / denominator ((row.map (·.score)).map primal)
          * (scoreTangent key.score - meanTangent (row.map (·.score)))⟩ : Dual R)
        * key.value[j]) row := by
  simp only [attend, softmax_dual, Vec.getElem_sumOver, List.map_map, List.zip_map', sumOver_map,
    Function.comp_def, Vec.getElem_smul]

variable {scale : R} {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len} {δB : Matrix R q_len kv_len}

/-- The rate at which the score of query `i` and key `j` changes before it is transformed. -/
@[expose] def rawTangent (scale : R) (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d)
    (i : Fin q_len) (j : Fin kv_len) : R :=
  scale * (Vec.dot δQ[i] K[j] + Vec.dot Q[i] δK[j])

omit [Exponential R R] in
/-- Before it is transformed, a score changes by the product rule. -/
theorem dot_dual (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (i : Fin q_len)
    (j : Fin kv_len) : Dual.const scale * Vec.dot (Q.dual δQ)[i] (K.dual δK)[j]
      = ⟨scale * Vec.dot Q[i] K[j], rawTangent scale Q δQ K δK i j⟩ := by
  have h : Vec.dot (Q.dual δQ)[i] (K.dual δK)[j]
      = ⟨Vec.dot Q[i] K[j], Vec.dot δQ[i] K[j] + Vec.dot Q[i] δK[j]⟩ := by
    apply Dual.ext
    · simp only [Vec.dot, Matrix.dual, Dual.val_sumOver, Dual.val_mul, Fin.getElem_fin,
        Vec.getElem_ofFn]
    · simp only [Vec.dot, Matrix.dual, Dual.der_sumOver, Dual.der_mul, Fin.getElem_fin,
        Vec.getElem_ofFn, sumOver_add]
  rw [h, rawTangent]
  apply Dual.ext
  · rfl
  · simp only [Dual.der_mul, Dual.der_const, Dual.val_const, Semiring.zero_mul]
    grind

omit [Exponential R R] in
/-- A transformed score that changes: what is masked does not depend on the rates. -/
theorem score_dual (hlift : lifted.IsLift modify slope δB) (Q δQ : Matrix R q_len d)
    (K δK : Matrix R kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i j
      = (score scale modify Q K i j).map fun t => ⟨t,
          slope i j (scale * Vec.dot Q[i] K[j]) * rawTangent scale Q δQ K δK i j + δB[i][j]⟩ := by
  rw [score, dot_dual, hlift, score]

omit [Exponential R R] in
/-- The number of a transformed score that changes is the transformed score. -/
theorem primal_score (hlift : lifted.IsLift modify slope δB) (Q δQ : Matrix R q_len d)
    (K δK : Matrix R kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    primal (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i j)
      = score scale modify Q K i j := by
  rw [score_dual hlift, primal, Option.map_map]
  cases score scale modify Q K i j <;> rfl

end Attention.Proof
