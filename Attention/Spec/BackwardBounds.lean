module

public import Attention.Spec.BackwardTiles
public import Attention.Spec.WholeTiles

public section

/-! # The bounds of the loops of the backward pass under a causal mask or a sliding window

A tile of queries visits the tiles of keys that it visits in the forward pass. Seen from the keys,
the queries are a window too: key j stands at j − shift on the axis of the queries, and the queries
from j − shift − right to j − shift + left see it. So the bounds of a tile of keys are the same with
queries and keys exchanged, and left and right.
Source: flash-attention, the backward pass, `m_block_min` and `m_block_max`. -/

namespace Attention.Spec

variable (alignment : Alignment) (left right : Option Nat) (q_len kv_len block_m block_n : Nat)

/-- The loop over tiles of keys for each tile of queries, under a window. -/
@[expose] def windowQueries : TileLoop where
  blockOuter := block_m
  blockInner := block_n
  visit := visitedTiles alignment left right q_len kv_len block_m block_n
  kind := wholeKind alignment left right q_len kv_len block_m block_n

/-- The loop over tiles of queries for each tile of keys, under a window. A ragged last tile of keys
takes every tile with mask code, for its own padding. -/
@[expose] def windowKeys : TileLoop where
  blockOuter := block_n
  blockInner := block_m
  visit := visitedTiles alignment right left kv_len q_len block_n block_m
  kind := fun u t =>
    if (u + 1) * block_n ≤ kv_len then
      wholeKind alignment right left kv_len q_len block_n block_m u t
    else
      .masked

end Attention.Spec
