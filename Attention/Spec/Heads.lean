module

public import Attention.Spec.Attention

public section

/-! # Heads

Multi-head attention is one attention for each head. In grouped-query attention several query heads
share one head of keys and values.
Source: Ainslie et al. 2023, "GQA", section 2.2; Shazeer 2019, "Fast Transformer Decoding" (one
key-value head: multi-query attention). -/

namespace Attention.Spec

universe u v w

variable {S : Type u} {R : Type v} {q_len kv_len d d_v num_heads num_kv_heads group : Nat}

/-- The head of keys and values that query head `h` uses, `group` query heads in a row sharing one:
h / group, rounded down. -/
@[expose] def kvHead (h : Fin (num_kv_heads * group)) : Fin num_kv_heads :=
  ⟨h.val / group, Nat.div_lt_of_lt_mul (Nat.lt_of_lt_of_eq h.isLt (Nat.mul_comm _ _))⟩

/-- Each head `group` times in a row, as PyTorch's `repeat_interleave` does it. -/
@[expose] def repeatHeads {α : Type w} (group : Nat) (X : Vector α num_kv_heads) :
    Vector α (num_kv_heads * group) :=
  ⟨(X.toList.flatMap (List.replicate group)).toArray, by
    simp [List.length_flatMap, List.map_const']⟩

/-- The head of row `r` of the queries that are packed for the head `c` of keys and values: the
(r % group)th of those that share it. -/
@[expose] def packedHead (c : Fin num_kv_heads) (r : Fin (q_len * group)) :
    Fin (num_kv_heads * group) :=
  ⟨c.val * group + r.val % group, by
    have h₀ : 0 < group := Nat.pos_of_ne_zero fun h => by have := r.isLt; simp [h] at this
    have h₁ := Nat.mod_lt r.val h₀
    have h₂ := Nat.mul_le_mul_right group (Nat.succ_le_of_lt c.isLt)
    rw [Nat.succ_mul] at h₂
    omega⟩

/-- The query of row `r` of the packed queries: r / group, rounded down. -/
@[expose] def packedQuery (r : Fin (q_len * group)) : Fin q_len :=
  ⟨r.val / group, Nat.div_lt_of_lt_mul (Nat.lt_of_lt_of_eq r.isLt (Nat.mul_comm _ _))⟩

/-- The row of query `i` of head `h` among the packed queries. -/
@[expose] def packedRow (h : Fin (num_kv_heads * group)) (i : Fin q_len) : Fin (q_len * group) :=
  ⟨i.val * group + h.val % group, by
    have h₀ : 0 < group := Nat.pos_of_ne_zero fun h₀ => by have := h.isLt; simp [h₀] at this
    have h₁ := Nat.mod_lt h.val h₀
    have h₂ := Nat.mul_le_mul_right group (Nat.succ_le_of_lt i.isLt)
    rw [Nat.succ_mul] at h₂
    omega⟩

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] (scale : S)

/-- Multi-head attention: head `h` of the queries over head `h` of the keys and values. -/
@[expose] def multiHead (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) num_heads) (K : Vector (Matrix S kv_len d) num_heads)
    (V : Vector (Matrix R kv_len d_v) num_heads) : Vector (Matrix R q_len d_v) num_heads :=
  Vec.ofFn fun h => attention scale (modify h) Q[h] K[h] V[h]

/-- Grouped-query attention: head `h` of the queries over head h / group of the keys and values. -/
@[expose] def groupedQuery (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    Vector (Matrix R q_len d_v) (num_kv_heads * group) :=
  Vec.ofFn fun h => attention scale (modify h) Q[h] K[kvHead h] V[kvHead h]

/-- One attention for each head of keys and values: the queries of all heads that share it are
packed in one matrix, query by query, so that the keys and values are read once for all of them. -/
@[expose] def attentionPackedHeads
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    Vector (Matrix R (q_len * group) d_v) num_kv_heads :=
  Vec.ofFn fun c =>
    attention scale (fun r j => modify (packedHead c r) (packedQuery r) j)
      (Vec.ofFn fun r => Q[packedHead c r][packedQuery r]) K[c] V[c]

/-- Grouped-query attention with one attention for each head of keys and values; the rows of its
output are given back to the heads that they came from. -/
@[expose] def groupedQueryPacked
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    Vector (Matrix R q_len d_v) (num_kv_heads * group) :=
  let packed := attentionPackedHeads scale modify Q K V
  Vec.ofFn fun h => Vec.ofFn fun i => packed[kvHead h][packedRow h i]

end Attention.Spec
