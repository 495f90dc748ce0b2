module

public import Attention.Proof.Flash.ScheduleLoop

public section

/-! # Tiles may be skipped, or taken without mask code, and the loop still computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

/-! ## Without mask code -/

/-- A mask that lets a pair through does nothing to its score. -/
theorem andThen_mask_of_visible {S : Type u} {q_len kv_len : Nat}
    (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len} {i : Fin q_len} {j : Fin kv_len}
    (h : mask i j = true) (s : S) :
    modify.andThen mask.toScoreMod i j s = modify i j s := by
  rw [ScoreMod.andThen]
  cases modify i j s with
  | none => rfl
  | some s => rw [Option.bind_some, Mask.toScoreMod, if_pos h]

section
variable {S : Type u} {R : Type v} [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R] {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- A tile in which nothing is masked updates any states to the same with and without mask code. -/
theorem stepKind_unmasked {rows : List (Fin q_len)} {cols : List (Fin kv_len)}
    (h : ∀ i ∈ rows, ∀ j ∈ cols, mask i j = true) (states : List (State S R d_v)) :
    stepKind scale modify mask Q K V rows states .unmasked cols
      = stepKind scale modify mask Q K V rows states .masked cols := by
  have hrow : ∀ i ∈ rows, scored scale modify Q K V i cols
      = scored scale (modify.andThen mask.toScoreMod) Q K V i cols := fun i hi =>
    List.map_congr_left fun j hj => by
      rw [score, score, andThen_mask_of_visible modify (h i hi j hj)]
  simp only [stepKind, stepTile]
  induction rows generalizing states with
  | nil => rfl
  | cons i rows ih =>
    cases states with
    | nil => rfl
    | cons s states =>
      rw [List.zipWith_cons_cons, List.zipWith_cons_cons, hrow i (by simp),
        ih (fun i hi => h i (by simp [hi])) states fun i hi => hrow i (by simp [hi])]

/-- **tile-unmasked**: tiles of a schedule in which nothing is masked may be taken without mask
code: the loop computes the same, whatever it does with the other tiles. No law of arithmetic is
needed: this holds of floating-point numbers too. -/
theorem flashSchedule_unmasked [Div R] {visit : Nat → TileRange} {kind kind' : Nat → Nat → TileKind}
    {block_m block_n : Nat}
    (h : ∀ t u, kind' t u = kind t u ∨ kind t u = .masked ∧ kind' t u = .unmasked ∧
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        mask i j = true) :
    flashSchedule scale modify mask Q K V visit kind' block_m block_n
      = flashSchedule scale modify mask Q K V visit kind block_m block_n := by
  have hstep : ∀ t u (states : List (State S R d_v)),
      stepKind scale modify mask Q K V (tile block_m (List.finRange q_len) t) states (kind' t u)
          (tile block_n (List.finRange kv_len) u)
        = stepKind scale modify mask Q K V (tile block_m (List.finRange q_len) t) states (kind t u)
            (tile block_n (List.finRange kv_len) u) := fun t u states => by
    rcases h t u with h | ⟨h, h', hmask⟩
    · rw [h]
    · rw [h, h', stepKind_unmasked scale modify Q K V hmask]
  simp only [flashSchedule, hstep]

end

/-! ## Skipped -/

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

omit [OrderedField R] [Exponential S R] in
private theorem filter_masked {i : Fin q_len} {cols : List (Fin kv_len)}
    (h : ∀ j ∈ cols, mask i j = false) :
    (scored scale (modify.andThen mask.toScoreMod) Q K V i cols).filter (·.score.isSome) = [] := by
  refine List.filter_eq_nil_iff.mpr fun key hk => ?_
  obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hk
  simp only [score_andThen_mask, h j hj, Bool.false_eq_true, if_false, Option.isSome_none,
    not_false_eq_true]

/-- **tile-skip**: tiles of a schedule that are masked entirely may be left out, by a narrower range
or one by one: the loop computes the same, whatever it does with the other tiles. -/
theorem flashSchedule_skip {visit visit' : Nat → TileRange} {kind kind' : Nat → Nat → TileKind}
    {block_m block_n : Nat}
    (h : ∀ t u, taken visit' kind' t u = taken visit kind t u ∨
      taken visit kind t u = .masked ∧ taken visit' kind' t u = .skip ∧
        ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
          mask i j = false) :
    flashSchedule scale modify mask Q K V visit' kind' block_m block_n
      = flashSchedule scale modify mask Q K V visit kind block_m block_n := by
  refine flashSchedule_congr scale modify mask Q K V fun t i hi u => ?_
  rcases h t u with h | ⟨h, h', hmask⟩
  · rw [h]
  · rw [h, h', keysOfTile, keysOfTile, filter_masked scale modify Q K V (hmask i hi),
      List.filter_nil]

/-! ## Sound schedules -/

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

/-- **tile-schedule**: for all sizes, tile sizes of at least 1, every mask and every score
transformation before it, the tile loop that leaves out tiles which are masked entirely, and takes
tiles which are not masked at all without mask code, computes attention. -/
theorem flashSchedule_eq_attention {visit : Nat → TileRange} {kind : Nat → Nat → TileKind}
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (h : SoundSchedule mask visit kind block_m block_n) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = (attention scale (modify.andThen mask.toScoreMod) Q K V).toList := by
  have hfull : flashSchedule scale modify mask Q K V (fun _ => ⟨0, numTiles kv_len block_n⟩)
      (fun _ _ => .masked) block_m block_n
      = (attention scale (modify.andThen mask.toScoreMod) Q K V).toList := by
    have hcols := flatMap_tile hn (List.finRange kv_len)
    have hrows := flatMap_tile hm (List.finRange q_len)
    rw [List.length_finRange] at hcols hrows
    simp only [flashSchedule_eq, keysOfTile, Nat.sub_zero, ← List.range_eq_range', scored]
    simp only [← List.map_flatMap, hcols, hrows]
    exact List.ext_getElem (by simp) fun i _ _ => by simp [attention, scored]
  rw [← hfull]
  refine flashSchedule_congr scale modify mask Q K V fun t i hi u => ?_
  by_cases hu : u < numTiles kv_len block_n
  · have hc : taken (fun _ => ⟨0, numTiles kv_len block_n⟩) (fun _ _ => .masked) t u
        = .masked := by
      simp [taken, TileRange.contains, hu]
    rw [hc]
    cases hk : taken visit kind t u with
    | masked => rfl
    | skip =>
      have hs : (visit t).contains u = false ∨ kind t u = .skip := by
        rw [taken] at hk
        split at hk
        · exact .inr hk
        · next hv => exact .inl (Bool.eq_false_iff.mpr hv)
      rw [keysOfTile, keysOfTile, filter_masked scale modify Q K V (h.skip t u hs i hi),
        List.filter_nil]
    | unmasked =>
      have hs : (visit t).contains u = true ∧ kind t u = .unmasked := by
        rw [taken] at hk
        split at hk
        · next hv => exact ⟨hv, hk⟩
        · cases hk
      rw [keysOfTile, keysOfTile]
      refine congrArg _ (List.map_congr_left fun j hj => ?_)
      rw [score, score, andThen_mask_of_visible modify (h.unmasked t u hs.1 hs.2 i hi j hj)]
  · rw [tile_eq_nil hn (by rw [List.length_finRange]; omega), keysOfTile_nil, keysOfTile_nil]

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
