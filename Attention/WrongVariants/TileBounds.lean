module

public import Attention.Model.Exact
public import Attention.Proof.Flash.TileBounds

public section

/-! # Wrong variants of tile bounds and of the loop by them -/

namespace Attention.WrongVariants

open Spec

/-- Bounds of the key tiles, for a window aligned top-left, without bound to the left and with bound
`r` to the right. -/
abbrev Bounds := (r q_len kv_len block_m block_n t : Nat) → TileRange

/-- The claim of `visitedTiles_iff`, made of any bounds. -/
abbrev IsVisited (visited : Bounds) : Prop :=
  ∀ r q_len kv_len block_m block_n t u : Nat, 0 < block_m → 0 < block_n →
    t < numTiles q_len block_m → u < numTiles kv_len block_n →
    ((visited r q_len kv_len block_m block_n t).contains u = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window .topLeft none (some r) i j = true)

/-- Positive control: the Spec's bounds satisfy the claim. -/
theorem visitedTiles_isVisited :
    IsVisited fun r q_len kv_len block_m block_n t =>
      visitedTiles .topLeft none (some r) q_len kv_len block_m block_n t :=
  fun r _ _ _ _ _ _ hm hn ht hu => Proof.visitedTiles_iff .topLeft none (some r) hm hn ht hu

/-- The last row of a query tile taken as if the tile were full: the ragged last tile visits key
tiles of which it sees nothing. -/
@[expose] def visitedNominal : Bounds := fun r _ kv_len block_m block_n t =>
  ⟨0, numTiles (min kv_len ((t + 1) * block_m - 1 + r + 1)) block_n⟩

theorem visitedNominal_refuted : ¬ IsVisited visitedNominal := fun h =>
  absurd (h 0 1 2 2 1 0 1 (by decide) (by decide) (by decide) (by decide)) (by decide +kernel)

/-- The number of tiles rounded down: the last key tile is visited only when it is seen in whole. -/
@[expose] def visitedRoundedDown : Bounds := fun r q_len kv_len block_m block_n t =>
  ⟨0, stopKey .topLeft (some r) q_len kv_len block_m t / block_n⟩

theorem visitedRoundedDown_refuted : ¬ IsVisited visitedRoundedDown := fun h =>
  absurd (h 0 1 2 1 2 0 0 (by decide) (by decide) (by decide) (by decide)) (by decide +kernel)

/-- The loop over the key tiles of any bounds, every tile with mask code, under the causal mask. -/
@[expose] def flashBounds {q_len kv_len : Nat} (visited : Bounds) (Q : Matrix Int q_len 1)
    (K : Matrix Int kv_len 1) (V : Matrix Rat kv_len 1) (block_m block_n : Nat) :
    List (Vec Rat 1) :=
  flashSchedule 1 Mask.full.toScoreMod (Mask.causal .topLeft) Q K V
    (visited 0 q_len kv_len block_m block_n) (fun _ _ => .masked) block_m block_n

theorem flashBounds_roundedDown_refuted : ¬ ∀ (Q : Matrix Int 1 1) (K : Matrix Int 2 1)
    (V : Matrix Rat 2 1), flashBounds visitedRoundedDown Q K V 1 2
      = (attention 1 (Mask.causal .topLeft).toScoreMod Q K V).toList :=
  fun h => absurd (congrArg (List.map Vector.toList)
    (h #v[#v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]])) (by decide +kernel)

/-- Key tiles count as unmasked when the *last* query of the tile sees them in whole. -/
@[expose] def unmaskedFromLastRow : Bounds := fun r q_len kv_len block_m block_n t =>
  ⟨0, min kv_len (tileRowLast q_len block_m t + r + 1) / block_n⟩

/-- The claim of `unmaskedTiles_iff`, made of any bounds. -/
abbrev IsUnmasked (unmasked : Bounds) : Prop :=
  ∀ r q_len kv_len block_m block_n t u : Nat, 0 < block_m → 0 < block_n →
    t < numTiles q_len block_m → u < numTiles kv_len block_n →
    ((unmasked r q_len kv_len block_m block_n t).contains u = true ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window .topLeft none (some r) i j = true)

theorem unmaskedFromLastRow_refuted : ¬ IsUnmasked unmaskedFromLastRow := fun h =>
  absurd (h 0 2 2 2 2 0 0 (by decide) (by decide) (by decide) (by decide)) (by decide +kernel)

theorem flashSchedule_unmaskedFromLastRow_refuted : ¬ ∀ (Q K : Matrix Int 2 1)
    (V : Matrix Rat 2 1),
    flashSchedule 1 Mask.full.toScoreMod (Mask.causal .topLeft) Q K V
        (visitedTiles .topLeft none (some 0) 2 2 2 2)
        (fun t u => if (unmaskedFromLastRow 0 2 2 2 2 t).contains u then .unmasked else .masked) 2 2
      = (attention 1 (Mask.causal .topLeft).toScoreMod Q K V).toList :=
  fun h => absurd (congrArg (List.map Vector.toList)
    (h #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]])) (by decide +kernel)

end Attention.WrongVariants
