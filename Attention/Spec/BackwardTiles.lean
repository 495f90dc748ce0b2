module

public import Attention.Spec.Backward
public import Attention.Spec.Dropout
public import Attention.Spec.Schedule

public section

/-! # FlashAttention-2: the backward pass, tile by tile

P is never kept: each pair of tiles computes it again from the scores and the log-sum-exp L that the
forward pass has saved, as exp (s − L). D = rowsum (dO ∘ O) is computed first. One loop runs for
each tile of keys over the tiles of queries and sums dK and dV; another runs for each tile of
queries over the tiles of keys and sums dQ. Each has its own tile sizes and its own schedule of the
pairs that it leaves out or takes without mask code. With dropout each weight has its factor Z,
which is a function of query and key, so that both loops draw the same in any tiles; with factors 1
these are the loops without dropout.
Source: Dao 2023, "FlashAttention-2", Algorithm 2 (lines 10 to 17), where one loop does both and
adds to dQ in memory; in two loops as in Triton's tutorial "Fused Attention"; for Z Dao et al. 2022,
"FlashAttention", algorithm 4, lines 14 to 17. -/

namespace Attention.Spec

universe u v

/-- The tiles of one loop, and how it takes them: `blockOuter` results to a tile, each the sum of
terms that come in tiles of `blockInner`. -/
structure TileLoop where
  /-- The size of the tiles of results. -/
  blockOuter : Nat
  /-- The size of the tiles of terms. -/
  blockInner : Nat
  /-- The tiles of terms that a tile of results visits. -/
  visit : Nat → TileRange
  /-- How a pair of tiles is taken, that of the results named first. -/
  kind : Nat → Nat → TileKind

variable {S : Type u} {R : Type v} {q_len kv_len d d_v n : Nat}

/-- The tile of results `outs`, their sums so far in `sums`, each with its terms of one more tile
added. -/
@[expose] def addTile {α β : Type} [Add R] [OfNat R 0] (term : α → β → Vec R n) (outs : List α)
    (sums : List (Vec R n)) (tile : List β) : List (Vec R n) :=
  List.zipWith (fun x sum => Vec.add sum (Vec.sumOver (term x) tile)) outs sums

/-- The sums of a tile of keys. -/
structure KeySums (R : Type v) (d d_v : Nat) where
  /-- For each key the sum Σ dZ · q. -/
  dK : List (Vec R d)
  /-- For each key the sum Σ p · z · dO. -/
  dV : List (Vec R d_v)

variable [Add S] [Sub S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [OfNat R 0] [Exp S R]
variable (toValue : S → R) (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)

/-- The softmax weight of a pair, computed again from the log-sum-exp: exp (s − L). -/
@[expose] def probabilityAgain (i : Fin q_len) (j : Fin kv_len) : R :=
  rescale (score scale modify Q K i j) L[i]

/-- The softmax weight of a pair with its factor, as it meets the value: p · z. -/
@[expose] def droppedAgain (i : Fin q_len) (j : Fin kv_len) : R :=
  probabilityAgain scale modify Q K L i j * Z i j

/-- The gradient by a score before it was transformed: dS · slope, dS from the value as the query
sees it, z · v. -/
@[expose] def rawGradient (i : Fin q_len) (j : Fin kv_len) : R :=
  scoreGradient (probabilityAgain scale modify Q K L i j) dO[i] (Vec.smul (Z i j) V[j]) delta[i]
    * slope i j (scale * Vec.dot Q[i] K[j])

/-- A tile of keys takes a tile of queries. -/
@[expose] def stepKeys (cols : List (Fin kv_len)) (sums : KeySums R d d_v)
    (rows : List (Fin q_len)) : KeySums R d d_v :=
  { dK := addTile (fun j i => Vec.smul (rawGradient scale modify slope Q K V Z L dO delta i j)
      (Vec.map toValue Q[i])) cols sums.dK rows
    dV := addTile (fun j i => Vec.smul (droppedAgain scale modify Q K Z L i j) dO[i])
      cols sums.dV rows }

/-- A tile of keys takes a tile of queries, as the kind of the pair says. -/
@[expose] def stepKeysKind (cols : List (Fin kv_len)) (sums : KeySums R d d_v) (kind : TileKind)
    (rows : List (Fin q_len)) : KeySums R d d_v :=
  match kind with
  | .skip => sums
  | .unmasked => stepKeys toValue scale modify slope Q K V Z L dO delta cols sums rows
  | .masked => stepKeys toValue scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta cols
      sums rows

/-- A tile of queries takes a tile of keys. -/
@[expose] def stepQueries (rows : List (Fin q_len)) (sums : List (Vec R d))
    (cols : List (Fin kv_len)) : List (Vec R d) :=
  addTile (fun i j => Vec.smul (rawGradient scale modify slope Q K V Z L dO delta i j)
    (Vec.map toValue K[j])) rows sums cols

/-- A tile of queries takes a tile of keys, as the kind of the pair says. -/
@[expose] def stepQueriesKind (rows : List (Fin q_len)) (sums : List (Vec R d)) (kind : TileKind)
    (cols : List (Fin kv_len)) : List (Vec R d) :=
  match kind with
  | .skip => sums
  | .unmasked => stepQueries toValue scale modify slope Q K V Z L dO delta rows sums cols
  | .masked => stepQueries toValue scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta
      rows sums cols

/-- The rows of dK and of dV, in order: each tile of keys in a loop over tiles of queries. -/
@[expose] def backwardKeys (loop : TileLoop) : KeySums R d d_v :=
  let tilesOfKeys := (List.range (numTiles kv_len loop.blockOuter)).map fun u =>
    let cols := tile loop.blockOuter (List.finRange kv_len) u
    let range := loop.visit u
    let start : KeySums R d d_v := ⟨cols.map fun _ => Vec.zero, cols.map fun _ => Vec.zero⟩
    (List.range' range.first (range.stop - range.first)).foldl
      (fun sums t => stepKeysKind toValue scale modify mask slope Q K V Z L dO delta cols sums
        (loop.kind u t) (tile loop.blockInner (List.finRange q_len) t))
      start
  { dK := tilesOfKeys.flatMap fun sums => sums.dK.map (Vec.smul (toValue scale))
    dV := tilesOfKeys.flatMap fun sums => sums.dV }

/-- The rows of dQ, in order: each tile of queries in a loop over tiles of keys. -/
@[expose] def backwardQueries (loop : TileLoop) : List (Vec R d) :=
  (List.range (numTiles q_len loop.blockOuter)).flatMap fun t =>
    let rows := tile loop.blockOuter (List.finRange q_len) t
    let range := loop.visit t
    let start : List (Vec R d) := rows.map fun _ => Vec.zero
    let sums := (List.range' range.first (range.stop - range.first)).foldl
      (fun sums u => stepQueriesKind toValue scale modify mask slope Q K V Z L dO delta rows sums
        (loop.kind t u) (tile loop.blockInner (List.finRange kv_len) u))
      start
    sums.map (Vec.smul (toValue scale))

/-- The rows of dQ, dK and dV, from what the forward pass has saved: the output `O`, with dropout
where there is any, and the log-sum-exp `L`. -/
@[expose] def flashBackward (keys queries : TileLoop) (O : Matrix R q_len d_v)
    (dLse : Vec R q_len) : List (Vec R d) × List (Vec R d) × List (Vec R d_v) :=
  let delta := rowDelta O dO dLse
  let dKV := backwardKeys toValue scale modify mask slope Q K V Z L dO delta keys
  (backwardQueries toValue scale modify mask slope Q K V Z L dO delta queries, dKV.dK, dKV.dV)

end Attention.Spec
