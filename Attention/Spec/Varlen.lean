module

public import Attention.Spec.Rows

public section

/-! # Sequences of different lengths, packed one after another

A batch without padding: the rows of all sequences in one list, and the prefix sums of their lengths
(`cu_seqlens`), for queries and keys separately. Two ways to use them: one attention over everything
with the keys of other sequences masked, or one attention for each slice.
Source: the variable-length interface of flash-attention (`flash_attn_varlen_func`). -/

namespace Attention.Spec

universe u v w

/-- The prefix sums of the lengths: where each sequence starts, and where the last one ends. -/
@[expose] def cuSeqlens (lens : List Nat) (start : Nat := 0) : List Nat :=
  match lens with
  | [] => [start]
  | n :: lens => start :: cuSeqlens lens (start + n)

/-- The number of the sequence that a packed position belongs to: how many sequences end at or
before it. -/
@[expose] def sequenceOf (cu : List Nat) (i : Nat) : Nat :=
  (cu.tail.filter fun stop => decide (stop ≤ i)).length

/-- The rows of sequence `b`. -/
@[expose] def slice {α : Type w} (cu : List Nat) (b : Nat) (rows : List α) : List α :=
  (rows.drop (cu.getD b 0)).take (cu.getD (b + 1) 0 - cu.getD b 0)

/-- The sequences of a packed batch: a query attends to the keys of its own sequence, and there
`mods b i j` is what sequence `b` does to the score of its query `i` and its key `j`. -/
@[expose] def packedMod {S : Type u} (cu_q cu_k : List Nat)
    (mods : Nat → Nat → Nat → S → Option S) : Nat → Nat → S → Option S :=
  fun i j s =>
    let b := sequenceOf cu_q i
    if sequenceOf cu_k j = b then mods b (i - cu_q.getD b 0) (j - cu_k.getD b 0) s else none

variable {S : Type u} {R : Type v} {d d_v : Nat}

/-- One sequence: its queries, and its keys with their values. There may be a different number of
each, or none. -/
structure Sequence (S : Type u) (R : Type v) (d d_v : Nat) where
  /-- The queries, in order. -/
  queries : List (Vec S d)
  /-- The keys and values, in order. -/
  keyValues : List (KeyValue S R d d_v)

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] (scale : S)
variable (mods : Nat → Nat → Nat → S → Option S) (cu_q cu_k : List Nat)

/-- Attention of packed rows as one attention, where the keys of other sequences are masked. -/
@[expose] def attentionVarlen (Q : List (Vec S d)) (kvs : List (KeyValue S R d d_v)) :
    List (Vec R d_v) :=
  attentionRows scale (packedMod cu_q cu_k mods) Q kvs

/-- Attention of packed rows, sequence by sequence. -/
@[expose] def attentionSliced (Q : List (Vec S d)) (kvs : List (KeyValue S R d d_v)) :
    List (Vec R d_v) :=
  (List.range (cu_q.length - 1)).flatMap fun b =>
    attentionRows scale (mods b) (slice cu_q b Q) (slice cu_k b kvs)

end Attention.Spec
