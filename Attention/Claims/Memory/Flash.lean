module

public import Attention.Claims.Memory.Tiles

public section

/-! # What FlashAttention computes, reads, writes and keeps -/

namespace Attention.Claims

open Spec Spec.Online Model Program

universe u

variable {S R : Type u} {q_len kv_len d d_v : Nat}
variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

omit [Add S] [Mul S] [OfNat S 0] in
/-- The elements of slow memory: those of Q, K and V, and of the output so far. -/
theorem size_flashMemory (out : List (Vec R d_v)) :
    (flashMemory Q K V out).size = q_len * d + kv_len * (d + d_v) + out.length * d_v := by
  simp only [flashMemory, Memory.size, sizes_scores, sizes_values, Vector.length_toList,
    Nat.mul_add]
  omega

/-- The most elements in fast memory while tiles of at most `block_m` queries and `block_n` keys are
worked on: a tile of queries, one of scores, and the states of its rows; besides, a tile of keys, or
else one of values and the new states. -/
@[expose] def flashFast (block_m block_n d d_v : Nat) : Nat :=
  block_m * d + block_m * block_n + block_m * (2 + d_v)
    + max (block_n * d) (block_n * d_v + block_m * (2 + d_v))

/-- Larger tiles need more. -/
theorem flashFast_mono {r c block_m block_n : Nat} (hr : r ≤ block_m) (hc : c ≤ block_n) :
    flashFast r c d d_v ≤ flashFast block_m block_n d d_v := by
  have h₁ := Nat.mul_le_mul_right d hr
  have h₂ := Nat.mul_le_mul hr hc
  have h₃ := Nat.mul_le_mul_right (2 + d_v) hr
  have h₄ := Nat.mul_le_mul_right d hc
  have h₅ := Nat.mul_le_mul_right d_v hc
  simp only [flashFast]
  omega

section
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- From the states, the scores and the values of a tile come the states after `stepTile`. -/
theorem stepStates_eq (rows : List (Fin q_len)) (cols : List (Fin kv_len))
    (states : List (State S R d_v)) :
    stepStates states (rows.map fun i => cols.map (score scale modify Q K i)) (cols.map (V[·]))
      = stepTile (scored scale modify Q K V) rows states cols := by
  have h : ∀ i, List.zipWith ScoredValue.mk (cols.map (score scale modify Q K i)) (cols.map (V[·]))
      = scored scale modify Q K V i cols := fun i => by
    rw [List.zipWith_map, List.zipWith_self]
    rfl
  rw [stepStates, stepTile, List.zipWith_map_right, List.zipWith_comm]
  simp only [h]

/-- Of five numbers the second is at most the third, and the fourth at most the fifth. -/
private theorem max_of_five (p : Nat) {a b c e : Nat} (hab : a ≤ b) (hce : c ≤ e) :
    max (max (max (max p a) b) c) e = max p (max b e) := by
  rw [Nat.max_assoc p, Nat.max_eq_right hab, Nat.max_assoc (max p b), Nat.max_eq_right hce,
    Nat.max_assoc]

/-- The largest of what fast memory holds at each step, of elements of keys, values, queries, scores
and states. -/
private theorem peak_eq (p keys values queries scores states : Nat) :
    max (max (max (max p (keys + (states + (queries + 0))))
          (scores + (keys + (states + (queries + 0)))))
        (values + (scores + (states + (queries + 0)))))
      (states + (values + (scores + (states + (queries + 0)))))
    = max p (queries + scores + states + max keys (values + states)) := by
  rw [max_of_five p (by omega) (by omega), ← Nat.add_max_add_left]
  congr 2 <;> omega

/-- A tile of keys is read once; nothing is written. -/
theorem run_flashKeyTile (rows : List (Fin q_len)) (cols : List (Fin kv_len))
    (states : List (State S R d_v)) (h : states.length = rows.length) (out : List (Vec R d_v))
    (counts : Counts) :
    (flashKeyTile scale modify rows cols).run
        ⟨flashMemory Q K V out, .cons states (.cons (rows.map (Q[·])) .nil), counts⟩
      = ⟨flashMemory Q K V out,
          .cons (stepTile (scored scale modify Q K V) rows states cols)
            (.cons (rows.map (Q[·])) .nil),
          { counts with
            reads := counts.reads + cols.length * (d + d_v)
            fastPeak := max counts.fastPeak (flashFast rows.length cols.length d d_v) }⟩ := by
  have hs : (stepTile (scored scale modify Q K V) rows states cols).length = rows.length := by
    simp [stepTile, h]
  simp only [flashKeyTile, run]
  simp only [flashMemory, Memory.get, load_places, scoreTile_eq, stepStates_eq]
  simp only [Memory.size, sizes_scores, sizes_values, sizes_state, sizes_scoreTile, List.length_map,
    h, hs]
  congr 2
  · rw [Nat.mul_add, Nat.add_assoc]
  · exact peak_eq ..

omit [Add S] [Mul S] [OfNat S 0] in
/-- There is one state for each row, however many tiles of keys it has taken. -/
theorem length_foldl_stepTile
    (seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v)) (rows : List (Fin q_len))
    (colTiles : List (List (Fin kv_len))) : ∀ states : List (State S R d_v),
      states.length = rows.length →
        (colTiles.foldl (stepTile seen rows) states).length = rows.length := by
  induction colTiles with
  | nil => exact fun _ h => h
  | cons cols colTiles ih => exact fun states h => ih _ (by simp [stepTile, h])

/-- The tiles of keys, one after the other: each is read once. -/
theorem run_flashKeyTiles (rows : List (Fin q_len)) {block_n : Nat} (out : List (Vec R d_v))
    (colTiles : List (List (Fin kv_len))) (hc : ∀ cols ∈ colTiles, cols.length ≤ block_n) :
    ∀ (states : List (State S R d_v)) (counts : Counts), states.length = rows.length →
      ∃ peak ≤ max counts.fastPeak (flashFast rows.length block_n d d_v),
        (forEach (flashKeyTile scale modify rows) colTiles).run
            ⟨flashMemory Q K V out, .cons states (.cons (rows.map (Q[·])) .nil), counts⟩
          = ⟨flashMemory Q K V out,
              .cons (colTiles.foldl (stepTile (scored scale modify Q K V) rows) states)
                (.cons (rows.map (Q[·])) .nil),
              { counts with
                reads := counts.reads + (colTiles.map List.length).sum * (d + d_v)
                fastPeak := peak }⟩ := by
  induction colTiles with
  | nil =>
    intro states counts h
    exact ⟨counts.fastPeak, Nat.le_max_left _ _, by simp [forEach, run]⟩
  | cons cols colTiles ih =>
    intro states counts h
    have hs : (stepTile (scored scale modify Q K V) rows states cols).length = rows.length := by
      simp [stepTile, h]
    obtain ⟨peak, hp, e⟩ := ih (fun cols' h' => hc cols' (by simp [h']))
      (stepTile (scored scale modify Q K V) rows states cols)
      { counts with
        reads := counts.reads + cols.length * (d + d_v)
        fastPeak := max counts.fastPeak (flashFast rows.length cols.length d d_v) } hs
    have := flashFast_mono (d := d) (d_v := d_v) (Nat.le_refl rows.length) (hc cols (by simp))
    refine ⟨peak, by simp only at hp; omega, ?_⟩
    rw [forEach, run, run_flashKeyTile _ _ _ _ _ _ _ _ h, e]
    simp only [List.foldl_cons, List.map_cons, List.sum_cons, Nat.add_mul, Nat.add_assoc]

/-- A tile of queries: its rows of Q are read, all of K and V, and its rows of the output are
written, which are those of the tile loop. -/
theorem run_flashQueryTile [Div R] (rows : List (Fin q_len)) {block_n : Nat} (hn : 0 < block_n)
    (out : List (Vec R d_v)) (counts : Counts) :
    ∃ peak ≤ max counts.fastPeak (flashFast rows.length block_n d d_v),
      (flashQueryTile scale modify block_n rows).run ⟨flashMemory Q K V out, .nil, counts⟩
        = ⟨flashMemory Q K V (out
              ++ ((tiles block_n (List.finRange kv_len)).foldl
                (stepTile (scored scale modify Q K V) rows) (rows.map fun _ => empty)).map finish),
            .nil,
            { reads := counts.reads + (rows.length * d + kv_len * (d + d_v))
              writes := counts.writes + rows.length * d_v
              slowPeak := max counts.slowPeak
                (q_len * d + kv_len * (d + d_v) + (out.length + rows.length) * d_v)
              fastPeak := peak }⟩ := by
  obtain ⟨peak, hp, e⟩ := run_flashKeyTiles scale modify Q K V rows (block_n := block_n) out
    (tiles block_n (List.finRange kv_len)) (fun _ => length_le_of_mem_tiles)
    (rows.map fun _ => empty)
    { counts with
      reads := counts.reads + rows.length * d
      fastPeak := max (max counts.fastPeak (rows.length * d))
        (rows.length * (2 + d_v) + rows.length * d) } (by simp)
  have hl := length_foldl_stepTile (scored scale modify Q K V) rows
    (tiles block_n (List.finRange kv_len)) (rows.map fun _ => empty) (by simp)
  rw [sum_length_tiles hn, List.length_finRange] at e
  refine ⟨max peak (rows.length * d_v + (rows.length * (2 + d_v) + rows.length * d)), ?_, ?_⟩
  · have : rows.length * (2 + d_v) = rows.length * 2 + rows.length * d_v := Nat.mul_add _ _ _
    have larger {x : Nat} (h : x ≤ flashFast rows.length block_n d d_v) :
        x ≤ max counts.fastPeak (flashFast rows.length block_n d d_v) :=
      Nat.le_trans h (Nat.le_max_right ..)
    refine Nat.max_le.mpr ⟨Nat.le_trans hp (Nat.max_le.mpr ⟨Nat.max_le.mpr
      ⟨Nat.max_le.mpr ⟨Nat.le_max_left .., larger ?_⟩, larger ?_⟩, Nat.le_max_right ..⟩),
      larger ?_⟩ <;> simp only [flashFast] <;> omega
  · have h₀ : (flashMemory Q K V out).get .here = Q.toList := rfl
    have h₁ (rows : List (Vec R d_v)) :
        (flashMemory Q K V out).append (ρ := .values d_v) rows flashOutput
          = flashMemory Q K V (out ++ rows) := rfl
    have h₂ : ((rows.map (Q[·])).map fun _ => (empty : State S R d_v))
        = rows.map fun _ => empty := by simp
    simp only [flashQueryTile, run, h₀, h₂, load_places, Memory.size, sizes_scores, sizes_state,
      List.length_map, Nat.add_zero, e, h₁, size_flashMemory, sizes_values, hl, List.length_append]
    simp only [Nat.add_assoc]

/-- The tiles of queries, one after the other. -/
theorem run_flashQueryTiles [Div R] {block_m block_n : Nat} (hn : 0 < block_n)
    (rowTiles : List (List (Fin q_len))) (hr : ∀ rows ∈ rowTiles, rows.length ≤ block_m) :
    ∀ (out : List (Vec R d_v)) (counts : Counts),
      counts.slowPeak = (flashMemory Q K V out).size →
      ∃ peak ≤ max counts.fastPeak (flashFast block_m block_n d d_v),
        (forEach (flashQueryTile scale modify block_n) rowTiles).run
            ⟨flashMemory Q K V out, .nil, counts⟩
          = ⟨flashMemory Q K V (out ++ (rowTiles.flatMap fun rows =>
                (tiles block_n (List.finRange kv_len)).foldl
                  (stepTile (scored scale modify Q K V) rows)
                  (rows.map fun _ => empty)).map finish),
              .nil,
              { reads := counts.reads + ((rowTiles.map List.length).sum * d
                  + rowTiles.length * (kv_len * (d + d_v)))
                writes := counts.writes + (rowTiles.map List.length).sum * d_v
                slowPeak := counts.slowPeak + (rowTiles.map List.length).sum * d_v
                fastPeak := peak }⟩ := by
  induction rowTiles with
  | nil =>
    intro out counts _
    exact ⟨counts.fastPeak, Nat.le_max_left _ _, by simp [forEach, run]⟩
  | cons rows rowTiles ih =>
    intro out counts hs
    obtain ⟨peak, hp, e⟩ := run_flashQueryTile scale modify Q K V rows hn out counts
    have hl := length_foldl_stepTile (scored scale modify Q K V) rows
      (tiles block_n (List.finRange kv_len)) (rows.map fun _ => empty) (by simp)
    rw [size_flashMemory] at hs
    have hb := flashFast_mono (d := d) (d_v := d_v) (hr rows (by simp)) (Nat.le_refl block_n)
    have hs' : max counts.slowPeak
        (q_len * d + kv_len * (d + d_v) + (out.length + rows.length) * d_v)
          = counts.slowPeak + rows.length * d_v := by
      rw [hs, Nat.add_mul]
      omega
    rw [hs'] at e
    obtain ⟨peak', hp', e'⟩ := ih (fun rows' h => hr rows' (by simp [h]))
      (out ++ ((tiles block_n (List.finRange kv_len)).foldl
        (stepTile (scored scale modify Q K V) rows) (rows.map fun _ => empty)).map finish)
      ⟨counts.reads + (rows.length * d + kv_len * (d + d_v)), counts.writes + rows.length * d_v,
        counts.slowPeak + rows.length * d_v, peak⟩ (by
          rw [size_flashMemory, List.length_append, List.length_map, hl, Nat.add_mul]
          simp only [hs]
          omega)
    refine ⟨peak', by simp only at hp'; omega, ?_⟩
    rw [forEach, run, e, e']
    have h₁ : counts.reads + (rows.length * d + kv_len * (d + d_v))
          + ((rowTiles.map List.length).sum * d + rowTiles.length * (kv_len * (d + d_v)))
        = counts.reads + ((rows.length + (rowTiles.map List.length).sum) * d
          + (rowTiles.length + 1) * (kv_len * (d + d_v))) := by
      rw [Nat.add_mul, Nat.add_mul]
      omega
    simp only [List.flatMap_cons, List.map_cons, List.sum_cons, List.length_cons, List.map_append,
      List.append_assoc, h₁]
    simp only [Nat.add_mul, Nat.add_assoc]

/-- **flash-counts**: the program computes the tile loop, and this is what it reads and writes. Slow
memory never holds more than inputs and output, nor fast memory more than a few tiles. -/
theorem run_flashProgram [Div R] {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    ∃ peak ≤ flashFast block_m block_n d d_v,
      (flashProgram scale modify block_m block_n).run (.start (flashMemory Q K V []))
        = ⟨flashMemory Q K V (flash scale modify Q K V block_m block_n), .nil,
            { reads := q_len * d + numTiles q_len block_m * (kv_len * (d + d_v))
              writes := q_len * d_v
              slowPeak := q_len * d + kv_len * (d + d_v) + q_len * d_v
              fastPeak := peak }⟩ := by
  obtain ⟨peak, hp, e⟩ := run_flashQueryTiles scale modify Q K V (block_m := block_m) hn
    (tiles block_m (List.finRange q_len)) (fun _ => length_le_of_mem_tiles) []
    ⟨0, 0, (flashMemory Q K V []).size, 0⟩ rfl
  refine ⟨peak, by simpa using hp, ?_⟩
  rw [sum_length_tiles hm, length_tiles, List.length_finRange] at e
  simpa [flashProgram, Machine.start, flash, tileLoop, size_flashMemory] using e

end

end Attention.Claims
