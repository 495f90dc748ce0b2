module

public import Attention.Spec.Rows
public import Attention.Proof.Softmax.Attention

public section

/-! # Rows put together, and keys that do not count -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

section
variable [Add S] [Mul S] [OfNat S 0] (scale : S)

/-- There are as many scored keys as keys. -/
@[simp] theorem length_scoredRows (modify : Nat → S → Option S) (q : Vec S d)
    (kvs : List (KeyValue S R d d_v)) : (scoredRows scale modify q kvs).length = kvs.length := by
  simp [scoredRows]

/-- The keys of two lists put together: the positions of the second list go on from the first. -/
theorem scoredRows_append (modify : Nat → S → Option S) (q : Vec S d)
    (xs ys : List (KeyValue S R d d_v)) :
    scoredRows scale modify q (xs ++ ys)
      = scoredRows scale modify q xs
        ++ scoredRows scale (fun j => modify (xs.length + j)) q ys := by
  simp only [scoredRows, List.zipIdx_append, List.map_append, Nat.zero_add]
  rw [List.zipIdx_eq_map_add (l := ys)]
  simp [Function.comp_def, Nat.add_comm]

/-- Score transformations that agree on the positions of the list give the same scores. -/
theorem scoredRows_congr {f g : Nat → S → Option S} (q : Vec S d)
    (kvs : List (KeyValue S R d d_v)) (h : ∀ j, j < kvs.length → ∀ s, f j s = g j s) :
    scoredRows scale f q kvs = scoredRows scale g q kvs := by
  refine List.ext_getElem (by simp) fun j h₁ h₂ => ?_
  simp only [scoredRows, List.getElem_map, List.getElem_zipIdx, Nat.zero_add]
  rw [h j (by simpa using h₁)]

/-- When the transformation masks every position, every key is masked. -/
theorem scoredRows_masked {f : Nat → S → Option S} (q : Vec S d) (kvs : List (KeyValue S R d d_v))
    (h : ∀ j, j < kvs.length → ∀ s, f j s = none) :
    ∀ key ∈ scoredRows scale f q kvs, key.score = none := by
  intro key hk
  obtain ⟨j, hj, rfl⟩ := List.getElem_of_mem hk
  simp only [scoredRows, List.getElem_map, List.getElem_zipIdx, Nat.zero_add]
  exact h j (by simpa using hj) _

omit [Add S] [Mul S] [OfNat S 0] in
/-- There are as many rows as keys. -/
@[simp] theorem length_keyValues (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    (keyValues K V).length = kv_len := by
  simp [keyValues]

/-- The keys as query `i` sees them are the rows of the two matrices as it sees them. -/
theorem scored_eq_scoredRows (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) {f : Nat → S → Option S}
    (h : ∀ j : Fin kv_len, modify i j = f j) :
    scored scale modify Q K V i (List.finRange kv_len)
      = scoredRows scale f Q[i] (keyValues K V) := by
  refine List.ext_getElem (by simp [scored]) fun j h₁ h₂ => ?_
  have hj : j < kv_len := by simpa using h₂
  simp [scored, scoredRows, score, keyValues, h]

end

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- A row of the output of attention is the attention of this query over the rows of K and V. -/
theorem getElem_attention (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) {f : Nat → S → Option S}
    (h : ∀ j : Fin kv_len, modify i j = f j) :
    (attention scale modify Q K V)[i] = attendRows scale f Q[i] (keyValues K V) := by
  simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn, attendRows]
  rw [scored_eq_scoredRows scale modify Q K V i h, Fin.getElem_fin]

/-- **attention-rows**: attention of lists of rows is attention of the matrices with these rows. -/
theorem toList_attention (scale : S) (modify : Nat → Nat → S → Option S) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    (attention scale (fun i j => modify i j) Q K V).toList
      = attentionRows scale modify Q.toList (keyValues K V) := by
  refine List.ext_getElem (by simp [attentionRows]) fun i h₁ h₂ => ?_
  have hi : i < q_len := by simpa using h₁
  have h := getElem_attention scale (fun i j => modify i j) Q K V ⟨i, hi⟩ (f := modify i)
    fun _ => rfl
  simpa [attentionRows] using h

/-! ## Masked keys do not count -/

/-- The denominator of two rows put together. -/
theorem denominator_append (xs ys : List (Option S)) :
    (denominator (xs ++ ys) : R) = denominator xs + denominator ys :=
  sumOver_append _ _ _

/-- The numerator of two rows put together. -/
theorem numerator_append (xs ys : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    numerator (xs ++ ys) j h = numerator xs j h + numerator ys j h :=
  sumOver_append _ _ _

/-- The denominator of masked keys is 0. -/
theorem denominator_masked {row : List (ScoredValue S R d)}
    (h : ∀ key ∈ row, key.score = none) : (denominator (row.map (·.score)) : R) = 0 := by
  rw [denominator, sumOver_map]
  exact sumOver_eq_zero fun key hk => by rw [h key hk, weight]

/-- The numerator of masked keys is 0. -/
theorem numerator_masked {row : List (ScoredValue S R d)}
    (h : ∀ key ∈ row, key.score = none) {j : Nat} (hj : j < d) : numerator row j hj = 0 :=
  sumOver_eq_zero fun key hk => by rw [h key hk, weight, Semiring.zero_mul]

/-- Masked keys at the end change nothing. -/
theorem attend_append_masked (xs : List (ScoredValue S R d)) {ys : List (ScoredValue S R d)}
    (h : ∀ key ∈ ys, key.score = none) : attend (xs ++ ys) = attend xs := by
  refine Vector.ext fun j hj => ?_
  rw [getElem_attend, getElem_attend, List.map_append, denominator_append, numerator_append,
    denominator_masked h, numerator_masked h, Semiring.add_zero, Semiring.add_zero]

/-- Masked keys at the start change nothing. -/
theorem attend_masked_append {xs : List (ScoredValue S R d)} (ys : List (ScoredValue S R d))
    (h : ∀ key ∈ xs, key.score = none) : attend (xs ++ ys) = attend ys :=
  (attend_perm List.perm_append_comm).trans (attend_append_masked ys h)

end Attention.Proof
