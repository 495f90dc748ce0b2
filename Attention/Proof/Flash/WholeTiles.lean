module

public import Attention.Spec.WholeTiles
public import Attention.Proof.Flash.TileBounds

public section

/-! # The key tiles that a kernel takes without mask code -/

namespace Attention.Proof

open Spec

universe u v

/-- A whole tile is unmasked, visited and not ragged. -/
theorem wholeTiles_contains {unmasked visited : TileRange} {length block u : Nat} :
    (wholeTiles unmasked visited length block).contains u = true ↔
      unmasked.contains u = true ∧ visited.contains u = true ∧ u < length / block := by
  simp only [wholeTiles, TileRange.contains, Bool.and_eq_true, decide_eq_true_eq]
  generalize length / block = full
  omega

variable {q_len kv_len block_m block_n t u : Nat}
variable (alignment : Alignment) (left right : Option Nat)

/-- **whole-tiles-run**: the whole tiles are a run of the tiles visited: their ends are in order,
and between the ends of these. -/
theorem wholeTiles_run (hn : 0 < block_n) :
    let visited := visitedTiles alignment left right q_len kv_len block_m block_n t
    let whole := wholeTiles (unmaskedTiles alignment left right q_len kv_len block_m block_n t)
      visited kv_len block_n
    visited.first ≤ whole.first ∧ whole.first ≤ whole.stop ∧ whole.stop ≤ visited.stop := by
  intro visited whole
  have h : visited.first ≤ visited.stop := by
    simp only [visited, visitedTiles]
    split
    · next h => exact Nat.le_of_lt ((lt_numTiles hn).mpr
        (Nat.lt_of_le_of_lt (Nat.div_mul_le_self _ _) h))
    · exact Nat.le_refl 0
  simp only [whole, wholeTiles]
  generalize kv_len / block_n = full
  omega

/-- **whole-tiles**: query tile t takes key tile u without mask code if and only if key tile u is
not ragged and every query of tile t sees every key of it. -/
theorem wholeKind_iff (hm : 0 < block_m) (hn : 0 < block_n)
    (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    wholeKind alignment left right q_len kv_len block_m block_n t u = .unmasked ↔
      (u + 1) * block_n ≤ kv_len ∧
        ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
          Mask.window alignment left right i j = true := by
  have hi : t * block_m < q_len := (lt_numTiles hm).mp ht
  have hj : u * block_n < kv_len := (lt_numTiles hn).mp hu
  have hwhole : wholeKind alignment left right q_len kv_len block_m block_n t u = .unmasked ↔
      (wholeTiles (unmaskedTiles alignment left right q_len kv_len block_m block_n t)
        (visitedTiles alignment left right q_len kv_len block_m block_n t)
        kv_len block_n).contains u = true := by
    simp only [wholeKind]
    split <;> simp [*]
  rw [hwhole, wholeTiles_contains, unmaskedTiles_iff alignment left right hm hn ht hu,
    visitedTiles_iff alignment left right hm hn ht hu, ← Nat.succ_le_iff,
    Nat.le_div_iff_mul_le hn]
  constructor
  · exact fun h => ⟨h.2.2, h.1⟩
  · refine fun h => ⟨h.2, ⟨⟨t * block_m, hi⟩, ?_, ⟨u * block_n, hj⟩, ?_, h.2 _ ?_ _ ?_⟩, h.1⟩ <;>
      exact mem_tile.mpr ⟨Nat.le_refl _, Nat.mul_lt_mul_of_pos_right (Nat.lt_succ_self _)
        (by assumption)⟩

/-- A schedule that takes with mask code some tiles that a sound one takes without is sound. -/
theorem SoundSchedule.fewer {mask : Mask q_len kv_len} {visit : Nat → TileRange}
    {kind kind' : Nat → Nat → TileKind} (h : SoundSchedule mask visit kind block_m block_n)
    (hskip : ∀ t u, kind' t u ≠ .skip)
    (hkind : ∀ t u, (visit t).contains u = true → kind' t u = .unmasked → kind t u = .unmasked) :
    SoundSchedule mask visit kind' block_m block_n where
  skip t u hs := h.skip t u (.inl (hs.resolve_right (hskip t u)))
  unmasked t u hv hk := h.unmasked t u hv (hkind t u hv hk)

/-- The bounds with the whole tiles are a sound schedule for their window. -/
theorem whole_soundSchedule (hm : 0 < block_m) (hn : 0 < block_n) :
    SoundSchedule (Mask.window alignment left right : Mask q_len kv_len)
      (visitedTiles alignment left right q_len kv_len block_m block_n)
      (wholeKind alignment left right q_len kv_len block_m block_n) block_m block_n := by
  refine (window_soundSchedule alignment left right hm hn).fewer (fun t u => ?_) fun t u _ h => ?_
  · rw [wholeKind]
    split <;> exact nofun
  · rw [wholeKind] at h
    split at h
    · next hw => rw [windowKind, if_pos (wholeTiles_contains.mp hw).1]
    · cases h

/-- **whole-tiles-loop**: the tile loop that visits the key tiles of which some query sees some key,
and takes without mask code those that are seen in whole and are not ragged, computes attention
under the window. -/
theorem flashWhole_eq_attention {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d d_v : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (scale : S)
    (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    flashSchedule scale modify (Mask.window alignment left right) Q K V
        (visitedTiles alignment left right q_len kv_len block_m block_n)
        (wholeKind alignment left right q_len kv_len block_m block_n) block_m block_n
      = (attention scale
          (modify.andThen (Mask.window alignment left right).toScoreMod) Q K V).toList :=
  flashSchedule_eq_attention scale modify Q K V hm hn
    (whole_soundSchedule alignment left right hm hn)

end Attention.Proof
