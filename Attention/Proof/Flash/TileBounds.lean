module

public import Attention.Spec.TileBounds
public import Attention.Proof.Masks.Intervals
public import Attention.Proof.Masks.Basic
public import Attention.Proof.Flash.Schedule

public section

/-! # The key tiles that a query tile must visit, exactly -/

namespace Attention.Proof

open Spec

universe u v

variable {q_len kv_len block_m block_n t u : Nat}
variable (alignment : Alignment) (left right : Option Nat)

/-! ## Rows and keys -/

private theorem window_eq_true {i : Fin q_len} {j : Fin kv_len} :
    Mask.window alignment left right i j = true ↔
      WindowLeft left (alignment.shift q_len kv_len) i.val j.val ∧
        WindowRight right (alignment.shift q_len kv_len) i.val j.val := by
  cases left <;> cases right <;> simp [Mask.window, WindowLeft, WindowRight]

/-- A query of tile `t` lies between the first and the last row of the tile. -/
private theorem mem_rows (hm : 0 < block_m) {i : Fin q_len} :
    i ∈ tile block_m (List.finRange q_len) t ↔
      tileRowFirst block_m t ≤ i.val ∧ i.val ≤ tileRowLast q_len block_m t := by
  have h : 0 < min ((t + 1) * block_m) q_len :=
    Nat.lt_min.mpr ⟨Nat.mul_pos (Nat.succ_pos t) hm, Nat.zero_lt_of_lt i.isLt⟩
  rw [mem_tile, tileRowFirst, tileRowLast, Nat.le_sub_one_iff_lt h, Nat.lt_min,
    and_iff_left i.isLt]

private theorem mem_cols {j : Fin kv_len} :
    j ∈ tile block_n (List.finRange kv_len) u ↔
      u * block_n ≤ j.val ∧ j.val < u * block_n + block_n := by
  rw [mem_tile, Nat.add_mul, Nat.one_mul]

private theorem rows_nonempty (hm : 0 < block_m) (ht : t < numTiles q_len block_m) :
    tileRowFirst block_m t ≤ tileRowLast q_len block_m t ∧
      tileRowLast q_len block_m t < q_len := by
  have h : t * block_m < min ((t + 1) * block_m) q_len := Nat.lt_min.mpr
    ⟨Nat.mul_lt_mul_of_pos_right (Nat.lt_succ_self t) hm, (lt_numTiles hm).mp ht⟩
  exact ⟨Nat.le_sub_one_of_lt h, (Nat.lt_min.mp (Nat.sub_one_lt_of_lt h)).2⟩

private theorem lt_numTiles_of_mem {n b t : Nat} (hb : 0 < b) {i : Fin n}
    (hi : i ∈ tile b (List.finRange n) t) : t < numTiles n b :=
  (lt_numTiles hb).mpr (Nat.lt_of_le_of_lt (mem_tile.mp hi).1 i.isLt)

private theorem firstKey_le {j : Nat} :
    firstKey alignment left q_len kv_len block_m t ≤ j ↔
      WindowLeft left (alignment.shift q_len kv_len) (tileRowFirst block_m t) j := by
  cases left with
  | none => simp [firstKey, WindowLeft]
  | some l => simp only [firstKey, WindowLeft, Option.some.injEq, forall_eq', Int.toNat_le]

private theorem lt_stopKey {j : Nat} :
    j < stopKey alignment right q_len kv_len block_m t ↔ j < kv_len ∧
      WindowRight right (alignment.shift q_len kv_len) (tileRowLast q_len block_m t) j := by
  cases right with
  | none => simp [stopKey, WindowRight]
  | some r =>
    simp only [stopKey, WindowRight, Nat.lt_min, Int.lt_toNat, Int.lt_add_one_iff,
      Option.some.injEq, forall_eq']

/-! ## Tiles -/

/-- Tile `u` is one of those from key `first` to key `stop` exactly when the two overlap. -/
private theorem contains_iff (hn : 0 < block_n) {first stop : Nat} :
    (TileRange.mk (first / block_n) (numTiles stop block_n)).contains u = true ↔
      first < u * block_n + block_n ∧ u * block_n < stop := by
  simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq, lt_numTiles hn]
  rw [← Nat.lt_succ_iff, Nat.div_lt_iff_lt_mul hn, Nat.succ_mul]

/-- The tiles visited are those which overlap the keys that some query of the tile sees. -/
private theorem visitedTiles_contains (hn : 0 < block_n) :
    (visitedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      firstKey alignment left q_len kv_len block_m t
          < stopKey alignment right q_len kv_len block_m t ∧
        firstKey alignment left q_len kv_len block_m t < u * block_n + block_n ∧
        u * block_n < stopKey alignment right q_len kv_len block_m t := by
  rw [visitedTiles]
  by_cases h : firstKey alignment left q_len kv_len block_m t
      < stopKey alignment right q_len kv_len block_m t
  · rw [if_pos h, contains_iff hn]
    exact ⟨fun h' => ⟨h, h'⟩, fun h' => h'.2⟩
  · simp [h, TileRange.contains]

/-- **tile-bounds**: query tile t visits key tile u if and only if there are a query of tile t and a
key of tile u such that the query sees the key; for every window, in both alignments, for all sizes
and tile sizes of at least 1. -/
theorem visitedTiles_iff (hm : 0 < block_m) (hn : 0 < block_n)
    (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    (visitedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true := by
  have hA := rows_nonempty hm ht
  have hk := (lt_numTiles hn).mp hu
  simp only [visitedTiles_contains alignment left right hn, mem_rows hm, mem_cols, window_eq_true]
  have hf := fun j => firstKey_le (q_len := q_len) (kv_len := kv_len) (block_m := block_m) (t := t)
    (j := j) alignment left
  have hs := fun j => lt_stopKey (q_len := q_len) (kv_len := kv_len) (block_m := block_m) (t := t)
    (j := j) alignment right
  generalize firstKey alignment left q_len kv_len block_m t = first at hf ⊢
  generalize stopKey alignment right q_len kv_len block_m t = stop at hs ⊢
  constructor
  · rintro ⟨h, hfirst, hstop⟩
    have hl := (hf (max (u * block_n) first)).mp (Nat.le_max_right _ _)
    have hr := (hs (max (u * block_n) first)).mp (Nat.max_lt.mpr ⟨hstop, h⟩)
    obtain ⟨i, hi, hli, hri⟩ := exists_row hA.1 hl hr.2
    exact ⟨⟨i, Nat.lt_of_le_of_lt hi.2 hA.2⟩, hi, ⟨_, hr.1⟩,
      ⟨Nat.le_max_left _ _, Nat.max_lt.mpr ⟨Nat.lt_add_of_pos_right hn, hfirst⟩⟩, hli, hri⟩
  · rintro ⟨i, hi, j, hj, hl, hr⟩
    have h₁ := (hf j.val).mpr (hl.mono hi.1 (Nat.le_refl _))
    have h₂ := (hs j.val).mpr ⟨j.isLt, hr.mono hi.2 (Nat.le_refl _)⟩
    exact ⟨Nat.lt_of_le_of_lt h₁ h₂, Nat.lt_of_le_of_lt h₁ hj.2, Nat.lt_of_le_of_lt hj.1 h₂⟩

private theorem sub_one_le {a : Nat} {w : Int} (h : 0 < a) :
    ((a - 1 : Nat) : Int) ≤ w ↔ a ≤ (w + 1).toNat := by
  omega

/-- **tile-bounds-unmasked**: query tile t takes key tile u without mask code if and only if every
query of tile t sees every key of tile u. -/
theorem unmaskedTiles_iff (hm : 0 < block_m) (hn : 0 < block_n)
    (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    (unmaskedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true := by
  have hA := rows_nonempty hm ht
  have hk := (lt_numTiles hn).mp hu
  have h₀ : u * block_n < min (u * block_n + block_n) kv_len :=
    Nat.lt_min.mpr ⟨Nat.lt_add_of_pos_right hn, hk⟩
  have hfirst : (unmaskedTiles alignment left right q_len kv_len block_m block_n t).first ≤ u ↔
      WindowLeft left (alignment.shift q_len kv_len) (tileRowLast q_len block_m t)
        (u * block_n) := by
    cases left with
    | none => simp [unmaskedTiles, WindowLeft]
    | some l =>
      simp only [unmaskedTiles, WindowLeft, Option.some.injEq, forall_eq']
      rw [← Nat.not_lt, lt_numTiles hn, Nat.not_lt, Int.toNat_le]
  have hstop : u < (unmaskedTiles alignment left right q_len kv_len block_m block_n t).stop ↔
      WindowRight right (alignment.shift q_len kv_len) (tileRowFirst block_m t)
        (min (u * block_n + block_n) kv_len - 1) := by
    cases right with
    | none => simp [unmaskedTiles, WindowRight, hu]
    | some r =>
      simp only [unmaskedTiles, WindowRight, Option.some.injEq, forall_eq']
      rw [sub_one_le (Nat.zero_lt_of_lt h₀), Std.min_le]
      split
      · next h => simp only [hu, h, or_true]
      · next h =>
        rw [← Nat.succ_le_iff, Nat.le_div_iff_mul_le hn, Nat.succ_mul, or_iff_left h]
  simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq, hfirst, hstop, mem_rows hm,
    mem_cols, window_eq_true]
  constructor
  · rintro ⟨hl, hr⟩ i hi j hj
    exact ⟨hl.mono hi.2 hj.1,
      hr.mono hi.1 (Nat.le_sub_one_of_lt (Nat.lt_min.mpr ⟨hj.2, j.isLt⟩))⟩
  · intro h
    have hlast := Nat.lt_min.mp (Nat.sub_one_lt_of_lt h₀)
    exact ⟨(h ⟨_, hA.2⟩ ⟨hA.1, Nat.le_refl _⟩ ⟨_, hk⟩
        ⟨Nat.le_refl _, Nat.lt_add_of_pos_right hn⟩).1,
      (h ⟨_, Nat.lt_of_le_of_lt hA.1 hA.2⟩ ⟨Nat.le_refl _, hA.1⟩ ⟨_, hlast.2⟩
        ⟨Nat.le_sub_one_of_lt h₀, hlast.1⟩).2⟩

/-! ## The loop by these bounds -/

/-- The bounds are a sound schedule for their window. -/
theorem window_soundSchedule (hm : 0 < block_m) (hn : 0 < block_n) :
    SoundSchedule (Mask.window alignment left right : Mask q_len kv_len)
      (visitedTiles alignment left right q_len kv_len block_m block_n)
      (windowKind alignment left right q_len kv_len block_m block_n) block_m block_n where
  skip t u h i hi j hj := by
    have ht := lt_numTiles_of_mem hm hi
    have hu := lt_numTiles_of_mem hn hj
    rcases h with h | h
    · refine Bool.eq_false_iff.mpr fun hw => ?_
      rw [(visitedTiles_iff alignment left right hm hn ht hu).mpr ⟨i, hi, j, hj, hw⟩] at h
      cases h
    · rw [windowKind] at h
      split at h <;> cases h
  unmasked t u _ h i hi j hj := by
    have ht := lt_numTiles_of_mem hm hi
    have hu := lt_numTiles_of_mem hn hj
    rw [windowKind] at h
    split at h
    · next hc => exact (unmaskedTiles_iff alignment left right hm hn ht hu).mp hc i hi j hj
    · cases h

/-- **tile-bounds-loop**: the tile loop that visits these key tiles only, and takes those that every
query sees in whole without mask code, computes attention under the window. -/
theorem flashWindow_eq_attention {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d d_v : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (scale : S)
    (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    flashWindow scale modify alignment left right Q K V block_m block_n
      = (attention scale
          (modify.andThen (Mask.window alignment left right).toScoreMod) Q K V).toList :=
  flashSchedule_eq_attention scale modify Q K V hm hn
    (window_soundSchedule alignment left right hm hn)

/-- In particular under the causal mask. -/
theorem flashWindow_causal {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d d_v : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (scale : S)
    (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    flashWindow scale modify alignment none (some 0) Q K V block_m block_n
      = (attention scale (modify.andThen (Mask.causal alignment).toScoreMod) Q K V).toList := by
  rw [causal_eq_window, flashWindow_eq_attention alignment none (some 0) hm hn]

end Attention.Proof
