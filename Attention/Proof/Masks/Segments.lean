module

public import Attention.Proof.Masks.Basic
public import Attention.Proof.Masks.Visible

public section

/-! # A query that sees one segment of the keys

Padding, packed documents and the causal mask leave each query a run of consecutive keys; its row is
that of attention over these keys alone, as matrices of their own. -/

namespace Attention.Proof

open Spec

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len q_len' kv_len kv_len' d d_v : Nat}

/-- The numbers below n from k on, m of them, are a run of m numbers. -/
private theorem filter_finRange {n k m : Nat} (h : k + m ≤ n) {p : Fin n → Bool}
    (hp : ∀ j, p j = true ↔ k ≤ j.val ∧ j.val < k + m) :
    (List.finRange n).filter p
      = (List.finRange m).map fun j => (j.natAdd k).castLE h := by
  have e : (List.finRange n).filter p = ((List.finRange n).drop k).take m := by
    conv =>
      lhs
      rw [← List.take_append_drop k (List.finRange n),
        ← List.take_append_drop m ((List.finRange n).drop k)]
    rw [List.filter_append, List.filter_append, List.filter_eq_nil_iff.mpr,
      List.filter_eq_self.mpr, List.filter_eq_nil_iff.mpr, List.nil_append, List.append_nil]
    · intro j hj
      obtain ⟨x, hx, rfl⟩ := List.mem_drop_iff_getElem.mp hj
      simp only [hp, List.getElem_drop, List.getElem_finRange, Fin.val_cast]
      omega
    · intro j hj
      obtain ⟨x, hx, rfl⟩ := List.mem_take_iff_getElem.mp hj
      simp only [hp, List.getElem_drop, List.getElem_finRange, Fin.val_cast]
      omega
    · intro j hj
      obtain ⟨x, hx, rfl⟩ := List.mem_take_iff_getElem.mp hj
      simp only [hp, List.getElem_finRange, Fin.val_cast]
      omega
  rw [e]
  exact List.ext_getElem (by simp; omega) fun j _ _ => by simp

/-- A row of attention under a mask that lets a run of keys through, written over the run. -/
theorem attention_run (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {i : Fin q_len}
    {k m : Nat} (h : k + m ≤ kv_len)
    (hmask : ∀ j, mask i j = true ↔ k ≤ j.val ∧ j.val < k + m) :
    (attention scale (modify.andThen mask.toScoreMod) Q K V)[i]
      = attend (scored scale modify Q K V i
          ((List.finRange m).map fun j => (j.natAdd k).castLE h)) := by
  rw [attention_mask, filter_finRange h hmask]

/-- A query that sees the keys from k to k + kv_len' − 1 and no others has the row of
attention over these keys and values alone. -/
theorem attention_segment {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S q_len' kv_len'} {mask : Mask q_len kv_len}
    {Q : Matrix S q_len d} {Q' : Matrix S q_len' d} {K : Matrix S kv_len d}
    {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v} {V' : Matrix R kv_len' d_v}
    {i : Fin q_len} {i' : Fin q_len'} {k : Nat} (h : k + kv_len' ≤ kv_len)
    (hmask : ∀ j, mask i j = true ↔ k ≤ j.val ∧ j.val < k + kv_len') (hQ : Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = k + j'.val →
      modify i j = modify' i' j' ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    (attention scale (modify.andThen mask.toScoreMod) Q K V)[i]
      = (attention scale modify' Q' K' V')[i'] := by
  rw [attention_run scale modify mask Q K V h hmask, attention_row, scored, scored, List.map_map]
  congr 1
  refine List.map_congr_left fun j _ => ?_
  obtain ⟨hm, hK, hV⟩ := hkeys ((j.natAdd k).castLE h) j rfl
  rw [Function.comp, score, score, hm, hQ, hK, hV]

/-- The keys and values in the padding do not matter, wherever it is. -/
theorem attention_keyPadding (scale : S) (modify : ScoreMod S q_len kv_len)
    (valid : Vector Bool kv_len) (Q : Matrix S q_len d) {K K' : Matrix S kv_len d}
    {V V' : Matrix R kv_len d_v} (hK : ∀ j : Fin kv_len, valid[j] = true → K[j] = K'[j])
    (hV : ∀ j : Fin kv_len, valid[j] = true → V[j] = V'[j]) :
    attention scale (modify.andThen (Mask.keyPadding valid).toScoreMod) Q K V
      = attention scale (modify.andThen (Mask.keyPadding valid).toScoreMod) Q K' V' :=
  Vector.ext fun i hi => attention_congr_visible scale modify (Mask.keyPadding valid) Q K V
    (i := ⟨i, hi⟩) rfl (fun j hj => hK j hj) (fun j hj => hV j hj)

/-- **key-padding**: when all keys but the first kv_len' are masked as padding, attention is that of
the first kv_len' keys and values alone, whatever the padding holds. -/
theorem attention_keyLength {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S q_len kv_len'} (Q : Matrix S q_len d) {K : Matrix S kv_len d}
    {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v} {V' : Matrix R kv_len' d_v}
    (h : kv_len' ≤ kv_len)
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val →
      (∀ i, modify i j = modify' i j') ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    attention scale (modify.andThen (Mask.keyLength kv_len').toScoreMod) Q K V
      = attention scale modify' Q K' V' := by
  refine Vector.ext fun i hi => ?_
  refine attention_segment (i := ⟨i, hi⟩) (i' := ⟨i, hi⟩) (k := 0) (by omega) (fun j => ?_) rfl
    fun j j' hj => ?_
  · simp [Mask.keyLength]
  · obtain ⟨hm, hKV⟩ := hkeys j j' (by omega)
    exact ⟨hm _, hKV⟩

/-- **packed-documents**: of several documents in one sequence each has the attention that it has
alone. Here the keys of document c are those from k to k + kv_len' − 1, its queries those from q to
q + q_len' − 1; `modify'` is `modify` as seen from there. -/
theorem attention_document {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S q_len' kv_len'} {queries : Vector Nat q_len} {keys : Vector Nat kv_len}
    {Q : Matrix S q_len d} {Q' : Matrix S q_len' d} {K : Matrix S kv_len d}
    {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v} {V' : Matrix R kv_len' d_v} {c q k : Nat}
    (hq : ∀ i : Fin q_len, q ≤ i.val → i.val < q + q_len' → queries[i] = c)
    (hk : ∀ j : Fin kv_len, keys[j] = c ↔ k ≤ j.val ∧ j.val < k + kv_len')
    (hfit : k + kv_len' ≤ kv_len)
    (hQ : ∀ (i : Fin q_len) (i' : Fin q_len'), i.val = q + i'.val → Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = k + j'.val →
      K[j] = K'[j'] ∧ V[j] = V'[j'])
    (hmodify : ∀ (i : Fin q_len) (i' : Fin q_len') (j : Fin kv_len) (j' : Fin kv_len'),
      i.val = q + i'.val → j.val = k + j'.val → modify i j = modify' i' j')
    {i : Fin q_len} {i' : Fin q_len'} (hi : i.val = q + i'.val) :
    (attention scale (modify.andThen (Mask.document queries keys).toScoreMod) Q K V)[i]
      = (attention scale modify' Q' K' V')[i'] := by
  refine attention_segment hfit (fun j => ?_) (hQ i i' hi) fun j j' hj => ?_
  · rw [document_iff, hq i (by omega) (by omega), ← hk j]
    exact eq_comm
  · exact ⟨hmodify i i' j j' hi hj, hkeys j j' hj⟩

end Attention.Proof
