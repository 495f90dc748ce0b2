module

public import Attention.Spec.MultiHead
public import Attention.Proof.Segments

public section

/-! # What a row of multi-head attention depends on

Its own query, and the keys and values that its mask lets it see: not how many queries or keys there
are beside. Splitting the columns to the heads moves nothing from one row to another. -/

namespace Attention.Proof

open Spec

universe u v

variable {S : Type u} {R : Type v} {n n' q_len q_len' kv_len kv_len' num_heads d d_v d_model : Nat}

/-! ## Rows -/

/-- A row of a linear layer's output is that of the row. -/
theorem getElem_linear [Add R] [Mul R] [OfNat R 0] {d_in d_out : Nat} (W : Linear R d_in d_out)
    (X : Matrix R n d_in) (i : Fin n) : (W.rows X)[i] = W.row X[i] := by
  rw [Linear.rows, Fin.getElem_fin, Vec.getElem_map, Fin.getElem_fin]

/-- A row of a sum of matrices is the sum of the rows. -/
theorem getElem_addRows [Add R] (X Y : Matrix R n d) (i : Fin n) :
    (addRows X Y)[i] = Vec.add X[i] Y[i] := by
  rw [addRows, Fin.getElem_fin, Vec.getElem_ofFn]

/-- Row i of head h after the split: components h · d to h · d + d − 1 of row i. -/
theorem getElem_splitHeads (X : Matrix R n (num_heads * d)) (h : Fin num_heads) (i : Fin n) :
    (splitHeads X)[h][i] = Vec.ofFn fun c => X[i][headColumn h c] := by
  simp only [splitHeads, Fin.getElem_fin, Vec.getElem_ofFn]

private theorem flatMap_congr {α β γ : Type v} {xs : List α} {ys : List β} {f : α → List γ}
    {g : β → List γ} (h : xs.map f = ys.map g) : xs.flatMap f = ys.flatMap g := by
  rw [List.flatMap_def, List.flatMap_def, h]

/-- Row i of the heads side by side depends on their rows i only. -/
theorem getElem_concatHeads_congr {heads : Vector (Matrix R n d) num_heads}
    {heads' : Vector (Matrix R n' d) num_heads} {i : Fin n} {i' : Fin n'}
    (h : ∀ c : Fin num_heads, heads[c][i] = heads'[c][i']) :
    (concatHeads heads)[i] = (concatHeads heads')[i'] := by
  have e : heads.toList.flatMap (fun head => head[i].toList)
      = heads'.toList.flatMap (fun head => head[i'].toList) := by
    refine flatMap_congr (List.ext_getElem (by simp) fun c hc _ => ?_)
    have hc : c < num_heads := by simpa using hc
    simpa using congrArg Vector.toList (h ⟨c, hc⟩)
  simp only [concatHeads, Fin.getElem_fin, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin] at e
  simp only [e]

/-! ## Attention -/

variable [OrderedCommRing S] [OrderedField R]

/-- A row of attention depends on its query, on which of the first m keys it sees, and on those,
when it sees none of the others. -/
theorem attention_congr_prefix [Exponential S R] {scale : S} {mask : Mask q_len kv_len}
    {mask' : Mask q_len' kv_len'} {Q : Matrix S q_len d} {Q' : Matrix S q_len' d}
    {K : Matrix S kv_len d} {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v}
    {V' : Matrix R kv_len' d_v} {i : Fin q_len} {i' : Fin q_len'} {m : Nat}
    (hm : m ≤ kv_len) (hm' : m ≤ kv_len')
    (hmask : ∀ j : Fin kv_len, mask i j = true → j.val < m)
    (hmask' : ∀ j : Fin kv_len', mask' i' j = true → j.val < m) (hQ : Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val → j.val < m →
      mask i j = mask' i' j' ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    (attention scale mask.toScoreMod Q K V)[i]
      = (attention scale mask'.toScoreMod Q' K' V')[i'] := by
  have run : ∀ {q k : Nat} (mask : Mask q k) (Q : Matrix S q d) (K : Matrix S k d)
      (V : Matrix R k d_v) (i : Fin q) (hm : m ≤ k), (∀ j, mask i j = true → j.val < m) →
      (attention scale mask.toScoreMod Q K V)[i] = attend (scored scale mask.toScoreMod Q K V i
        ((List.finRange m).map fun j => (j.natAdd 0).castLE (by omega))) := by
    intro q k mask Q K V i hm hmask
    rw [← attention_run scale mask.toScoreMod (Mask.keyLength m) Q K V (k := 0) (by omega)
      (fun j => by simp [Mask.keyLength]), attention_row, attention_row]
    congr 1
    refine List.map_congr_left fun j _ => ?_
    rw [score_andThen_mask]
    by_cases hj : j.val < m
    · simp [Mask.keyLength, hj]
    · have : mask i j = false := by
        cases h : mask i j
        · rfl
        · exact absurd (hmask j h) hj
      simp [Mask.keyLength, hj, score, Mask.toScoreMod, this]
  rw [run mask Q K V i hm hmask, run mask' Q' K' V' i' hm' hmask', scored, scored, List.map_map,
    List.map_map]
  congr 1
  refine List.map_congr_left fun j _ => ?_
  obtain ⟨hs, hK, hV⟩ := hkeys ((j.natAdd 0).castLE (by omega)) ((j.natAdd 0).castLE (by omega)) rfl
    (by simp only [Fin.val_castLE, Fin.val_natAdd]; omega)
  simp only [Function.comp, score, Mask.toScoreMod, hs, hQ, hK, hV]

/-- **multi-head-visible**: a row of multi-head attention depends on its own projected query, on
which of the first m keys it sees, and on those, when it sees none of the others. -/
theorem multiHead_attend_congr [Exponential R R] {scale : R} {W : MultiHead R d_model num_heads d}
    {mask : Mask q_len kv_len} {mask' : Mask q_len' kv_len'}
    {Q : Matrix R q_len (num_heads * d)} {Q' : Matrix R q_len' (num_heads * d)}
    {K V : Matrix R kv_len (num_heads * d)} {K' V' : Matrix R kv_len' (num_heads * d)}
    {i : Fin q_len} {i' : Fin q_len'} {m : Nat} (hm : m ≤ kv_len) (hm' : m ≤ kv_len')
    (hmask : ∀ j : Fin kv_len, mask i j = true → j.val < m)
    (hmask' : ∀ j : Fin kv_len', mask' i' j = true → j.val < m) (hQ : Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val → j.val < m →
      mask i j = mask' i' j' ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    (W.attend scale mask Q K V)[i] = (W.attend scale mask' Q' K' V')[i'] := by
  rw [MultiHead.attend, MultiHead.attend, getElem_linear, getElem_linear]
  refine congrArg W.output.row (getElem_concatHeads_congr fun h => ?_)
  have split : ∀ {a b : Nat} {X : Matrix R a (num_heads * d)} {Y : Matrix R b (num_heads * d)}
      {j : Fin a} {j' : Fin b}, X[j] = Y[j'] → (splitHeads X)[h][j] = (splitHeads Y)[h][j'] :=
    fun e => by rw [getElem_splitHeads, getElem_splitHeads, e]
  have e := attention_congr_prefix (R := R) (scale := scale) (Q := (splitHeads Q)[h])
    (Q' := (splitHeads Q')[h]) (K := (splitHeads K)[h]) (K' := (splitHeads K')[h])
    (V := (splitHeads V)[h]) (V' := (splitHeads V')[h]) hm hm' hmask hmask' (split hQ)
    fun j j' hj hjm => have ⟨hs, hK, hV⟩ := hkeys j j' hj hjm; ⟨hs, split hK, split hV⟩
  simpa only [multiHead, Fin.getElem_fin, Vec.getElem_ofFn] using e

end Attention.Proof
