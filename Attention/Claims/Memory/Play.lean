module

public import Attention.Model.PebbleEnds
public import Attention.Spec.Flash

public section

/-! # FlashAttention as a play of the pebble game

The program of `Attention.Claims.Memory.Basic`, element by element: the same tiles, loaded and
freed in the same order. Each score is formed by multiplications and additions of two elements, for
which there is room beside all others.
Source: Dao 2023, "FlashAttention-2", Algorithm 1. -/

namespace Attention.Claims

open Spec Model.Pebble

variable {q_len kv_len d d_v : Nat}

@[expose] section

/-- The elements besides queries, keys and sums. -/
inductive Other (q_len kv_len d_v : Nat) where
  /-- A component of a value. -/
  | value (j : Fin kv_len) (c : Fin d_v)
  /-- An element of the state of a query after a number of tiles: m, l, or a component of o. -/
  | state (tile : Nat) (i : Fin q_len) (slot : Fin (2 + d_v))
  /-- A component of the output. -/
  | output (i : Fin q_len) (c : Fin d_v)
  deriving DecidableEq

end

/-- The elements of some queries. -/
@[expose] def queryElements (d d_v : Nat) (rows : List (Fin q_len)) :
    List (Element q_len kv_len d (Other q_len kv_len d_v)) :=
  rows.flatMap fun i => (List.finRange d).map (.query i)

/-- The elements of some keys. -/
@[expose] def keyElements (d d_v : Nat) (cols : List (Fin kv_len)) :
    List (Element q_len kv_len d (Other q_len kv_len d_v)) :=
  cols.flatMap fun j => (List.finRange d).map (.key j)

/-- The elements of some values, by name. -/
@[expose] def valueNames (q_len d_v : Nat) (cols : List (Fin kv_len)) :
    List (Other q_len kv_len d_v) :=
  cols.flatMap fun j => (List.finRange d_v).map (.value j)

/-- The elements of the states of some queries after a number of tiles, by name. -/
@[expose] def stateNames (kv_len d_v tile : Nat) (rows : List (Fin q_len)) :
    List (Other q_len kv_len d_v) :=
  rows.flatMap fun i => (List.finRange (2 + d_v)).map (.state tile i)

/-- The elements of the outputs of some queries, by name. -/
@[expose] def outputNames (kv_len d_v : Nat) (rows : List (Fin q_len)) :
    List (Other q_len kv_len d_v) :=
  rows.flatMap fun i => (List.finRange d_v).map (.output i)

/-- The scores of a tile. -/
@[expose] def tileScores (d d_v : Nat) (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    List (Element q_len kv_len d (Other q_len kv_len d_v)) :=
  rows.flatMap fun i => cols.flatMap fun j => scoreSum i j

/-- Form the scores of a tile, one by one. -/
@[expose] def scoresPlay (d d_v : Nat) (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    List (Move q_len kv_len d (Other q_len kv_len d_v)) :=
  rows.flatMap fun i => cols.flatMap fun j => scorePlay i j

/-- A tile of keys: K, the scores, then V in the place of K, then the new states in the place of the
old. -/
@[expose] def keyTilePlay (d d_v : Nat) (rows : List (Fin q_len)) (tile : Nat)
    (cols : List (Fin kv_len)) : List (Move q_len kv_len d (Other q_len kv_len d_v)) :=
  (keyElements d d_v cols).map .load
    ++ (scoresPlay d d_v rows cols
    ++ ((keyElements d d_v cols).map .delete
    ++ ((valueNames q_len d_v cols).map (fun name => .load (.other name))
    ++ ((stateNames kv_len d_v (tile + 1) rows).map (fun name => .compute (.other name))
    ++ ((valueNames q_len d_v cols).map (fun name => .delete (.other name))
    ++ ((tileScores d d_v rows cols).map .delete
    ++ (stateNames kv_len d_v tile rows).map (fun name => .delete (.other name))))))))

/-- Some tiles of keys, after a number of others. -/
@[expose] def keyTilesPlay (d d_v : Nat) (rows : List (Fin q_len)) :
    Nat → List (List (Fin kv_len)) → List (Move q_len kv_len d (Other q_len kv_len d_v))
  | _, [] => []
  | tile, cols :: rest =>
    keyTilePlay d d_v rows tile cols ++ keyTilesPlay d d_v rows (tile + 1) rest

/-- A tile of queries: it is loaded, each of its rows starts from the empty state, all tiles of keys
follow, and its output is stored. -/
@[expose] def queryTilePlay (kv_len d d_v block_n : Nat) (rows : List (Fin q_len)) :
    List (Move q_len kv_len d (Other q_len kv_len d_v)) :=
  let keyTiles := tiles block_n (List.finRange kv_len)
  (queryElements d d_v rows).map .load
    ++ ((stateNames kv_len d_v 0 rows).map (fun name => .compute (.other name))
    ++ (keyTilesPlay d d_v rows 0 keyTiles
    ++ ((outputNames kv_len d_v rows).map (fun name => .compute (.other name))
    ++ ((outputNames kv_len d_v rows).map (fun name => .store (.other name))
    ++ ((outputNames kv_len d_v rows).map (fun name => .delete (.other name))
    ++ ((stateNames kv_len d_v keyTiles.length rows).map (fun name => .delete (.other name))
    ++ (queryElements d d_v rows).map .delete))))))

/-- FlashAttention-2 as a play, with `block_m` queries and `block_n` keys to a tile. -/
@[expose] def flashPlay (q_len kv_len d d_v block_m block_n : Nat) :
    List (Move q_len kv_len d (Other q_len kv_len d_v)) :=
  (tiles block_m (List.finRange q_len)).flatMap (queryTilePlay kv_len d d_v block_n)

/-! ## How many elements there are -/

private theorem length_flatMap_const {α β : Type} {f : α → List β} {n : Nat} {xs : List α}
    (h : ∀ x, (f x).length = n) : (xs.flatMap f).length = xs.length * n := by
  induction xs with
  | nil => simp
  | cons x xs ih => simp [ih, h, Nat.add_mul, Nat.add_comm]

private theorem length_flatMap_le {α β : Type} {f : α → List β} {n : Nat} {xs : List α}
    (h : ∀ x, (f x).length ≤ n) : (xs.flatMap f).length ≤ xs.length * n := by
  induction xs with
  | nil => simp
  | cons x xs ih =>
    have := h x
    simp only [List.flatMap_cons, List.length_append, List.length_cons, Nat.add_mul]
    omega

/-- A tile has at most a score for each query and key (none where there are no products). -/
theorem length_tileScores (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    (tileScores d d_v rows cols).length ≤ rows.length * cols.length := by
  refine length_flatMap_le fun i => ?_
  have := length_flatMap_le (f := scoreSum (d := d) (α := Other q_len kv_len d_v) i) (n := 1)
    (xs := cols) fun j => by unfold scoreSum; split <;> simp
  simpa using this

/-- A query has `d` elements. -/
theorem length_queryElements (rows : List (Fin q_len)) :
    (queryElements d d_v rows : List (Element q_len kv_len d _)).length = rows.length * d :=
  length_flatMap_const (by simp)

/-- A key has `d` elements. -/
theorem length_keyElements (cols : List (Fin kv_len)) :
    (keyElements d d_v cols : List (Element q_len kv_len d _)).length = cols.length * d :=
  length_flatMap_const (by simp)

/-- A value has `d_v` elements. -/
theorem length_valueNames (cols : List (Fin kv_len)) :
    (valueNames q_len d_v cols).length = cols.length * d_v :=
  length_flatMap_const (by simp)

/-- A state has `2 + d_v` elements. -/
theorem length_stateNames (tile : Nat) (rows : List (Fin q_len)) :
    (stateNames kv_len d_v tile rows).length = rows.length * (2 + d_v) :=
  length_flatMap_const (by simp)

/-- A row of the output has `d_v` elements. -/
theorem length_outputNames (rows : List (Fin q_len)) :
    (outputNames kv_len d_v rows).length = rows.length * d_v :=
  length_flatMap_const (by simp)

end Attention.Claims
