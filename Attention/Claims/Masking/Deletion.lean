module

public import Attention.Claims.Attention.Order
public import Attention.Claims.Masking.Weights

public section

/-! # Queries and keys that are left out

One theorem for deleting queries, for deleting keys that are masked, and for permuting both: taken
by numbers, queries in any way and keys each at most once, they give the rows of the output with the
numbers of the queries, if every key that is not taken is masked for them. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v w

variable {S : Type u} {R : Type v} {m n q_len kv_len d d_v c_q c_k c_v c : Nat}

/-! ## Rows taken by number -/

/-- The numbers 0, …, n without s, in their order: of n numbers the ith. -/
@[expose] def skip (s : Fin (n + 1)) (i : Fin n) : Fin (n + 1) :=
  if i.val < s.val then i.castSucc else i.succ

/-- A matrix (or any vector) without row s. -/
@[expose] def deleteRow {α : Type w} (s : Fin (n + 1)) (X : Vector α (n + 1)) : Vector α n :=
  reindex (skip s) X

/-- The rows of a mask taken by one numbering, the columns by another. -/
@[expose] def reindexMask (τ : Fin m → Fin q_len) (σ : Fin n → Fin kv_len)
    (B : Matrix (Option S) q_len kv_len) : Matrix (Option S) m n :=
  reindex τ (Vec.map (reindex σ) B)

/-- The rows that are left are those of the list without its sth element. -/
theorem deleteRow_toList {α : Type w} (s : Fin (n + 1)) (X : Vector α (n + 1)) :
    (deleteRow s X).toList = X.toList.eraseIdx s.val := by
  refine List.ext_getElem (by simp [List.length_eraseIdx]) fun i h _ => ?_
  have hi : i < n := by simpa using h
  have e : (deleteRow s X).toList[i] = X[skip s ⟨i, hi⟩] := by
    simp [deleteRow]
  rw [e, List.getElem_eraseIdx]
  by_cases h' : i < s.val <;> simp [skip, h']

/-- No number is taken twice. -/
theorem skip_injective (s : Fin (n + 1)) (i j : Fin n) (h : skip s i = skip s j) : i = j := by
  simp only [skip, Fin.ext_iff] at h ⊢
  split at h <;> split at h <;> simp at h <;> omega

/-- The number that is left out is s, and no other. -/
theorem skip_ne_iff (s j : Fin (n + 1)) : (∀ i, skip s i ≠ j) ↔ j = s := by
  constructor
  · intro h
    refine Classical.byContradiction fun hj => ?_
    have hj : j.val ≠ s.val := fun e => hj (Fin.ext e)
    have hjn := j.isLt
    have hsn := s.isLt
    by_cases h' : j.val < s.val
    · refine h ⟨j.val, by omega⟩ (Fin.ext ?_)
      simp [skip, h']
    · refine h ⟨j.val - 1, by omega⟩ (Fin.ext ?_)
      have : ¬ j.val - 1 < s.val := by omega
      simp [skip, this]
      omega
  · rintro rfl i
    simp only [skip, ne_eq, Fin.ext_iff]
    split <;> simp <;> omega

@[simp] theorem getElem_reindexMask (τ : Fin m → Fin q_len) (σ : Fin n → Fin kv_len)
    (B : Matrix (Option S) q_len kv_len) (i : Fin m) (j : Fin n) :
    (reindexMask τ σ B)[i][j] = B[τ i][σ j] := by
  simp [reindexMask]

/-- Rows taken by number of a matrix whose rows are each mapped are the mapped rows. -/
theorem map_reindex {α : Type u} {β : Type v} (f : α → β) (σ : Fin m → Fin n) (X : Vector α n) :
    Vec.map f (reindex σ X) = reindex σ (Vec.map f X) :=
  Vector.ext fun i hi => by simp

/-- Terms that are 0 outside of the numbers σ, none of which occurs twice: their sum is the sum over
these numbers. -/
theorem sumOver_reindex [OrderedField R] {σ : Fin m → Fin n} (hσ : ∀ a b, σ a = σ b → a = b)
    {f : Fin n → R} (h : ∀ j, (∀ t, σ t ≠ j) → f j = 0) :
    sumOver f (List.finRange n) = sumOver (fun t => f (σ t)) (List.finRange m) := by
  have row : ∀ j, f j = sumOver (fun t => if σ t = j then f j else 0) (List.finRange m) := by
    intro j
    by_cases hj : ∃ t, σ t = j
    · obtain ⟨t₀, rfl⟩ := hj
      refine (sumOver_ite_eq (fun t => f (σ t)) t₀).symm.trans ?_
      refine sumOver_congr fun t _ => ?_
      by_cases ht : t = t₀
      · rw [if_pos ht, if_pos (by rw [ht]), ht]
      · rw [if_neg ht, if_neg fun e => ht (hσ _ _ e)]
    · have hj : ∀ t, σ t ≠ j := fun t e => hj ⟨t, e⟩
      rw [h j hj]
      exact (sumOver_eq_zero fun t _ => by rw [if_neg (hj t)]).symm
  rw [sumOver_congr fun j _ => row j, sumOver_comm]
  refine sumOver_congr fun t _ => ?_
  rw [← sumOver_ite_eq f (σ t)]
  refine sumOver_congr fun j _ => ?_
  by_cases hj : j = σ t
  · rw [if_pos hj, if_pos hj.symm]
  · rw [if_neg hj, if_neg fun e => hj e.symm]

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Queries -/

/-- A row of the output depends on its query and its scores' transformation, and on no other query:
not on how many there are, nor on what they hold. -/
theorem attention_row_congr (scale : S) {modify : ScoreMod S m kv_len}
    {modify' : ScoreMod S n kv_len} {Q : Matrix S m d} {Q' : Matrix S n d} {i : Fin m} {i' : Fin n}
    (hm : modify i = modify' i') (hQ : Q[i] = Q'[i']) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    (attention scale modify Q K V)[i] = (attention scale modify' Q' K V)[i'] := by
  rw [Proof.attention_row, Proof.attention_row]
  simp only [scored, score, hm, hQ]

/-- So does a row of masked attention, the mask taken by its row. -/
theorem maskedAttention_row_congr (scale : S) {B : Matrix (Option S) m kv_len}
    {B' : Matrix (Option S) n kv_len} {Q : Matrix S m d} {Q' : Matrix S n d} {i : Fin m}
    {i' : Fin n} (hB : B[i] = B'[i']) (hQ : Q[i] = Q'[i']) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    (maskedAttention scale B Q K V)[i] = (maskedAttention scale B' Q' K V)[i'] :=
  attention_row_congr 1 (by funext j s; rw [scaledBias, scaledBias, hB]) hQ K V

/-- So does a row of attention with weights. -/
theorem weightedAttention_row_congr (scale : S) {modify : ScoreMod S m kv_len}
    {modify' : ScoreMod S n kv_len} (W : Weights S R c_q c_k c_v d d_v) {Q : Matrix S m c_q}
    {Q' : Matrix S n c_q} {i : Fin m} {i' : Fin n} (hm : modify i = modify' i')
    (hQ : Q[i] = Q'[i']) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    (weightedAttention scale modify W Q K V)[i] = (weightedAttention scale modify' W Q' K V)[i'] :=
  attention_row_congr scale hm (by
    simp only [Weights.queries, Fin.getElem_fin, Vec.getElem_map] at hQ ⊢
    rw [hQ]) _ _

/-! ## Queries and keys -/

/-- **attention-reindex**: queries are taken by any numbers τ, keys and values by numbers σ none of
which occurs twice. If for these queries every other key is masked, the output has the rows τ of the
whole output. So a masked key may be deleted, queries may be, and both may be permuted. -/
theorem attention_reindex (scale : S) (modify : ScoreMod S q_len kv_len) (τ : Fin m → Fin q_len)
    {σ : Fin n → Fin kv_len} (hσ : ∀ a b, σ a = σ b → a = b) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (h : ∀ i j, (∀ t, σ t ≠ j) → score scale modify Q K (τ i) j = none) :
    attention scale (fun i t => modify (τ i) (σ t)) (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (attention scale modify Q K V) := by
  rw [attention_reindex_queries scale (fun i t => modify i (σ t))]
  refine Vector.ext fun i hi => Vector.ext fun x hx => ?_
  rw [getElem_reindex, getElem_reindex]
  refine Eq.trans (Proof.getElem_attention_eq_weights scale (fun i t => modify i (σ t)) Q
    (reindex σ K) (reindex σ V) (τ ⟨i, hi⟩) ⟨x, hx⟩) (Eq.trans ?_
    (Proof.getElem_attention_eq_weights scale modify Q K V (τ ⟨i, hi⟩) ⟨x, hx⟩).symm)
  have e : ∀ t, score scale (fun i t => modify i (σ t)) Q (reindex σ K) (τ ⟨i, hi⟩) t
      = score scale modify Q K (τ ⟨i, hi⟩) (σ t) := fun t => by
    simp only [score, Fin.getElem_fin, getElem_reindex]
  have z : ∀ j, (∀ t, σ t ≠ j) → (weight (score scale modify Q K (τ ⟨i, hi⟩) j) : R) = 0 :=
    fun j hj => by rw [h ⟨i, hi⟩ j hj, weight]
  rw [sumOver_reindex hσ z, sumOver_reindex hσ (f := fun k : Fin kv_len =>
    (weight (score scale modify Q K (τ ⟨i, hi⟩) k) : R) * V[k][(⟨x, hx⟩ : Fin d_v)])
    fun j hj => by simp only [z j hj, Semiring.zero_mul]]
  simp only [e, Fin.getElem_fin, getElem_reindex]

/-- The same of masked attention, the mask taken by both. -/
theorem maskedAttention_reindex (scale : S) (B : Matrix (Option S) q_len kv_len)
    (τ : Fin m → Fin q_len) {σ : Fin n → Fin kv_len} (hσ : ∀ a b, σ a = σ b → a = b)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (h : ∀ i j, (∀ t, σ t ≠ j) → B[τ i][j] = none) :
    maskedAttention scale (reindexMask τ σ B) (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (maskedAttention scale B Q K V) := by
  refine Eq.trans ?_ (attention_reindex 1 (scaledBias scale B) τ hσ Q K V fun i j hj => by
    rw [score_scaledBias, h i j hj, Option.map_none])
  rw [maskedAttention]
  congr 1
  funext i t s
  rw [scaledBias, scaledBias, getElem_reindexMask]

/-- The same of attention with weights. -/
theorem weightedAttention_reindex (scale : S) (modify : ScoreMod S q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (τ : Fin m → Fin q_len) {σ : Fin n → Fin kv_len}
    (hσ : ∀ a b, σ a = σ b → a = b) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v)
    (h : ∀ i j, (∀ t, σ t ≠ j) → ∀ s, modify (τ i) j s = none) :
    weightedAttention scale (fun i t => modify (τ i) (σ t)) W (reindex τ Q) (reindex σ K)
        (reindex σ V)
      = reindex τ (weightedAttention scale modify W Q K V) := by
  simp only [weightedAttention, Weights.queries, Weights.keys, Weights.values, map_reindex]
  exact attention_reindex scale modify τ hσ _ _ _ fun i j hj => h i j hj _

/-- The same of masked attention with weights. -/
theorem maskedWeightedAttention_reindex (scale : S) (B : Matrix (Option S) q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (τ : Fin m → Fin q_len) {σ : Fin n → Fin kv_len}
    (hσ : ∀ a b, σ a = σ b → a = b) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) (h : ∀ i j, (∀ t, σ t ≠ j) → B[τ i][j] = none) :
    maskedWeightedAttention scale (reindexMask τ σ B) W (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (maskedWeightedAttention scale B W Q K V) := by
  simp only [maskedWeightedAttention, Weights.queries, Weights.keys, Weights.values, map_reindex]
  exact maskedAttention_reindex scale B τ hσ _ _ _ h

/-- The same of masked self-attention, where what is taken of the inputs is taken of queries, keys
and values. -/
theorem maskedSelfAttention_reindex (ι : S → R) (scale : S) (B : Matrix (Option S) n n)
    (W : Weights S R c c c d d_v) {σ : Fin m → Fin n} (hσ : ∀ a b, σ a = σ b → a = b)
    (X : Matrix S n c) (h : ∀ i j, (∀ t, σ t ≠ j) → B[σ i][j] = none) :
    maskedSelfAttention ι scale (reindexMask σ σ B) W (reindex σ X)
      = reindex σ (maskedSelfAttention ι scale B W X) := by
  simp only [maskedSelfAttention, map_reindex]
  exact maskedWeightedAttention_reindex scale B W σ hσ _ _ _ h

/-! ## Deletion -/

private theorem reindex_id {α : Type w} (X : Vector α n) : reindex id X = X :=
  Vector.ext fun i hi => by simp

omit [OrderedCommRing S] in
private theorem reindexMask_skip (s : Fin (m + 1)) (B : Matrix (Option S) (m + 1) kv_len) :
    reindexMask (skip s) id B = deleteRow s B := by
  refine Vector.ext fun i hi => ?_
  simp [reindexMask, deleteRow, reindex_id]

/-- Query deletion: without query s the output is without row s, and else the same. -/
theorem attention_delete_query (scale : S) (modify : ScoreMod S (m + 1) kv_len) (s : Fin (m + 1))
    (Q : Matrix S (m + 1) d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    attention scale (fun i => modify (skip s i)) (deleteRow s Q) K V
      = deleteRow s (attention scale modify Q K V) :=
  attention_reindex_queries scale modify (skip s) Q K V

/-- Query deletion with a mask, which loses its row s. -/
theorem maskedAttention_delete_query (scale : S) (B : Matrix (Option S) (m + 1) kv_len)
    (s : Fin (m + 1)) (Q : Matrix S (m + 1) d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    maskedAttention scale (deleteRow s B) (deleteRow s Q) K V
      = deleteRow s (maskedAttention scale B Q K V) := by
  have h := maskedAttention_reindex (R := R) scale B (skip s) (σ := id) (fun _ _ h => h) Q K V
    fun _ j h => absurd rfl (h j)
  rwa [reindexMask_skip, reindex_id, reindex_id] at h

/-- Query deletion with weights. -/
theorem weightedAttention_delete_query (scale : S) (modify : ScoreMod S (m + 1) kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (s : Fin (m + 1)) (Q : Matrix S (m + 1) c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    weightedAttention scale (fun i => modify (skip s i)) W (deleteRow s Q) K V
      = deleteRow s (weightedAttention scale modify W Q K V) := by
  simp only [weightedAttention, Weights.queries, deleteRow, map_reindex]
  exact attention_delete_query scale modify s _ _ _

/-- Query deletion with a mask and weights. -/
theorem maskedWeightedAttention_delete_query (scale : S)
    (B : Matrix (Option S) (m + 1) kv_len) (W : Weights S R c_q c_k c_v d d_v) (s : Fin (m + 1))
    (Q : Matrix S (m + 1) c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    maskedWeightedAttention scale (deleteRow s B) W (deleteRow s Q) K V
      = deleteRow s (maskedWeightedAttention scale B W Q K V) := by
  simp only [maskedWeightedAttention, Weights.queries, deleteRow, map_reindex]
  exact maskedAttention_delete_query scale B s _ _ _

/-- Key-value deletion: a key that is masked for every query may be deleted, with its value and the
column of the mask. -/
theorem maskedAttention_delete_key (scale : S) {B : Matrix (Option S) q_len (n + 1)}
    {s : Fin (n + 1)} (h : ∀ i : Fin q_len, B[i][s] = none) (Q : Matrix S q_len d)
    (K : Matrix S (n + 1) d) (V : Matrix R (n + 1) d_v) :
    maskedAttention scale (Vec.map (deleteRow s) B) Q (deleteRow s K) (deleteRow s V)
      = maskedAttention scale B Q K V := by
  have h := maskedAttention_reindex (R := R) scale B id (skip_injective s) Q K V
    fun i j hj => by rw [(skip_ne_iff s j).mp hj]; exact h i
  rwa [reindexMask, reindex_id, reindex_id, reindex_id] at h

/-- Key-value deletion with weights. -/
theorem maskedWeightedAttention_delete_key (scale : S) {B : Matrix (Option S) q_len (n + 1)}
    (W : Weights S R c_q c_k c_v d d_v) {s : Fin (n + 1)}
    (h : ∀ i : Fin q_len, B[i][s] = none) (Q : Matrix S q_len c_q) (K : Matrix S (n + 1) c_k)
    (V : Matrix R (n + 1) c_v) :
    maskedWeightedAttention scale (Vec.map (deleteRow s) B) W Q (deleteRow s K) (deleteRow s V)
      = maskedWeightedAttention scale B W Q K V := by
  simp only [maskedWeightedAttention, Weights.keys, Weights.values, deleteRow, map_reindex]
  exact maskedAttention_delete_key scale h _ _ _

/-- Input deletion: an input that no other may attend to may be deleted, with its row and column of
the mask; the output loses its row. -/
theorem maskedSelfAttention_delete (ι : S → R) (scale : S)
    {B : Matrix (Option S) (n + 1) (n + 1)} (W : Weights S R c c c d d_v) {s : Fin (n + 1)}
    (h : ∀ i, i ≠ s → B[i][s] = none) (X : Matrix S (n + 1) c) :
    maskedSelfAttention ι scale (deleteRow s (Vec.map (deleteRow s) B)) W (deleteRow s X)
      = deleteRow s (maskedSelfAttention ι scale B W X) :=
  maskedSelfAttention_reindex ι scale B W (skip_injective s) X fun i j hj => by
    rw [(skip_ne_iff s j).mp hj]
    exact h _ fun e => (skip_ne_iff s s).mpr rfl i e

end

end Attention.Claims
