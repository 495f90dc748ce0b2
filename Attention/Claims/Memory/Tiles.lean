module

public import Attention.Claims.Memory.Basic
public import Attention.Proof.Flash.Basic

public section

/-! # Rows and tiles that the counted programs load, and their elements -/

namespace Attention.Claims

open Spec Spec.Online Model Program

universe u

variable {S R : Type u} {q_len kv_len d d_v : Nat}

/-- Rows that are loaded by their numbers. -/
theorem load_places {α : Type u} {n : Nat} (A : Vector α n) (rows : List (Fin n)) :
    ((places rows).filterMap fun i => A.toList[i]?) = rows.map (A[·]) := by
  induction rows with
  | nil => rfl
  | cons i rows ih => simp_all [places]

/-- Rows of one size each. -/
theorem sizes_of_size {ρ : Row} {n : Nat} {rows : List (ρ.Val S R)}
    (h : ∀ row ∈ rows, ρ.size row = n) : ρ.sizes rows = rows.length * n := by
  induction rows with
  | nil => simp [Row.sizes]
  | cons row rows ih =>
    have h₀ := h row (by simp)
    have h₁ := ih fun row' h' => h row' (by simp [h'])
    simp only [Row.sizes] at h₁
    simp only [Row.sizes, List.map_cons, List.sum_cons, List.length_cons, h₀, h₁, Nat.add_mul]
    omega

/-- The elements of rows of queries or keys. -/
@[simp] theorem sizes_scores (rows : List (Vec S d)) :
    Row.sizes (S := S) (R := R) (.scores d) rows = rows.length * d :=
  sizes_of_size (ρ := .scores d) fun _ _ => rfl

/-- The elements of rows of values or outputs. -/
@[simp] theorem sizes_values (rows : List (Vec R d)) :
    Row.sizes (S := S) (R := R) (.values d) rows = rows.length * d :=
  sizes_of_size (ρ := .values d) fun _ _ => rfl

/-- The elements of states. -/
@[simp] theorem sizes_state (rows : List (State S R d)) :
    Row.sizes (S := S) (R := R) (.state d) rows = rows.length * (2 + d) :=
  sizes_of_size (ρ := .state d) fun _ _ => rfl

/-- A tile has at most as many things as its size says. -/
theorem length_le_of_mem_tiles {α : Type u} {b : Nat} {xs tile : List α} (h : tile ∈ tiles b xs) :
    tile.length ≤ b := by
  obtain ⟨t, _, rfl⟩ := List.mem_map.mp h
  simp
  omega

/-- All tiles together have as many things as the list. -/
theorem sum_length_tiles {α : Type u} {b : Nat} (hb : 0 < b) (xs : List α) :
    ((tiles b xs).map List.length).sum = xs.length := by
  rw [← List.length_flatten, Proof.tiles_flatten hb]

/-- How many tiles there are. -/
theorem length_tiles {α : Type u} (b : Nat) (xs : List α) :
    (tiles b xs).length = numTiles xs.length b := by
  simp [tiles]

section
variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- From the rows of a tile come its scores. -/
theorem scoreTile_eq (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    scoreTile scale modify rows cols (rows.map (Q[·])) (cols.map (K[·]))
      = rows.map fun i => cols.map (score scale modify Q K i) := by
  simp only [scoreTile, List.zipWith_map_right, List.zipWith_self]
  rfl

/-- The elements of a tile of scores. -/
theorem sizes_scoreTile (rows : List (Fin q_len)) (cols : List (Fin kv_len)) :
    Row.sizes (S := S) (R := R) .masked
        (rows.map fun i => cols.map (score scale modify Q K i) : List (List (Option S)))
      = rows.length * cols.length := by
  rw [sizes_of_size (n := cols.length) (by simp [Row.size])]
  simp

end

end Attention.Claims
