module

public import Attention.Spec.MultiHead
public import Attention.Proof.Masks.Segments

public section

/-! # What a row of multi-head attention depends on

Its own query, and the keys and values that its mask lets it see: not how many queries or keys there
are beside. Splitting the columns to the heads, and putting heads side by side, moves nothing from
one row to another; each undoes the other. -/

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

/-! ## Heads side by side -/

/-- The head to which column c belongs, d columns for each: c / d, rounded down. -/
@[expose] def headOf (c : Fin (num_heads * d)) : Fin num_heads :=
  ⟨c.val / d, Nat.div_lt_of_lt_mul (Nat.lt_of_lt_of_eq c.isLt (Nat.mul_comm _ _))⟩

/-- Which of its head's components column c is: c % d. -/
@[expose] def componentOf (c : Fin (num_heads * d)) : Fin d :=
  ⟨c.val % d, Nat.mod_lt _ (Nat.pos_of_ne_zero fun h₀ => by have := c.isLt; simp [h₀] at this)⟩

/-- A column of head h belongs to head h. -/
@[simp] theorem headOf_headColumn (h : Fin num_heads) (c : Fin d) :
    headOf (headColumn h c) = h := by
  have h₀ : 0 < d := Nat.lt_of_le_of_lt (Nat.zero_le _) c.isLt
  apply Fin.ext
  simp only [headOf, headColumn]
  rw [Nat.mul_comm, Nat.mul_add_div h₀, Nat.div_eq_of_lt c.isLt, Nat.add_zero]

/-- The column of component c is that of component c. -/
@[simp] theorem componentOf_headColumn (h : Fin num_heads) (c : Fin d) :
    componentOf (headColumn h c) = c := by
  apply Fin.ext
  simp only [componentOf, headColumn, Nat.mul_add_mod_self_right]
  exact Nat.mod_eq_of_lt c.isLt

/-- Head and component determine the column. -/
@[simp] theorem headColumn_headOf (c : Fin (num_heads * d)) :
    headColumn (headOf c) (componentOf c) = c := by
  apply Fin.ext
  simp only [headOf, headColumn, componentOf]
  exact Nat.div_add_mod' _ _

private theorem getElem_flatMap {heads : List (Vec R d)} {h c : Nat} (hh : h < heads.length)
    (hc : c < d) (hl : h * d + c < (heads.flatMap Vector.toList).length) :
    (heads.flatMap Vector.toList)[h * d + c] = heads[h][c] := by
  induction heads generalizing h with
  | nil => cases hh
  | cons x heads ih =>
    simp only [List.flatMap_cons]
    cases h with
    | zero =>
      simp only [Nat.zero_mul, Nat.zero_add]
      rw [List.getElem_append_left (by simpa using hc)]
      simp
    | succ h =>
      have e : (h + 1) * d + c - x.toList.length = h * d + c := by
        rw [Vector.length_toList, Nat.succ_mul]
        omega
      rw [List.getElem_append_right (by rw [Vector.length_toList, Nat.succ_mul]; omega)]
      simp only [e, List.getElem_cons_succ]
      exact ih (by simpa using hh) _

/-- The column of component c of head h. -/
theorem getElem_concatHeads (heads : Vector (Matrix R n d) num_heads) (i : Fin n)
    (h : Fin num_heads) (c : Fin d) :
    (concatHeads heads)[i][headColumn h c] = heads[h][i][c] := by
  have hh : h.val < (heads.toList.map fun head => head[i]).length := by simp
  have e : heads.toList.flatMap (fun head => head[i].toList)
      = (heads.toList.map fun head => head[i]).flatMap Vector.toList := by
    rw [List.flatMap_map]
  have hl : h.val * d + c.val
      < ((heads.toList.map fun head => head[i]).flatMap Vector.toList).length := by
    rw [← e]
    have := (headColumn h c).isLt
    simp only [headColumn] at this
    simpa [List.length_flatMap, List.map_const'] using this
  have key := getElem_flatMap hh c.isLt hl
  simp only [concatHeads, Fin.getElem_fin, Vec.getElem_ofFn, headColumn] at key e ⊢
  simp only [Vector.getElem_mk, List.getElem_toArray, e]
  rw [key]
  simp

/-- Any column: a component of the head that the column belongs to. -/
theorem getElem_concatHeads_headOf (heads : Vector (Matrix R n d) num_heads) (i : Fin n)
    (c : Fin (num_heads * d)) :
    (concatHeads heads)[i][c] = heads[headOf c][i][componentOf c] := by
  rw [← getElem_concatHeads]
  simp only [headColumn_headOf]

/-- **Row by row**: row i of the heads side by side is made of their rows i, and of nothing else. -/
theorem getElem_concatHeads_congr {heads : Vector (Matrix R n d) num_heads}
    {heads' : Vector (Matrix R n' d) num_heads} {i : Fin n} {i' : Fin n'}
    (h : ∀ c : Fin num_heads, heads[c][i] = heads'[c][i']) :
    (concatHeads heads)[i] = (concatHeads heads')[i'] :=
  Vector.ext fun c hc => by
    have e := getElem_concatHeads_headOf heads i ⟨c, hc⟩
    rw [h, ← getElem_concatHeads_headOf] at e
    exact e

/-- A row that is split to the heads and put side by side again is as it was. -/
theorem concatHeads_splitHeads (X : Matrix R n (num_heads * d)) :
    concatHeads (splitHeads X) = X :=
  Vector.ext fun i hi => Vector.ext fun c hc => by
    have e := getElem_concatHeads_headOf (splitHeads X) ⟨i, hi⟩ ⟨c, hc⟩
    rw [getElem_splitHeads, Fin.getElem_fin (Vec.ofFn _), Vec.getElem_ofFn] at e
    simpa only [Fin.eta, headColumn_headOf] using e

/-- Heads that are put side by side and split again are what they were. -/
theorem splitHeads_concatHeads (heads : Vector (Matrix R n d) num_heads) :
    splitHeads (concatHeads heads) = heads :=
  Vector.ext fun h hh => Vector.ext fun i hi => Vector.ext fun c hc => by
    have e := congrArg (·[c]) (getElem_splitHeads (concatHeads heads) ⟨h, hh⟩ ⟨i, hi⟩)
    simp only [Vec.getElem_ofFn] at e
    exact e.trans (getElem_concatHeads heads ⟨i, hi⟩ ⟨h, hh⟩ ⟨c, hc⟩)

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
