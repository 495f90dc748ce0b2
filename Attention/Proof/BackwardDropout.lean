module

public import Attention.Proof.BackwardHeads
public import Attention.Proof.Dropout
public import Attention.Spec.BackwardDropout

public section

/-! # The backward pass of attention with dropout -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

/-! ## By components -/

section
variable {S : Type v} {R : Type u} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)

/-- A row by itself. -/
@[simp] theorem getElem_oneRow {α : Type v} {n : Nat} (A : Matrix α q_len n) (i : Fin q_len)
    (r : Fin 1) : (oneRow A i)[r] = A[i] := by
  simp only [oneRow, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential S R] in
/-- A value as a query sees it. -/
theorem getElem_droppedValues (i : Fin q_len) (j : Fin kv_len) :
    (droppedValues V Z i)[j] = Vec.smul (Z i j) V[j] := by
  simp only [droppedValues, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential S R] in
/-- A component of a value as a query sees it. -/
theorem getElem_smul_fin (z : R) (v : Vec R d_v) (c : Fin d_v) : (Vec.smul z v)[c] = z * v[c] :=
  Vec.getElem_smul z v c.isLt

/-- The scores of one query by itself. -/
theorem score_row (i : Fin q_len) (r : Fin 1) (j : Fin kv_len) :
    score scale (fun _ j => modify i j) (oneRow Q i) K r j = score scale modify Q K i j := by
  rw [score, getElem_oneRow, score]

/-- The weights of one query by itself. -/
theorem probabilities_row (i : Fin q_len) (r : Fin 1) (j : Fin kv_len) :
    (probabilities scale (fun _ j => modify i j) (oneRow Q i) K : Matrix R 1 kv_len)[r][j]
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] := by
  have h : score scale (fun _ j => modify i j) (oneRow Q i) K r = score scale modify Q K i :=
    funext fun j => score_row scale modify Q K i r j
  rw [getElem_probabilities, getElem_probabilities, h]

/-- The output of one query by itself, from the values as it sees them. -/
theorem attention_row (i : Fin q_len) (r : Fin 1) :
    (attention scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i))[r]
      = (attentionDropout scale modify Q K V Z)[i] := by
  refine Vector.ext fun c hc => ?_
  refine (attention_eq_probabilities scale (fun _ j => modify i j) (oneRow Q i) K
    (droppedValues V Z i) r ⟨c, hc⟩).trans (Eq.trans (sumOver_congr fun j _ => ?_)
      (getElem_attentionDropout scale modify Q K V Z i ⟨c, hc⟩).symm)
  rw [probabilities_row, getElem_droppedValues, getElem_smul_fin]
  exact (Semiring.mul_assoc ..).symm

/-- **dropout-backward**: the backward pass is FlashAttention's algorithm 4: dV = (P ∘ Z)ᵀ dO, and
dS = P ∘ (dP − D) with dP = Z ∘ (dO Vᵀ) and D = rowsum (dO ∘ O) from the output with dropout. -/
theorem vjpDropout_formulas (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    let D := rowDelta (attentionDropout scale modify Q K V Z) dO dLse
    let g := vjpDropout scale modify slope Q K V Z toValue dO dLse
    let dZ : Fin q_len → Fin kv_len → R :=
      fun i j => g.dBias[i][j] * slope i j (scale * Vec.dot Q[i] K[j])
    (∀ (i : Fin q_len) (j : Fin kv_len),
        g.dBias[i][j] = P[i][j] * (Z i j * Vec.dot dO[i] V[j] - D[i]))
      ∧ (∀ (j : Fin kv_len) (c : Fin d_v), g.dV[j][c]
        = sumOver (fun i => P[i][j] * Z i j * dO[i][c]) (List.finRange q_len))
      ∧ (∀ (i : Fin q_len) (t : Fin d), g.dQ[i][t] = toValue scale
        * sumOver (fun j => dZ i j * toValue K[j][t]) (List.finRange kv_len))
      ∧ ∀ (j : Fin kv_len) (t : Fin d), g.dK[j][t] = toValue scale
        * sumOver (fun i => dZ i j * toValue Q[i][t]) (List.finRange q_len) := by
  intro P D g dZ
  have hP := probabilities_row (R := R) scale modify Q K
  have hO := attention_row scale modify Q K V Z
  have hdot : ∀ (i : Fin q_len) (j : Fin kv_len),
      Vec.dot dO[i] (Vec.smul (Z i j) V[j]) = Z i j * Vec.dot dO[i] V[j] := fun i j => by
    rw [Vec.dot, Vec.dot, ← sumOver_mul_left]
    refine sumOver_congr fun c _ => ?_
    rw [getElem_smul_fin, ← Semiring.mul_assoc, CommSemiring.mul_comm dO[i][c], Semiring.mul_assoc]
  have hS : ∀ (i : Fin q_len) (j : Fin kv_len),
      (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
        (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j]
      = P[i][j] * (Z i j * Vec.dot dO[i] V[j] - D[i]) := fun i j => by
    rw [getElem_scoreGradients, hP, hO, getElem_oneRow, getElem_droppedValues, hdot]
    simp only [D, P, rowDelta, Fin.getElem_fin, Vec.getElem_ofFn]
  have hB : ∀ (i : Fin q_len) (j : Fin kv_len), g.dBias[i][j]
      = (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
          (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j] := fun i j => by
    simp only [g, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn, vjpRow, vjp]
  have hone : ∀ f : Fin 1 → R, sumOver f (List.finRange 1) = f 0 := fun f => by
    rw [show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil, Semiring.add_zero]
  let row := vjpRow scale modify slope Q K V Z toValue dO dLse
  have hdV : ∀ (i : Fin q_len) (j : Fin kv_len) (c : Fin d_v),
      (row i).dV[j][c] = P[i][j] * dO[i][c] := fun i j c => by
    have h : (row i).dV[j][c] = sumOver (fun r : Fin 1 =>
        (probabilities scale (fun _ j => modify i j) (oneRow Q i) K : Matrix R 1 kv_len)[r][j]
          * (oneRow dO i)[r][c]) (List.finRange 1) := by
      simp only [row, vjpRow, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
        Vec.getElem_smul]
    rw [h, hone, hP, getElem_oneRow]
  have hdK : ∀ (i : Fin q_len) (j : Fin kv_len) (t : Fin d),
      (row i).dK[j][t] = toValue scale * (dZ i j * toValue Q[i][t]) := fun i j t => by
    have h : (row i).dK[j][t] = toValue scale * sumOver (fun r : Fin 1 =>
        (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
          (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[r][j]
          * slope i j (scale * Vec.dot (oneRow Q i)[r] K[j]) * toValue (oneRow Q i)[r][t])
        (List.finRange 1) := by
      simp only [row, vjpRow, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
        Vec.getElem_smul, Vec.getElem_map]
    rw [h, hone, ← hB, getElem_oneRow]
  have hdQ : ∀ (i : Fin q_len) (t : Fin d), (row i).dQ[(0 : Fin 1)][t]
      = toValue scale * sumOver (fun j => dZ i j * toValue K[j][t]) (List.finRange kv_len) :=
    fun i t => by
    have h : (row i).dQ[(0 : Fin 1)][t] = toValue scale * sumOver (fun j : Fin kv_len =>
        (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
          (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j]
          * slope i j (scale * Vec.dot (oneRow Q i)[(0 : Fin 1)] K[j]) * toValue K[j][t])
        (List.finRange kv_len) := by
      simp only [row, vjpRow, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
        Vec.getElem_smul, Vec.getElem_map]
    rw [h, getElem_oneRow]
    exact congrArg (toValue scale * ·) (sumOver_congr fun j _ => by rw [← hB])
  refine ⟨fun i j => (hB i j).trans (hS i j), fun j c => ?_, fun i t => ?_, fun j t => ?_⟩
  · have h : g.dV[j][c] = sumOver (fun i : Fin q_len => Z i j * (row i).dV[j][c])
        (List.finRange q_len) := by
      simp only [g, row, vjpDropout, sumMatrices, droppedValues, Fin.getElem_fin, Vec.getElem_ofFn,
        Vec.getElem_sumOver, Vec.getElem_smul]
    rw [h]
    refine sumOver_congr fun i _ => ?_
    rw [hdV, ← Semiring.mul_assoc, CommSemiring.mul_comm (Z i j)]
  · rw [← hdQ]
    simp only [g, row, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  · have h : g.dK[j][t] = sumOver (fun i : Fin q_len => (row i).dK[j][t]) (List.finRange q_len) := by
      simp only [g, row, vjpDropout, sumMatrices, Fin.getElem_fin, Vec.getElem_ofFn,
        Vec.getElem_sumOver]
    rw [h, ← sumOver_mul_left]
    exact sumOver_congr fun i _ => hdK i j t

end

/-! ## The adjoint -/

section
variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}

/-- Factors move from one side of an inner product to the other. -/
theorem inner_droppedValues (A B : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (i : Fin q_len) :
    (Matrix.inner (droppedValues A Z i) B : R) = Matrix.inner A (droppedValues B Z i) := by
  refine sumOver_congr fun j _ => sumOver_congr fun c _ => ?_
  rw [getElem_droppedValues, getElem_droppedValues, getElem_smul_fin, getElem_smul_fin]
  grind

/-- The inner product of matrices of one row. -/
theorem inner_oneRow {n : Nat} (A : Matrix R 1 n) (B : Matrix R 1 n) :
    (Matrix.inner A B : R) = Vec.dot A[(0 : Fin 1)] B[(0 : Fin 1)] := by
  rw [Matrix.inner, show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil,
    Semiring.add_zero]

variable {scale : R} {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len} {δB : Matrix R q_len kv_len}
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

omit [Exponential R R] in
/-- One row changes as it does in the matrix. -/
theorem getElem_dual_oneRow (i : Fin q_len) (r : Fin 1) :
    ((oneRow Q i).dual (oneRow δQ i))[r] = (Q.dual δQ)[i] := by
  simp only [Matrix.dual, oneRow, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential R R] in
/-- The scores of one query by itself change as they do in the matrix. -/
theorem score_dual_row (i : Fin q_len) (r : Fin 1) :
    score (Dual.const scale) (fun _ j => lifted i j) ((oneRow Q i).dual (oneRow δQ i)) (K.dual δK) r
      = score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i :=
  funext fun j => by rw [score, getElem_dual_oneRow, score]

/-- The softmax weights of scores that change. -/
theorem probabilities_dual (hlift : lifted.IsLift modify slope δB) (i : Fin q_len)
    (j : Fin kv_len) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (probabilities (Dual.const scale) lifted (Q.dual δQ) (K.dual δK)
        : Matrix (Dual R) q_len kv_len)[i][j]
      = ⟨P[i][j], P[i][j] * (scoreTangent (s j)
          - meanTangent ((List.finRange kv_len).map s))⟩ := by
  intro s P
  have hrow : (((List.finRange kv_len).map s).map primal)
      = (List.finRange kv_len).map (score scale modify Q K i) := by
    rw [List.map_map]
    exact List.map_congr_left fun j _ => primal_score hlift Q δQ K δK i j
  have h : (probabilities (Dual.const scale) lifted (Q.dual δQ) (K.dual δK)
      : Matrix (Dual R) q_len kv_len)[i][j]
      = ⟨weight (primal (s j)) / denominator (((List.finRange kv_len).map s).map primal),
        weight (primal (s j)) / denominator (((List.finRange kv_len).map s).map primal)
          * (scoreTangent (s j) - meanTangent ((List.finRange kv_len).map s))⟩ := by
    simp [probabilities, softmax_dual, s]
  rw [h, hrow, primal_score hlift, ← getElem_probabilities]

/-- Attention with dropout changes, row by row, as attention of the values that the query sees. -/
theorem jvpDropout_row (hlift : lifted.IsLift modify slope δB) (i : Fin q_len) :
    (jvpDropout scale lifted Z Q δQ K δK V δV)[i]
      = (jvp scale (fun _ j => lifted i j) (oneRow Q i) (oneRow δQ i) K δK (droppedValues V Z i)
          (droppedValues δV Z i))[(0 : Fin 1)] := by
  have hlift' : ScoreMod.IsLift (fun _ j => lifted i j) (fun (_ : Fin 1) j => modify i j)
      (fun _ j => slope i j) (oneRow δB i) := fun r j s => by
    rw [getElem_oneRow]; exact hlift i j s
  refine Vector.ext fun c hc => ?_
  refine Eq.trans ?_ (getElem_jvp hlift' (oneRow Q i) (oneRow δQ i) K δK (droppedValues V Z i)
    (droppedValues δV Z i) (0 : Fin 1) ⟨c, hc⟩).symm
  have hV : ∀ j : Fin kv_len, (V.dual δV)[j][c] = ⟨V[j][c], δV[j][c]⟩ := fun j => by
    simp only [Matrix.dual, Fin.getElem_fin, Vec.getElem_ofFn]
  have h : (jvpDropout scale lifted Z Q δQ K δK V δV)[i][c]
      = sumOver (fun j => ((probabilities (Dual.const scale) lifted (Q.dual δQ) (K.dual δK)
          : Matrix (Dual R) q_len kv_len)[i][j] * Dual.const (Z i j) * (V.dual δV)[j][c]).der)
        (List.finRange kv_len) := by
    simp only [jvpDropout, Matrix.tangent, attentionDropout, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_sumOver, Vec.getElem_smul, Dual.der_sumOver]
  rw [h]
  refine sumOver_congr fun j _ => ?_
  rw [probabilities_dual Q δQ K δK hlift, hV, score_dual_row, probabilities_row,
    getElem_droppedValues, getElem_droppedValues, getElem_smul_fin, getElem_smul_fin]
  simp only [Dual.der_mul, Dual.val_mul, Dual.val_const, Dual.der_const, Fin.getElem_fin]
  grind

/-- **dropout-adjoint**: for any factors Z, the gradients of `vjpDropout` have with the rates of the
inputs the inner product that the gradients by the output and the log-sum-exp have with the rates of
these. -/
theorem vjpDropout_adjoint (hlift : lifted.IsLift modify slope δB)
    {L : Fin q_len → Option (Dual R)}
    (hL : ∀ i, IsLogSumExp (Dual R) (L i) ((List.finRange kv_len).map
      (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i))) :
    let g := vjpDropout scale modify slope Q K V Z (fun x => x) dO dLse
    Matrix.inner dO (jvpDropout scale lifted Z Q δQ K δK V δV)
        + sumOver (fun i => dLse[i] * scoreTangent (L i)) (List.finRange q_len)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro g
  let row := vjpRow scale modify slope Q K V Z (fun x => x) dO dLse
  have hrow : ∀ i : Fin q_len,
      Vec.dot dO[i] (jvpDropout scale lifted Z Q δQ K δK V δV)[i] + dLse[i] * scoreTangent (L i)
        = Vec.dot (row i).dQ[(0 : Fin 1)] δQ[i] + Matrix.inner (row i).dK δK
          + Matrix.inner (droppedValues (row i).dV Z i) δV
          + Vec.dot (row i).dBias[(0 : Fin 1)] δB[i] := fun i => by
    have hlift' : ScoreMod.IsLift (fun _ j => lifted i j) (fun (_ : Fin 1) j => modify i j)
        (fun _ j => slope i j) (oneRow δB i) := fun r j s => by
      rw [getElem_oneRow]; exact hlift i j s
    have h := adjoint_meanTangent (oneRow Q i) (oneRow δQ i) K δK (droppedValues V Z i)
      (droppedValues δV Z i) (oneRow dO i) (Vec.ofFn fun _ => dLse[i]) hlift'
    rw [inner_oneRow, inner_oneRow, inner_oneRow, getElem_oneRow, getElem_oneRow, getElem_oneRow,
      ← jvpDropout_row Q δQ K δK V δV Z hlift i, show List.finRange 1 = [0] from rfl, sumOver_cons,
      sumOver_nil, Semiring.add_zero, score_dual_row] at h
    rw [scoreTangent_logSumExp (hL i), inner_droppedValues]
    refine Eq.trans ?_ h
    simp only [Fin.getElem_fin, Vec.getElem_ofFn]
  have hQ : Matrix.inner g.dQ δQ
      = sumOver (fun i => Vec.dot (row i).dQ[(0 : Fin 1)] δQ[i]) (List.finRange q_len) :=
    sumOver_congr fun i _ => by
      simp only [g, row, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  have hB : Matrix.inner g.dBias δB
      = sumOver (fun i => Vec.dot (row i).dBias[(0 : Fin 1)] δB[i]) (List.finRange q_len) :=
    sumOver_congr fun i _ => by
      simp only [g, row, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  have hK : g.dK = sumMatrices (fun i => (row i).dK) (List.finRange q_len) := by
    simp only [g, row, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  have hV : g.dV = sumMatrices (fun i => droppedValues (row i).dV Z i) (List.finRange q_len) := by
    simp only [g, row, vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [hQ, hB, hK, hV, inner_sumMatrices, inner_sumMatrices, Matrix.inner, ← sumOver_add,
    ← sumOver_add, ← sumOver_add, ← sumOver_add]
  exact sumOver_congr fun i _ => hrow i

end

end Attention.Proof
