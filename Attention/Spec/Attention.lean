module

public import Attention.Algebra.Vector
public import Attention.Spec.Softmax

public section

/-! # Attention

O = softmax (scale · Q Kᵀ, masked) V, for one row and for whole matrices.
Source: Vaswani et al. 2017, "Attention Is All You Need", equation (1). -/

namespace Attention.Spec

universe u v

/-- One key as the softmax sees it: its score (`none`: masked) and its value vector. -/
structure ScoredValue (S : Type u) (R : Type v) (d : Nat) where
  /-- The score of the key; `none` when the key is masked. -/
  score : Option S
  /-- The value vector that belongs to the key. -/
  value : Vec R d

/-- The change of the score of query `i` and key `j`: to a new score, or `none` to mask the pair. -/
abbrev ScoreMod (S : Type u) (q_len kv_len : Nat) := Fin q_len → Fin kv_len → S → Option S

/-- Which keys a query may attend to: `true` means it may. -/
abbrev Mask (q_len kv_len : Nat) := Fin q_len → Fin kv_len → Bool

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- A Boolean mask as a score transformation. -/
@[expose] def Mask.toScoreMod (mask : Mask q_len kv_len) : ScoreMod S q_len kv_len :=
  fun i j s => if mask i j then some s else none

/-- The attention of one row: Σ pⱼ vⱼ with p the softmax of the scores. -/
@[expose] def attend [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    (row : List (ScoredValue S R d_v)) : Vec R d_v :=
  let p := softmax (row.map (·.score))
  Vec.sumOver (fun (pⱼ, vⱼ) => Vec.smul pⱼ vⱼ) (p.zip (row.map (·.value)))

section
variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : ScoreMod S q_len kv_len)

/-- The score of query `i` and key `j`: scale · ⟨Qᵢ, Kⱼ⟩, transformed by `modify`. -/
@[expose] def score (Q : Matrix S q_len d) (K : Matrix S kv_len d) (i : Fin q_len)
    (j : Fin kv_len) : Option S :=
  modify i j (scale * Vec.dot Q[i] K[j])

/-- The keys `cols` with their values, as query `i` sees them. -/
@[expose] def scored (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (i : Fin q_len) (cols : List (Fin kv_len)) : List (ScoredValue S R d_v) :=
  cols.map fun j => ⟨score scale modify Q K i j, V[j]⟩

/-- Attention of whole matrices: row `i` of the output is `attend` of all keys as query `i` sees
them. -/
@[expose] def attention [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Vec.ofFn fun i => attend (scored scale modify Q K V i (List.finRange kv_len))

/-- The softmax weights P of all queries and keys. -/
@[expose] def probabilities [Add R] [Div R] [OfNat R 0] [Exp S R] (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) : Matrix R q_len kv_len :=
  Vec.ofFn fun i =>
    ⟨(softmax ((List.finRange kv_len).map (score scale modify Q K i))).toArray, by simp [softmax]⟩

end

end Attention.Spec
