module

public import Attention.Proof.Adjoint
public import Attention.Proof.Tangent
public import Attention.Spec.Backward
public import Attention.Spec.LogSumExp

public section

/-! # The backward pass is the adjoint of the derivative -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}

/-! ## What is computed, by components -/

section
variable {S : Type v} [OrderedCommRing S] [Exponential S R] (scale : S)
variable (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)

omit [Exponential R R] in
/-- A softmax weight of the whole matrix is the weight divided by the denominator of its row. -/
theorem getElem_probabilities (i : Fin q_len) (j : Fin kv_len) :
    (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
      = weight (score scale modify Q K i j)
        / denominator ((List.finRange kv_len).map (score scale modify Q K i)) := by
  simp [probabilities, softmax_eq]

end

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
/-- Attention is P V. -/
theorem attention_eq_probabilities (i : Fin q_len) (c : Fin d_v) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (attention scale modify Q K V)[i][c]
      = sumOver (fun j => P[i][j] * V[j][c]) (List.finRange kv_len) := by
  intro P
  have hs : (scored scale modify Q K V i (List.finRange kv_len)).map (·.score)
      = (List.finRange kv_len).map (score scale modify Q K i) := by
    rw [scored, List.map_map]
    rfl
  rw [attention, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, getElem_attend, hs, numerator,
    scored, sumOver_map, Field.div_eq_mul_inv, ← sumOver_mul_right]
  refine sumOver_congr fun j _ => ?_
  rw [getElem_probabilities, Field.div_eq_mul_inv, Fin.getElem_fin, Fin.getElem_fin]
  exact Semiring.mul_assoc .. |>.trans ((congrArg _ (CommSemiring.mul_comm ..)).trans
    (Semiring.mul_assoc ..).symm)

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

/-! ## All rows -/

/-- The adjoint, with the rate of the log-sum-exp written out as a mean of rates. -/
theorem adjoint_meanTangent (hlift : lifted.IsLift modify slope δB) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK)
    let g := vjp scale modify slope Q K V (fun x => x) dO dLse
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
        + sumOver (fun i => dLse[i] * meanTangent ((List.finRange kv_len).map (s i)))
            (List.finRange q_len)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro s g
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  let dS := scoreGradients scale modify Q K V dO dLse
  let dZ := fun i j => dS[i][j] * slope i j (scale * Vec.dot Q[i] K[j])
  have hV : Matrix.inner g.dV δV = sumOver (fun i => sumOver (fun j =>
      sumOver (fun c => P[i][j] * dO[i][c] * δV[j][c]) (List.finRange d_v)) (List.finRange kv_len))
      (List.finRange q_len) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    rw [sumOver_comm]
    refine sumOver_congr fun c _ => ?_
    rw [sumOver_mul_right]
    simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul, P]
  have hQ : Matrix.inner g.dQ δQ = sumOver (fun i => sumOver (fun j =>
      dZ i j * (scale * Vec.dot δQ[i] K[j])) (List.finRange kv_len)) (List.finRange q_len) := by
    refine sumOver_congr fun i _ => ?_
    refine Eq.trans ?_ (sumOver_pull (List.finRange kv_len) (List.finRange d) scale (dZ i)
      (fun j t => K[j][t]) fun t => δQ[i][t])
    refine sumOver_congr fun t _ => ?_
    simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
      Vec.getElem_map, dZ, dS]
  have hK : Matrix.inner g.dK δK = sumOver (fun i => sumOver (fun j =>
      dZ i j * (scale * Vec.dot Q[i] δK[j])) (List.finRange kv_len)) (List.finRange q_len) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    refine Eq.trans ?_ ((sumOver_pull (List.finRange q_len) (List.finRange d) scale (dZ · j)
      (fun i t => Q[i][t]) fun t => δK[j][t]).trans (sumOver_congr fun i _ => ?_))
    · refine sumOver_congr fun t _ => ?_
      simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
        Vec.getElem_map, dZ, dS]
    · rw [Vec.dot, sumOver_congr fun t _ => CommSemiring.mul_comm δK[j][t] Q[i][t]]
  have hB : Matrix.inner g.dBias δB = sumOver (fun i => sumOver (fun j =>
      dS[i][j] * δB[i][j]) (List.finRange kv_len)) (List.finRange q_len) := rfl
  rw [hQ, hK, hV, hB, Matrix.inner, ← sumOver_add, ← sumOver_add, ← sumOver_add, ← sumOver_add]
  refine sumOver_congr fun i _ => ?_
  rw [row_vjp Q δQ K δK V δV dO dLse hlift i, ← sumOver_add, ← sumOver_add, ← sumOver_add,
    ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  simp only [rawTangent, dZ]
  generalize sumOver _ (List.finRange d_v) = x
  generalize dS[i][j] = y
  grind

/-- **vjp-adjoint**: for all queries, keys, values and a bias, all rates at which they change, every
score transformation with a slope, so every mask, and every gradient `dO` by the output: the backward
pass gives the gradients whose inner product with the rates is that of `dO` with the derivative of
attention. -/
theorem vjp_adjoint (hlift : lifted.IsLift modify slope δB) :
    let g := vjp scale modify slope Q K V (fun x => x) dO Vec.zero
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro g
  rw [← adjoint_meanTangent Q δQ K δK V δV dO Vec.zero hlift]
  have h : sumOver (fun i : Fin q_len => (Vec.zero : Vec R q_len)[i] * meanTangent
      ((List.finRange kv_len).map (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i)))
      (List.finRange q_len) = 0 := sumOver_eq_zero fun i _ => by
    rw [Fin.getElem_fin, Vec.getElem_zero, Semiring.zero_mul]
  rw [h, Semiring.add_zero]

/-- The log-sum-exp of scores that change changes at the mean of their rates. -/
theorem scoreTangent_logSumExp {L : Option (Dual R)} {row : List (Option (Dual R))}
    (h : IsLogSumExp (Dual R) L row) : scoreTangent L = meanTangent row := by
  rw [IsLogSumExp, weight_dual, denominator_dual] at h
  obtain ⟨h₁, h₂⟩ := Dual.mk.inj h
  have hm : meanTangent row = sumOver (fun s => weight (primal s) * scoreTangent s) row
      * (denominator (row.map primal))⁻¹ := by
    rw [meanTangent, ← sumOver_mul_right]
    exact sumOver_congr fun s _ => by rw [Field.div_eq_mul_inv]; grind
  rw [hm, ← h₂, ← h₁]
  cases L with
  | none =>
    simp only [primal, Option.map, weight, scoreTangent, Semiring.zero_mul]
  | some L =>
    have := exp_ne_zero (R := R) L.val
    simp only [primal, Option.map, weight, scoreTangent]
    grind

/-- **vjp-adjoint-lse**: where the log-sum-exp of each row is given out as well, `dLse` the gradient
by it and `L` what it is and how it changes, the same holds of both together: it adds to dS alone,
and a row that sees no key gets nothing from it. -/
theorem vjp_adjoint_lse (hlift : lifted.IsLift modify slope δB) {L : Fin q_len → Option (Dual R)}
    (hL : ∀ i, IsLogSumExp (Dual R) (L i) ((List.finRange kv_len).map
      (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i))) :
    let g := vjp scale modify slope Q K V (fun x => x) dO dLse
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
        + sumOver (fun i => dLse[i] * scoreTangent (L i)) (List.finRange q_len)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro g
  rw [← adjoint_meanTangent Q δQ K δK V δV dO dLse hlift]
  exact congrArg (_ + ·) (sumOver_congr fun i _ => by rw [scoreTangent_logSumExp (hL i)])

end Attention.Proof
