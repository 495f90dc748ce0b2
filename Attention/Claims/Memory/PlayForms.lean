module

public import Attention.Claims.Memory.Bounds
public import Attention.Claims.Memory.Play

public section

/-! # The play of FlashAttention is allowed, and forms each score -/

namespace Attention.Claims

open Spec Model.Pebble

variable {q_len kv_len d d_v : Nat}

variable {M : Nat} {rows : List (Fin q_len)} {cols : List (Fin kv_len)}

/-- The elements of a tile of queries in fast memory between tiles of keys. -/
private def between (kv_len d d_v : Nat) (rows : List (Fin q_len)) (tile : Nat) :
    List (Element q_len kv_len d (Other q_len kv_len d_v)) :=
  (stateNames kv_len d_v tile rows).map .other ++ queryElements d d_v rows

private theorem length_between (tile : Nat) :
    (between kv_len d d_v rows tile).length = rows.length * (2 + d_v) + rows.length * d := by
  simp [between, length_stateNames, length_queryElements]

private theorem adds_scoresPlay : Adds bySums M
    (keyElements d d_v cols ++ queryElements (kv_len := kv_len) d d_v rows) 2
    (scoresPlay d d_v rows cols) (tileScores d d_v rows cols) := by
  refine adds_flatMap fun i hi => adds_flatMap fun j hj => adds_scorePlay (fun c => ?_) fun c => ?_
  · refine List.mem_append_right _ (List.mem_flatMap.mpr ⟨i, hi, ?_⟩)
    simp
  · refine List.mem_append_left _ (List.mem_flatMap.mpr ⟨j, hj, ?_⟩)
    simp

private theorem mem_queryElements (x : Element q_len kv_len d (Other q_len kv_len d_v))
    (hx : x ∈ queryElements d d_v rows) : x.isInput := by
  simp only [queryElements, List.mem_flatMap, List.mem_map] at hx
  obtain ⟨_, _, _, _, rfl⟩ := hx
  rfl

private theorem mem_keyElements (x : Element q_len kv_len d (Other q_len kv_len d_v))
    (hx : x ∈ keyElements d d_v cols) : x.isInput := by
  simp only [keyElements, List.mem_flatMap, List.mem_map] at hx
  obtain ⟨_, _, _, _, rfl⟩ := hx
  rfl

/-- The first half of a tile of keys: K is loaded, and the scores are formed. -/
private theorem ends_scores (hd : d ≤ d_v) (hM : flashFast rows.length cols.length d d_v ≤ M)
    (tile : Nat) : Ends bySums M (between kv_len d d_v rows tile)
      ((keyElements d d_v cols).map .load ++ scoresPlay d d_v rows cols)
      (tileScores d d_v rows cols
        ++ (keyElements d d_v cols ++ between kv_len d d_v rows tile)) := by
  have h₁ := length_between (kv_len := kv_len) (d := d) (d_v := d_v) (rows := rows) tile
  have h₂ := length_keyElements (q_len := q_len) (d := d) (d_v := d_v) cols
  have h₃ := length_tileScores (d := d) (d_v := d_v) rows cols
  have h₄ : cols.length * d ≤ cols.length * d_v := Nat.mul_le_mul_left _ hd
  simp only [flashFast] at hM
  have loads : Ends bySums M (between kv_len d d_v rows tile) ((keyElements d d_v cols).map .load)
      (keyElements d d_v cols ++ between kv_len d d_v rows tile) :=
    adds_loads mem_keyElements _ (by simp) (by omega)
  refine loads.append ?_
  match rows, hM with
  | [], _ => exact .nil
  | i :: rows, hM =>
    have h₅ : 1 * (2 + d_v) ≤ (i :: rows).length * (2 + d_v) :=
      Nat.mul_le_mul_right _ (by simp)
    refine adds_scoresPlay _ (fun x hx => ?_) (by simp only [List.length_append]; omega)
    simp only [between, List.mem_append] at hx ⊢
    exact hx.elim .inl fun h => .inr (.inr h)

/-- The second half: V, the new states, and what is not needed any more is deleted. -/
private theorem ends_states
    (hM : flashFast rows.length cols.length d d_v ≤ M) (tile : Nat) :
    Ends bySums M
      (tileScores d d_v rows cols ++ (keyElements d d_v cols ++ between kv_len d d_v rows tile))
      ((keyElements d d_v cols).map .delete
        ++ ((valueNames q_len d_v cols).map (fun name => .load (.other name))
        ++ ((stateNames kv_len d_v (tile + 1) rows).map (fun name => .compute (.other name))
        ++ ((valueNames q_len d_v cols).map (fun name => .delete (.other name))
        ++ ((tileScores d d_v rows cols).map .delete
        ++ (stateNames kv_len d_v tile rows).map (fun name => .delete (.other name)))))))
      (between kv_len d d_v rows (tile + 1)) := by
  have h₁ := length_queryElements (kv_len := kv_len) (d := d) (d_v := d_v) rows
  have h₂ := length_valueNames (q_len := q_len) (d_v := d_v) cols
  have h₃ := length_tileScores (d := d) (d_v := d_v) rows cols
  have h₄ := length_stateNames (kv_len := kv_len) (d_v := d_v) tile rows
  have h₅ := length_stateNames (kv_len := kv_len) (d_v := d_v) (tile + 1) rows
  simp only [flashFast] at hM
  simp only [between]
  generalize keyElements d d_v cols = keys at *
  generalize queryElements d d_v rows = queries at *
  generalize tileScores d d_v rows cols = scores at *
  generalize stateNames kv_len d_v tile rows = old at *
  generalize stateNames kv_len d_v (tile + 1) rows = new at *
  generalize valueNames q_len d_v cols = values at *
  have swap : ∀ {xs ys zs : List (Element q_len kv_len d (Other q_len kv_len d_v))},
      (xs ++ (ys ++ zs)).Perm (ys ++ (xs ++ zs)) := by
    intro xs ys zs
    rw [← List.append_assoc, ← List.append_assoc]
    exact List.perm_append_comm.append_right zs
  refine ((ends_deletes keys).perm swap (.refl _)).append <|
    (adds_loadOthers values _ (by simp)
      (by simp only [List.length_append, List.length_map]; omega)).append <|
    (adds_computeOthers new _ (by simp)
      (by simp only [List.length_append, List.length_map]; omega)).append <|
    ((ends_deleteOthers values).perm swap (.refl _)).append <|
    ((ends_deletes scores).perm swap (.refl _)).append <|
    (ends_deleteOthers old).perm swap (.refl _)

private theorem keyTilePlay_eq (tile : Nat) : keyTilePlay d d_v rows tile cols
    = ((keyElements d d_v cols).map .load ++ scoresPlay d d_v rows cols)
      ++ ((keyElements d d_v cols).map .delete
        ++ ((valueNames q_len d_v cols).map (fun name => .load (.other name))
        ++ ((stateNames kv_len d_v (tile + 1) rows).map (fun name => .compute (.other name))
        ++ ((valueNames q_len d_v cols).map (fun name => .delete (.other name))
        ++ ((tileScores d d_v rows cols).map .delete
        ++ (stateNames kv_len d_v tile rows).map (fun name => .delete (.other name))))))) := by
  rw [List.append_assoc]
  rfl

private theorem ends_keyTilePlay (hd : d ≤ d_v) (hM : flashFast rows.length cols.length d d_v ≤ M)
    (tile : Nat) : Ends bySums M (between kv_len d d_v rows tile) (keyTilePlay d d_v rows tile cols)
      (between kv_len d d_v rows (tile + 1)) := by
  rw [keyTilePlay_eq]
  exact (ends_scores hd hM tile).append (ends_states hM tile)

private theorem passes_keyTilePlay (hd : d ≤ d_v)
    (hM : flashFast rows.length cols.length d d_v ≤ M) (tile : Nat) {i : Fin q_len} {j : Fin kv_len}
    (hi : i ∈ rows) (hj : j ∈ cols) {x : Element q_len kv_len d (Other q_len kv_len d_v)}
    (hx : x ∈ scoreSum i j) :
    Passes bySums M (between kv_len d d_v rows tile) (keyTilePlay d d_v rows tile cols) x := by
  rw [keyTilePlay_eq]
  refine ((ends_scores hd hM tile).passes (List.mem_append_left _ ?_)).append
  exact List.mem_flatMap.mpr ⟨i, hi, List.mem_flatMap.mpr ⟨j, hj, hx⟩⟩

private theorem ends_keyTilesPlay (hd : d ≤ d_v) {keyTiles : List (List (Fin kv_len))}
    (hM : ∀ cols ∈ keyTiles, flashFast rows.length cols.length d d_v ≤ M) :
    ∀ tile, Ends bySums M (between kv_len d d_v rows tile) (keyTilesPlay d d_v rows tile keyTiles)
      (between kv_len d d_v rows (tile + keyTiles.length)) := by
  induction keyTiles with
  | nil => exact fun tile => .nil
  | cons cols keyTiles ih =>
    intro tile
    have h := ih (fun cols' h => hM cols' (by simp [h])) (tile + 1)
    rw [show tile + 1 + keyTiles.length = tile + (cols :: keyTiles).length by
      rw [List.length_cons]; omega] at h
    exact (ends_keyTilePlay hd (hM cols (by simp)) tile).append h

private theorem passes_keyTilesPlay (hd : d ≤ d_v) {keyTiles : List (List (Fin kv_len))}
    (hM : ∀ cols ∈ keyTiles, flashFast rows.length cols.length d d_v ≤ M)
    {i : Fin q_len} {j : Fin kv_len} (hi : i ∈ rows) (hj : j ∈ cols) (hc : cols ∈ keyTiles)
    {x : Element q_len kv_len d (Other q_len kv_len d_v)} (hx : x ∈ scoreSum i j) :
    ∀ tile, Passes bySums M (between kv_len d d_v rows tile)
      (keyTilesPlay d d_v rows tile keyTiles) x := by
  induction keyTiles with
  | nil => simp at hc
  | cons cols' keyTiles ih =>
    intro tile
    have h := hM cols' (by simp)
    rcases List.mem_cons.mp hc with rfl | hc
    · exact (passes_keyTilePlay hd h tile hi hj hx).append
    · exact (ends_keyTilePlay hd h tile).append_passes
        (ih (fun cols h => hM cols (by simp [h])) hc (tile + 1))

/-- Before the tiles of keys. -/
private theorem ends_queries (hM : rows.length * d + rows.length * (2 + d_v) ≤ M) :
    Ends bySums M [] ((queryElements d d_v rows).map .load
      ++ (stateNames kv_len d_v 0 rows).map (fun name => .compute (.other name)))
      (between kv_len d d_v rows 0) := by
  have h₁ := length_queryElements (kv_len := kv_len) (d := d) (d_v := d_v) rows
  have h₂ := length_stateNames (kv_len := kv_len) (d_v := d_v) 0 rows
  refine (adds_loads mem_queryElements [] (by simp) (by simp; omega)).append ?_
  rw [List.append_nil]
  exact adds_computeOthers _ _ (by simp) (by simp; omega)

/-- After the tiles of keys. -/
private theorem ends_outputs (n : Nat)
    (hM : rows.length * d + rows.length * (2 + d_v) + rows.length * d_v ≤ M) :
    Ends bySums M (between kv_len d d_v rows n)
      ((outputNames kv_len d_v rows).map (fun name => .compute (.other name))
      ++ ((outputNames kv_len d_v rows).map (fun name => .store (.other name))
      ++ ((outputNames kv_len d_v rows).map (fun name => .delete (.other name))
      ++ ((stateNames kv_len d_v n rows).map (fun name => .delete (.other name))
      ++ (queryElements d d_v rows).map .delete)))) [] := by
  have h₁ := length_between (kv_len := kv_len) (d := d) (d_v := d_v) (rows := rows) n
  have h₂ := length_outputNames (kv_len := kv_len) (d_v := d_v) rows
  refine (adds_computeOthers _ _ (by simp) (by simp; omega)).append <|
    (ends_storeOthers fun name h => List.mem_append_left _ (List.mem_map_of_mem h)).append <|
    (ends_deleteOthers _).append <| (ends_deleteOthers _).append ?_
  simpa using ends_deletes (rule := bySums) (M := M) (X := [])
    (queryElements (kv_len := kv_len) d d_v rows)

/-! ## The whole play -/

section
variable {block_m block_n : Nat}

private theorem queryTilePlay_eq : queryTilePlay kv_len d d_v block_n rows
    = ((queryElements d d_v rows).map .load
      ++ (stateNames kv_len d_v 0 rows).map (fun name => .compute (.other name)))
      ++ (keyTilesPlay d d_v rows 0 (tiles block_n (List.finRange kv_len))
      ++ ((outputNames kv_len d_v rows).map (fun name => .compute (.other name))
      ++ ((outputNames kv_len d_v rows).map (fun name => .store (.other name))
      ++ ((outputNames kv_len d_v rows).map (fun name => .delete (.other name))
      ++ ((stateNames kv_len d_v (tiles block_n (List.finRange kv_len)).length rows).map
          (fun name => .delete (.other name))
      ++ (queryElements d d_v rows).map .delete))))) := by
  rw [List.append_assoc]
  rfl

private theorem room (hM : flashFast block_m block_n d d_v ≤ M) (hr : rows.length ≤ block_m) :
    (∀ cols ∈ tiles block_n (List.finRange kv_len), flashFast rows.length cols.length d d_v ≤ M)
      ∧ rows.length * d + rows.length * (2 + d_v) + rows.length * d_v ≤ M := by
  refine ⟨fun cols hc => Nat.le_trans (flashFast_mono hr (length_le_of_mem_tiles hc)) hM, ?_⟩
  have h₁ := Nat.le_trans (flashFast_mono (d := d) (d_v := d_v) hr (Nat.le_refl block_n)) hM
  have h₂ : rows.length * (2 + d_v) = rows.length * 2 + rows.length * d_v := Nat.mul_add ..
  simp only [flashFast] at h₁
  omega

private theorem ends_queryTilePlay (hd : d ≤ d_v) (hM : flashFast block_m block_n d d_v ≤ M)
    (hr : rows.length ≤ block_m) :
    Ends bySums M [] (queryTilePlay kv_len d d_v block_n rows) [] := by
  obtain ⟨h₁, h₂⟩ := room (kv_len := kv_len) hM hr
  rw [queryTilePlay_eq]
  have h₃ := ends_keyTilesPlay hd h₁ 0
  rw [Nat.zero_add] at h₃
  exact (ends_queries (by omega)).append (h₃.append (ends_outputs _ h₂))

private theorem passes_queryTilePlay (hd : d ≤ d_v) (hM : flashFast block_m block_n d d_v ≤ M)
    (hn : 0 < block_n) (hr : rows.length ≤ block_m) {i : Fin q_len} (hi : i ∈ rows)
    (j : Fin kv_len) {x : Element q_len kv_len d (Other q_len kv_len d_v)}
    (hx : x ∈ scoreSum i j) :
    Passes bySums M [] (queryTilePlay kv_len d d_v block_n rows) x := by
  obtain ⟨h₁, h₂⟩ := room (kv_len := kv_len) hM hr
  have hj := List.mem_finRange j
  rw [← Proof.tiles_flatten hn (List.finRange kv_len)] at hj
  obtain ⟨cols, hc, hj⟩ := List.mem_flatten.mp hj
  rw [queryTilePlay_eq]
  exact (ends_queries (by omega)).append_passes (passes_keyTilesPlay hd h₁ hi hj hc hx 0).append

/-- The play is allowed with as many elements in fast memory as the program holds, and forms each
score. -/
theorem flashPlay_forms (hd : 0 < d) (hdv : d ≤ d_v) (hm : 0 < block_m) (hn : 0 < block_n)
    (hM : flashFast block_m block_n d d_v ≤ M) :
    (run bySums M start (flashPlay q_len kv_len d d_v block_m block_n)).isSome
      ∧ ∀ i j, Forms bySums M start (flashPlay q_len kv_len d d_v block_m block_n) i j := by
  have ends : ∀ rows ∈ tiles block_m (List.finRange q_len),
      Ends bySums M [] (queryTilePlay kv_len d d_v block_n rows) [] := fun rows h =>
    ends_queryTilePlay hdv hM (length_le_of_mem_tiles h)
  constructor
  · obtain ⟨s, e, _⟩ := ends_flatMap ends start (.refl _)
    rw [flashPlay, e]
    rfl
  · intro i j
    have hi := List.mem_finRange i
    rw [← Proof.tiles_flatten hm (List.finRange q_len)] at hi
    obtain ⟨rows, hr, hi⟩ := List.mem_flatten.mp hi
    obtain ⟨products, hx, hc⟩ := exists_scoreSum hd i j
    exact (passes_flatMap ends hr
      (passes_queryTilePlay hdv hM hn (length_le_of_mem_tiles hr) hi j hx)).forms hc

end

end Attention.Claims
