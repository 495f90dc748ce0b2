module

public import Attention.Spec.Heads
public import Attention.Proof.Softmax.Attention

public section

/-! # Grouped-query attention is multi-head attention with repeated heads -/

namespace Attention.Proof

open Spec

universe u v w

variable {S : Type u} {R : Type v} {q_len kv_len d d_v num_kv_heads group : Nat}

private theorem getElem?_flatMap_replicate {α : Type w} (hg : 0 < group) :
    ∀ (xs : List α) (h : Nat), (xs.flatMap (List.replicate group))[h]? = xs[h / group]?
  | [], h => by simp
  | x :: xs, h => by
    rw [List.flatMap_cons, List.getElem?_append, List.length_replicate]
    by_cases hh : h < group
    · simp [hh, Nat.div_eq_of_lt hh]
    · have h₁ : h / group = (h - group) / group + 1 := Nat.div_eq_sub_div hg (by omega)
      rw [if_neg hh, getElem?_flatMap_replicate hg xs, h₁, List.getElem?_cons_succ]

/-- Head `h` of the repeated heads is head h / group. -/
theorem getElem_repeatHeads {α : Type w} (X : Vector α num_kv_heads)
    (h : Fin (num_kv_heads * group)) : (repeatHeads group X)[h] = X[kvHead h] := by
  have hg : 0 < group := Nat.pos_of_ne_zero fun h₀ => by
    have := h.isLt
    simp [h₀] at this
  have h₁ := getElem?_flatMap_replicate hg X.toList h
  have h₂ := (kvHead h).isLt
  simp only [kvHead] at h₂ ⊢
  rw [List.getElem?_eq_getElem (l := X.toList) (by simpa using h₂)] at h₁
  exact (List.getElem?_eq_some_iff.mp h₁).2

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- **gqa-repeat**: grouped-query attention is multi-head attention with each head of the keys and
values repeated `group` times in a row. -/
theorem gqa_repeat (scale : S) (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    groupedQuery scale modify Q K V
      = multiHead scale modify Q (repeatHeads group K) (repeatHeads group V) := by
  simp only [groupedQuery, multiHead, getElem_repeatHeads]

/-! ## The queries of a group in one matrix -/

private theorem packedHead_packedRow (h : Fin (num_kv_heads * group)) (i : Fin q_len) :
    packedHead (kvHead h) (packedRow h i) = h := by
  apply Fin.ext
  simp only [packedHead, kvHead, packedRow, Nat.mul_add_mod_self_right, Nat.mod_mod]
  exact Nat.div_add_mod' _ _

private theorem packedQuery_packedRow (h : Fin (num_kv_heads * group)) (i : Fin q_len) :
    packedQuery (packedRow h i) = i := by
  have h₀ : 0 < group := Nat.pos_of_ne_zero fun h₀ => by
    have := h.isLt
    simp [h₀] at this
  apply Fin.ext
  simp only [packedQuery, packedRow]
  rw [Nat.mul_comm, Nat.mul_add_div h₀, Nat.div_eq_of_lt (Nat.mod_lt _ h₀), Nat.add_zero]

/-- A row of the packed outputs is the attention of the query that was packed there. -/
private theorem getElem_packed (scale : S)
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads)
    (c : Fin num_kv_heads) (r : Fin (q_len * group)) {h : Fin (num_kv_heads * group)}
    {i : Fin q_len} (hh : packedHead c r = h) (hi : packedQuery r = i) :
    (attentionPackedHeads scale modify Q K V)[c][r]
      = attend (scored scale (modify h) Q[h] K[c] V[c] i (List.finRange kv_len)) := by
  subst hh hi
  have h : (attentionPackedHeads scale modify Q K V)[c]
      = attention scale (fun r j => modify (packedHead c r) (packedQuery r) j)
          (Vec.ofFn fun r => Q[packedHead c r][packedQuery r]) K[c] V[c] :=
    Vec.getElem_ofFn _ c.isLt
  rw [h]
  refine (Vec.getElem_ofFn _ r.isLt).trans (congrArg attend (List.map_congr_left fun j _ => ?_))
  rw [score, score, Fin.getElem_fin, Vec.getElem_ofFn]

/-- **gqa-packed**: grouped-query attention may be computed with the queries of the heads that share
a head of keys and values packed in one matrix, one attention for each head of keys and values. -/
theorem gqa_packed (scale : S) (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    groupedQueryPacked scale modify Q K V = groupedQuery scale modify Q K V := by
  refine Vector.ext fun h hh => Vector.ext fun i hi => ?_
  rw [groupedQueryPacked, groupedQuery, Vec.getElem_ofFn, Vec.getElem_ofFn, Vec.getElem_ofFn,
    getElem_packed scale modify Q K V _ _ (packedHead_packedRow _ _) (packedQuery_packedRow _ _),
    attention, Vec.getElem_ofFn]

end Attention.Proof
