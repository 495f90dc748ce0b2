module

public import Attention.Spec.BackwardOptions
public import Attention.Spec.BackwardTiles

public section

/-! # FlashAttention-2's backward pass: the gradients by slopes and sinks

The loop that sums dQ for each tile of queries sums beside it, for each query, its part of the
gradient by the slope of its head's linear biases, Σ dS · (−distance). A sink is a part of the
log-sum-exp L alone: the loops are the same. Its gradient needs none: its weight is exp (sink − L),
its value 0, and so its dS is that weight times −D.
Source: as `BackwardTiles.lean`; Press et al. 2022, "Train Short, Test Long", for slopes. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [OfNat R 0] [OfNat R 1]
variable [IntCast R] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)
variable (alignment : Alignment)

/-- The part of a pair in the gradient by the slope: dS · (−distance). -/
@[expose] def slopeTerm (i : Fin q_len) (j : Fin kv_len) : Vec R 1 :=
  #v[rawGradient scale modify .one Q K V Z L dO delta i j
    * ((-(distance alignment i j : Int) : Int) : R)]

/-- A tile of queries takes a tile of keys. -/
@[expose] def stepSlopes (rows : List (Fin q_len)) (sums : List (Vec R 1))
    (cols : List (Fin kv_len)) : List (Vec R 1) :=
  addTile (slopeTerm scale modify Q K V Z L dO delta alignment) rows sums cols

/-- A tile of queries takes a tile of keys, as the kind of the pair says. -/
@[expose] def stepSlopesKind (rows : List (Fin q_len)) (sums : List (Vec R 1)) (kind : TileKind)
    (cols : List (Fin kv_len)) : List (Vec R 1) :=
  match kind with
  | .skip => sums
  | .unmasked => stepSlopes scale modify Q K V Z L dO delta alignment rows sums cols
  | .masked => stepSlopes scale (modify.andThen mask.toScoreMod) Q K V Z L dO delta alignment rows
      sums cols

/-- The part of each query in the gradient by the slope, in order: each tile of queries in a loop
over tiles of keys. -/
@[expose] def backwardSlopes (loop : TileLoop) : List (Vec R 1) :=
  (List.range (numTiles q_len loop.blockOuter)).flatMap fun t =>
    let rows := tile loop.blockOuter (List.finRange q_len) t
    let range := loop.visit t
    (List.range' range.first (range.stop - range.first)).foldl
      (fun sums u => stepSlopesKind scale modify mask Q K V Z L dO delta alignment rows sums
        (loop.kind t u) (tile loop.blockInner (List.finRange kv_len) u))
      (rows.map fun _ => Vec.zero)

/-- The gradient by the slope: the sum over all queries. -/
@[expose] def backwardSlope (loop : TileLoop) : R :=
  sumOver (fun part : Vec R 1 => part[0])
    (backwardSlopes scale modify mask Q K V Z L dO delta alignment loop)

omit [Add S] [Mul S] [OfNat S 0] [OfNat R 1] [IntCast R] in
/-- The gradient by a sink, from the log-sum-exps and from D − dL: Σ exp (sink − L) · −(D − dL). -/
@[expose] def sinkGradient (sink : S) : R :=
  sumOver (fun i : Fin q_len => rescale (some sink) L[i] * (0 - delta[i])) (List.finRange q_len)

end Attention.Spec
