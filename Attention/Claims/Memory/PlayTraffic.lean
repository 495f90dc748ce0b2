module

public import Attention.Claims.Memory.LowerBound
public import Attention.Claims.Memory.PlayForms

public section

/-! # The traffic of FlashAttention's play, and how near it is to the least -/

namespace Attention.Claims

open Spec Model.Pebble

variable {q_len kv_len d d_v : Nat} {rows : List (Fin q_len)} {cols : List (Fin kv_len)}

section
variable {α : Type} {β : Type}

private theorem transfers_flatMap (play : β → List (Move q_len kv_len d α)) (xs : List β) :
    transfers (xs.flatMap play) = (xs.map fun x => transfers (play x)).sum := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [transfers_append, ih]

private theorem transfers_map {move : β → Move q_len kv_len d α} {xs : List β} (t : Bool)
    (h : ∀ x, (move x).isTransfer = t) : transfers (xs.map move) = xs.length * t.toNat := by
  induction xs with
  | nil => simp [transfers]
  | cons x xs ih =>
    have := transfers_append [move x] (xs.map move)
    have h₁ : transfers [move x] = t.toNat := by cases t <;> simp [transfers, h]
    rw [List.map_cons, List.length_cons, ← List.singleton_append, this, h₁, ih, Nat.add_mul]
    omega

private theorem transfers_flatMap_zero {play : β → List (Move q_len kv_len d α)}
    (h : ∀ x, transfers (play x) = 0) (xs : List β) : transfers (xs.flatMap play) = 0 := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [transfers_append, ih, h]

private theorem transfers_scorePlay (i : Fin q_len) (j : Fin kv_len) :
    transfers (scorePlay (d := d) (α := α) i j) = 0 := by
  have key : ∀ (cs : List (Fin d)) s, transfers (addPlay (α := α) i j s cs) = 0 := by
    intro cs
    induction cs with
    | nil => simp [addPlay, transfers]
    | cons c cs ih =>
      intro s
      have := ih (.add s (.product c))
      simpa [addPlay, transfers, Move.isTransfer] using this
  unfold scorePlay
  split
  · rfl
  next c cs _ =>
    have := key cs (.product c)
    simpa [transfers, Move.isTransfer] using this

end

private theorem transfers_keyTilePlay (tile : Nat) :
    transfers (keyTilePlay d d_v rows tile cols) = cols.length * (d + d_v) := by
  have h₁ : transfers (scoresPlay d d_v rows cols) = 0 :=
    transfers_flatMap_zero (fun i => transfers_flatMap_zero (transfers_scorePlay i) cols) rows
  simp only [keyTilePlay, transfers_append, h₁]
  rw [transfers_map true (fun _ => rfl), transfers_map false (fun _ => rfl),
    transfers_map true (fun _ => rfl), transfers_map false (fun _ => rfl),
    transfers_map false (fun _ => rfl), transfers_map false (fun _ => rfl),
    transfers_map false (fun _ => rfl), length_keyElements, length_valueNames,
    Nat.mul_add]
  simp

private theorem transfers_keyTilesPlay (keyTiles : List (List (Fin kv_len))) :
    ∀ tile, transfers (keyTilesPlay d d_v rows tile keyTiles)
      = (keyTiles.map List.length).sum * (d + d_v) := by
  induction keyTiles with
  | nil => simp [keyTilesPlay, transfers]
  | cons cols keyTiles ih =>
    intro tile
    simp [keyTilesPlay, transfers_append, transfers_keyTilePlay, ih, Nat.add_mul]

private theorem transfers_queryTilePlay {block_n : Nat} (hn : 0 < block_n) :
    transfers (queryTilePlay kv_len d d_v block_n rows)
      = rows.length * (d + d_v) + kv_len * (d + d_v) := by
  have h₁ := sum_length_tiles hn (List.finRange kv_len)
  rw [List.length_finRange] at h₁
  simp only [queryTilePlay, transfers_append, transfers_keyTilesPlay, h₁]
  rw [transfers_map true (fun _ => rfl), transfers_map false (fun _ => rfl),
    transfers_map false (fun _ => rfl), transfers_map true (fun _ => rfl),
    transfers_map false (fun _ => rfl), transfers_map false (fun _ => rfl),
    transfers_map false (fun _ => rfl), length_queryElements, length_outputNames,
    Nat.mul_add rows.length]
  simp
  omega

/-- The play moves as many elements as `flash_transfers` counts of the program. -/
theorem transfers_flashPlay {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    transfers (flashPlay q_len kv_len d d_v block_m block_n)
      = q_len * (d + d_v) + numTiles q_len block_m * (kv_len * (d + d_v)) := by
  have key : ∀ queryTiles : List (List (Fin q_len)),
      (queryTiles.map fun rows => transfers (queryTilePlay kv_len d d_v block_n rows)).sum
        = (queryTiles.map List.length).sum * (d + d_v)
          + queryTiles.length * (kv_len * (d + d_v)) := by
    intro queryTiles
    induction queryTiles with
    | nil => simp
    | cons rows queryTiles ih =>
      rw [List.map_cons, List.sum_cons, ih, transfers_queryTilePlay hn]
      simp only [List.map_cons, List.sum_cons, List.length_cons, Nat.add_mul]
      omega
  rw [flashPlay, transfers_flatMap, key, sum_length_tiles hm, length_tiles, List.length_finRange]

section
universe u
variable {S R : Type u} [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- The play moves as many elements as the program does, on every input. -/
theorem transfers_flashPlay_eq (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) :
    transfers (flashPlay q_len kv_len d d_v block_m block_n)
      = (flashRun scale modify Q K V block_m block_n).counts.transfers := by
  rw [transfers_flashPlay hm hn, flash_transfers scale modify Q K V hm hn]

end

/-- **io-optimal**: let fast memory have room for M elements, at least d² and 9·d, and at most as
many as Q has and as K has; let values be as wide as keys. In tiles of M / 9d queries and at most d
keys and as many, FlashAttention is an allowed play, which forms each score and moves at most
40·q_len·kv_len·d² / M elements. No play with that room that forms each score moves fewer than
a 240th of them. -/
theorem flash_play_optimal {M block_n : Nat} (hd : 0 < d) (hM : 9 * d ≤ M) (hM' : d * d ≤ M)
    (hq : M ≤ q_len * d) (hk : M ≤ kv_len * d) (hn : 0 < block_n) (hn' : block_n ≤ d)
    (hn'' : block_n ≤ M / (9 * d)) :
    (run bySums M start (flashPlay q_len kv_len d d (M / (9 * d)) block_n)).isSome
      ∧ (∀ i j, Forms bySums M start (flashPlay q_len kv_len d d (M / (9 * d)) block_n) i j)
      ∧ transfers (flashPlay q_len kv_len d d (M / (9 * d)) block_n) * M
        ≤ 40 * (q_len * d) * (kv_len * d)
      ∧ ∀ {α : Type} [DecidableEq α] (play : List (Move q_len kv_len d α)),
        (run bySums M start play).isSome → (∀ i j, Forms bySums M start play i j) →
        transfers (flashPlay q_len kv_len d d (M / (9 * d)) block_n) ≤ 240 * transfers play := by
  have hb : 0 < M / (9 * d) := Nat.div_pos hM (by omega)
  obtain ⟨legal, forms⟩ := flashPlay_forms (q_len := q_len) (kv_len := kv_len) hd (Nat.le_refl d)
    hb hn (flashFast_le hd hn' hn'')
  have upper : transfers (flashPlay q_len kv_len d d (M / (9 * d)) block_n) * M
      ≤ 40 * (q_len * d) * (kv_len * d) := by
    rw [transfers_flashPlay hb hn]
    exact (traffic_bounds hd hM hq hk).2
  refine ⟨legal, forms, upper, fun play legal' forms' => ?_⟩
  have lower := io_lower_bound hM' legal' forms'
  generalize transfers (flashPlay q_len kv_len d d (M / (9 * d)) block_n) = t at *
  generalize transfers play = t' at *
  have h : t * M ≤ 240 * t' * M := by
    have e₁ : 40 * (q_len * d) * (kv_len * d) = 40 * (q_len * kv_len * (d * d)) := by grind
    have e₂ : 240 * t' * M = 40 * (6 * M * t') := by grind
    omega
  exact Nat.le_of_mul_le_mul_right h (by omega)

end Attention.Claims
