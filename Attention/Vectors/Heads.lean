module

public import Attention.Spec.Heads
public import Attention.Vectors.Case

public section

/-! # One case of attention with several heads -/

namespace Attention.Vectors

open Spec

/-- The definitions of the Spec that compute attention with several heads. -/
inductive HeadsAlgorithm where
  /-- Query heads that share heads of keys and values. -/
  | grouped
  /-- The same, with the queries of a group packed into one matrix. -/
  | packed
  /-- Each head has its own keys and values. -/
  | multiHead

/-- The name of the definition. -/
def HeadsAlgorithm.leanName : HeadsAlgorithm → String
  | .grouped => "Attention.Spec.groupedQuery"
  | .packed => "Attention.Spec.groupedQueryPacked"
  | .multiHead => "Attention.Spec.multiHead"

/-- Inputs of attention with several heads, with the reason why they are worth testing. -/
structure HeadsCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of heads of K and V. -/
  num_kv_heads : Nat
  /-- How many query heads share one of them. -/
  group : Nat
  /-- Number of queries of each head. -/
  q_len : Nat
  /-- Number of keys of each head. -/
  kv_len : Nat
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The rows of Q, head by head. -/
  q : List (List (List Int))
  /-- The rows of K, head by head. -/
  k : List (List (List Int))
  /-- The rows of V, head by head. -/
  v : List (List (List Rat))
  /-- Which keys each query may attend to, the same in every head. -/
  mask : MaskKind := .none
  /-- The definition that computes the output. -/
  algorithm : HeadsAlgorithm

/-- Matrices, one for each head; a head that is missing or too many is an error. -/
@[expose] def toHeads {α : Type} [Inhabited α] (heads m n : Nat) (rows : List (List (List α))) :
    Except String (Vector (Matrix α m n) heads) := do
  let list ← rows.mapM (toMatrix m n)
  if h : list.length = heads then return ⟨list.toArray, by simpa using h⟩
  else throw s!"expected {heads} heads"

namespace HeadsCase

/-- Runs the Spec over the exact model: the rows of each query head. -/
@[expose] def run (c : HeadsCase) : Except String (List (List RowResult)) := do
  checkExact ((rats c.q.flatten).flatten ++ (rats c.k.flatten).flatten ++ c.v.flatten.flatten)
  let Q ← toHeads (c.num_kv_heads * c.group) c.q_len c.head_dim c.q
  let K ← toHeads c.num_kv_heads c.kv_len c.head_dim c.k
  let V ← toHeads c.num_kv_heads c.kv_len c.value_dim c.v
  let modify : ScoreMod Int c.q_len c.kv_len := c.mask.toMask.toScoreMod
  let O ← match c.algorithm with
    | .grouped => pure (groupedQuery c.scale (fun _ => modify) Q K V)
    | .packed => pure (groupedQueryPacked c.scale (fun _ => modify) Q K V)
    | .multiHead => pure (multiHead c.scale (fun _ => modify) Q
        (← toHeads (c.num_kv_heads * c.group) c.kv_len c.head_dim c.k)
        (← toHeads (c.num_kv_heads * c.group) c.kv_len c.value_dim c.v))
  return (List.finRange (c.num_kv_heads * c.group)).map fun h =>
    (List.finRange c.q_len).map fun i =>
      rowResult (scored c.scale modify Q[h] K[kvHead h] V[kvHead h] i (List.finRange c.kv_len))
        O[h][i]

end HeadsCase

end Attention.Vectors
