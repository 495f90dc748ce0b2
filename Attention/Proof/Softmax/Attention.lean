module

public import Attention.Algebra.SumExchange
public import Attention.Spec.Attention
public import Attention.Proof.Softmax.Basic

public section

/-! # Attention as numerator over denominator -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d d_v q_len kv_len : Nat}

/-- The numerator of component `j` of a row's attention: Σ exp s · vⱼ over the unmasked keys. -/
@[expose] def numerator (row : List (ScoredValue S R d)) (j : Nat) (h : j < d) : R :=
  sumOver (fun key => (weight key.score : R) * key.value[j]) row

private theorem sumOver_zip (row : List (ScoredValue S R d)) (l : R) {j : Nat} (h : j < d) :
    sumOver (fun x : R × Vec R d => (Vec.smul x.1 x.2)[j])
      (((row.map (·.score)).map fun s => weight s / l).zip (row.map (·.value)))
      = l⁻¹ * numerator row j h := by
  induction row with
  | nil => simp only [List.map_nil, List.zip_nil_left, numerator, sumOver_nil, Semiring.mul_zero]
  | cons key row ih =>
    simp only [List.map_cons, List.zip_cons_cons, numerator, sumOver_cons, Vec.getElem_smul] at ih ⊢
    rw [ih, Semiring.left_distrib, Field.div_eq_mul_inv, ← Semiring.mul_assoc,
      CommSemiring.mul_comm (weight key.score)]

/-- Attention is the numerator divided by the softmax denominator. -/
theorem getElem_attend (row : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    (attend row)[j] = numerator row j h / denominator (row.map (·.score)) := by
  simp only [attend, softmax_eq, Vec.getElem_sumOver]
  rw [sumOver_zip, Field.div_eq_mul_inv, CommSemiring.mul_comm]

/-- A row with every key masked has attention 0. -/
theorem attend_masked {row : List (ScoredValue S R d)} (h : ∀ key ∈ row, key.score = none) :
    attend row = Vec.zero := by
  refine Vector.ext fun j hj => ?_
  have h₀ : numerator row j hj = 0 := sumOver_eq_zero fun key hk => by
    rw [h key hk, weight, Semiring.zero_mul]
  rw [getElem_attend, h₀, Vec.getElem_zero, Field.div_eq_mul_inv, Semiring.zero_mul]

/-- The order of the keys, with their values, does not matter. -/
theorem attend_perm {row row' : List (ScoredValue S R d)} (h : row.Perm row') :
    attend row = attend row' := by
  refine Vector.ext fun j hj => ?_
  rw [getElem_attend, getElem_attend, numerator, numerator, sumOver_perm _ h, denominator,
    denominator, sumOver_perm _ (h.map _)]

/-- A softmax weight of the whole matrix is the weight divided by the denominator of its row. -/
theorem getElem_probabilities (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
      = weight (score scale modify Q K i j)
        / denominator ((List.finRange kv_len).map (score scale modify Q K i)) := by
  simp [probabilities, softmax_eq]

/-- Attention is P V. -/
theorem attention_eq_probabilities (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (c : Fin d_v) :
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

/-- **attention-formula**: component j of row i is Σₖ wₖ vₖⱼ / Σₖ wₖ, where wₖ is exp of the score
of i and k, and 0 if it is masked. -/
theorem attention_formula (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (i : Fin q_len) (j : Fin d_v) :
    let w : Fin kv_len → R := fun k =>
      match modify i k (scale * sumOver (fun t => Q[i][t] * K[k][t]) (List.finRange d)) with
      | none => 0
      | some s => exp s
    (attention scale modify Q K V)[i][j]
      = sumOver (fun k => w k * V[k][j]) (List.finRange kv_len)
        / sumOver w (List.finRange kv_len) := by
  intro w
  have hw : ∀ k, weight (score scale modify Q K i k) = w k := fun k => rfl
  simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn, getElem_attend, numerator, denominator,
    scored, List.map_map, sumOver_map]
  exact congr (congrArg HDiv.hDiv (sumOver_congr fun k _ => congrArg (· * _) (hw k)))
    (sumOver_congr fun k _ => hw k)

end Attention.Proof
