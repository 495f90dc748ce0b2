module

public import Attention.Model.Exact
public import Attention.Proof.Dropout.Mean
public import Attention.Spec.Masks

public section

/-! # Wrong variants of dropout -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- Four keys with score 0, and values by which to tell which of them were kept. -/
@[expose] def fourKeys : Matrix Int 4 1 := #v[#v[0], #v[0], #v[0], #v[0]]

/-- The values. -/
@[expose] def fourValues : Matrix Rat 4 1 := #v[#v[1], #v[10], #v[100], #v[1000]]

/-- One query. -/
@[expose] def oneQuery : Matrix Int 1 1 := #v[#v[0]]

/-- The numbers of rows. -/
@[expose] def entries (rows : List (Vec Rat 1)) : List (List Rat) := rows.map (·.toList)

/-! ## What is dropped -/

/-- A way to compute attention with dropout with p = 1/2, from what is kept. -/
abbrev Dropping : Type := Mask 1 4 → List (Vec Rat 1)

/-- The claim of `flashDropout_eq_attentionDropout` for these keys. -/
abbrev Drops (f : Dropping) : Prop := ∀ keep : Mask 1 4, f keep
  = (attentionDropout 1 Mask.full.toScoreMod oneQuery fourKeys fourValues
      (.dropout (1 / 2) keep)).toList

/-- Positive control: the tile loop, in tiles of three keys. -/
theorem flashDropout_drops : Drops fun keep =>
    flashDropout 1 Mask.full.toScoreMod oneQuery fourKeys fourValues (.dropout (1 / 2) keep) 1 3 :=
  fun keep => Proof.flashDropout_eq_attentionDropout _ _ _ _ _ _ (by decide) (by decide)

/-- The first two keys are kept. -/
@[expose] def keepTwo : Mask 1 4 := fun _ j => decide (j.val < 2)

/-- The denominator counts the kept keys alone: dropped keys are masked. -/
theorem droppedFromDenominator_refuted : ¬ Drops fun keep =>
    flashDropout 1 keep.toScoreMod oneQuery fourKeys fourValues (.dropout (1 / 2) keep) 1 3 :=
  fun h => absurd (congrArg entries (h keepTwo)) (by decide +kernel)

/-- The kept weights are not divided by 1 − p. -/
theorem notRescaled_refuted : ¬ Drops fun keep =>
    flashDropout 1 Mask.full.toScoreMod oneQuery fourKeys fourValues (.dropout 0 keep) 1 3 :=
  fun h => absurd (congrArg entries (h keepTwo)) (by decide +kernel)

/-- The dropped keys are kept, the kept ones dropped. -/
theorem inverted_refuted : ¬ Drops fun keep =>
    flashDropout 1 Mask.full.toScoreMod oneQuery fourKeys fourValues
      (.dropout (1 / 2) fun i j => !keep i j) 1 3 :=
  fun h => absurd (congrArg entries (h keepTwo)) (by decide +kernel)

/-! ## The log-sum-exp -/

/-- The claim of `dropout_keeps_m_l`, of l alone, made of the keys as a query sees them. -/
abbrev KeepsL (seen : Mask 1 4 → Fin 1 → List (Fin 4) → List (ScoredValue Int Rat 1)) : Prop :=
  ∀ keep : Mask 1 4, (tileLoop empty (seen keep) 1 3).map (·.l)
    = (tileLoop empty (scored 1 Mask.full.toScoreMod oneQuery fourKeys fourValues) 1 3).map (·.l)

/-- Positive control. -/
theorem scoredDropout_keepsL : KeepsL fun keep =>
    scoredDropout 1 Mask.full.toScoreMod oneQuery fourKeys fourValues (.dropout (1 / 2) keep) :=
  fun keep => by
    have := congrArg (List.map Prod.snd) (Proof.dropout_keeps_m_l (S := Int) 1 Mask.full.toScoreMod
      oneQuery fourKeys fourValues (.dropout (1 / 2) keep) (block_m := 1) (by decide) 3)
    simpa only [List.map_map, Function.comp_def] using this

/-- Masked instead of dropped: l is another. -/
theorem maskedInstead_refuted : ¬ KeepsL fun keep =>
    scored 1 keep.toScoreMod oneQuery fourKeys fourValues :=
  fun h => absurd (h keepTwo) (by decide +kernel)

/-! ## The mean -/

/-- Without the division by 1 − p the mean is not attention. -/
theorem meanNotRescaled_refuted : ¬ ∀ V : Matrix Rat 1 1,
    Proof.meanOverMasks (1 / 2 : Rat) 1 (fun bits =>
      (attentionDropout (1 : Int) Mask.full.toScoreMod oneQuery #v[#v[0]] V
        (.dropout 0 (Proof.maskOfBits bits)))[0][0])
      = (attention (1 : Int) Mask.full.toScoreMod oneQuery #v[#v[0]] V)[0][0] :=
  fun h => absurd (h #v[#v[1]]) (by decide +kernel)

/-! ## What a tile draws -/

/-- The claim of `flashDrawn_eq_attentionDropout` for these keys, one head and one seed. -/
abbrev Replays (f : (threshold seed head block_n : Nat) → List (Vec Rat 1)) : Prop :=
  ∀ threshold seed head block_n, 0 < block_n → f threshold seed head block_n
    = (attentionDropout (1 : Int) Mask.full.toScoreMod oneQuery fourKeys fourValues
        (.dropout (1 / 2) (keepMask threshold seed head))).toList

/-- Positive control. -/
theorem flashDrawn_replays : Replays fun threshold seed head block_n =>
    flashDrawn (1 : Int) Mask.full.toScoreMod oneQuery fourKeys fourValues (1 / 2) threshold seed
      head 1 block_n :=
  fun _ _ _ _ h => Proof.flashDrawn_eq_attentionDropout _ _ _ _ _ _ _ _ _ (by decide) h

/-- The tile loop with what each tile draws given by a function of its first key and its length. -/
@[expose] def drawnBy (draw : (start count : Nat) → List Bool) (block_n : Nat) :
    List (Vec Rat 1) :=
  (tileLoop empty (fun i cols => List.zipWith (fun keep key => dropKey (dropoutFactor (1 / 2) keep)
      key) (draw (cols.head?.elim 0 (·.val)) cols.length)
    (scored (1 : Int) Mask.full.toScoreMod oneQuery fourKeys fourValues i cols)) 1 block_n).map
    finish

/-- Each tile counts its columns from 0. -/
theorem tileLocalColumns_refuted : ¬ Replays fun threshold seed head block_n =>
    drawnBy (fun _ count => keepsFrom threshold seed head 0 0 count) block_n :=
  fun h => absurd (congrArg entries (h (2 ^ 31) 0 0 1 (by decide))) (by decide +kernel)

/-- A tile that starts within a group of four takes the words from the group's first on. -/
theorem groupFromItsStart_refuted : ¬ Replays fun threshold seed head block_n =>
    drawnBy (fun start count => keepsFrom threshold seed head 0 (start / 4 * 4) count) block_n :=
  fun h => absurd (congrArg entries (h (2 ^ 31) 0 0 1 (by decide))) (by decide +kernel)

/-- All heads draw the same. -/
theorem headForgotten_refuted : ¬ Replays fun threshold seed _ block_n =>
    drawnBy (fun start count => keepsFrom threshold seed 0 0 start count) block_n :=
  fun h => absurd (congrArg entries (h (2 ^ 31) 0 1 4 (by decide))) (by decide +kernel)

/-! ## The generator -/

/-- A round with even multipliers, which loses the highest bit of two words. -/
@[expose] def evenRound (counter : Words) : Words :=
  { c0 := 0xCD9E8D56 * counter.c2 / 2 ^ 32 ^^^ counter.c1
    c1 := 0xCD9E8D56 * counter.c2 % 2 ^ 32
    c2 := 0xD2511F52 * counter.c0 / 2 ^ 32 ^^^ counter.c3
    c3 := 0xD2511F52 * counter.c0 % 2 ^ 32 }

theorem evenRound_refuted : ¬ ∀ a b : Words, Proof.Words.Valid a → Proof.Words.Valid b →
    evenRound a = evenRound b → a = b :=
  fun h => absurd (congrArg Words.c0
    (h ⟨0, 0, 0, 0⟩ ⟨2 ^ 31, 0, 0, 0xD2511F52 * 2 ^ 31 / 2 ^ 32⟩
      ⟨by decide, by decide, by decide, by decide⟩ ⟨by decide, by decide, by decide, by decide⟩
      (by simp [evenRound]))) (by decide)

end Attention.WrongVariants
