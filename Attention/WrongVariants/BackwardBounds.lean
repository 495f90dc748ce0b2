module

public import Attention.Proof.Backward.Bounds

public section

/-! # Wrong variants of the bounds of the backward pass and of the whole tiles -/

namespace Attention.WrongVariants

open Spec

/-- Bounds of the query tiles that key tile `u` visits, for a window without bound to the left and
with bound `r` to the right. -/
abbrev KeyBounds := (alignment : Alignment) → (r q_len kv_len block_m block_n u : Nat) → TileRange

/-- The claim of `windowKeys_visit_iff`, made of any bounds. -/
abbrev IsVisitedByKeys (visited : KeyBounds) : Prop :=
  ∀ (alignment : Alignment) (r q_len kv_len block_m block_n t u : Nat), 0 < block_m → 0 < block_n →
    u < numTiles kv_len block_n → t < numTiles q_len block_m →
    ((visited alignment r q_len kv_len block_m block_n u).contains t = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment none (some r) i j = true)

/-- Positive control: the Spec's bounds satisfy the claim. -/
theorem windowKeys_isVisitedByKeys :
    IsVisitedByKeys fun alignment r q_len kv_len block_m block_n u =>
      (windowKeys alignment none (some r) q_len kv_len block_m block_n).visit u :=
  fun alignment r _ _ _ _ _ _ hm hn hu ht =>
    Proof.windowKeys_visit_iff alignment none (some r) hm hn hu ht

/-- Left and right not exchanged: the keys visit the queries before them. -/
@[expose] def visitedSameSides : KeyBounds := fun alignment r q_len kv_len block_m block_n u =>
  visitedTiles alignment none (some r) kv_len q_len block_n block_m u

theorem visitedSameSides_refuted : ¬ IsVisitedByKeys visitedSameSides := fun h =>
  absurd (h .topLeft 0 2 2 1 1 0 1 (by decide) (by decide) (by decide) (by decide))
    (by decide +kernel)

/-- The shift with the sign that it has for queries. -/
@[expose] def visitedSameShift : KeyBounds := fun alignment r q_len kv_len block_m block_n u =>
  ⟨(tileRowFirst block_n u + alignment.shift q_len kv_len - (r : Nat)).toNat / block_m,
    numTiles q_len block_m⟩

theorem visitedSameShift_refuted : ¬ IsVisitedByKeys visitedSameShift := fun h =>
  absurd (h .bottomRight 0 1 2 1 1 0 1 (by decide) (by decide) (by decide) (by decide))
    (by decide +kernel)

/-- How a pair of tiles is taken, that of the queries named first, under the causal mask aligned
top-left. -/
abbrev Kinds := (q_len kv_len block_m block_n t u : Nat) → TileKind

/-- The claim of `wholeKind_iff`, made of any kinds. -/
abbrev IsWhole (kind : Kinds) : Prop :=
  ∀ q_len kv_len block_m block_n t u : Nat, 0 < block_m → 0 < block_n →
    t < numTiles q_len block_m → u < numTiles kv_len block_n →
    (kind q_len kv_len block_m block_n t u = .unmasked ↔
      (u + 1) * block_n ≤ kv_len ∧
        ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
          Mask.window .topLeft none (some 0) i j = true)

/-- Positive control: the Spec's kinds satisfy the claim. -/
theorem wholeKind_isWhole : IsWhole (wholeKind .topLeft none (some 0)) :=
  fun _ _ _ _ _ _ hm hn ht hu => Proof.wholeKind_iff .topLeft none (some 0) hm hn ht hu

/-- A ragged last tile that every query sees is taken without mask code, padding and all. -/
theorem windowKind_refuted : ¬ IsWhole (windowKind .topLeft none (some 0)) := fun h =>
  absurd ((h 2 1 1 2 1 0 (by decide) (by decide) (by decide) (by decide)).mp rfl)
    (by decide +kernel)

/-- Each tile that is visited and not ragged counts as whole. -/
@[expose] def wholeVisited : Kinds := fun q_len kv_len block_m block_n t u =>
  let visited := visitedTiles .topLeft none (some 0) q_len kv_len block_m block_n t
  if (wholeTiles visited visited kv_len block_n).contains u then .unmasked else .masked

theorem wholeVisited_refuted : ¬ IsWhole wholeVisited := fun h =>
  absurd ((h 2 2 2 2 0 0 (by decide) (by decide) (by decide) (by decide)).mp rfl)
    (by decide +kernel)

end Attention.WrongVariants
