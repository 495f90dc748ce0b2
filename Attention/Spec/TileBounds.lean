module

public import Attention.Spec.Masks
public import Attention.Spec.Schedule

public section

/-! # Which key tiles a query tile must visit under a causal mask or a sliding window

Integer bounds, as a kernel computes them before its inner loop. They are taken from the first and
the last *real* row of the query tile: a ragged last tile ends with the last query.
Source: flash-attention, `n_block_min` and `n_block_max`; the latter is taken there from the row
with which the tile would end if it were full. -/

namespace Attention.Spec

universe u v

/-- The first row of query tile `t`. -/
@[expose] def tileRowFirst (block_m t : Nat) : Nat := t * block_m

/-- The last row of query tile `t`: of a ragged last tile the last query. -/
@[expose] def tileRowLast (q_len block_m t : Nat) : Nat := min ((t + 1) * block_m) q_len - 1

section
variable (alignment : Alignment) (left right : Option Nat) (q_len kv_len block_m block_n t : Nat)

/-- The first key that some query of tile `t` sees, clipped to 0. -/
@[expose] def firstKey : Nat :=
  match left with
  | none => 0
  | some l => (tileRowFirst block_m t + alignment.shift q_len kv_len - (l : Nat)).toNat

/-- One past the last key that some query of tile `t` sees, clipped to 0 and `kv_len`. -/
@[expose] def stopKey : Nat :=
  match right with
  | none => kv_len
  | some r =>
    min kv_len (tileRowLast q_len block_m t + alignment.shift q_len kv_len + (r : Nat) + 1).toNat

/-- The key tiles of which some query of query tile `t` sees some key. -/
@[expose] def visitedTiles : TileRange :=
  let first := firstKey alignment left q_len kv_len block_m t
  let stop := stopKey alignment right q_len kv_len block_m t
  if first < stop then ⟨first / block_n, numTiles stop block_n⟩ else ⟨0, 0⟩

/-- The key tiles of which every query of query tile `t` sees every key: from the first key that the
last query sees, up to the last key that the first query sees. -/
@[expose] def unmaskedTiles : TileRange where
  first := match left with
    | none => 0
    | some l => numTiles
        (tileRowLast q_len block_m t + alignment.shift q_len kv_len - (l : Nat)).toNat block_n
  stop := match right with
    | none => numTiles kv_len block_n
    | some r =>
      let stop := (tileRowFirst block_m t + alignment.shift q_len kv_len + (r : Nat) + 1).toNat
      if kv_len ≤ stop then numTiles kv_len block_n else stop / block_n

/-- Within its range a tile needs mask code unless every query sees every key of it. -/
@[expose] def windowKind (u : Nat) : TileKind :=
  if (unmaskedTiles alignment left right q_len kv_len block_m block_n t).contains u then
    .unmasked
  else
    .masked

end

/-- The tile loop under a sliding window, by these bounds. -/
@[expose] def flashWindow {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
    [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    (scale : S) (modify : ScoreMod S q_len kv_len) (alignment : Alignment)
    (left right : Option Nat) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (block_m block_n : Nat) : List (Vec R d_v) :=
  flashSchedule scale modify (Mask.window alignment left right) Q K V
    (visitedTiles alignment left right q_len kv_len block_m block_n)
    (windowKind alignment left right q_len kv_len block_m block_n) block_m block_n

end Attention.Spec
