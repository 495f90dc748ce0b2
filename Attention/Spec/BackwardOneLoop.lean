module

public import Attention.Spec.BackwardTiles

public section

/-! # FlashAttention-2: the backward pass in one loop

As the paper has it: for each tile of keys, over the tiles of queries, dK and dV are summed on the
chip, and dQ in memory, where each pair of tiles adds to the rows of its queries.
Source: Dao 2023, "FlashAttention-2", Algorithm 2. -/

namespace Attention.Spec

universe u v

/-- The gradients that the loop has written after some tiles of keys. -/
structure Written (R : Type v) (d d_v : Nat) where
  /-- The sums of all queries so far, not yet scaled, tile by tile. -/
  dQ : List (List (Vec R d))
  /-- The rows of dK so far. -/
  dK : List (Vec R d)
  /-- The rows of dV so far. -/
  dV : List (Vec R d_v)

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [OfNat R 0] [Exp S R]
variable (toValue : S → R) (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)
variable (block_m block_n : Nat) (kind : Nat → Nat → TileKind)

/-- One tile of keys: over all tiles of queries, each pair taken as `kind` says, that of the keys
named first. -/
@[expose] def stepWritten (written : Written R d d_v) (u : Nat) : Written R d d_v :=
  let queryTiles := List.range (numTiles q_len block_m)
  let cols := tile block_n (List.finRange kv_len) u
  let start : KeySums R d d_v := ⟨cols.map fun _ => Vec.zero, cols.map fun _ => Vec.zero⟩
  let sums := queryTiles.foldl
    (fun sums t => stepKeysKind toValue scale modify mask slope Q K V Z L dO delta cols sums
      (kind u t) (tile block_m (List.finRange q_len) t))
    start
  { dQ := List.zipWith
      (fun t rows => stepQueriesKind toValue scale modify mask slope Q K V Z L dO delta
        (tile block_m (List.finRange q_len) t) rows (kind u t) cols)
      queryTiles written.dQ
    dK := written.dK ++ sums.dK.map (Vec.smul (toValue scale))
    dV := written.dV ++ sums.dV }

/-- The rows of dQ, dK and dV, from the output `O` and the log-sum-exp `L` that the forward pass has
saved, in one loop. -/
@[expose] def flashBackwardOneLoop (O : Matrix R q_len d_v) (dLse : Vec R q_len) :
    List (Vec R d) × List (Vec R d) × List (Vec R d_v) :=
  let delta := rowDelta O dO dLse
  let start : Written R d d_v :=
    { dQ := (List.range (numTiles q_len block_m)).map fun t =>
        (tile block_m (List.finRange q_len) t).map fun _ => Vec.zero
      dK := []
      dV := [] }
  let written := (List.range (numTiles kv_len block_n)).foldl
    (stepWritten toValue scale modify mask slope Q K V Z L dO delta block_m block_n kind) start
  (written.dQ.flatten.map (Vec.smul (toValue scale)), written.dK, written.dV)

end Attention.Spec
