module

public import Attention.Model.Exact
public import Attention.Proof.Flash.Basic
public import Attention.Spec.Masks

public section

/-! # Wrong variants of the tile loop, of masks and of the scale -/

namespace Attention.WrongVariants

open Spec Spec.Online

universe u

/-- Tiles counted by rounding down: a ragged last tile is dropped. -/
@[expose] def tilesRoundedDown {α : Type u} (b : Nat) (xs : List α) : List (List α) :=
  (List.range (xs.length / b)).map fun t => (xs.drop (t * b)).take b

theorem tilesRoundedDown_refuted :
    ¬ ∀ (b : Nat) (xs : List Nat), 0 < b → (tilesRoundedDown b xs).flatten = xs :=
  fun h => absurd (h 2 [0, 1, 2] (by decide)) (by decide +kernel)

/-- The tile loop of one query with the tiles of `cut`. -/
@[expose] def flashWith
    (cut : Nat → List (ScoredValue Int Rat 1) → List (List (ScoredValue Int Rat 1))) (block_n : Nat)
    (row : List (ScoredValue Int Rat 1)) : Vec Rat 1 :=
  finish (online (cut block_n row))

/-- Positive control: with the right tiles `flashWith` is attention. -/
theorem flashWith_tiles {block_n : Nat} (h : 0 < block_n) (row : List (ScoredValue Int Rat 1)) :
    flashWith tiles block_n row = attend row := by
  rw [flashWith, Proof.online_any_blocks, Proof.tiles_flatten h]

theorem flashWith_tilesRoundedDown_refuted : ¬ ∀ block_n row, 0 < block_n →
    flashWith tilesRoundedDown block_n row = attend row :=
  fun h => absurd (congrArg Vector.toList
    (h 2 [⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩, ⟨some 0, #v[4]⟩] (by decide))) (by decide +kernel)

/-- A fully masked row whose masked scores are all one large negative number: the mean of the
values, not 0. -/
@[expose] def attendFinite (floor : Int) (row : List (ScoredValue Int Rat 1)) : Vec Rat 1 :=
  attend (row.map fun key => { key with score := some (key.score.getD floor) })

theorem attendFinite_refuted : ¬ ∀ row : List (ScoredValue Int Rat 1),
    (∀ key ∈ row, key.score = none) → attendFinite (-10000) row = Vec.zero :=
  fun h => absurd (congrArg Vector.toList (h [⟨none, #v[1]⟩, ⟨none, #v[3]⟩] (by simp)))
    (by decide +kernel)

/-- A causal mask that is off by one: query `i` does not see key `i`. -/
@[expose] def causalOffByOne {q_len kv_len : Nat} : Mask q_len kv_len :=
  fun i j => decide (j.val < i.val)

theorem causalOffByOne_refuted : ¬ ∀ (Q K : Matrix Int 2 1) (V : Matrix Rat 2 1),
    flash 1 causalOffByOne.toScoreMod Q K V 2 2
      = (attention 1 (Mask.causal .topLeft).toScoreMod Q K V).toList :=
  fun h => absurd (congrArg (List.map Vector.toList)
    (h #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]]))
    (by decide +kernel)

/-- The scale taken twice. -/
theorem scaleTwice_refuted : ¬ ∀ (scale : Int) (Q K : Matrix Int 2 1) (V : Matrix Rat 2 1),
    flash (scale * scale) Mask.full.toScoreMod Q K V 2 2
      = (attention scale Mask.full.toScoreMod Q K V).toList :=
  fun h => absurd (congrArg (List.map Vector.toList)
    (h 2 #v[#v[0], #v[1]] #v[#v[0], #v[1]] #v[#v[1], #v[2]]))
    (by decide +kernel)

end Attention.WrongVariants
