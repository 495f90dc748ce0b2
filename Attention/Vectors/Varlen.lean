module

public import Attention.Spec.Varlen
public import Attention.Vectors.Case
public import Attention.Vectors.Rule

public section

/-! # One case of packed sequences of different lengths -/

namespace Attention.Vectors

open Spec

/-- Packed inputs, with the reason why they are worth testing. -/
structure VarlenCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- Number of queries of each sequence. -/
  q_lens : List Nat
  /-- Number of keys of each sequence. -/
  kv_lens : List Nat
  /-- The packed rows of Q. -/
  q : List (List Int)
  /-- The packed rows of K. -/
  k : List (List Int)
  /-- The packed rows of V. -/
  v : List (List Rat)
  /-- Which keys each query may attend to within its sequence. -/
  mask : MaskKind := .none
  /-- One attention for each slice; otherwise one attention with other sequences masked. -/
  sliced : Bool

/-- Keys and values as the Spec takes them in a list. -/
@[expose] def toKeyValues (head_dim value_dim : Nat) (k : List (List Int)) (v : List (List Rat)) :
    Except String (List (KeyValue Int Rat head_dim value_dim)) := do
  let K ← toMatrix k.length head_dim k
  let V ← toMatrix k.length value_dim v
  return keyValues K V

/-- The mask of each sequence, by its number, from the lengths of that sequence. -/
@[expose] def sequenceMods (q_lens kv_lens : List Nat) (mask : MaskKind) (b i j : Nat) (s : Int) :
    Option Int :=
  let q_len := q_lens.getD b 0
  let kv_len := kv_lens.getD b 0
  if h : i < q_len ∧ j < kv_len then (mask.toMask.toScoreMod) ⟨i, h.1⟩ ⟨j, h.2⟩ s else none

/-- The mask of packed sequences as a whole: that of each sequence, and no keys of another. -/
@[expose] def packedMask (q_lens kv_lens : List Nat) (mask : MaskKind) {m n : Nat} : Mask m n :=
  fun i j => (packedMod (cuSeqlens q_lens) (cuSeqlens kv_lens) (sequenceMods q_lens kv_lens mask)
    i.val j.val 0).isSome

namespace VarlenCase

/-- The name of the definition that is run. -/
def leanName (c : VarlenCase) : String :=
  if c.sliced then "Attention.Spec.attentionSliced" else "Attention.Spec.attentionVarlen"

/-- The mask of each sequence, from the lengths of that sequence. -/
@[expose] def mods (c : VarlenCase) : Nat → Nat → Nat → Int → Option Int :=
  sequenceMods c.q_lens c.kv_lens c.mask

/-- Runs the Spec over the exact model. -/
@[expose] def run (c : VarlenCase) : Except String (List RowResult) := do
  checkExact ((rats c.q).flatten ++ (rats c.k).flatten ++ c.v.flatten)
  let Q ← toMatrix c.q.length c.head_dim c.q
  let kvs ← toKeyValues c.head_dim c.value_dim c.k c.v
  let cu_q := cuSeqlens c.q_lens
  let cu_k := cuSeqlens c.kv_lens
  unless cu_q.getLast? = some c.q.length ∧ cu_k.getLast? = some c.k.length
      ∧ c.q_lens.length = c.kv_lens.length do
    throw "the lengths of the sequences do not add up"
  let outputs := if c.sliced then attentionSliced c.scale c.mods cu_q cu_k Q.toList kvs
    else attentionVarlen c.scale c.mods cu_q cu_k Q.toList kvs
  unless outputs.length = c.q.length do throw "not one output for each query"
  return (Q.toList.zipIdx.zip outputs).map fun ((q, i), output) =>
    rowResult (scoredRows c.scale (packedMod cu_q cu_k c.mods i) q kvs) output

end VarlenCase

/-- Packed inputs whose numbers are drawn by rule. -/
structure DrawnVarlenCase where
  /-- The case, but for its numbers. -/
  without : VarlenCase
  /-- The packed rows of Q. -/
  q : Rule
  /-- The packed rows of K. -/
  k : Rule
  /-- The packed rows of V. -/
  v : Rule

/-- The case with its numbers. -/
@[expose] def DrawnVarlenCase.inputs (c : DrawnVarlenCase) : Except String VarlenCase := do
  let f := c.without
  return { f with
    q := ← c.q.integers f.q_lens.sum f.head_dim, k := ← c.k.integers f.kv_lens.sum f.head_dim
    v := ← c.v.rows f.kv_lens.sum f.value_dim }

end Attention.Vectors
