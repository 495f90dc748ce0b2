module

public import Attention.Spec.Cascade
public import Attention.Vectors.Varlen

public section

/-! # One case of a shared prefix -/

namespace Attention.Vectors

open Spec

/-- Queries with a shared prefix of keys, each with its own suffix, and the reason why they are
worth testing. -/
structure CascadeCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- Keys to a tile. -/
  block_n : Nat
  /-- The queries. -/
  q : List (List Int)
  /-- The keys of the prefix. -/
  prefix_k : List (List Int)
  /-- Their values. -/
  prefix_v : List (List Rat)
  /-- The keys and values of each query's own suffix. -/
  suffixes : List (List (List Int) × List (List Rat))

namespace CascadeCase

/-- Runs the Spec over the exact model. -/
@[expose] def run (c : CascadeCase) : Except String (List RowResult) := do
  checkExact ((rats (c.q ++ c.prefix_k ++ c.suffixes.flatMap (·.1))).flatten
    ++ (c.prefix_v ++ c.suffixes.flatMap (·.2)).flatten)
  unless c.suffixes.length = c.q.length do throw "not one suffix for each query"
  let Q ← toMatrix c.q.length c.head_dim c.q
  let K ← toMatrix c.prefix_k.length c.head_dim c.prefix_k
  let V ← toMatrix c.prefix_k.length c.value_dim c.prefix_v
  let suffixes ← c.suffixes.mapM fun (k, v) => toKeyValues c.head_dim c.value_dim k v
  let suffix (i : Fin c.q.length) := suffixes.getD i.val []
  unless 0 < c.block_n do throw "a tile holds nothing"
  let outputs := cascade c.scale (fun _ _ s => some s) Q K V suffix c.block_n
  unless outputs.length = c.q.length do throw "not one output for each query"
  return ((List.finRange c.q.length).zip outputs).map fun (i, output) =>
    rowResult (scoredRows c.scale (fun _ s => some s) Q[i] (keyValues K V ++ suffix i)) output

end CascadeCase

end Attention.Vectors
