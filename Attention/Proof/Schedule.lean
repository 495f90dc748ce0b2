module

public import Attention.Spec.Schedule
public import Attention.Proof.Flash
public import Attention.Proof.Visible

public section

/-! # A sound tile schedule computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v w

/-! ## Tiles by number -/

/-- The number of tiles exceeds `t` exactly when tile `t` starts before the end. -/
theorem lt_numTiles {n b t : Nat} (hb : 0 < b) : t < numTiles n b ↔ t * b < n := by
  rw [numTiles, Nat.lt_iff_add_one_le, Nat.le_div_iff_mul_le hb, Nat.add_mul]
  omega

/-- Tile `t` of the numbers below `n` holds those from t · b up to the next tile. -/
theorem mem_tile {n b t : Nat} {i : Fin n} :
    i ∈ tile b (List.finRange n) t ↔ t * b ≤ i.val ∧ i.val < (t + 1) * b := by
  rw [tile, List.mem_take_iff_getElem, Nat.add_mul]
  constructor
  · rintro ⟨m, hm, rfl⟩
    simp only [List.getElem_drop, List.getElem_finRange, Fin.val_cast]
    simp only [List.length_drop, List.length_finRange] at hm
    omega
  · intro h
    refine ⟨i.val - t * b, ?_, ?_⟩
    · simp only [List.length_drop, List.length_finRange]
      omega
    · ext
      simp only [List.getElem_drop, List.getElem_finRange, Fin.val_cast]
      omega

/-- The tiles by number, put together again, are the list. -/
theorem flatMap_tile {α : Type u} {b : Nat} (hb : 0 < b) (xs : List α) :
    (List.range (numTiles xs.length b)).flatMap (tile b xs) = xs :=
  tiles_flatten hb xs

/-- Tiles past the end are empty. -/
theorem tile_eq_nil {α : Type u} {b t : Nat} (hb : 0 < b) {xs : List α}
    (ht : numTiles xs.length b ≤ t) : tile b xs t = [] := by
  have h : ¬ t * b < xs.length := fun h => by have := (lt_numTiles hb).mpr h; omega
  rw [tile, List.drop_eq_nil_of_le (by omega), List.take_nil]

/-- A range that leaves out only empty contributions gathers all of them. -/
private theorem flatMap_range {α : Type u} (g : Nat → List α) (n : Nat) (r : TileRange)
    (hn : ∀ u, n ≤ u → g u = []) (hr : ∀ u, r.contains u = false → g u = []) :
    (List.range' r.first (r.stop - r.first)).flatMap g = (List.range n).flatMap g := by
  have hout : ∀ k m, (∀ u, k ≤ u → u < k + m → g u = []) → (List.range' k m).flatMap g = [] :=
    fun k m h => List.flatMap_eq_nil_iff.mpr fun u hu => by
      have := List.mem_range'_1.mp hu
      exact h u this.1 this.2
  have hr' : ∀ u, u < r.first ∨ r.stop ≤ u → g u = [] := fun u hu => hr u (by
    simp only [TileRange.contains, Bool.and_eq_false_iff, decide_eq_false_iff_not]
    omega)
  have h₁ : (List.range (n + r.stop)).flatMap g = (List.range n).flatMap g := by
    rw [List.range_eq_range', List.range_eq_range', ← List.range'_append_1, List.flatMap_append,
      hout (0 + n) _ fun u hu _ => hn u (by omega), List.append_nil]
  rw [← h₁]
  by_cases h : r.first ≤ r.stop
  · have e : n + r.stop = r.first + ((r.stop - r.first) + n) := by omega
    rw [e, List.range_eq_range', ← List.range'_append_1, ← List.range'_append_1,
      List.flatMap_append, List.flatMap_append, hout 0 _ fun u _ hu => hr' u (by omega),
      hout (0 + r.first + (r.stop - r.first)) _ fun u hu _ => hr' u (by omega)]
    simp
  · rw [hout _ _ fun u hu hu' => hr' u (by omega), List.range_eq_range',
      hout _ _ fun u _ _ => hr' u (by omega)]

/-! ## Sound schedules -/

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}

/-- A schedule is sound for a mask: what it leaves out is masked entirely, and what it takes without
mask code is not masked at all. -/
structure SoundSchedule (mask : Mask q_len kv_len) (visit : Nat → TileRange)
    (kind : Nat → Nat → TileKind) (block_m block_n : Nat) : Prop where
  /-- A tile that is left out holds no pair that the mask lets through. -/
  skip : ∀ t u, (visit t).contains u = false ∨ kind t u = .skip →
    ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
      mask i j = false
  /-- A tile that is taken without mask code holds no pair that the mask does not let through. -/
  unmasked : ∀ t u, (visit t).contains u = true → kind t u = .unmasked →
    ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
      mask i j = true

variable (scale : S) (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- One key tile, taken as its kind says, takes each row's state to that of the longer row. -/
private theorem stepKind_ofBlock {kind : TileKind} {rows : List (Fin q_len)}
    {cols : List (Fin kv_len)}
    (hs : kind = .skip → ∀ i ∈ rows, ∀ j ∈ cols, mask i j = false)
    (hu : kind = .unmasked → ∀ i ∈ rows, ∀ j ∈ cols, mask i j = true)
    (pre : Fin q_len → List (ScoredValue S R d_v)) :
    stepKind scale modify mask Q K V rows (rows.map fun i => ofBlock (pre i)) kind cols
      = rows.map fun i =>
          ofBlock (pre i ++ scored scale (modify.andThen mask.toScoreMod) Q K V i cols) := by
  cases kind with
  | skip =>
    refine List.map_congr_left fun i hi => (ofBlock_append_masked _ fun key hk => ?_).symm
    obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hk
    simp only [score_andThen_mask, hs rfl i hi j hj, Bool.false_eq_true, if_false]
  | unmasked =>
    simp only [stepKind, stepTile, List.zipWith_map_right, List.zipWith_self, stepBlock_ofBlock]
    refine List.map_congr_left fun i hi => ?_
    congr 2
    refine List.map_congr_left fun j hj => ?_
    rw [score_andThen_mask, hu rfl i hi j hj, if_pos rfl]
  | masked =>
    simp only [stepKind, stepTile, List.zipWith_map_right, List.zipWith_self, stepBlock_ofBlock]

/-- A schedule that is sound computes, for each row, the state of all its keys. -/
private theorem foldl_stepKind {visit : Nat → TileRange} {kind : Nat → Nat → TileKind}
    {block_m block_n : Nat} (h : SoundSchedule mask visit kind block_m block_n) (t : Nat)
    (us : List Nat) (hus : ∀ u ∈ us, (visit t).contains u = true) :
    ∀ pre : Fin q_len → List (ScoredValue S R d_v),
      us.foldl (fun states u => stepKind scale modify mask Q K V
          (tile block_m (List.finRange q_len) t) states (kind t u)
          (tile block_n (List.finRange kv_len) u))
        ((tile block_m (List.finRange q_len) t).map fun i => ofBlock (pre i))
      = (tile block_m (List.finRange q_len) t).map fun i => ofBlock (pre i ++
          scored scale (modify.andThen mask.toScoreMod) Q K V i
            (us.flatMap (tile block_n (List.finRange kv_len)))) := by
  induction us with
  | nil => intro pre; simp [scored]
  | cons u us ih =>
    intro pre
    rw [List.foldl_cons, stepKind_ofBlock scale modify Q K V (fun hk => h.skip t u (.inr hk))
      (fun hk => h.unmasked t u (hus u (by simp)) hk), ih fun u hu => hus u (by simp [hu])]
    simp only [scored, List.flatMap_cons, List.map_append, List.append_assoc]

/-- **tile-schedule**: for all sizes, tile sizes of at least 1, every mask and every score
transformation before it, the tile loop that leaves out tiles which are masked entirely, and takes
tiles which are not masked at all without mask code, computes attention. -/
theorem flashSchedule_eq_attention {visit : Nat → TileRange} {kind : Nat → Nat → TileKind}
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (h : SoundSchedule mask visit kind block_m block_n) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = (attention scale (modify.andThen mask.toScoreMod) Q K V).toList := by
  have hrow : ∀ t, ∀ i ∈ tile block_m (List.finRange q_len) t,
      ofBlock (scored scale (modify.andThen mask.toScoreMod) Q K V i
        ((List.range' (visit t).first ((visit t).stop - (visit t).first)).flatMap
          (tile block_n (List.finRange kv_len))))
      = ofBlock (scored scale (modify.andThen mask.toScoreMod) Q K V i (List.finRange kv_len)) := by
    intro t i hi
    rw [ofBlock_scored_mask, ofBlock_scored_mask]
    congr 2
    have hall := flatMap_tile hn (List.finRange kv_len)
    conv => rhs; rw [← hall]
    rw [List.filter_flatMap, List.filter_flatMap]
    refine flatMap_range _ _ (visit t) (fun u hu => ?_) (fun u hu => ?_)
    · simp only [tile_eq_nil hn hu, List.filter_nil]
    · refine List.filter_eq_nil_iff.mpr fun j hj => ?_
      simp only [h.skip t u (.inl hu) i hi j hj, Bool.false_eq_true, not_false_eq_true]
  have htile : ∀ t, (((List.range' (visit t).first ((visit t).stop - (visit t).first)).foldl
      (fun states u => stepKind scale modify mask Q K V (tile block_m (List.finRange q_len) t)
        states (kind t u) (tile block_n (List.finRange kv_len) u))
      ((tile block_m (List.finRange q_len) t).map fun _ => empty)).map finish)
      = (tile block_m (List.finRange q_len) t).map fun i =>
          attend (scored scale (modify.andThen mask.toScoreMod) Q K V i
            (List.finRange kv_len)) := by
    intro t
    have hus : ∀ u ∈ List.range' (visit t).first ((visit t).stop - (visit t).first),
        (visit t).contains u = true := fun u hu => by
      have := List.mem_range'_1.mp hu
      simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq]
      omega
    have := foldl_stepKind scale modify Q K V h t _ hus fun _ => []
    rw [ofBlock_nil] at this
    rw [this, List.map_map]
    refine List.map_congr_left fun i hi => ?_
    rw [Function.comp, List.nil_append, hrow t i hi, finish_ofBlock]
  simp only [flashSchedule, htile]
  have hall := flatMap_tile hm (List.finRange q_len)
  rw [List.length_finRange] at hall
  rw [← List.map_flatMap, hall]
  exact List.ext_getElem (by simp) fun i _ _ => by simp [attention]

/-- A sound schedule changes nothing: the loop with it and the loop over all tiles agree, also with
other tile sizes. -/
theorem flashSchedule_eq_flash {visit : Nat → TileRange} {kind : Nat → Nat → TileKind}
    {block_m block_n block_m' block_n' : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (hm' : 0 < block_m') (hn' : 0 < block_n')
    (h : SoundSchedule mask visit kind block_m block_n) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = flash scale (modify.andThen mask.toScoreMod) Q K V block_m' block_n' := by
  rw [flashSchedule_eq_attention scale modify Q K V hm hn h,
    flash_eq_attention scale _ Q K V hm' hn']

end Attention.Proof
