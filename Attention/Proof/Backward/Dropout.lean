module

public import Attention.Proof.Backward.Row
public import Attention.Proof.Dropout.Mean
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

omit [Exponential S R] [OrderedCommRing S] in
/-- The product with a value as a query sees it. -/
theorem dot_smul_right (z : R) (a v : Vec R d_v) : Vec.dot a (Vec.smul z v) = z * Vec.dot a v := by
  rw [Vec.dot, Vec.dot, ← sumOver_mul_left]
  refine sumOver_congr fun c _ => ?_
  rw [getElem_smul_fin, ← Semiring.mul_assoc, CommSemiring.mul_comm a[c], Semiring.mul_assoc]

/-- The scores of one query by itself. -/
theorem score_oneRow (i : Fin q_len) (r : Fin 1) (j : Fin kv_len) :
    score scale (fun _ j => modify i j) (oneRow Q i) K r j = score scale modify Q K i j := by
  rw [score, getElem_oneRow, score]

/-- The weights of one query by itself. -/
theorem probabilities_oneRow (i : Fin q_len) (r : Fin 1) (j : Fin kv_len) :
    (probabilities scale (fun _ j => modify i j) (oneRow Q i) K : Matrix R 1 kv_len)[r][j]
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] := by
  have h : score scale (fun _ j => modify i j) (oneRow Q i) K r = score scale modify Q K i :=
    funext fun j => score_oneRow scale modify Q K i r j
  rw [getElem_probabilities, getElem_probabilities, h]

/-- The output of one query by itself, from the values as it sees them. -/
theorem attention_oneRow (i : Fin q_len) (r : Fin 1) :
    (attention scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i))[r]
      = (attentionDropout scale modify Q K V Z)[i] := by
  refine Vector.ext fun c hc => ?_
  refine (attention_eq_probabilities scale (fun _ j => modify i j) (oneRow Q i) K
    (droppedValues V Z i) r ⟨c, hc⟩).trans (Eq.trans (sumOver_congr fun j _ => ?_)
      (getElem_attentionDropout scale modify Q K V Z i ⟨c, hc⟩).symm)
  rw [probabilities_oneRow, getElem_droppedValues, getElem_smul_fin]
  exact (Semiring.mul_assoc ..).symm

section Components

variable (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- A component of the gradient by the queries. -/
private theorem vjp_dQ (i : Fin q_len) (t : Fin d) :
    (vjp scale modify slope Q K V toValue dO dLse).dQ[i][t] = toValue scale
      * sumOver (fun j => (scoreGradients scale modify Q K V dO dLse)[i][j]
          * slope i j (scale * Vec.dot Q[i] K[j]) * toValue K[j][t]) (List.finRange kv_len) := by
  simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
    Vec.getElem_map]

/-- A component of the gradient by the keys. -/
private theorem vjp_dK (j : Fin kv_len) (t : Fin d) :
    (vjp scale modify slope Q K V toValue dO dLse).dK[j][t] = toValue scale
      * sumOver (fun i => (scoreGradients scale modify Q K V dO dLse)[i][j]
          * slope i j (scale * Vec.dot Q[i] K[j]) * toValue Q[i][t]) (List.finRange q_len) := by
  simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
    Vec.getElem_map]

/-- A component of the gradient by the values. -/
private theorem vjp_dV (j : Fin kv_len) (c : Fin d_v) :
    (vjp scale modify slope Q K V toValue dO dLse).dV[j][c]
      = sumOver (fun i => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
          * dO[i][c]) (List.finRange q_len) := by
  simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul]

private theorem vjp_dBias :
    (vjp scale modify slope Q K V toValue dO dLse).dBias
      = scoreGradients scale modify Q K V dO dLse := (rfl)

omit [OrderedCommRing S] [Exponential S R] in
private theorem sumOver_one (f : Fin 1 → R) : sumOver f (List.finRange 1) = f 0 := by
  rw [show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil, Semiring.add_zero]

/-- The gradient by the scores of one query by itself. -/
private theorem scoreGradients_oneRow (i : Fin q_len) (j : Fin kv_len) :
    (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
        (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j]
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
        * (Z i j * Vec.dot dO[i] V[j]
          - (rowDelta (attentionDropout scale modify Q K V Z) dO dLse)[i]) := by
  rw [getElem_scoreGradients, probabilities_oneRow, attention_oneRow, getElem_oneRow,
    getElem_droppedValues, dot_smul_right]
  simp only [rowDelta, Fin.getElem_fin, Vec.getElem_ofFn]

private theorem vjpDropout_dBias (i : Fin q_len) (j : Fin kv_len) :
    (vjpDropout scale modify slope Q K V Z toValue dO dLse).dBias[i][j]
      = (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
          (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j] := by
  have h : (vjpDropout scale modify slope Q K V Z toValue dO dLse).dBias[i][j]
      = (vjpRow scale modify slope Q K V Z toValue dO dLse i).dBias[(0 : Fin 1)][j] := by
    simp only [vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [h, vjpRow, vjp_dBias]

private theorem vjpDropout_dV (j : Fin kv_len) (c : Fin d_v) :
    (vjpDropout scale modify slope Q K V Z toValue dO dLse).dV[j][c]
      = sumOver (fun i => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] * Z i j
          * dO[i][c]) (List.finRange q_len) := by
  have h : (vjpDropout scale modify slope Q K V Z toValue dO dLse).dV[j][c]
      = sumOver (fun i : Fin q_len => Z i j
          * (vjpRow scale modify slope Q K V Z toValue dO dLse i).dV[j][c])
        (List.finRange q_len) := by
    simp only [vjpDropout, sumMatrices, droppedValues, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_sumOver, Vec.getElem_smul]
  rw [h]
  refine sumOver_congr fun i _ => ?_
  rw [vjpRow, vjp_dV, sumOver_one, probabilities_oneRow, getElem_oneRow, ← Semiring.mul_assoc,
    CommSemiring.mul_comm (Z i j)]

private theorem vjpDropout_dQ (i : Fin q_len) (t : Fin d) :
    (vjpDropout scale modify slope Q K V Z toValue dO dLse).dQ[i][t] = toValue scale
      * sumOver (fun j => (vjpDropout scale modify slope Q K V Z toValue dO dLse).dBias[i][j]
          * slope i j (scale * Vec.dot Q[i] K[j]) * toValue K[j][t]) (List.finRange kv_len) := by
  have h : (vjpDropout scale modify slope Q K V Z toValue dO dLse).dQ[i][t]
      = (vjpRow scale modify slope Q K V Z toValue dO dLse i).dQ[(0 : Fin 1)][t] := by
    simp only [vjpDropout, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [h, vjpRow, vjp_dQ, getElem_oneRow]
  exact congrArg (toValue scale * ·) (sumOver_congr fun j _ => by rw [vjpDropout_dBias])

private theorem vjpDropout_dK (j : Fin kv_len) (t : Fin d) :
    (vjpDropout scale modify slope Q K V Z toValue dO dLse).dK[j][t] = toValue scale
      * sumOver (fun i => (vjpDropout scale modify slope Q K V Z toValue dO dLse).dBias[i][j]
          * slope i j (scale * Vec.dot Q[i] K[j]) * toValue Q[i][t]) (List.finRange q_len) := by
  have h : (vjpDropout scale modify slope Q K V Z toValue dO dLse).dK[j][t]
      = sumOver (fun i : Fin q_len =>
          (vjpRow scale modify slope Q K V Z toValue dO dLse i).dK[j][t])
        (List.finRange q_len) := by
    simp only [vjpDropout, sumMatrices, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver]
  rw [h, ← sumOver_mul_left]
  refine sumOver_congr fun i _ => ?_
  rw [vjpRow, vjp_dK, sumOver_one, getElem_oneRow, vjpDropout_dBias]

end Components

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
  exact ⟨fun i j => (vjpDropout_dBias ..).trans (scoreGradients_oneRow ..),
    fun j c => vjpDropout_dV .., fun i t => vjpDropout_dQ .., fun j t => vjpDropout_dK ..⟩

/-- With factors 1 the backward pass is that of attention without dropout. -/
theorem vjpDropout_one (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    vjpDropout scale modify slope Q K V (fun _ _ => 1) toValue dO dLse
      = vjp scale modify slope Q K V toValue dO dLse := by
  obtain ⟨hB, hdV, hdQ, hdK⟩ :=
    vjpDropout_formulas scale modify slope Q K V (fun _ _ => 1) toValue dO dLse
  have hS : ∀ (i : Fin q_len) (j : Fin kv_len),
      (vjpDropout scale modify slope Q K V (fun _ _ => 1) toValue dO dLse).dBias[i][j]
        = (scoreGradients scale modify Q K V dO dLse)[i][j] := fun i j => by
    rw [hB, attentionDropout_one, Semiring.one_mul, getElem_scoreGradients]
    simp only [rowDelta, Fin.getElem_fin, Vec.getElem_ofFn]
  have hext : ∀ {g g' : Gradients R q_len kv_len d d_v}, g.dQ = g'.dQ → g.dK = g'.dK →
      g.dV = g'.dV → g.dBias = g'.dBias → g = g' := fun {g g'} h₁ h₂ h₃ h₄ => by
    cases g; cases g'; simp_all
  refine hext ?_ ?_ ?_ ?_ <;> refine Vector.ext fun r hr => Vector.ext fun c hc => ?_
  · refine (hdQ ⟨r, hr⟩ ⟨c, hc⟩).trans
      (Eq.trans ?_ (vjp_dQ (i := ⟨r, hr⟩) (t := ⟨c, hc⟩) ..).symm)
    simp only [hS]
  · refine (hdK ⟨r, hr⟩ ⟨c, hc⟩).trans
      (Eq.trans ?_ (vjp_dK (j := ⟨r, hr⟩) (t := ⟨c, hc⟩) ..).symm)
    simp only [hS]
  · refine (hdV ⟨r, hr⟩ ⟨c, hc⟩).trans
      (Eq.trans ?_ (vjp_dV (j := ⟨r, hr⟩) (c := ⟨c, hc⟩) ..).symm)
    simp only [Semiring.mul_one]
  · exact hS ⟨r, hr⟩ ⟨c, hc⟩

end

end Attention.Proof
