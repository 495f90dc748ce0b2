module

public import Attention.Spec.TileBounds
public import Attention.Proof.Masks
public import Attention.Proof.Schedule

public section

/-! # The key tiles that a query tile must visit, exactly -/

namespace Attention.Proof

open Spec

variable {q_len kv_len block_m block_n t u : Nat}

/-- A query of tile `t` lies between the first and the last row of the tile. -/
private theorem mem_rows {i : Fin q_len} :
    i ∈ tile block_m (List.finRange q_len) t ↔
      tileRowFirst block_m t ≤ i.val ∧ i.val ≤ tileRowLast q_len block_m t := by
  rw [mem_tile, tileRowFirst, tileRowLast]
  omega

end Attention.Proof
