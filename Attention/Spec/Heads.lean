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

end Attention.Spec
