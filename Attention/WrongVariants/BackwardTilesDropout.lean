module

public import Attention.WrongVariants.BackwardTiles

public section

/-! # Wrong variants of the tile loops of the backward pass with dropout -/

namespace Attention.WrongVariants

open Spec

/-- The factors of three queries and keys. -/
abbrev Factors : Type := WeightFactor Rat 3 3

/-- The output with dropout that the forward pass has saved. -/
@[expose] def Saved.droppedOutput (x : Saved) (Z : Factors) : Column Rat :=
  attentionDropout x.scale masked x.Q x.K x.V Z

/-- The claim of `flashBackward_eq_vjpDropout` under this mask, made of any function of what was
saved and of the factors. -/
abbrev ReplaysDropout (back : Saved → Factors → Rows) : Prop :=
  ∀ (x : Saved) (Z : Factors), (∀ i : Fin 3, IsLogSumExp Rat x.L[i]
      ((List.finRange 3).map (score x.scale masked x.Q x.K i))) →
    let g := vjpDropout x.scale masked ScoreSlope.one x.Q x.K x.V Z Int.cast x.dO x.dLse
    back x Z = (g.dQ.toList, g.dK.toList, g.dV.toList)

/-- The tile loops in tiles of two, from any output. -/
@[expose] def droppedTiles (x : Saved) (Z : Factors) (O : Column Rat) : Rows :=
  flashBackward Int.cast x.scale asTheyAre window ScoreSlope.one x.Q x.K x.V Z x.L x.dO everyTile
    everyTile O x.dLse

/-- Positive control: tiles of two over three queries and keys, so with ragged last tiles. -/
theorem droppedTiles_replaysDropout :
    ReplaysDropout fun x Z => droppedTiles x Z (x.droppedOutput Z) := fun x Z hL =>
  Proof.flashBackward_eq_vjpDropout Int.cast x.scale asTheyAre ScoreSlope.one x.Q x.K x.V Z x.L x.dO
    (by decide) (by decide) (by decide) (by decide)
    (Proof.soundSchedule_all _ _ (by decide)) (Proof.soundSchedule_all _ _ (by decide)) hL x.dLse

/-- Positive control: the one loop. -/
theorem oneLoop_replaysDropout : ReplaysDropout fun x Z =>
    flashBackwardOneLoop Int.cast x.scale asTheyAre window ScoreSlope.one x.Q x.K x.V Z x.L x.dO 2 2
      (fun _ _ => .masked) (x.droppedOutput Z) x.dLse := fun x Z hL =>
  Proof.flashBackwardOneLoop_eq_vjpDropout Int.cast x.scale asTheyAre ScoreSlope.one x.Q x.K x.V Z
    x.L x.dO (by decide) (by decide) (kind := fun _ _ => .masked)
    (fun _ _ _ _ _ _ => ⟨nofun, fun h => nomatch h⟩) hL x.dLse

/-- With p = 1/2 the last key is dropped, the others are kept. -/
@[expose] def dropLast : Factors := .dropout (1 / 2) fun _ j => decide (j.val < 2)

/-- The gradients with zero keys. -/
theorem ReplaysDropout.zeroKeys {back : Saved → Factors → Rows} (h : ReplaysDropout back) :
    numbers (back zeroKeys dropLast)
      = [[[0], [0], [0]], [[-6], [43], [-21]], [[2], [5], [0]]] :=
  (congrArg numbers (h _ dropLast (by decide +kernel))).trans (by decide +kernel)

/-- The gradients with zero queries. -/
theorem ReplaysDropout.zeroQueries {back : Saved → Factors → Rows} (h : ReplaysDropout back) :
    numbers (back zeroQueries dropLast)
      = [[[0], [7], [1]], [[0], [0], [0]], [[2], [5], [0]]] :=
  (congrArg numbers (h _ dropLast (by decide +kernel))).trans (by decide +kernel)

/-! ## Where the factors come from -/

/-- A pair of tiles of two that counts queries and keys from its own first. -/
@[expose] def tileLocal (Z : Factors) : Factors := fun i j =>
  Z ⟨i.val % 2, by omega⟩ ⟨j.val % 2, by omega⟩

/-- The factors are drawn by the place in the pair of tiles, not by query and key. -/
theorem tileLocalFactors_refuted : ¬ ReplaysDropout fun x Z =>
    droppedTiles x (tileLocal Z) (x.droppedOutput Z) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- So in the loop of dQ alone: the two loops do not draw the same. -/
theorem loopsDrawDifferently_refuted : ¬ ReplaysDropout fun x Z =>
    let (dQ, _, _) := droppedTiles x (tileLocal Z) (x.droppedOutput Z)
    let (_, dK, dV) := droppedTiles x Z (x.droppedOutput Z)
    (dQ, dK, dV) :=
  fun h => absurd h.zeroQueries (by decide +kernel)

/-- Query and key in each other's place: the loop for keys names the key first. -/
theorem factorsTransposed_refuted : ¬ ReplaysDropout fun x Z =>
    let (dQ, _, _) := droppedTiles x Z (x.droppedOutput Z)
    let (_, dK, dV) := droppedTiles x (fun i j => Z j i) (x.droppedOutput Z)
    (dQ, dK, dV) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-! ## Where the factors belong -/

/-- dP is that without dropout. -/
theorem dPNotDropped_refuted : ¬ ReplaysDropout fun x Z =>
    let (dQ, dK, _) := droppedTiles x (fun _ _ => 1) (x.droppedOutput Z)
    let (_, _, dV) := droppedTiles x Z (x.droppedOutput Z)
    (dQ, dK, dV) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- dV is that without dropout. -/
theorem dVNotDropped_refuted : ¬ ReplaysDropout fun x Z =>
    let (dQ, dK, _) := droppedTiles x Z (x.droppedOutput Z)
    let (_, _, dV) := droppedTiles x (fun _ _ => 1) (x.droppedOutput Z)
    (dQ, dK, dV) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- D is taken from the output without dropout. -/
theorem tilesDeltaNotDropped_refuted : ¬ ReplaysDropout fun x Z => droppedTiles x Z x.output :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- Kept weights are not divided by 1 − p. -/
theorem keptNotDivided_refuted : ¬ ReplaysDropout fun x Z =>
    droppedTiles x (fun i j => if Z i j = 0 then 0 else 1) (x.droppedOutput Z) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

end Attention.WrongVariants
