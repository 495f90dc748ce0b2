module

public import Attention.Spec.BackwardBounds
public import Attention.Proof.Flash.WholeTiles
public import Attention.Proof.Backward.OneLoop

public section

/-! # The bounds of the loops of the backward pass are a sound schedule -/

namespace Attention.Proof

open Spec

universe u v

variable {q_len kv_len : Nat} (alignment : Alignment) (left right : Option Nat)

/-- Seen from the keys, the queries are a window with left and right exchanged. -/
theorem window_exchanged (i : Fin q_len) (j : Fin kv_len) :
    Mask.window alignment left right i j = Mask.window alignment right left j i := by
  rw [Bool.eq_iff_iff]
  cases alignment <;> cases left <;> cases right <;>
    simp [Mask.window, Alignment.shift] <;> omega

/-- As masks of keys by queries. -/
theorem window_flip : (fun j i => Mask.window alignment left right i j : Mask kv_len q_len)
    = Mask.window alignment right left := by
  funext j i
  exact window_exchanged alignment left right i j

section
variable {block_m block_n t u : Nat}

/-- **tile-bounds-keys**: key tile u visits query tile t if and only if there are a query of tile t
and a key of tile u such that the query sees the key; for every window, in both alignments, for all
sizes and tile sizes of at least 1. -/
theorem windowKeys_visit_iff (hm : 0 < block_m) (hn : 0 < block_n)
    (hu : u < numTiles kv_len block_n) (ht : t < numTiles q_len block_m) :
    ((windowKeys alignment left right q_len kv_len block_m block_n).visit u).contains t = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true := by
  simp only [window_exchanged alignment left right]
  exact (visitedTiles_iff alignment right left hn hm hu ht).trans
    ⟨fun ⟨j, hj, i, hi, h⟩ => ⟨i, hi, j, hj, h⟩, fun ⟨i, hi, j, hj, h⟩ => ⟨j, hj, i, hi, h⟩⟩

/-- **tile-bounds-keys-whole**: key tile u takes query tile t without mask code if and only if
neither is ragged and every query of tile t sees every key of tile u. -/
theorem windowKeys_kind_iff (hm : 0 < block_m) (hn : 0 < block_n)
    (hu : u < numTiles kv_len block_n) (ht : t < numTiles q_len block_m) :
    (windowKeys alignment left right q_len kv_len block_m block_n).kind u t = .unmasked ↔
      (t + 1) * block_m ≤ q_len ∧ (u + 1) * block_n ≤ kv_len ∧
        ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
          Mask.window alignment left right i j = true := by
  simp only [window_exchanged alignment left right, windowKeys]
  split
  · next h =>
    rw [wholeKind_iff alignment right left hn hm hu ht]
    exact ⟨fun g => ⟨g.1, h, fun i hi j hj => g.2 j hj i hi⟩,
      fun g => ⟨g.1, fun j hj i hi => g.2.2 i hi j hj⟩⟩
  · next h => exact ⟨nofun, fun g => absurd g.2.1 h⟩

/-- The loop over tiles of keys is a sound schedule for the window. -/
theorem windowQueries_sound (hm : 0 < block_m) (hn : 0 < block_n) :
    let loop := windowQueries alignment left right q_len kv_len block_m block_n
    SoundSchedule (Mask.window alignment left right : Mask q_len kv_len) loop.visit loop.kind
      loop.blockOuter loop.blockInner :=
  whole_soundSchedule alignment left right hm hn

/-- The loop over tiles of queries is a sound schedule for the window as the keys see it. -/
theorem windowKeys_sound (hm : 0 < block_m) (hn : 0 < block_n) :
    let loop := windowKeys alignment left right q_len kv_len block_m block_n
    SoundSchedule (fun j i => Mask.window alignment left right i j : Mask kv_len q_len) loop.visit
      loop.kind loop.blockOuter loop.blockInner := by
  intro loop
  rw [window_flip]
  refine (whole_soundSchedule alignment right left hn hm).fewer (fun u t => ?_) fun u t _ h => ?_
  · simp only [loop, windowKeys, wholeKind]
    split
    · split <;> exact nofun
    · exact nofun
  · simp only [loop, windowKeys] at h
    split at h
    · exact h
    · cases h

end

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d d_v : Nat} (toValue : S → R) (scale : S) (modify : ScoreMod S q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v)

/-- **tile-bounds-backward**: the tile loops of the backward pass that visit, for each tile, the
other tiles of which some query sees some key of the window, and take without mask code those that
are seen in whole and not ragged, compute the gradients of attention under the window; for any score
transformation with its slope before the window, for any factors, and for tile sizes of at least 1,
of each loop its own. -/
theorem flashBackward_window {keys_m keys_n queries_m queries_n : Nat} (hkm : 0 < keys_m)
    (hkn : 0 < keys_n) (hqm : 0 < queries_m) (hqn : 0 < queries_n)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen (Mask.window alignment left right).toScoreMod) Q K i)))
    (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len :=
      modify.andThen (Mask.window alignment left right).toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    flashBackward toValue scale modify (Mask.window alignment left right) slope Q K V Z L dO
        (windowKeys alignment left right q_len kv_len keys_m keys_n)
        (windowQueries alignment left right q_len kv_len queries_m queries_n)
        (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) :=
  flashBackward_eq_vjpDropout toValue scale modify slope Q K V Z L dO
    (keys := windowKeys alignment left right q_len kv_len keys_m keys_n)
    (queries := windowQueries alignment left right q_len kv_len queries_m queries_n)
    hkn hkm hqm hqn (windowKeys_sound alignment left right hkm hkn)
    (windowQueries_sound alignment left right hqm hqn) hL dLse

/-- **tile-bounds-one-loop**: so does the one loop over tiles of keys, which adds to dQ in memory,
by the bounds of these. -/
theorem flashBackwardOneLoop_window {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen (Mask.window alignment left right).toScoreMod) Q K i)))
    (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len :=
      modify.andThen (Mask.window alignment left right).toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    let keys := windowKeys alignment left right q_len kv_len block_m block_n
    flashBackwardOneLoop toValue scale modify (Mask.window alignment left right) slope Q K V Z L dO
        block_m block_n (taken keys.visit keys.kind) (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) := by
  intro forward g keys
  have h := windowKeys_sound (kv_len := kv_len) alignment left right hm hn (q_len := q_len)
  refine flashBackwardOneLoop_eq_vjpDropout toValue scale modify slope Q K V Z L dO hm hn
    (fun u t i hi j hj => ⟨fun hs => h.skip u t ?_ j hj i hi, fun hs => ?_⟩) hL dLse
  · rw [taken] at hs
    split at hs
    · exact .inr hs
    · next hv => exact .inl (Bool.eq_false_iff.mpr hv)
  · rw [taken] at hs
    split at hs
    · next hv => exact h.unmasked u t hv hs j hj i hi
    · cases hs

end Attention.Proof
