module

public import Attention.Spec.Flash
public import Attention.Spec.ScoreMods

public section

/-! # FlashAttention-2 with a tile schedule

The tile loop that looks at each pair of a query tile and a key tile first: a pair that is masked
entirely is skipped, and one that is not masked at all is taken without mask code.
Source: Dao 2023, "FlashAttention-2", section 3.1, "Causal masking"; Dong et al. 2024,
"FlexAttention", `BlockMask`, with `score_mod` for `modify` and `mask_mod` for `mask`. -/

namespace Attention.Spec

open Online

universe u v

/-- How the pair of a query tile and a key tile is taken. -/
inductive TileKind where
  /-- Not at all. -/
  | skip
  /-- Without mask code. -/
  | unmasked
  /-- With mask code. -/
  | masked

/-- A range of tiles: `first`, first + 1, …, stop − 1. -/
structure TileRange where
  /-- The first tile. -/
  first : Nat
  /-- One past the last tile. -/
  stop : Nat

/-- The tile is in the range. -/
@[expose] def TileRange.contains (r : TileRange) (u : Nat) : Bool := r.first ≤ u && u < r.stop

/-- Tile `t` of a list cut into consecutive tiles of size `b`. -/
@[expose] def tile {α : Type u} (b : Nat) (xs : List α) (t : Nat) : List α :=
  (xs.drop (t * b)).take b

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- One key tile updates the states of all rows of a query tile, as its kind says. -/
@[expose] def stepKind (rows : List (Fin q_len)) (states : List (State S R d_v))
    (kind : TileKind) (cols : List (Fin kv_len)) : List (State S R d_v) :=
  match kind with
  | .skip => states
  | .unmasked => stepTile (scored scale modify Q K V) rows states cols
  | .masked => stepTile (scored scale (modify.andThen mask.toScoreMod) Q K V) rows states cols

/-- The rows of attention's output: query tile `t` visits the key tiles `visit t`, each as
`kind t u` says. -/
@[expose] def flashSchedule [Div R] (visit : Nat → TileRange) (kind : Nat → Nat → TileKind)
    (block_m block_n : Nat) : List (Vec R d_v) :=
  (List.range (numTiles q_len block_m)).flatMap fun t =>
    let rows := tile block_m (List.finRange q_len) t
    let start := rows.map fun _ => empty
    let range := visit t
    let states := (List.range' range.first (range.stop - range.first)).foldl
      (fun states u =>
        stepKind scale modify mask Q K V rows states (kind t u)
          (tile block_n (List.finRange kv_len) u))
      start
    states.map finish

end Attention.Spec
