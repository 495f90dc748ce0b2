module

public import Attention.Spec.TileBounds

public section

/-! # One case of the tiles that a window visits -/

namespace Attention.Vectors

open Spec

/-- Sizes and a window, with the reason why they are worth testing. -/
structure TileBoundsCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- Where query 0 stands. -/
  alignment : Alignment
  /-- Keys before a query that it sees; none: all. -/
  left : Option Nat
  /-- Keys after a query that it sees; none: all. -/
  right : Option Nat
  /-- Number of queries. -/
  q_len : Nat
  /-- Number of keys. -/
  kv_len : Nat
  /-- Queries to a tile. -/
  block_m : Nat
  /-- Keys to a tile. -/
  block_n : Nat

/-- How each key tile is taken, for each query tile. -/
def TileBoundsCase.run (c : TileBoundsCase) : List (List TileKind) :=
  (List.range (numTiles c.q_len c.block_m)).map fun t =>
    let visited := visitedTiles c.alignment c.left c.right c.q_len c.kv_len c.block_m c.block_n t
    (List.range (numTiles c.kv_len c.block_n)).map fun u =>
      if visited.contains u then
        windowKind c.alignment c.left c.right c.q_len c.kv_len c.block_m c.block_n t u
      else .skip

end Attention.Vectors
