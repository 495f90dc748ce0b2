module

public import Attention.Proof.Backward.Dropout
public import Attention.Proof.Backward.Heads

public section

/-! # The backward pass of attention with dropout is the adjoint of it over dual numbers -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}

omit [Exponential R R] in
/-- Factors move from one side of an inner product to the other. -/
theorem inner_droppedValues (A B : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (i : Fin q_len) :
    (Matrix.inner (droppedValues A Z i) B : R) = Matrix.inner A (droppedValues B Z i) := by
  refine sumOver_congr fun j _ => sumOver_congr fun c _ => ?_
  rw [getElem_droppedValues, getElem_droppedValues, getElem_smul_fin, getElem_smul_fin]
  grind

omit [Exponential R R] in
/-- The inner product of matrices of one row. -/
theorem inner_oneRow {n : Nat} (A : Matrix R 1 n) (B : Matrix R 1 n) :
    (Matrix.inner A B : R) = Vec.dot A[(0 : Fin 1)] B[(0 : Fin 1)] := by
  rw [Matrix.inner, show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil,
    Semiring.add_zero]

variable {scale : R} {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len} {δB : Matrix R q_len kv_len}
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

omit [OrderedField R] [Exponential R R] in
/-- One row changes as it does in the matrix. -/
theorem getElem_dual_oneRow (Q δQ : Matrix R q_len d) (i : Fin q_len) (r : Fin 1) :
    ((oneRow Q i).dual (oneRow δQ i))[r] = (Q.dual δQ)[i] := by
  simp only [Matrix.dual, oneRow, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential R R] in
/-- The scores of one query by itself change as they do in the matrix. -/
theorem score_dual_oneRow (i : Fin q_len) (r : Fin 1) :
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
  rw [probabilities_dual Q δQ K δK hlift, hV, score_dual_oneRow, probabilities_oneRow,
    getElem_droppedValues, getElem_droppedValues, getElem_smul_fin, getElem_smul_fin]
  simp only [Dual.der_mul, Dual.val_mul, Dual.val_const, Dual.der_const, Fin.getElem_fin]
  grind

/-- **dropout-adjoint**: for any factors Z, the gradients of `vjpDropout` have with the rates of the
inputs the inner product that the gradients by the output and the log-sum-exp have with the rates
that dual numbers give these; a row whose log-sum-exp has the gradient 0 needs to have none. -/
theorem vjpDropout_adjoint (hlift : lifted.IsLift modify slope δB)
    {L : Fin q_len → Option (Dual R)}
    (hL : ∀ i, dLse[i] = 0 ∨ IsLogSumExp (Dual R) (L i) ((List.finRange kv_len).map
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
    have h : Matrix.inner (oneRow dO i) (jvp scale (fun _ j => lifted i j) (oneRow Q i)
          (oneRow δQ i) K δK (droppedValues V Z i) (droppedValues δV Z i))
        + sumOver (fun r : Fin 1 => (Vec.ofFn fun _ => dLse[i] : Vec R 1)[r]
            * meanTangent ((List.finRange kv_len).map (score (Dual.const scale)
              (fun _ j => lifted i j) ((oneRow Q i).dual (oneRow δQ i)) (K.dual δK) r)))
          (List.finRange 1)
        = Matrix.inner (row i).dQ (oneRow δQ i) + Matrix.inner (row i).dK δK
          + Matrix.inner (row i).dV (droppedValues δV Z i)
          + Matrix.inner (row i).dBias (oneRow δB i) :=
      adjoint_meanTangent (scale := scale) (oneRow Q i) (oneRow δQ i) K δK (droppedValues V Z i)
      (droppedValues δV Z i) (oneRow dO i) (Vec.ofFn fun _ => dLse[i]) hlift'
    rw [inner_oneRow, inner_oneRow, inner_oneRow, getElem_oneRow, getElem_oneRow, getElem_oneRow,
      ← jvpDropout_row Q δQ K δK V δV Z hlift i, show List.finRange 1 = [0] from rfl, sumOver_cons,
      sumOver_nil, Semiring.add_zero, score_dual_oneRow] at h
    have hlse : dLse[i] * scoreTangent (L i) = dLse[i] * meanTangent ((List.finRange kv_len).map
        (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i)) := by
      rcases hL i with h₀ | h₁
      · rw [h₀, Semiring.zero_mul, Semiring.zero_mul]
      · rw [scoreTangent_logSumExp h₁]
    rw [hlse, inner_droppedValues]
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

end Attention.Proof
