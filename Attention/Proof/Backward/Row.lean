module

public import Attention.Proof.Derivative.Adjoint
public import Attention.Proof.Derivative.Tangent
public import Attention.Spec.Backward

public section

/-! # The backward pass of one row -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}

/-! ## What is computed, by components -/

/-- The rates at which a row of attention changes. -/
theorem getElem_jvp {scale : R} {modify : ScoreMod R q_len kv_len}
    {lifted : ScoreMod (Dual R) q_len kv_len} {slope : ScoreSlope R R q_len kv_len}
    {δB : Matrix R q_len kv_len} (hlift : lifted.IsLift modify slope δB) (Q δQ : Matrix R q_len d)
    (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v) (i : Fin q_len) (c : Fin d_v) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (jvp scale lifted Q δQ K δK V δV)[i][c] = sumOver (fun j =>
      P[i][j] * (scoreTangent (s j) - meanTangent ((List.finRange kv_len).map s)) * V[j][c]
        + P[i][j] * δV[j][c]) (List.finRange kv_len) := by
  intro s P
  have hV : ∀ j : Fin kv_len, (V.dual δV)[j][c] = ⟨V[j][c], δV[j][c]⟩ := fun j => by
    simp only [Matrix.dual, Fin.getElem_fin, Vec.getElem_ofFn]
  have hrow : (((List.finRange kv_len).map s).map primal)
      = (List.finRange kv_len).map (score scale modify Q K i) := by
    rw [List.map_map]
    exact List.map_congr_left fun j _ => primal_score hlift Q δQ K δK i j
  have h : (jvp scale lifted Q δQ K δK V δV)[i][c]
      = ((attend (scored (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) (V.dual δV) i
          (List.finRange kv_len)))[c]).der := by
    simp only [jvp, Matrix.tangent, attention, Fin.getElem_fin, Vec.getElem_ofFn]
  have hs : (scored (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) (V.dual δV) i
      (List.finRange kv_len)).map (·.score) = (List.finRange kv_len).map s := by
    rw [scored, List.map_map]
    rfl
  rw [h, Fin.getElem_fin, getElem_attend_dual, Dual.der_sumOver, hs, hrow, scored, sumOver_map]
  refine sumOver_congr fun j _ => ?_
  have hVj := hV j
  rw [Fin.getElem_fin] at hVj
  rw [Dual.der_mul, hVj, primal_score hlift, ← getElem_probabilities]

section
variable {S : Type v} [OrderedCommRing S] [Exponential S R] (scale : S)
variable (modify : ScoreMod S q_len kv_len) (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

omit [Exponential R R] in
/-- The gradients by the scores. -/
theorem getElem_scoreGradients (i : Fin q_len) (j : Fin kv_len) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (scoreGradients scale modify Q K V dO dLse)[i][j]
      = P[i][j] * (Vec.dot dO[i] V[j]
          - (Vec.dot dO[i] (attention scale modify Q K V)[i] - dLse[i])) := by
  simp only [scoreGradients, scoreGradient, rowDelta, Fin.getElem_fin, Vec.getElem_ofFn]

end

variable {scale : R} {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len} {δB : Matrix R q_len kv_len}
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)
variable (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- The rate at which the log-sum-exp changes is the mean of the scores' rates. -/
theorem meanTangent_eq (hlift : lifted.IsLift modify slope δB) (i : Fin q_len) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    meanTangent ((List.finRange kv_len).map s)
      = sumOver (fun j => P[i][j] * scoreTangent (s j)) (List.finRange kv_len) := by
  intro s P
  have hrow : (((List.finRange kv_len).map s).map primal)
      = (List.finRange kv_len).map (score scale modify Q K i) := by
    rw [List.map_map]
    exact List.map_congr_left fun j _ => primal_score hlift Q δQ K δK i j
  rw [meanTangent, hrow, sumOver_map]
  exact sumOver_congr fun j _ => by rw [primal_score hlift, ← getElem_probabilities]

/-- The adjoint of one row of attention. -/
theorem row_vjp (hlift : lifted.IsLift modify slope δB) (i : Fin q_len) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    let dS := scoreGradients scale modify Q K V dO dLse
    Vec.dot dO[i] (jvp scale lifted Q δQ K δK V δV)[i]
        + dLse[i] * meanTangent ((List.finRange kv_len).map s)
      = sumOver (fun j => sumOver (fun c => P[i][j] * dO[i][c] * δV[j][c]) (List.finRange d_v))
          (List.finRange kv_len)
        + sumOver (fun j => dS[i][j] * (slope i j (scale * Vec.dot Q[i] K[j])
            * rawTangent scale Q δQ K δK i j + δB[i][j])) (List.finRange kv_len) := by
  intro s P dS
  have h := row_adjoint (List.finRange kv_len) (List.finRange d_v) (fun j => P[i][j])
    (fun j => scoreTangent (s j)) (fun j c => V[j][c]) (fun j c => δV[j][c]) (fun c => dO[i][c])
    dLse[i] _ (meanTangent_eq Q δQ K δK hlift i)
  rw [Vec.dot, sumOver_congr fun c _ => congrArg (dO[i][c] * ·)
    (getElem_jvp hlift Q δQ K δK V δV i c)]
  refine h.trans (congrArg (_ + ·) (sumOver_congr fun j _ => ?_))
  have hdS : dS[i][j] = P[i][j] * (sumOver (fun c => dO[i][c] * V[j][c]) (List.finRange d_v)
      - (sumOver (fun c => dO[i][c] * sumOver (fun k => P[i][k] * V[k][c]) (List.finRange kv_len))
          (List.finRange d_v) - dLse[i])) := by
    have hD : Vec.dot dO[i] (attention scale modify Q K V)[i] = sumOver (fun c => dO[i][c]
        * sumOver (fun k => P[i][k] * V[k][c]) (List.finRange kv_len)) (List.finRange d_v) :=
      sumOver_congr fun c _ => congrArg (dO[i][c] * ·)
        (attention_eq_probabilities scale modify Q K V i c)
    rw [← hD]
    exact getElem_scoreGradients scale modify Q K V dO dLse i j
  rw [← hdS]
  have hs := score_dual (scale := scale) hlift Q δQ K δK i j
  cases hm : score scale modify Q K i j with
  | some t =>
    rw [hm] at hs
    simp only [s, hs, Option.map, scoreTangent]
  | none =>
    have hP : P[i][j] = 0 := by
      rw [getElem_probabilities, hm, weight, Field.div_eq_mul_inv, Semiring.zero_mul]
    rw [hdS, hP, Semiring.zero_mul, Semiring.zero_mul, Semiring.zero_mul]

end Attention.Proof
