module

public import Attention.Spec.Flash
public import Attention.Proof.Online.Attention

public section

/-! # FlashAttention computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

/-- Tiles of size at least 1 cover a list: put together again, they are the list. -/
theorem tiles_flatten {α : Type u} {b : Nat} (hb : 0 < b) (xs : List α) :
    (tiles b xs).flatten = xs := by
  suffices h : ∀ n k, n * b ≥ (xs.drop (k * b)).length →
      ((List.range' k n).map fun t => (xs.drop (t * b)).take b).flatten = xs.drop (k * b) by
    have h₀ : numTiles xs.length b * b ≥ xs.length := by
      have h₁ := Nat.div_add_mod (xs.length + b - 1) b
      have h₂ := Nat.mod_lt (xs.length + b - 1) hb
      rw [numTiles, Nat.mul_comm]
      omega
    simpa [tiles, List.range_eq_range'] using h _ 0 (by simpa using h₀)
  intro n
  induction n with
  | zero =>
    intro k hk
    have : xs.drop (k * b) = [] := List.eq_nil_of_length_eq_zero (by omega)
    simp [this]
  | succ n ih =>
    intro k hk
    have h₁ : (k + 1) * b = k * b + b := by rw [Nat.add_mul, Nat.one_mul]
    have h₂ := ih (k + 1) (by
      rw [Nat.add_mul] at hk
      simp only [List.length_drop, h₁] at hk ⊢
      omega)
    rw [List.range'_succ, List.map_cons, List.flatten_cons, h₂, h₁, ← List.drop_drop]
    exact List.take_append_drop b _

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

section
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- The states of a query tile after some key tiles: each row by itself has taken the tiles as
blocks. -/
theorem foldl_stepTile (seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v))
    (rows : List (Fin q_len)) (colTiles : List (List (Fin kv_len))) :
    ∀ start : Fin q_len → State S R d_v,
      colTiles.foldl (stepTile seen rows) (rows.map start)
        = rows.map fun i => (colTiles.map (seen i)).foldl stepBlock (start i) := by
  induction colTiles with
  | nil => intro start; rfl
  | cons cols colTiles ih =>
    intro start
    have h : stepTile seen rows (rows.map start) cols
        = rows.map fun i => stepBlock (start i) (seen i cols) := by
      rw [stepTile, List.zipWith_map_right, List.zipWith_self]
    simp only [List.foldl_cons, h, ih, List.map_cons]

/-- The tile loop takes each row by itself, the key tiles as its blocks. -/
theorem tileLoop_eq (start : State S R d_v)
    (seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v)) {block_m : Nat}
    (hm : 0 < block_m) (block_n : Nat) :
    tileLoop start seen block_m block_n = (List.finRange q_len).map fun i =>
      ((tiles block_n (List.finRange kv_len)).map (seen i)).foldl stepBlock start := by
  simp only [tileLoop, foldl_stepTile]
  rw [← List.map_flatMap, List.flatMap_id', tiles_flatten hm]

end

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

omit [OrderedField R] [Exponential S R] in
/-- The keys of some tiles, put together, are the keys of the tiles put together. -/
theorem flatten_map_scored (i : Fin q_len) (colTiles : List (List (Fin kv_len))) :
    (colTiles.map (scored scale modify Q K V i)).flatten
      = scored scale modify Q K V i colTiles.flatten :=
  List.map_flatten.symm

/-- **flash-eq-attention**: for all sizes, all tile sizes of at least 1 (ragged last tiles included)
and every score transformation, so every mask, the tile loop of FlashAttention-2 computes attention.
Fully masked rows give 0. -/
theorem flash_eq_attention {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    flash scale modify Q K V block_m block_n = (attention scale modify Q K V).toList := by
  rw [flash, tileLoop_eq _ _ hm, List.map_map]
  refine List.ext_getElem (by simp) fun i _ _ => ?_
  have := online_any_blocks
    ((tiles block_n (List.finRange kv_len)).map (scored scale modify Q K V ⟨i, by simp_all⟩))
  rw [flatten_map_scored, tiles_flatten hn, online] at this
  simpa [attention] using this

/-- **flash-masked-row**: a query that may attend to no key gets output 0 from the tile loop. -/
theorem flash_masked_row {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    {i : Fin q_len} (h : ∀ j, score scale modify Q K i j = none) :
    (flash scale modify Q K V block_m block_n)[i.val]? = some Vec.zero := by
  have h₀ : attend (scored scale modify Q K V i (List.finRange kv_len)) = Vec.zero :=
    attend_masked fun key hk => by
      obtain ⟨j, _, rfl⟩ := List.mem_map.mp hk
      exact h j
  rw [flash_eq_attention scale modify Q K V hm hn]
  simp [attention, h₀]

end Attention.Proof
