module

public import Attention.Model.Memory
public import Attention.Spec.Flash

public section

/-! # Standard attention and FlashAttention as programs over two memories

Neither program mentions an input: sizes, the scale, the score transformation and the tile sizes are
all that they are made from.
Source: Dao et al. 2022, "FlashAttention", Algorithm 0 (standard attention); Dao 2023,
"FlashAttention-2", Algorithm 1. -/

namespace Attention.Claims

open Spec Spec.Online Model Program

universe u

variable {S R : Type u} {q_len kv_len d d_v : Nat}

/-- The numbers of some rows, as a program names them. -/
@[expose] def places {n : Nat} (rows : List (Fin n)) : List Nat := rows.map (·.val)

section
variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : ScoreMod S q_len kv_len)

/-- The scores of some queries and some keys, from their rows. -/
@[expose] def scoreTile (rows : List (Fin q_len)) (cols : List (Fin kv_len))
    (q k : List (Vec S d)) : List (List (Option S)) :=
  List.zipWith (fun i qᵢ => List.zipWith (fun j kⱼ => modify i j (scale * Vec.dot qᵢ kⱼ)) cols k)
    rows q

/-! ## FlashAttention -/

/-- Slow memory of FlashAttention: Q, K, V and the output. Nothing else. -/
abbrev flashArrays (d d_v : Nat) : List Row := [.scores d, .scores d, .values d_v, .values d_v]

/-- Slow memory of FlashAttention when these rows of the output are written; at first none. -/
@[expose] def flashMemory (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (out : List (Vec R d_v)) : Memory S R (flashArrays d d_v) :=
  .cons Q.toList (.cons K.toList (.cons V.toList (.cons out .nil)))

/-- The output of FlashAttention. -/
@[expose] def flashOutput : Place (flashArrays d d_v) (.values d_v) :=
  .there (.there (.there .here))

section
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- The states of some queries after a tile of keys, from its scores and values. -/
@[expose] def stepStates (states : List (State S R d_v)) (scores : List (List (Option S)))
    (v : List (Vec R d_v)) : List (State S R d_v) :=
  List.zipWith (fun s row => stepBlock s (List.zipWith ScoredValue.mk row v)) states scores

/-- A tile of keys: K, the scores, then V in the place of K, then the new states in the place of the
old. That fast memory holds the same arrays after it as before is in its type. -/
@[expose] def flashKeyTile (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    Program S R (flashArrays d d_v) [.state d_v, .scores d] [.state d_v, .scores d] :=
  seq (load (.there .here) (places cols)) <|
  seq (compute .masked fun
    | .cons k (.cons _ (.cons q .nil)) => scoreTile scale modify rows cols q k) <|
  seq freeSecond <|
  seq (load (.there (.there .here)) (places cols)) <|
  seq (compute (.state d_v) fun
    | .cons v (.cons scores (.cons states _)) => stepStates states scores v) <|
  seq freeSecond <| seq freeSecond freeSecond

/-- A tile of queries: it is read, each of its rows starts from the empty state, all tiles of keys
follow, and its output is written. -/
@[expose] def flashQueryTile [Div R] (block_n : Nat) (rows : List (Fin q_len)) :
    Program S R (flashArrays d d_v) [] [] :=
  seq (load .here (places rows)) <|
  seq (compute (.state d_v) fun | .cons q .nil => q.map fun _ => empty) <|
  seq (forEach (flashKeyTile scale modify rows) (tiles block_n (List.finRange kv_len))) <|
  seq (compute (.values d_v) fun | .cons states _ => states.map finish) <|
  seq (store flashOutput) <| seq free free

/-- FlashAttention-2, with `block_m` queries and `block_n` keys to a tile. -/
@[expose] def flashProgram [Div R] (block_m block_n : Nat) :
    Program S R (flashArrays d d_v) [] [] :=
  forEach (flashQueryTile scale modify block_n) (tiles block_m (List.finRange q_len))

/-- The machine when FlashAttention has run. -/
@[expose] def flashRun [Div R] (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (block_m block_n : Nat) : Machine S R (flashArrays d d_v) [] :=
  (flashProgram scale modify block_m block_n).run (.start (flashMemory Q K V []))

end

/-! ## Standard attention -/

/-- Slow memory of standard attention: Q, K, V, the output, the scores and the weights. -/
abbrev standardArrays (d d_v : Nat) : List Row :=
  [.scores d, .scores d, .values d_v, .values d_v, .masked, .weights]

/-- Slow memory of standard attention when these rows of the output, of the scores and of the
weights are written; at first none. -/
@[expose] def standardMemory (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (out : List (Vec R d_v)) (scores : List (List (Option S)))
    (weights : List (List R)) : Memory S R (standardArrays d d_v) :=
  .cons Q.toList (.cons K.toList (.cons V.toList (.cons out (.cons scores (.cons weights .nil)))))

/-- The output of standard attention. -/
@[expose] def standardOut : Place (standardArrays d d_v) (.values d_v) :=
  .there (.there (.there .here))

/-- Its scores. -/
@[expose] def standardS : Place (standardArrays d d_v) .masked :=
  .there (.there (.there (.there .here)))

/-- Its weights. -/
@[expose] def standardP : Place (standardArrays d d_v) .weights :=
  .there (.there (.there (.there (.there .here))))

/-- The scores of a tile of queries and all keys, written to slow memory. -/
@[expose] def standardScores (rows : List (Fin q_len)) :
    Program S R (standardArrays d d_v) [] [] :=
  seq (load .here (places rows)) <|
  seq (load (.there .here) (places (List.finRange kv_len))) <|
  seq (compute .masked fun
    | .cons k (.cons q .nil) => scoreTile scale modify rows (List.finRange kv_len) q k) <|
  seq (store standardS) <| seq free free

variable [Add R] [Mul R] [OfNat R 0] [Div R] [Exp S R]

/-- The weights of a tile of queries from its scores: both in slow memory. -/
@[expose] def standardWeights (rows : List (Fin q_len)) :
    Program S R (standardArrays d d_v) [] [] :=
  seq (load standardS (places rows)) <|
  seq (compute .weights fun | .cons scores .nil => scores.map softmax) <|
  seq (store standardP) free

/-- Σ pⱼ vⱼ. -/
@[expose] def weigh (v : List (Vec R d_v)) (p : List R) : Vec R d_v :=
  Vec.sumOver (fun (pⱼ, vⱼ) => Vec.smul pⱼ vⱼ) (p.zip v)

/-- The output of a tile of queries from its weights and all values. -/
@[expose] def standardOutput (kv_len : Nat) (rows : List (Fin q_len)) :
    Program S R (standardArrays d d_v) [] [] :=
  seq (load standardP (places rows)) <|
  seq (load (.there (.there .here)) (places (List.finRange kv_len))) <|
  seq (compute (.values d_v) fun | .cons v (.cons weights .nil) => weights.map (weigh v)) <|
  seq (store standardOut) <| seq free free

/-- Standard attention, `block_m` queries at a time: S = Q Kᵀ, then P = softmax S, then O = P V,
each for all queries before the next. All of K, or of V, is in fast memory beside a tile of queries:
it is given as large a one as it likes. -/
@[expose] def standardProgram (block_m : Nat) : Program S R (standardArrays d d_v) [] [] :=
  let queryTiles := tiles block_m (List.finRange q_len)
  seq (forEach (standardScores scale modify) queryTiles) <|
  seq (forEach standardWeights queryTiles) (forEach (standardOutput kv_len) queryTiles)

/-- The machine when standard attention has run. -/
@[expose] def standardRun (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (block_m : Nat) : Machine S R (standardArrays d d_v) [] :=
  (standardProgram scale modify block_m).run (.start (standardMemory Q K V [] [] []))

end

end Attention.Claims
