module

public import Attention.Model.Exact
public import Attention.Proof.Online.SplitKV
public import Attention.WrongVariants.Flash
public import Attention.WrongVariants.Merge

public section

/-! # Wrong variants of decoding with the keys split -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- One query and five keys: its states for splits of `split_len` keys, put together by
`together`. -/
@[expose] def splitKVWith (cut : Nat → List (Fin 5) → List (List (Fin 5)))
    (together : List ExactState → Vec Rat 1) (mask : Mask 1 5) (K : Matrix Int 5 1)
    (V : Matrix Rat 5 1) (split_len : Nat) : Vec Rat 1 :=
  together ((cut split_len (List.finRange 5)).map fun cols =>
    online ((tiles 1 cols).map (scored 1 mask.toScoreMod #v[#v[1]] K V 0)))

/-- The claim of `splitKV_eq_attention` for one query and five keys, made of any way to cut and to
put together. -/
abbrev SplitsComputeAttention (cut : Nat → List (Fin 5) → List (List (Fin 5)))
    (together : List ExactState → Vec Rat 1) : Prop :=
  ∀ (mask : Mask 1 5) (K : Matrix Int 5 1) (V : Matrix Rat 5 1) (split_len : Nat), 0 < split_len →
    splitKVWith cut together mask K V split_len
      = (attention 1 mask.toScoreMod #v[#v[1]] K V)[0]

/-- Keys with different scores. -/
@[expose] def splitK : Matrix Int 5 1 := #v[#v[0], #v[1], #v[2], #v[2], #v[0]]

/-- Values that are all different. -/
@[expose] def splitV : Matrix Rat 5 1 := #v[#v[1], #v[2], #v[4], #v[8], #v[16]]

/-- One output that is not attention refutes the claim. -/
theorem SplitsComputeAttention.refute {cut together} (mask : Mask 1 5)
    (h : (splitKVWith cut together mask splitK splitV 2).toList
      ≠ ((attention 1 mask.toScoreMod #v[#v[1]] splitK splitV)[0]).toList) :
    ¬ SplitsComputeAttention cut together :=
  fun claim => h (congrArg Vector.toList (claim mask splitK splitV 2 (by decide)))

/-- Merged one after the other, and divided at the end. -/
@[expose] def mergedAll (states : List ExactState) : Vec Rat 1 := finish (states.foldl merge empty)

/-- Positive control. -/
theorem mergedAll_tiles : SplitsComputeAttention tiles mergedAll := by
  intro mask K V split_len hs
  have h := Proof.splitKV_eq_attention 1 mask.toScoreMod #v[#v[1]] K V hs (block_n := 1)
    (by decide)
  have h := congrArg (·[0]?) h
  simpa [splitKV, splitStates, splitKVWith, mergedAll] using h

/-- The last split, which is ragged, is dropped. -/
theorem splitsRoundedDown_refuted : ¬ SplitsComputeAttention tilesRoundedDown mergedAll :=
  SplitsComputeAttention.refute Mask.full (by decide +kernel)

/-- The fold begins with the first split, and takes it again. -/
@[expose] def firstTwice (states : List ExactState) : Vec Rat 1 :=
  finish (states.foldl merge (states.headD empty))

theorem firstTwice_refuted : ¬ SplitsComputeAttention tiles firstTwice :=
  SplitsComputeAttention.refute Mask.full (by decide +kernel)

/-- The outputs of the splits are divided first and then averaged. -/
@[expose] def averaged (states : List ExactState) : Vec Rat 1 :=
  Vec.smul (1 / states.length) (Vec.sumOver finish states)

theorem averaged_refuted : ¬ SplitsComputeAttention tiles averaged :=
  SplitsComputeAttention.refute Mask.full (by decide +kernel)

/-- The states are added up, each against its own maximum. -/
@[expose] def addedUp (states : List ExactState) : Vec Rat 1 :=
  finish (states.foldl (fun a b => ⟨maxScore a.m b.m, a.l + b.l, Vec.add a.o b.o⟩) empty)

theorem addedUp_refuted : ¬ SplitsComputeAttention tiles addedUp :=
  SplitsComputeAttention.refute Mask.full (by decide +kernel)

end Attention.WrongVariants
