module

public import Attention.Spec.Online

public section

/-! # FlashAttention-2: the tile loop

For each tile of queries, over the tiles of keys: every row of the query tile keeps an online-
softmax state, each key tile updates all of them, and the division is made once at the end.
Source: Dao 2023, "FlashAttention-2", Algorithm 1. -/

namespace Attention.Spec

open Online

universe u v

/-- The number of tiles of size `b` that cover `n` things; the last one may be ragged. -/
@[expose] def numTiles (n b : Nat) : Nat := (n + b - 1) / b

/-- A list cut into consecutive tiles of size `b`; the last one may be shorter. -/
@[expose] def tiles {α : Type u} (b : Nat) (xs : List α) : List (List α) :=
  (List.range (numTiles xs.length b)).map fun t => (xs.drop (t * b)).take b

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- One key tile `cols` updates the states of all rows of a query tile. -/
@[expose] def stepTile (rows : List (Fin q_len)) (states : List (State S R d_v))
    (cols : List (Fin kv_len)) : List (State S R d_v) :=
  List.zipWith (fun i s => stepBlock s (scored scale modify Q K V i cols)) rows states

/-- The rows of attention's output, in order, computed tile by tile with `block_m` queries and
`block_n` keys to a tile. -/
@[expose] def flash [Div R] (block_m block_n : Nat) : List (Vec R d_v) :=
  (tiles block_m (List.finRange q_len)).flatMap fun rows =>
    let start := rows.map fun _ => empty
    let colTiles := tiles block_n (List.finRange kv_len)
    let states := colTiles.foldl (stepTile scale modify Q K V rows) start
    states.map finish

end Attention.Spec
