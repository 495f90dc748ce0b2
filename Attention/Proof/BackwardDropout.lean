module

public import Attention.Proof.BackwardRow
public import Attention.Proof.DropoutMean
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
  have hP := probabilities_oneRow (R := R) scale modify Q K
  have hO := attention_oneRow scale modify Q K V Z
  have hS : ∀ (i : Fin q_len) (j : Fin kv_len),
      (scoreGradients scale (fun _ j => modify i j) (oneRow Q i) K (droppedValues V Z i)
        (oneRow dO i) (Vec.ofFn fun _ => dLse[i]))[(0 : Fin 1)][j]
      = P[i][j] * (Z i j * Vec.dot dO[i] V[j] - D[i]) := fun i j => by
    rw [getElem_scoreGradients, hP, hO, getElem_oneRow, getElem_droppedValues, dot_smul_right]
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
  · have h : g.dK[j][t]
        = sumOver (fun i : Fin q_len => (row i).dK[j][t]) (List.finRange q_len) := by
      simp only [g, row, vjpDropout, sumMatrices, Fin.getElem_fin, Vec.getElem_ofFn,
        Vec.getElem_sumOver]
    rw [h, ← sumOver_mul_left]
    exact sumOver_congr fun i _ => hdK i j t

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
  · refine (hdQ ⟨r, hr⟩ ⟨c, hc⟩).trans ?_
    simp only [hS]
    simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver,
      Vec.getElem_map]
  · refine (hdK ⟨r, hr⟩ ⟨c, hc⟩).trans ?_
    simp only [hS]
    simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver,
      Vec.getElem_map]
  · refine (hdV ⟨r, hr⟩ ⟨c, hc⟩).trans ?_
    simp only [vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver,
      Semiring.mul_one]
  · exact hS ⟨r, hr⟩ ⟨c, hc⟩

end

end Attention.Proof
