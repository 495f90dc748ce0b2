module

public import Attention.Claims.Memory.Bounds
public import Attention.Model.Exact
public import Attention.Spec.Masks

public section

/-! # Wrong variants of the counts, and the machine run

The counts come from running the programs: here once on numbers, with a ragged last tile. -/

namespace Attention.WrongVariants

open Spec Claims Model

/-- Three queries, and three keys. -/
@[expose] def threeRows : Matrix Int 3 1 := #v[#v[0], #v[1], #v[2]]

/-- Three values. -/
@[expose] def threeValues : Matrix Rat 3 1 := #v[#v[1], #v[2], #v[4]]

/-- The four counts: reads, writes, and the most elements in slow and in fast memory. -/
@[expose] def fourCounts (counts : Counts) : List Nat :=
  [counts.reads, counts.writes, counts.slowPeak, counts.fastPeak]

/-- Positive control: three queries and three keys, two to a tile. Fast memory held what `flashFast`
says, no less: 2 queries, 2 · 2 scores, 2 values, and 2 · 2 states of 3 elements. -/
theorem flashRun_evaluated :
    fourCounts (flashRun 1 Mask.full.toScoreMod threeRows threeRows threeValues 2 2).counts
      = [15, 3, 12, 20] ∧ flashFast 2 2 1 1 = 20 := by
  decide +kernel

/-- Positive control: standard attention on the same numbers moves 4 · 9 elements more, and keeps
2 · 9 more. -/
theorem standardRun_evaluated :
    (fourCounts
      (standardRun 1 Mask.full.toScoreMod threeRows threeRows threeValues 2).counts).take 3
      = [33, 21, 30] := by
  decide +kernel

/-- Tiles of M / d queries, without room for anything else, do not fit a fast memory of M. -/
theorem tilesTooLarge_refuted : ¬ ∀ (M : Nat) (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1), 1 ≤ M →
    M ≤ 3 * 1 → (flashRun 1 Mask.full.toScoreMod Q K V (M / 1) 1).counts.fastPeak ≤ M :=
  fun h => absurd (h 3 threeRows threeRows threeValues (by decide) (by decide))
    (by decide +kernel)

/-- The traffic of FlashAttention is not linear in the length: its memory is. -/
theorem trafficLinear_refuted : ¬ ∃ c : Nat, ∀ (n : Nat) (Q K : Matrix Int n 1)
    (V : Matrix Rat n 1), (flashRun 1 Mask.full.toScoreMod Q K V 1 1).counts.transfers ≤ c * n := by
  rintro ⟨c, h⟩
  have := h (c + 1) (Vec.ofFn fun _ => Vec.zero) (Vec.ofFn fun _ => Vec.zero)
    (Vec.ofFn fun _ => Vec.zero)
  rw [flash_transfers _ _ _ _ _ (by decide) (by decide)] at this
  have e : numTiles (c + 1) 1 = c + 1 := by simp [numTiles]
  have : c * (c + 1) ≤ (c + 1) * ((c + 1) * (1 + 1)) := by grind
  grind

end Attention.WrongVariants
