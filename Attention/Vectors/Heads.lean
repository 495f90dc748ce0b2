module

public import Attention.Spec.Heads
public import Attention.Vectors.Case

public section

/-! # One case of grouped-query attention -/

namespace Attention.Vectors

open Spec

/-- Inputs of grouped-query attention, with the reason why they are worth testing. -/
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
  /-- The queries of a group are packed into one matrix. -/
  packed : Bool

/-- Matrices, one for each head; a head that is missing or too many is an error. -/
def toHeads {α : Type} [Inhabited α] (heads m n : Nat) (rows : List (List (List α))) :
    Except String (Vector (Matrix α m n) heads) := do
  let list ← rows.mapM (toMatrix m n)
  if h : list.length = heads then return ⟨list.toArray, by simpa using h⟩
  else throw s!"expected {heads} heads"

namespace HeadsCase

/-- The name of the definition that is run. -/
def leanName (c : HeadsCase) : String :=
  if c.packed then "Attention.Spec.groupedQueryPacked" else "Attention.Spec.groupedQuery"

/-- Runs the Spec over the exact model: the rows of each query head. -/
def run (c : HeadsCase) : Except String (List (List RowResult)) := do
  checkExact ((rats c.q.flatten).flatten ++ (rats c.k.flatten).flatten ++ c.v.flatten.flatten)
  let Q ← toHeads (c.num_kv_heads * c.group) c.q_len c.head_dim c.q
  let K ← toHeads c.num_kv_heads c.kv_len c.head_dim c.k
  let V ← toHeads c.num_kv_heads c.kv_len c.value_dim c.v
  let modify : ScoreMod Int c.q_len c.kv_len := c.mask.toMask.toScoreMod
  let O := if c.packed then groupedQueryPacked c.scale (fun _ => modify) Q K V
    else groupedQuery c.scale (fun _ => modify) Q K V
  return (List.finRange (c.num_kv_heads * c.group)).map fun h =>
    (List.finRange c.q_len).map fun i =>
      rowResult (scored c.scale modify Q[h] K[kvHead h] V[kvHead h] i (List.finRange c.kv_len))
        O[h][i]

end HeadsCase

end Attention.Vectors
