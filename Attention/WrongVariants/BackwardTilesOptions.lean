module

public import Attention.Proof.Backward.TilesOptions
public import Attention.WrongVariants.BackwardTiles

public section

/-! # Wrong variants of the tile loops of the backward pass with slopes and sinks

Three queries and keys under the mask of `WrongVariants.BackwardTiles`, in tiles of two. -/

namespace Attention.WrongVariants

open Spec

attribute [local instance] Lean.Grind.Ring.intCast

/-- The rows of dQ, dK and dV, and the gradients by the slope and by the sink. -/
abbrev RowsAndOptions : Type := Rows × Rat × Rat

/-- The output of attention with a sink that the forward pass has saved. -/
@[expose] def Saved.sinkOutput (x : Saved) (sink : Int) : Column Rat :=
  Vec.ofFn fun i => (attentionSink x.scale masked sink x.Q x.K (droppedValues x.V (fun _ _ => 1)
    i))[i]

/-- The gradients of attention with one more key. -/
@[expose] def Saved.sinkGradients (x : Saved) (sink : Int) : RowsAndOptions :=
  let g := vjpDropout x.scale (masked.behindSink sink) (ScoreSlope.one (R := Rat)).behindSink x.Q
    (rowsBehindSink x.K) (rowsBehindSink x.V) (fun _ => sinkFirst 1 fun _ => 1) Int.cast x.dO x.dLse
  ((g.dQ.toList, (rowsOfKeys g.dK).toList, (rowsOfKeys g.dV).toList),
    slopeGradient .topLeft
      (Vec.ofFn fun i => Vec.ofFn fun j => g.dBias[i][j.succ] : Matrix Rat 3 3),
    sumOver (fun i : Fin 3 => g.dBias[i][(0 : Fin 4)]) (List.finRange 3))

/-- The claim of `flashBackward_sink` under this mask, made of any function of what was saved. -/
abbrev ComputesSinkGradients (back : Saved → Int → RowsAndOptions) : Prop :=
  ∀ (x : Saved) (sink : Int), (∀ i : Fin 3, IsLogSumExp Rat x.L[i]
      (some sink :: (List.finRange 3).map (score x.scale masked x.Q x.K i))) →
    back x sink = x.sinkGradients sink

/-- The loops, from any log-sum-exp and output. -/
@[expose] def backSinks (queries : TileLoop) (x : Saved) (sink : Int) (L : Vector (Option Int) 3)
    (O : Column Rat) : RowsAndOptions :=
  (backTiles everyTile everyTile Int.cast x L O x.dLse,
    backwardSlope x.scale asTheyAre window x.Q x.K x.V (fun _ _ => 1) L x.dO
      (rowDelta O x.dO x.dLse) .topLeft queries,
    sinkGradient L (rowDelta O x.dO x.dLse) sink)

/-- The loops as they should be. -/
@[expose] def rightSinks (x : Saved) (sink : Int) : RowsAndOptions :=
  backSinks everyTile x sink x.L (x.sinkOutput sink)

/-- Positive control. -/
theorem rightSinks_computeGradients : ComputesSinkGradients rightSinks := fun x sink hL => by
  obtain ⟨h₁, h₂, h₃⟩ := Proof.flashBackward_sink Int.cast x.scale asTheyAre
    (ScoreSlope.one (R := Rat)) x.Q x.K x.V (fun _ _ => 1) x.L x.dO .topLeft sink (mask := window)
    (keys := everyTile) (queries := everyTile) (by decide) (by decide) (by decide) (by decide)
    (Proof.soundSchedule_all _ _ (by decide)) (Proof.soundSchedule_all _ _ (by decide)) hL x.dLse 1
  exact Prod.ext h₁ (Prod.ext h₂ h₃)

/-- Zero keys and a sink of 1, so that its exponential is 2 and the log-sum-exps are 1, 2 and 2. -/
@[expose] def sinkOfOne : Saved := { zeroKeys with L := #v[some 1, some 2, some 2] }

/-- The results as numbers. -/
@[expose] def allNumbers (x : RowsAndOptions) : List (List (List Rat)) × Rat × Rat :=
  (numbers x.1, x.2)

/-- The gradients there. -/
theorem ComputesSinkGradients.ofOne {back : Saved → Int → RowsAndOptions}
    (h : ComputesSinkGradients back) :
    allNumbers (back sinkOfOne 1) = allNumbers (sinkOfOne.sinkGradients 1) :=
  congrArg allNumbers (h _ _ (by decide +kernel))

/-- The output without the sink. -/
theorem sinkForgotten_refuted : ¬ ComputesSinkGradients fun x sink =>
    backSinks everyTile x sink x.L x.output :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- A log-sum-exp without the sink: half of the sum of the exponentials. -/
theorem sinkNotSummed_refuted : ¬ ComputesSinkGradients fun x sink =>
    backSinks everyTile x sink (Vec.ofFn fun i : Fin 3 => x.L[i].map (· - 1))
      (x.sinkOutput sink) :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- The gradient by the sink with the other sign. -/
theorem sinkSign_refuted : ¬ ComputesSinkGradients fun x sink =>
    let (rows, slope, ofSink) := rightSinks x sink
    (rows, slope, -ofSink) :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- The gradient by the sink without the gradient by the log-sum-exp. -/
theorem sinkWithoutLse_refuted : ¬ ComputesSinkGradients fun x sink =>
    let (rows, slope, _) := rightSinks x sink
    (rows, slope, sinkGradient x.L (rowDelta (x.sinkOutput sink) x.dO Vec.zero) sink) :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- The gradient by the slope with the other sign, as the kernel has it before it is stored. -/
theorem slopeSign_refuted : ¬ ComputesSinkGradients fun x sink =>
    let (rows, slope, ofSink) := rightSinks x sink
    (rows, -slope, ofSink) :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- Masked pairs count for the slope. -/
theorem slopeUnmasked_refuted : ¬ ComputesSinkGradients
    (fun x sink => backSinks { everyTile with kind := fun _ _ => .unmasked } x sink x.L
      (x.sinkOutput sink)) :=
  fun h => absurd h.ofOne (by decide +kernel)

/-- The first tile of keys is left out of the gradient by the slope. -/
theorem slopeTileDropped_refuted : ¬ ComputesSinkGradients
    (fun x sink => backSinks { everyTile with visit := fun _ => ⟨1, 2⟩ } x sink x.L
      (x.sinkOutput sink)) :=
  fun h => absurd h.ofOne (by decide +kernel)

end Attention.WrongVariants
