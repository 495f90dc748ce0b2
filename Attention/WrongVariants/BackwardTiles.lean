module

public import Attention.Model.Exact
public import Attention.Proof.Backward.OneLoop
public import Attention.Proof.Derivative.Slopes

public section

/-! # Wrong variants of the tile loops of the backward pass -/

namespace Attention.WrongVariants

open Spec

/-- Three queries or keys. -/
abbrev Column (R : Type) : Type := Matrix R 3 1

/-- The rows of dQ, dK and dV. -/
abbrev Rows : Type := List (Vec Rat 1) × List (Vec Rat 1) × List (Vec Rat 1)

/-- The arguments of the backward pass: the scale, the inputs, what the forward pass has saved, and
the gradients by the output and the log-sum-exp. -/
structure Saved where
  /-- The scale. -/
  scale : Int
  /-- The queries. -/
  Q : Column Int
  /-- The keys. -/
  K : Column Int
  /-- The values. -/
  V : Column Rat
  /-- The log-sum-exp. -/
  L : Vector (Option Int) 3
  /-- The gradient by the output. -/
  dO : Column Rat
  /-- The gradient by the log-sum-exp. -/
  dLse : Vec Rat 3

/-- The first query sees no key, the others their own and the one before it. -/
@[expose] def window : Mask 3 3 := fun i j =>
  decide (0 < i.val ∧ j.val ≤ i.val ∧ i.val ≤ j.val + 1)

/-- The scores before the mask, as they are. -/
@[expose] def asTheyAre {S : Type} : ScoreMod S 3 3 := fun _ _ s => some s

/-- The scores with the mask. -/
@[expose] def masked : ScoreMod Int 3 3 := asTheyAre.andThen window.toScoreMod

/-- The output that the forward pass has saved. -/
@[expose] def Saved.output (x : Saved) : Column Rat := attention x.scale masked x.Q x.K x.V

/-- The claim of `flashBackward_eq_vjp` under this mask, made of any function of what was saved. -/
abbrev ComputesGradients (back : Saved → Rows) : Prop :=
  ∀ x : Saved, (∀ i : Fin 3, IsLogSumExp Rat x.L[i]
      ((List.finRange 3).map (score x.scale masked x.Q x.K i))) →
    let g := vjp x.scale masked ScoreSlope.one x.Q x.K x.V Int.cast x.dO x.dLse
    back x = (g.dQ.toList, g.dK.toList, g.dV.toList)

/-- A loop in tiles of two that takes each pair of tiles with mask code. -/
@[expose] def everyTile : TileLoop := ⟨2, 2, fun _ => ⟨0, numTiles 3 2⟩, fun _ _ => .masked⟩

/-- The tile loops with some of what they are given exchanged. -/
@[expose] def backTiles (keys queries : TileLoop) (toValue : Int → Rat) (x : Saved)
    (L : Vector (Option Int) 3) (O : Column Rat) (dLse : Vec Rat 3) : Rows :=
  flashBackward toValue x.scale asTheyAre window ScoreSlope.one x.Q x.K x.V (fun _ _ => 1) L x.dO
    keys queries O dLse

/-- The tile loops as they should be. -/
@[expose] def rightTiles (x : Saved) : Rows :=
  backTiles everyTile everyTile Int.cast x x.L x.output x.dLse

/-- Positive control: tiles of two over three queries and keys, so with ragged last tiles. -/
theorem rightTiles_computesGradients : ComputesGradients rightTiles := fun x hL =>
  Proof.flashBackward_eq_vjp Int.cast x.scale asTheyAre ScoreSlope.one x.Q x.K x.V x.L x.dO
    (by decide) (by decide) (by decide) (by decide)
    (Proof.soundSchedule_all _ _ (by decide)) (Proof.soundSchedule_all _ _ (by decide)) hL x.dLse

/-- Zero keys, so that all scores are 0 and each query that sees two has the log-sum-exp 1. -/
@[expose] def zeroKeys : Saved :=
  ⟨2, #v[#v[1], #v[2], #v[3]], #v[#v[0], #v[0], #v[0]], #v[#v[1], #v[3], #v[4]],
    #v[none, some 1, some 1], #v[#v[1], #v[2], #v[3]], #v[5, 1, 2]⟩

/-- Zero queries instead. -/
@[expose] def zeroQueries : Saved :=
  { zeroKeys with Q := #v[#v[0], #v[0], #v[0]], K := #v[#v[1], #v[2], #v[3]] }

/-- The rows as numbers. -/
@[expose] def numbers (rows : Rows) : List (List (List Rat)) :=
  [rows.1.map (·.toList), rows.2.1.map (·.toList), rows.2.2.map (·.toList)]

/-- The gradients with zero keys. -/
theorem ComputesGradients.zeroKeys {back : Saved → Rows} (h : ComputesGradients back) :
    numbers (back zeroKeys)
      = [[[0], [0], [0]], [[-2], [15 / 2], [21 / 2]], [[1], [5 / 2], [3 / 2]]] :=
  (congrArg numbers (h _ (by decide +kernel))).trans (by decide +kernel)

/-- The gradients with zero queries. -/
theorem ComputesGradients.zeroQueries {back : Saved → Rows} (h : ComputesGradients back) :
    numbers (back zeroQueries)
      = [[[0], [5], [23 / 2]], [[0], [0], [0]], [[1], [5 / 2], [3 / 2]]] :=
  (congrArg numbers (h _ (by decide +kernel))).trans (by decide +kernel)

/-! ## What was saved, exchanged -/

/-- P from the maximum of the scores for the log-sum-exp. -/
theorem staleMaximum_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile everyTile Int.cast x
      (Vec.ofFn fun i => rowMax ((List.finRange 3).map (score x.scale masked x.Q x.K i)))
      x.output x.dLse :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- D is missing: the output counts 0. -/
theorem deltaMissing_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile everyTile Int.cast x x.L (Vec.ofFn fun _ => Vec.zero) x.dLse :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- The gradient by the log-sum-exp is left out. -/
theorem dLseMissing_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile everyTile Int.cast x x.L x.output Vec.zero :=
  fun h => absurd h.zeroQueries (by decide +kernel)

/-! ## Loops -/

/-- Masked pairs keep their P: no tile is taken with mask code. -/
theorem maskedNotZeroed_refuted : ¬ ComputesGradients fun x =>
    backTiles { everyTile with kind := fun _ _ => .unmasked } everyTile Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- The same in the loop of dQ. -/
theorem maskedNotZeroedQueries_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile { everyTile with kind := fun _ _ => .unmasked } Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroQueries (by decide +kernel)

/-- Tiles counted by rounding down: the ragged last tile of queries is dropped from dK and dV. -/
theorem lastQueryTileDropped_refuted : ¬ ComputesGradients fun x =>
    backTiles { everyTile with visit := fun _ => ⟨0, 3 / 2⟩ } everyTile Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- Tiles counted by rounding down: the ragged last tile of keys is dropped from dQ. -/
theorem lastKeyTileDropped_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile { everyTile with visit := fun _ => ⟨0, 3 / 2⟩ } Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroQueries (by decide +kernel)

/-- The bounds of the forward pass, tiles up to the diagonal, also for dK and dV, where the tiles
from the diagonal on are needed. -/
theorem boundsNotTransposed_refuted : ¬ ComputesGradients fun x =>
    backTiles { everyTile with visit := fun u => ⟨0, u + 1⟩ } everyTile Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- Only the last tile counts: the sums are overwritten, not added to. -/
theorem overwritten_refuted : ¬ ComputesGradients fun x =>
    backTiles everyTile { everyTile with visit := fun _ => ⟨1, 2⟩ } Int.cast x x.L x.output
      x.dLse :=
  fun h => absurd h.zeroQueries (by decide +kernel)

/-! ## Results -/

/-- dK and dV in each other's place. -/
theorem swapped_refuted : ¬ ComputesGradients fun x =>
    let (dQ, dK, dV) := rightTiles x
    (dQ, dV, dK) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-- The scale once more, at the end. -/
theorem dKScaledTwice_refuted : ¬ ComputesGradients fun x =>
    let (dQ, dK, dV) := rightTiles x
    (dQ, dK.map (Vec.smul (x.scale : Rat)), dV) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-! ## One loop -/

/-- The one loop in tiles of two, the pairs of tiles taken as `kind` says. -/
@[expose] def oneLoop (kind : Nat → Nat → TileKind) (x : Saved) : Rows :=
  flashBackwardOneLoop Int.cast x.scale asTheyAre window ScoreSlope.one x.Q x.K x.V (fun _ _ => 1)
    x.L x.dO 2 2 kind x.output x.dLse

/-- The last key is left out for the first two queries, which do not see it. -/
@[expose] def skipAbove (u t : Nat) : TileKind := if t < u then .skip else .masked

/-- Positive control: pairs above the diagonal are masked. -/
theorem oneLoop_computesGradients : ComputesGradients (oneLoop skipAbove) := fun x hL =>
  Proof.flashBackwardOneLoop_eq_vjp Int.cast x.scale asTheyAre ScoreSlope.one x.Q x.K x.V x.L x.dO
    (by decide) (by decide) (kind := skipAbove) (fun u t i hi j hj => by
      have hi := Proof.mem_tile.mp hi
      have hj := Proof.mem_tile.mp hj
      rw [skipAbove]
      split
      · refine ⟨fun _ => decide_eq_false ?_, nofun⟩
        omega
      · exact ⟨nofun, nofun⟩) hL x.dLse

/-- The kinds of the forward pass, tiles of queries named first, are those of other pairs. -/
theorem kindsNotTransposed_refuted : ¬ ComputesGradients (oneLoop fun u t => skipAbove t u) :=
  fun h => absurd h.zeroKeys (by decide +kernel)

/-! ## Masked rows -/

/-- The claim of `vjp_masked_row` of dV: where all is masked, gradients by the output change
nothing. -/
abbrev MaskedGivesNothing (modify : ScoreMod Int 3 3) : Prop :=
  ∀ (x : Saved) (dO : Column Rat),
    (vjp x.scale modify ScoreSlope.one x.Q x.K x.V Int.cast dO x.dLse).dV
      = (vjp x.scale modify ScoreSlope.one x.Q x.K x.V Int.cast x.dO x.dLse).dV

/-- Positive control, at the counterexample. -/
theorem masked_givesNothing : numbers ([], [], (vjp zeroKeys.scale (fun _ _ _ => none)
    ScoreSlope.one zeroKeys.Q zeroKeys.K zeroKeys.V Int.cast zeroKeys.dO zeroKeys.dLse).dV.toList)
      = [[], [], [[0], [0], [0]]] := by
  decide +kernel

/-- Masked is a large negative number: rows that see nothing give their gradients to all values. -/
theorem finiteMask_refuted : ¬ MaskedGivesNothing fun _ _ _ => some (-10000) :=
  fun h => absurd (congrArg (fun dV => dV.toList.map Vector.toList)
    (h zeroKeys (Vec.ofFn fun _ => Vec.zero))) (by decide +kernel)

end Attention.WrongVariants
