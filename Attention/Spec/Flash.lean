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
variable [Add S] [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- One key tile `cols` updates the states of all rows of a query tile; `seen i cols` are these keys
as query `i` sees them, `scored` in plain attention. -/
@[expose] def stepTile (seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v))
    (rows : List (Fin q_len)) (states : List (State S R d_v)) (cols : List (Fin kv_len)) :
    List (State S R d_v) :=
  List.zipWith (fun i s => stepBlock s (seen i cols)) rows states

/-- The states of all rows, in order, computed tile by tile with `block_m` queries and `block_n`
keys to a tile. Each row starts from `start`. -/
@[expose] def tileLoop (start : State S R d_v)
    (seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v)) (block_m block_n : Nat) :
    List (State S R d_v) :=
  (tiles block_m (List.finRange q_len)).flatMap fun rows =>
    (tiles block_n (List.finRange kv_len)).foldl (stepTile seen rows) (rows.map fun _ => start)

/-- The rows of attention's output, in order, computed by the tile loop. -/
@[expose] def flash [Mul S] [OfNat S 0] [Div R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (block_m block_n : Nat) : List (Vec R d_v) :=
  (tileLoop empty (scored scale modify Q K V) block_m block_n).map finish

end Attention.Spec
