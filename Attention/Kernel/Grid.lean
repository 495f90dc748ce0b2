module

public import Attention.Kernel.Bounds
public import Attention.Spec.Flash

public section

/-! # Which program takes which queries -/

namespace Attention.Kernel.Problem

open Spec

universe u

variable {R : Type u} {p : Problem R} {q_len batches heads : Nat}

theorem tiles_eq (hBM : 0 < p.BM) (hq : p.tilesLen = q_len) :
    p.tiles = (numTiles q_len p.BM : Nat) := by
  rw [tiles, hq, numTiles, Int.tdiv_eq_ediv_of_nonneg (by omega), Int.natCast_ediv]
  congr 1
  omega

/-- A program's number from its tile, batch and head, which are within their bounds. -/
theorem place {pid : Int} (h₀ : 0 ≤ pid) (h₁ : pid < p.tiles * (batches * heads : Nat))
    (hT : 0 ≤ p.tiles) (hH : p.heads = heads) :
    (0 ≤ p.tile pid ∧ p.tile pid < p.tiles) ∧ (0 ≤ p.batch pid ∧ p.batch pid < batches) ∧
      (0 ≤ p.head pid ∧ p.head pid < heads) ∧
      pid = p.tiles * (p.heads * p.batch pid + p.head pid) + (p.tiles - 1 - p.tile pid) := by
  have hT' : 0 < p.tiles := by
    rcases Int.lt_or_eq_of_le hT with h | h
    · exact h
    · rw [← h] at h₁; omega
  have hu : 0 ≤ pid / p.tiles := Int.ediv_nonneg h₀ hT
  have hu' : pid / p.tiles < (batches * heads : Nat) :=
    Int.ediv_lt_of_lt_mul hT' (by rw [Int.mul_comm]; exact h₁)
  have hH' : 0 < (heads : Int) := by
    rcases Nat.eq_zero_or_pos heads with h | h
    · simp [h] at hu'; omega
    · omega
  have e₁ : Int.tdiv pid p.tiles = pid / p.tiles := Int.tdiv_eq_ediv_of_nonneg h₀
  have e₂ : Int.tmod pid p.tiles = pid % p.tiles := Int.tmod_eq_emod_of_nonneg h₀
  have e₃ : p.batch pid = pid / p.tiles / heads := by
    rw [batch, e₁, hH, Int.tdiv_eq_ediv_of_nonneg hu]
  have e₄ : p.head pid = pid / p.tiles % heads := by
    rw [head, e₁, hH, Int.tmod_eq_emod_of_nonneg hu]
  have e₅ : p.tile pid = p.tiles - 1 - pid % p.tiles := by rw [tile, e₂]
  have r₁ := Int.emod_nonneg pid (b := p.tiles) (by omega)
  have r₂ := Int.emod_lt_of_pos pid hT'
  have r₃ := Int.emod_nonneg (pid / p.tiles) (b := (heads : Int)) (by omega)
  have r₄ := Int.emod_lt_of_pos (pid / p.tiles) hH'
  refine ⟨by omega, ⟨?_, ?_⟩, by omega, ?_⟩
  · rw [e₃]; exact Int.ediv_nonneg hu (by omega)
  · rw [e₃]; exact Int.ediv_lt_of_lt_mul hH' (by rw [← Int.natCast_mul]; exact hu')
  · rw [e₃, e₄, e₅, hH, Int.mul_ediv_add_emod]
    have := Int.mul_ediv_add_emod pid p.tiles
    omega

/-- There is a program for each tile of each head of each batch. -/
theorem exists_place {t b h : Int} (ht : 0 ≤ t) (ht' : t < p.tiles) (hb : 0 ≤ b)
    (hb' : b < batches) (hh : 0 ≤ h) (hh' : h < heads) (hH : p.heads = heads) :
    ∃ pid, 0 ≤ pid ∧ pid < p.tiles * (batches * heads : Nat) ∧ p.tile pid = t ∧ p.batch pid = b ∧
      p.head pid = h := by
  have hT : 0 < p.tiles := by omega
  have hu : 0 ≤ heads * b + h := by
    have := Int.mul_nonneg (a := heads) (b := b) (by omega) hb
    omega
  have hu' : heads * b + h + 1 ≤ (batches * heads : Nat) := by
    have : (heads : Int) * (b + 1) ≤ heads * batches :=
      Int.mul_le_mul_of_nonneg_left (by omega) (by omega)
    rw [Int.natCast_mul, Int.mul_comm batches]
    rw [Int.mul_add] at this
    omega
  have hr : 0 ≤ p.tiles * (heads * b + h) := Int.mul_nonneg (by omega) hu
  refine ⟨p.tiles * (heads * b + h) + (p.tiles - 1 - t), by omega, ?_, ?_, ?_, ?_⟩
  · have : p.tiles * (heads * b + h + 1) ≤ p.tiles * (batches * heads : Nat) :=
      Int.mul_le_mul_of_nonneg_left hu' (by omega)
    rw [Int.mul_add] at this
    omega
  all_goals
    have h₀ : 0 ≤ p.tiles * (heads * b + h) + (p.tiles - 1 - t) := by omega
    have e₁ : (p.tiles * (heads * b + h) + (p.tiles - 1 - t)) / p.tiles = heads * b + h := by
      rw [Int.mul_add_ediv_left _ _ (by omega), Int.ediv_eq_zero_of_lt (by omega) (by omega)]
      omega
    have e₂ : (p.tiles * (heads * b + h) + (p.tiles - 1 - t)) % p.tiles = p.tiles - 1 - t := by
      rw [Int.mul_add_emod_self_left, Int.emod_eq_of_lt (by omega) (by omega)]
  · rw [tile, Int.tmod_eq_emod_of_nonneg h₀, e₂]
    omega
  · rw [batch, Int.tdiv_eq_ediv_of_nonneg h₀, e₁, hH, Int.tdiv_eq_ediv_of_nonneg hu,
      Int.mul_add_ediv_left _ _ (by omega), Int.ediv_eq_zero_of_lt (by omega) (by omega)]
    omega
  · rw [head, Int.tdiv_eq_ediv_of_nonneg h₀, e₁, hH, Int.tmod_eq_emod_of_nonneg hu,
      Int.mul_add_emod_self_left, Int.emod_eq_of_lt (by omega) (by omega)]

/-- A row's query determines the tile and the row. -/
theorem row_inj {pid pid' : Int} {i i' : Nat} (hi : i < p.BM) (hi' : i' < p.BM)
    (h : p.row pid i = p.row pid' i') : p.tile pid = p.tile pid' ∧ i = i' := by
  have hb : (0 : Int) < p.BM := by omega
  have e : ∀ (pid : Int) {i : Nat}, i < p.BM → p.row pid i / p.BM = p.tile pid ∧
      p.row pid i % p.BM = i := by
    intro pid i hi
    simp only [row, rowFirst]
    rw [Int.mul_comm, Int.mul_add_ediv_left _ _ (by omega),
      Int.ediv_eq_zero_of_lt (by omega) (by omega), Int.mul_add_emod_self_left,
      Int.emod_eq_of_lt (by omega) (by omega)]
    omega
  have h₁ := e pid hi
  have h₂ := e pid' hi'
  rw [h] at h₁
  omega

/-! ## Rows -/

/-- The program of a launch with as many as the launcher starts, one for each tile of queries of
each head, has a batch and a head, and no row below 0. -/
theorem place_row (hBM : 0 < p.BM) (hL : p.tilesLen = q_len) (hH : p.heads = heads) {pid : Int}
    (h₀ : 0 ≤ pid) (h₁ : pid < (numTiles q_len p.BM * (batches * heads) : Nat)) :
    ∃ (b : Fin batches) (h : Fin heads), p.batch pid = b ∧ p.head pid = h ∧
      ∀ i, 0 ≤ p.row pid i := by
  have hT := tiles_eq (p := p) hBM hL
  rw [Int.natCast_mul, ← hT] at h₁
  obtain ⟨⟨a₁, a₂⟩, ⟨b₁, b₂⟩, ⟨c₁, c₂⟩, _⟩ := Problem.place h₀ h₁ (by omega) hH
  refine ⟨⟨(p.batch pid).toNat, by omega⟩, ⟨(p.head pid).toNat, by omega⟩, by simp only; omega,
    by simp only; omega, fun i => ?_⟩
  have := Int.mul_nonneg a₁ (b := (p.BM : Int)) (by omega)
  simp only [row, rowFirst]
  omega

/-- Every query of every head has a program and a row. -/
theorem exists_row (hBM : 0 < p.BM) (hL : p.tilesLen = q_len) (hH : p.heads = heads)
    (b : Fin batches) (h : Fin heads) {x : Nat} (hx : x < q_len) : ∃ (pid : Int) (i : Nat),
      0 ≤ pid ∧ pid < (numTiles q_len p.BM * (batches * heads) : Nat) ∧ i < p.BM ∧
      p.batch pid = b ∧ p.head pid = h ∧ p.row pid i = x := by
  have hT := tiles_eq (p := p) hBM hL
  have ht : x / p.BM < numTiles q_len p.BM := by
    rw [numTiles, Nat.lt_div_iff_mul_lt (by omega)]
    have := Nat.div_mul_le_self x p.BM
    omega
  obtain ⟨pid, h₀, h₁, e₁, e₂, e₃⟩ := exists_place (p := p) (batches := batches) (b := b) (h := h)
    (Int.natCast_nonneg (x / p.BM)) (hT ▸ Int.ofNat_lt.mpr ht) (by omega) (by omega) (by omega)
    (by omega) hH
  refine ⟨pid, x % p.BM, h₀, ?_, Nat.mod_lt _ hBM, e₂, e₃, ?_⟩
  · rw [Int.natCast_mul, ← hT]; exact h₁
  · simp only [row, rowFirst, e₁]
    have := Nat.div_add_mod x p.BM
    rw [Nat.mul_comm] at this
    rw [← Int.natCast_mul, ← Int.natCast_add, this]

/-- A query of a head has one program and one row. -/
theorem row_unique (hBM : 0 < p.BM) (hL : p.tilesLen = q_len) (hH : p.heads = heads)
    {pid pid' : Int} {i i' : Nat} (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles q_len p.BM * (batches * heads) : Nat)) (h₀' : 0 ≤ pid')
    (h₁' : pid' < (numTiles q_len p.BM * (batches * heads) : Nat)) (hi : i < p.BM) (hi' : i' < p.BM)
    (eb : p.batch pid = p.batch pid') (eh : p.head pid = p.head pid')
    (ex : p.row pid i = p.row pid' i') : pid = pid' ∧ i = i' := by
  have hT := tiles_eq (p := p) hBM hL
  rw [Int.natCast_mul, ← hT] at h₁ h₁'
  obtain ⟨_, _, _, e⟩ := Problem.place h₀ h₁ (by omega) hH
  obtain ⟨_, _, _, e'⟩ := Problem.place h₀' h₁' (by omega) hH
  obtain ⟨et, ei⟩ := row_inj hi hi' ex
  exact ⟨by rw [e, e', eb, eh, et], ei⟩

end Attention.Kernel.Problem
