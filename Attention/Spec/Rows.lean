module

public import Attention.Spec.Attention

public section

/-! # Keys and values as a list of rows

One query over keys and values that come as a list of rows, as a cache holds them: their number is
not part of a type, and lists of them can be put together and gathered. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- A key with its value. -/
abbrev KeyValue (S : Type u) (R : Type v) (d d_v : Nat) := Vec S d × Vec R d_v

variable [Add S] [Mul S] [OfNat S 0] (scale : S)

/-- The keys and values of a list as the query `q` sees them; `modify` is given the position of the
key in the list. -/
@[expose] def scoredRows (modify : Nat → S → Option S) (q : Vec S d)
    (kvs : List (KeyValue S R d d_v)) : List (ScoredValue S R d_v) :=
  kvs.zipIdx.map fun (kv, j) => ⟨modify j (scale * Vec.dot q kv.1), kv.2⟩

/-- Attention of one query over a list of keys and values. -/
@[expose] def attendRows [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    (modify : Nat → S → Option S) (q : Vec S d) (kvs : List (KeyValue S R d d_v)) : Vec R d_v :=
  attend (scoredRows scale modify q kvs)

/-- Attention of a list of queries over a list of keys and values; `modify` is given the positions
of the query and of the key. -/
@[expose] def attentionRows [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    (modify : Nat → Nat → S → Option S) (Q : List (Vec S d)) (kvs : List (KeyValue S R d d_v)) :
    List (Vec R d_v) :=
  Q.zipIdx.map fun (q, i) => attendRows scale (modify i) q kvs

/-- The score transformation of query `i` with natural numbers for positions: positions beyond the
end are masked. -/
@[expose] def ScoreMod.row (modify : ScoreMod S q_len kv_len) (i : Fin q_len) :
    Nat → S → Option S :=
  fun j s => if h : j < kv_len then modify i ⟨j, h⟩ s else none

/-- The keys and values of two matrices as a list. -/
@[expose] def keyValues (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    List (KeyValue S R d d_v) :=
  K.toList.zip V.toList

end Attention.Spec
