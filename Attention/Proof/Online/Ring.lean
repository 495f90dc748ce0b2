module

public import Attention.Spec.Ring
public import Attention.Proof.Flash.Basic
public import Attention.Proof.Online.Merge

public section

/-! # Ring attention computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}

/-! ## Blocks in any order -/

/-- **blocks-any-order**: the blocks of a row may come in any order, and its keys be spread over
them in any way: the state is that of the row. -/
theorem online_perm {row : List (ScoredValue S R d)} {blocks : List (List (ScoredValue S R d))}
    (h : row.Perm blocks.flatten) : online blocks = ofBlock row := by
  rw [online_eq_ofBlock, ofBlock_perm h]

private theorem flatten_rotated {α : Type u} (blocks : List (List α)) (k : Nat) :
    (blocks.drop k ++ blocks.take k).flatten.Perm blocks.flatten := by
  have h := List.perm_append_comm (l₁ := (blocks.drop k).flatten) (l₂ := (blocks.take k).flatten)
  rwa [← List.flatten_append, ← List.flatten_append, List.take_append_drop] at h

/-- Blocks that are taken from the `k`-th on, and then those before it, end in the attention of the
whole row. -/
theorem online_rotated (blocks : List (List (ScoredValue S R d))) (k : Nat) :
    finish (online (blocks.drop k ++ blocks.take k)) = attend blocks.flatten := by
  rw [online_any_blocks, attend_perm (flatten_rotated blocks k)]

/-! ## Who meets what -/

private theorem length_rotate {α : Type u} (xs : List α) : (rotate xs).length = xs.length := by
  cases xs <;> simp [rotate]

/-- The keys that come to place `i` in `n + 1` rounds: those that are there, and those that come
there in `n` rounds from now on. -/
private theorem cycle_succ {α : Type u} {xs : List α} {i n : Nat} (hi : i < xs.length)
    (hn : n < xs.length) :
    ((xs ++ xs).drop i).take (n + 1)
      = xs[i] :: ((rotate xs ++ rotate xs).drop i).take n := by
  cases xs with
  | nil => cases hi
  | cons x xs =>
    have e : rotate (x :: xs) ++ rotate (x :: xs) = (xs ++ x :: xs) ++ [x] := by simp [rotate]
    simp only [List.length_cons] at hi hn
    have h : (((xs ++ x :: xs) ++ [x]).drop i).take n = ((xs ++ x :: xs).drop i).take n := by
      rw [List.drop_append_of_le_length (by simp; omega),
        List.take_append_of_le_length (by simp; omega)]
    rw [e, h, List.drop_eq_getElem_cons (by simp; omega), List.take_succ_cons,
      List.getElem_append_left (by simpa using hi)]
    rfl

/-- The keys that come to place `i` in a full turn. -/
private theorem cycle_full {α : Type u} {xs : List α} {i : Nat} (hi : i < xs.length) :
    ((xs ++ xs).drop i).take xs.length = xs.drop i ++ xs.take i := by
  rw [List.drop_append_of_le_length (by omega), List.take_append, List.length_drop,
    List.take_of_length_le (by simp)]
  congr 2
  omega

variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

omit [OrderedCommRing S] [OrderedField R] [Exponential S R] in
private theorem length_passOn (devices : List (Device S R q_len kv_len d_v)) :
    (passOn devices).length = devices.length := by
  simp [passOn, length_rotate]

omit [OrderedCommRing S] [OrderedField R] [Exponential S R] in
private theorem cols_passOn (devices : List (Device S R q_len kv_len d_v)) :
    (passOn devices).map (·.cols) = rotate (devices.map (·.cols)) := by
  refine List.ext_getElem (by simp [length_passOn, length_rotate]) fun i h₁ h₂ => ?_
  simp [passOn]

/-- The rounds keep the devices. -/
theorem length_ringRounds : ∀ (n : Nat) (devices : List (Device S R q_len kv_len d_v)),
    (ringRounds scale modify Q K V n devices).length = devices.length
  | 0, _ => rfl
  | n + 1, devices => by simp [ringRounds, length_ringRounds n, length_passOn]

/-- After `n` rounds the queries of device `i` have met the keys that the devices `i`, `i + 1`, …
held at the beginning, in this order; after the last device comes the first. -/
theorem ringRounds_states : ∀ (n : Nat) (devices : List (Device S R q_len kv_len d_v)) (i : Nat)
    (_ : n ≤ devices.length) (hi : i < devices.length),
    ((ringRounds scale modify Q K V n devices)[i]'(by
        rwa [length_ringRounds scale modify Q K V n devices])).states
      = (((devices.map (·.cols) ++ devices.map (·.cols)).drop i).take n).foldl
          (stepTile (scored scale modify Q K V) devices[i].rows) devices[i].states := by
  intro n
  induction n with
  | zero => intro devices i _ _; rfl
  | succ n ih =>
    intro devices i hn hi
    have hi' : i < (passOn (devices.map (Device.compute scale modify Q K V))).length := by
      simpa [length_passOn] using hi
    rw [cycle_succ (by simpa using hi) (by simpa using hn)]
    simp only [ringRounds]
    rw [ih _ i (by simp [length_passOn]; omega) hi', cols_passOn]
    simp only [passOn, Device.compute, List.map_map, Function.comp_def, List.getElem_zipWith,
      List.getElem_map, List.foldl_cons]

/-- **ring**: if the keys are spread over the devices of the ring, each on one of them, in any
order, then each device ends with the attention of its queries over all keys. -/
theorem ring_eq_attention {shards : List (List (Fin q_len) × List (Fin kv_len))}
    (h : (shards.map (·.2)).flatten.Perm (List.finRange kv_len)) :
    ring scale modify Q K V shards
      = shards.map fun (rows, _) => rows.map fun i => (attention scale modify Q K V)[i] := by
  refine List.ext_getElem (by simp [ring, length_ringRounds]) fun i h₁ h₂ => ?_
  have hi : i < shards.length := by simpa using h₂
  have hc := cycle_full (xs := shards.map (·.2)) (i := i) (by simpa using hi)
  rw [List.length_map] at hc
  simp only [ring, List.getElem_map]
  rw [ringRounds_states _ _ _ _ _ _ _ _ (by simp) (by simpa using hi)]
  simp only [List.map_map, Function.comp_def, List.getElem_map]
  rw [hc, foldl_stepTile, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  have hp := ((flatten_rotated (shards.map (·.2)) i).trans h).map
    fun k => (⟨score scale modify Q K j k, V[k]⟩ : ScoredValue S R d_v)
  have := online_any_blocks
    (((shards.map (·.2)).drop i ++ (shards.map (·.2)).take i).map (scored scale modify Q K V j))
  rw [flatten_map_scored, scored, attend_perm hp] at this
  simpa [attention, online] using this

end Attention.Proof
