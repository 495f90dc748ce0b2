module

public import Attention.Proof.Flash.Tiles
public import Attention.Proof.Masks.Visible

public section

/-! # What the tile loop computes by any schedule, sound or not -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

/-- The step for a pair of tiles: its kind where the schedule visits it, otherwise nothing. -/
@[expose] def taken (visit : Nat → TileRange) (kind : Nat → Nat → TileKind) (t u : Nat) :
    TileKind :=
  if (visit t).contains u then kind t u else .skip

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The keys that query `i` gets from a tile that is taken as its kind says. -/
@[expose] def keysOfTile (kind : TileKind) (i : Fin q_len) (cols : List (Fin kv_len)) :
    List (ScoredValue S R d_v) :=
  match kind with
  | .skip => []
  | .unmasked => scored scale modify Q K V i cols
  | .masked => scored scale (modify.andThen mask.toScoreMod) Q K V i cols

omit [OrderedField R] [Exponential S R] in
/-- There are none in an empty tile. -/
theorem keysOfTile_nil (kind : TileKind) (i : Fin q_len) :
    keysOfTile scale modify mask Q K V kind i [] = [] := by
  cases kind <;> rfl

private theorem stepKind_ofBlock (kind : TileKind) (rows : List (Fin q_len))
    (cols : List (Fin kv_len)) (pre : Fin q_len → List (ScoredValue S R d_v)) :
    stepKind scale modify mask Q K V rows (rows.map fun i => ofBlock (pre i)) kind cols
      = rows.map fun i => ofBlock (pre i ++ keysOfTile scale modify mask Q K V kind i cols) := by
  cases kind <;> simp only [stepKind, keysOfTile, stepTile, List.zipWith_map_right,
    List.zipWith_self, stepBlock_ofBlock, List.append_nil]

private theorem foldl_stepKind (kinds : Nat → TileKind) (rows : List (Fin q_len))
    (cols : Nat → List (Fin kv_len)) (us : List Nat) :
    ∀ pre : Fin q_len → List (ScoredValue S R d_v),
      us.foldl (fun states u => stepKind scale modify mask Q K V rows states (kinds u) (cols u))
        (rows.map fun i => ofBlock (pre i))
      = rows.map fun i => ofBlock (pre i ++
          us.flatMap fun u => keysOfTile scale modify mask Q K V (kinds u) i (cols u)) := by
  induction us with
  | nil => intro pre; simp only [List.foldl_nil, List.flatMap_nil, List.append_nil]
  | cons u us ih =>
    intro pre
    simp only [List.foldl_cons, stepKind_ofBlock, ih, List.flatMap_cons, List.append_assoc]

/-- Whatever the schedule, a row is the attention of the keys that its query gets. -/
theorem flashSchedule_eq (visit : Nat → TileRange) (kind : Nat → Nat → TileKind)
    (block_m block_n : Nat) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = (List.range (numTiles q_len block_m)).flatMap fun t =>
          (tile block_m (List.finRange q_len) t).map fun i =>
            attend ((List.range' (visit t).first ((visit t).stop - (visit t).first)).flatMap
              fun u => keysOfTile scale modify mask Q K V (kind t u) i
                (tile block_n (List.finRange kv_len) u)) := by
  have h := fun t => foldl_stepKind (R := R) scale modify mask Q K V (kind t)
    (tile block_m (List.finRange q_len) t) (tile block_n (List.finRange kv_len))
    (List.range' (visit t).first ((visit t).stop - (visit t).first)) fun _ => []
  simp only [ofBlock_nil, List.nil_append] at h
  simp only [flashSchedule, h, List.map_map, Function.comp_def, finish_ofBlock]

omit [OrderedField R] [Exponential S R] in
/-- The unmasked keys that a query gets from tiles in a range, taken from any longer range. -/
private theorem flatMap_taken (visit : Nat → TileRange) (kind : Nat → Nat → TileKind)
    (t : Nat) {n : Nat} (hn : (visit t).stop ≤ n) (i : Fin q_len)
    (cols : Nat → List (Fin kv_len)) :
    ((List.range' (visit t).first ((visit t).stop - (visit t).first)).flatMap fun u =>
        keysOfTile scale modify mask Q K V (kind t u) i (cols u)).filter (·.score.isSome)
      = (List.range n).flatMap fun u =>
          (keysOfTile scale modify mask Q K V (taken visit kind t u) i (cols u)).filter
            (·.score.isSome) := by
  have h : ∀ u, (visit t).contains u = false →
      (keysOfTile scale modify mask Q K V (taken visit kind t u) i (cols u)).filter
        (·.score.isSome) = [] := fun u hu => by
    rw [taken, hu]
    rfl
  rw [List.filter_flatMap, ← flatMap_range _ n (visit t) (fun u hu => h u ?_) h]
  · refine congrArg List.flatten (List.map_congr_left fun u hu => ?_)
    have hu := List.mem_range'_1.mp hu
    have hc : (visit t).contains u = true := by
      simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq]
      omega
    rw [taken, hc]
    rfl
  · simp only [TileRange.contains, Bool.and_eq_false_iff, decide_eq_false_iff_not]
    omega

/-- Two schedules compute the same if every query gets the same unmasked keys from each tile. -/
theorem flashSchedule_congr {visit visit' : Nat → TileRange} {kind kind' : Nat → Nat → TileKind}
    {block_m block_n : Nat}
    (h : ∀ t, ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ u,
      (keysOfTile scale modify mask Q K V (taken visit kind t u) i
          (tile block_n (List.finRange kv_len) u)).filter (·.score.isSome)
        = (keysOfTile scale modify mask Q K V (taken visit' kind' t u) i
            (tile block_n (List.finRange kv_len) u)).filter (·.score.isSome)) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = flashSchedule scale modify mask Q K V visit' kind' block_m block_n := by
  rw [flashSchedule_eq, flashSchedule_eq]
  refine congrArg List.flatten (List.map_congr_left fun t _ => List.map_congr_left fun i hi => ?_)
  refine (attend_filter _).symm.trans (.trans (congrArg attend ?_) (attend_filter _))
  rw [flatMap_taken scale modify mask Q K V visit kind t (Nat.le_add_right _ (visit' t).stop),
    flatMap_taken scale modify mask Q K V visit' kind' t (Nat.le_add_left _ (visit t).stop)]
  simp only [h t i hi]

end Attention.Proof
