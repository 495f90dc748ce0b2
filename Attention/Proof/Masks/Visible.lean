module

public import Attention.Spec.ScoreMods
public import Attention.Proof.Online.Attention

public section

/-! # A masked key is as if it were not there -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}

/-- The state of a row is that of its first key merged with that of the rest. -/
private theorem ofBlock_cons (key : ScoredValue S R d) (row : List (ScoredValue S R d)) :
    ofBlock (key :: row) = merge (ofBlock [key]) (ofBlock row) :=
  (merge_homomorphism [key] row).symm

/-- A row with every key masked has the empty state. -/
theorem ofBlock_masked {row : List (ScoredValue S R d)} (h : ∀ key ∈ row, key.score = none) :
    ofBlock row = empty :=
  (ofBlock_invariant row).eq_empty ((ofBlock_invariant row).m_eq_none.mpr h)

/-- Masked keys at the end do not change the state. -/
theorem ofBlock_append_masked (row : List (ScoredValue S R d)) {block : List (ScoredValue S R d)}
    (h : ∀ key ∈ block, key.score = none) : ofBlock (row ++ block) = ofBlock row := by
  rw [← merge_homomorphism, ofBlock_masked h, ← ofBlock_nil, merge_homomorphism, List.append_nil]

/-- Leaving the masked keys out does not change the state of a row. -/
theorem ofBlock_filter (row : List (ScoredValue S R d)) :
    ofBlock (row.filter (·.score.isSome)) = ofBlock row := by
  induction row with
  | nil => rfl
  | cons key row ih =>
    cases hs : key.score with
    | some s => rw [List.filter_cons_of_pos (by simp [hs]), ofBlock_cons, ih, ← ofBlock_cons]
    | none =>
      rw [List.filter_cons_of_neg (by simp [hs]), ih, ofBlock_cons key row,
        ofBlock_masked (row := [key]) (by simp [hs]), ← ofBlock_nil, merge_homomorphism,
        List.nil_append]

/-- Leaving the masked keys out does not change the attention of a row. -/
theorem attend_filter (row : List (ScoredValue S R d)) :
    attend (row.filter (·.score.isSome)) = attend row := by
  rw [← finish_ofBlock, ofBlock_filter, finish_ofBlock]

variable (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

omit [OrderedField R] [Exponential S R] in
/-- Under a mask a pair has its own score, or none. -/
theorem score_andThen_mask (i : Fin q_len) (j : Fin kv_len) :
    score scale (modify.andThen mask.toScoreMod) Q K i j
      = if mask i j then score scale modify Q K i j else none := by
  simp only [score, ScoreMod.andThen]
  generalize modify i j _ = s
  cases s with
  | none => cases mask i j <;> rfl
  | some s => rfl

/-- Under a mask a row's state is that of its visible keys. -/
theorem ofBlock_scored_mask (i : Fin q_len) (cols : List (Fin kv_len)) :
    ofBlock (scored scale (modify.andThen mask.toScoreMod) Q K V i cols)
      = ofBlock (scored scale modify Q K V i (cols.filter (mask i))) := by
  rw [← ofBlock_filter, ← ofBlock_filter (scored scale modify Q K V i _)]
  congr 1
  induction cols with
  | nil => rfl
  | cons j cols ih =>
    simp only [scored, List.map_cons, List.filter_cons, score_andThen_mask] at ih ⊢
    cases hj : mask i j
    · simpa using ih
    · simp only [if_true, List.map_cons, List.filter_cons, ih]

/-- A row of attention is that of all keys as its query sees them. -/
theorem attention_row (i : Fin q_len) :
    (attention scale modify Q K V)[i]
      = attend (scored scale modify Q K V i (List.finRange kv_len)) := by
  rw [attention, Fin.getElem_fin, Vec.getElem_ofFn]

/-- **masked-keys-absent**: under a mask, row i of attention is that of the keys which query i sees,
the others left out. -/
theorem attention_mask (i : Fin q_len) :
    (attention scale (modify.andThen mask.toScoreMod) Q K V)[i]
      = attend (scored scale modify Q K V i ((List.finRange kv_len).filter (mask i))) := by
  rw [attention_row, ← finish_ofBlock, ofBlock_scored_mask, finish_ofBlock]

/-- A row of attention depends on its query and on the keys and values that the query sees. -/
theorem attention_congr_visible {Q' : Matrix S q_len d} {K' : Matrix S kv_len d}
    {V' : Matrix R kv_len d_v} {i : Fin q_len} (hQ : Q[i] = Q'[i])
    (hK : ∀ j, mask i j = true → K[j] = K'[j]) (hV : ∀ j, mask i j = true → V[j] = V'[j]) :
    (attention scale (modify.andThen mask.toScoreMod) Q K V)[i]
      = (attention scale (modify.andThen mask.toScoreMod) Q' K' V')[i] := by
  rw [attention_mask, attention_mask]
  congr 1
  refine List.map_congr_left fun j hj => ?_
  have hj : mask i j = true := (List.mem_filter.mp hj).2
  rw [score, score, hQ, hK j hj, hV j hj]

end Attention.Proof
