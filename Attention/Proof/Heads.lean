module

public import Attention.Spec.Heads
public import Attention.Proof.Attention

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

end Attention.Proof
