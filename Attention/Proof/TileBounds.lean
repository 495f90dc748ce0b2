module

public import Attention.Spec.TileBounds
public import Attention.Proof.Intervals
public import Attention.Proof.Masks
public import Attention.Proof.Schedule

public section

/-! # The key tiles that a query tile must visit, exactly -/

namespace Attention.Proof

open Spec Intervals

universe u v

/-! ## Tiles -/

variable {q_len kv_len block_m block_n t u : Nat}

/-- A query of tile `t` lies between the first and the last row of the tile. -/
private theorem mem_rows (hm : 0 < block_m) {i : Fin q_len} :
    i ∈ tile block_m (List.finRange q_len) t ↔
      tileRowFirst block_m t ≤ i.val ∧ i.val ≤ tileRowLast q_len block_m t := by
  rw [mem_tile, tileRowFirst, tileRowLast, Nat.add_mul]
  omega

private theorem rows_nonempty (hm : 0 < block_m) (ht : t < numTiles q_len block_m) :
    tileRowFirst block_m t ≤ tileRowLast q_len block_m t ∧
      tileRowLast q_len block_m t < q_len := by
  have := (lt_numTiles hm).mp ht
  rw [tileRowFirst, tileRowLast, Nat.add_mul]
  omega

private theorem lt_numTiles_of_mem {n b t : Nat} (hb : 0 < b) {i : Fin n}
    (hi : i ∈ tile b (List.finRange n) t) : t < numTiles n b := by
  have := mem_tile.mp hi
  rw [lt_numTiles hb]
  omega

/-- Something of all queries of tile `t` and all keys of tile `u`, by number. -/
private theorem forall_tile (hm : 0 < block_m) (hq : tileRowLast q_len block_m t < q_len)
    (p : Nat → Nat → Prop) :
    (∀ i j : Nat, tileRowFirst block_m t ≤ i ∧ i ≤ tileRowLast q_len block_m t →
        u * block_n ≤ j ∧ j < u * block_n + block_n → j < kv_len → p i j) ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        p i.val j.val := by
  simp only [mem_rows hm, mem_tile, Nat.add_mul u, Nat.one_mul]
  exact ⟨fun h i hi j hj => h i j hi hj j.isLt,
    fun h i j hi hj hj' => h ⟨i, by omega⟩ hi ⟨j, hj'⟩ hj⟩

/-- Something of some query of tile `t` and some key of tile `u`, by number. -/
private theorem exists_tile (hm : 0 < block_m) (hq : tileRowLast q_len block_m t < q_len)
    (p : Nat → Nat → Prop) :
    (∃ i j : Nat, (tileRowFirst block_m t ≤ i ∧ i ≤ tileRowLast q_len block_m t) ∧
        (u * block_n ≤ j ∧ j < u * block_n + block_n) ∧ j < kv_len ∧ p i j) ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        p i.val j.val := by
  simp only [mem_rows hm, mem_tile, Nat.add_mul u, Nat.one_mul]
  exact ⟨fun ⟨i, j, hi, hj, hj', h⟩ => ⟨⟨i, by omega⟩, hi, ⟨j, hj'⟩, hj, h⟩,
    fun ⟨i, hi, j, hj, h⟩ => ⟨i, j, hi, hj, j.isLt, h⟩⟩

/-- Tile `u` is one of those from key `first` to key `stop` exactly when the two overlap. -/
private theorem contains_iff (hn : 0 < block_n) {first stop : Nat} :
    (TileRange.mk (first / block_n) (numTiles stop block_n)).contains u = true ↔
      first < (u + 1) * block_n ∧ u * block_n < stop := by
  simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq, lt_numTiles hn]
  rw [← Nat.div_lt_iff_lt_mul hn, Nat.lt_succ_iff]

/-- The tiles visited are those which overlap the keys that some query of the tile sees. -/
private theorem visitedTiles_contains (hn : 0 < block_n) (alignment : Alignment)
    (left right : Option Nat) :
    (visitedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      firstKey alignment left q_len kv_len block_m t
          < stopKey alignment right q_len kv_len block_m t ∧
        firstKey alignment left q_len kv_len block_m t < u * block_n + block_n ∧
        u * block_n < stopKey alignment right q_len kv_len block_m t := by
  rw [visitedTiles]
  by_cases h : firstKey alignment left q_len kv_len block_m t
      < stopKey alignment right q_len kv_len block_m t
  · rw [if_pos h, contains_iff hn, Nat.add_mul, Nat.one_mul]
    exact ⟨fun h' => ⟨h, h'⟩, fun h' => h'.2⟩
  · simp [h, TileRange.contains]

/-- **tile-bounds**: query tile t visits key tile u if and only if there are a query of tile t and a
key of tile u such that the query sees the key; for every window, in both alignments, for all sizes
and tile sizes of at least 1. -/
theorem visitedTiles_iff (hm : 0 < block_m) (hn : 0 < block_n) (alignment : Alignment)
    (left right : Option Nat) (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    (visitedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true := by
  have hA := rows_nonempty hm ht
  have hk := (lt_numTiles hn).mp hu
  have hU : u * block_n < u * block_n + block_n := by omega
  have hex := exists_tile (kv_len := kv_len) (block_n := block_n) (t := t) (u := u) hm
    (rows_nonempty hm ht).2
  rw [visitedTiles_contains hn]
  cases left <;> cases right <;>
    simp only [Mask.window, Option.all_none, Option.all_some, Bool.and_true, Bool.true_and,
      Bool.and_eq_true, decide_eq_true_eq, firstKey, stopKey]
  · rw [bounds_none_none hA.1 hU hk]
    simpa using hex fun _ _ => True
  · rw [bounds_none_some hA.1 hU hk]
    exact hex _
  · rw [bounds_some_none hA.1 hU hk]
    exact hex _
  · rw [bounds_some_some hA.1 hU]
    exact hex _

/-- **tile-bounds-unmasked**: query tile t takes key tile u without mask code if and only if every
query of tile t sees every key of tile u. -/
theorem unmaskedTiles_iff (hm : 0 < block_m) (hn : 0 < block_n) (alignment : Alignment)
    (left right : Option Nat) (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    (unmaskedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true := by
  have hA := (rows_nonempty hm ht).1
  have hk := (lt_numTiles hn).mp hu
  have hU : u * block_n < u * block_n + block_n := by omega
  have hall := forall_tile (kv_len := kv_len) (block_n := block_n) (t := t) (u := u) hm
    (rows_nonempty hm ht).2
  have hleft : (unmaskedTiles alignment left right q_len kv_len block_m block_n t).first ≤ u ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        left.all (fun l => decide ((i.val : Int) + alignment.shift q_len kv_len - (l : Nat)
          ≤ (j.val : Int))) = true := by
    cases left with
    | none => simp [unmaskedTiles]
    | some l =>
      simp only [unmaskedTiles, Option.all_some, decide_eq_true_eq]
      rw [← Nat.not_lt, lt_numTiles hn, Nat.not_lt, all_left hA hU hk]
      exact hall fun i j => (i : Int) + alignment.shift q_len kv_len - (l : Nat) ≤ (j : Int)
  have hright : u < (unmaskedTiles alignment left right q_len kv_len block_m block_n t).stop ↔
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        right.all (fun r => decide ((j.val : Int)
          ≤ i.val + alignment.shift q_len kv_len + (r : Nat))) = true := by
    cases right with
    | none => simp [unmaskedTiles, hu]
    | some r =>
      simp only [Option.all_some, decide_eq_true_eq]
      rw [← hall fun i j => (j : Int) ≤ i + alignment.shift q_len kv_len + (r : Nat),
        ← all_right hA hU hk]
      simp only [unmaskedTiles]
      generalize ((tileRowFirst block_m t : Int) + _ + _ + 1).toNat = x
      split
      · simp [*]
      · rw [Nat.lt_iff_add_one_le, Nat.le_div_iff_mul_le hn, Nat.add_mul, Nat.one_mul]
        omega
  simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq, hleft, hright, Mask.window]
  exact ⟨fun h i hi j hj => ⟨h.1 i hi j hj, h.2 i hi j hj⟩,
    fun h => ⟨fun i hi j hj => (h i hi j hj).1, fun i hi j hj => (h i hi j hj).2⟩⟩

/-! ## The loop by these bounds -/

/-- The bounds are a sound schedule for their window. -/
theorem window_soundSchedule (hm : 0 < block_m) (hn : 0 < block_n) (alignment : Alignment)
    (left right : Option Nat) :
    SoundSchedule (Mask.window alignment left right : Mask q_len kv_len)
      (visitedTiles alignment left right q_len kv_len block_m block_n)
      (windowKind alignment left right q_len kv_len block_m block_n) block_m block_n where
  skip t u h i hi j hj := by
    have ht := lt_numTiles_of_mem hm hi
    have hu := lt_numTiles_of_mem hn hj
    rcases h with h | h
    · refine Bool.eq_false_iff.mpr fun hw => ?_
      rw [(visitedTiles_iff hm hn alignment left right ht hu).mpr ⟨i, hi, j, hj, hw⟩] at h
      cases h
    · rw [windowKind] at h
      split at h <;> cases h
  unmasked t u _ h i hi j hj := by
    have ht := lt_numTiles_of_mem hm hi
    have hu := lt_numTiles_of_mem hn hj
    rw [windowKind] at h
    split at h
    · next hc => exact (unmaskedTiles_iff hm hn alignment left right ht hu).mp hc i hi j hj
    · cases h

/-- **tile-bounds-loop**: the tile loop that visits these key tiles only, and takes those that every
query sees in whole without mask code, computes attention under the window; the causal mask is the
window without bound to the left and with bound 0 to the right. -/
theorem flashWindow_eq_attention {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d d_v : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (scale : S)
    (modify : ScoreMod S q_len kv_len) (alignment : Alignment) (left right : Option Nat)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    flashWindow scale modify alignment left right Q K V block_m block_n
      = (attention scale
          (modify.andThen (Mask.window alignment left right).toScoreMod) Q K V).toList :=
  flashSchedule_eq_attention scale modify Q K V hm hn
    (window_soundSchedule hm hn alignment left right)

end Attention.Proof
