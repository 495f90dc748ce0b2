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

/-- Tiles are taken from the last to the first. -/
private theorem from_last {T x : Int} (h₀ : 0 ≤ x) (h₁ : x < T) :
    0 ≤ T - 1 - x ∧ T - 1 - x < T := by
  omega

private theorem eq_from_last {T q r pid : Int} (h : T * q + r = pid) :
    pid = T * q + (T - 1 - (T - 1 - r)) := by
  omega

private theorem mul_add_lt {T u v r : Int} (hT : 0 < T) (hr : r < T) (h : u < v) :
    T * u + r < T * v := by
  have := Int.mul_le_mul_of_nonneg_left h (Int.le_of_lt hT)
  rw [Int.mul_add, Int.mul_one] at this
  exact Int.lt_of_lt_of_le (Int.add_lt_add_left hr _) this

/-- A program's number from its tile, batch and head, which are within their bounds. -/
theorem place {pid : Int} (h₀ : 0 ≤ pid) (h₁ : pid < p.tiles * (batches * heads : Nat))
    (hT : 0 ≤ p.tiles) (hH : p.heads = heads) :
    (0 ≤ p.tile pid ∧ p.tile pid < p.tiles) ∧ (0 ≤ p.batch pid ∧ p.batch pid < batches) ∧
      (0 ≤ p.head pid ∧ p.head pid < heads) ∧
      pid = p.tiles * (p.heads * p.batch pid + p.head pid) + (p.tiles - 1 - p.tile pid) := by
  have hT' : 0 < p.tiles := by
    rcases Int.lt_or_eq_of_le hT with h | h
    · exact h
    · rw [← h, Int.zero_mul] at h₁; exact absurd h₁ (Int.not_lt.mpr h₀)
  have hu : 0 ≤ pid / p.tiles := Int.ediv_nonneg h₀ hT
  have hu' : pid / p.tiles < (batches * heads : Nat) :=
    Int.ediv_lt_of_lt_mul hT' (by rw [Int.mul_comm]; exact h₁)
  have hH' : 0 < (heads : Int) := by
    rcases Nat.eq_zero_or_pos heads with h | h
    · rw [h, Nat.mul_zero] at hu'; exact absurd hu' (Int.not_lt.mpr hu)
    · exact Int.natCast_pos.mpr h
  have e₁ : Int.tdiv pid p.tiles = pid / p.tiles := Int.tdiv_eq_ediv_of_nonneg h₀
  have e₂ : Int.tmod pid p.tiles = pid % p.tiles := Int.tmod_eq_emod_of_nonneg h₀
  have e₃ : p.batch pid = pid / p.tiles / heads := by
    rw [batch, e₁, hH, Int.tdiv_eq_ediv_of_nonneg hu]
  have e₄ : p.head pid = pid / p.tiles % heads := by
    rw [head, e₁, hH, Int.tmod_eq_emod_of_nonneg hu]
  have e₅ : p.tile pid = p.tiles - 1 - pid % p.tiles := by rw [tile, e₂]
  have r₁ := Int.emod_nonneg pid (Int.ne_of_gt hT')
  have r₂ := Int.emod_lt_of_pos pid hT'
  have r₃ := Int.emod_nonneg (pid / p.tiles) (Int.ne_of_gt hH')
  have r₄ := Int.emod_lt_of_pos (pid / p.tiles) hH'
  refine ⟨e₅ ▸ from_last r₁ r₂, ⟨?_, ?_⟩, e₄ ▸ ⟨r₃, r₄⟩, ?_⟩
  · rw [e₃]; exact Int.ediv_nonneg hu (Int.natCast_nonneg _)
  · rw [e₃]; exact Int.ediv_lt_of_lt_mul hH' (by rw [← Int.natCast_mul]; exact hu')
  · rw [e₃, e₄, e₅, hH, Int.mul_ediv_add_emod]
    exact eq_from_last (Int.mul_ediv_add_emod pid p.tiles)

/-- There is a program for each tile of each head of each batch. -/
theorem exists_place {t b h : Int} (ht : 0 ≤ t) (ht' : t < p.tiles) (hb : 0 ≤ b)
    (hb' : b < batches) (hh : 0 ≤ h) (hh' : h < heads) (hH : p.heads = heads) :
    ∃ pid, 0 ≤ pid ∧ pid < p.tiles * (batches * heads : Nat) ∧ p.tile pid = t ∧ p.batch pid = b ∧
      p.head pid = h := by
  have hT : 0 < p.tiles := Int.lt_of_le_of_lt ht ht'
  have hH' : (0 : Int) < heads := Int.lt_of_le_of_lt hh hh'
  have hu : 0 ≤ heads * b + h := Int.add_nonneg (Int.mul_nonneg (Int.le_of_lt hH') hb) hh
  have hu' : heads * b + h < (batches * heads : Nat) := by
    rw [Int.natCast_mul, Int.mul_comm batches]
    exact mul_add_lt hH' hh' hb'
  have hr := from_last ht ht'
  have h₀ : 0 ≤ p.tiles * (heads * b + h) + (p.tiles - 1 - t) :=
    Int.add_nonneg (Int.mul_nonneg (Int.le_of_lt hT) hu) hr.1
  have e₁ : (p.tiles * (heads * b + h) + (p.tiles - 1 - t)) / p.tiles = heads * b + h := by
    rw [Int.mul_add_ediv_left _ _ (Int.ne_of_gt hT), Int.ediv_eq_zero_of_lt hr.1 hr.2, Int.add_zero]
  have e₂ : (p.tiles * (heads * b + h) + (p.tiles - 1 - t)) % p.tiles = p.tiles - 1 - t := by
    rw [Int.mul_add_emod_self_left, Int.emod_eq_of_lt hr.1 hr.2]
  refine ⟨p.tiles * (heads * b + h) + (p.tiles - 1 - t), h₀, mul_add_lt hT hr.2 hu', ?_, ?_, ?_⟩
  · rw [tile, Int.tmod_eq_emod_of_nonneg h₀, e₂, Int.sub_sub_self]
  · rw [batch, Int.tdiv_eq_ediv_of_nonneg h₀, e₁, hH, Int.tdiv_eq_ediv_of_nonneg hu,
      Int.mul_add_ediv_left _ _ (Int.ne_of_gt hH'), Int.ediv_eq_zero_of_lt hh hh', Int.add_zero]
  · rw [head, Int.tdiv_eq_ediv_of_nonneg h₀, e₁, hH, Int.tmod_eq_emod_of_nonneg hu,
      Int.mul_add_emod_self_left, Int.emod_eq_of_lt hh hh']

/-- A row's query determines the tile and the row. -/
theorem row_inj {pid pid' : Int} {i i' : Nat} (hi : i < p.BM) (hi' : i' < p.BM)
    (h : p.row pid i = p.row pid' i') : p.tile pid = p.tile pid' ∧ i = i' := by
  have e : ∀ (pid : Int) {i : Nat}, i < p.BM → p.row pid i / p.BM = p.tile pid ∧
      p.row pid i % p.BM = i := by
    intro pid i hi
    have h₀ := Int.natCast_nonneg i
    have h₁ := Int.ofNat_lt.mpr hi
    simp only [row, rowFirst]
    rw [Int.mul_comm, Int.mul_add_ediv_left _ _ (Int.ne_of_gt (Int.lt_of_le_of_lt h₀ h₁)),
      Int.ediv_eq_zero_of_lt h₀ h₁, Int.mul_add_emod_self_left, Int.emod_eq_of_lt h₀ h₁]
    exact ⟨Int.add_zero _, rfl⟩
  have h₁ := e pid hi
  have h₂ := e pid' hi'
  rw [h] at h₁
  exact ⟨h₁.1.symm.trans h₂.1, Int.natCast_inj.mp (h₁.2.symm.trans h₂.2)⟩

/-! ## Rows -/

/-- The program of a launch with as many as the launcher starts, one for each tile of queries of
each head, has a batch and a head, and no row below 0. -/
theorem place_row (hBM : 0 < p.BM) (hL : p.tilesLen = q_len) (hH : p.heads = heads) {pid : Int}
    (h₀ : 0 ≤ pid) (h₁ : pid < (numTiles q_len p.BM * (batches * heads) : Nat)) :
    ∃ (b : Fin batches) (h : Fin heads), p.batch pid = b ∧ p.head pid = h ∧
      ∀ i, 0 ≤ p.row pid i := by
  have hT := tiles_eq (p := p) hBM hL
  rw [Int.natCast_mul, ← hT] at h₁
  obtain ⟨⟨a₁, a₂⟩, ⟨b₁, b₂⟩, ⟨c₁, c₂⟩, _⟩ := Problem.place h₀ h₁ (hT ▸ Int.natCast_nonneg _) hH
  exact ⟨⟨(p.batch pid).toNat, (Int.toNat_lt b₁).mpr b₂⟩,
    ⟨(p.head pid).toNat, (Int.toNat_lt c₁).mpr c₂⟩, (Int.toNat_of_nonneg b₁).symm,
    (Int.toNat_of_nonneg c₁).symm, fun i =>
      Int.add_nonneg (Int.mul_nonneg a₁ (Int.natCast_nonneg _)) (Int.natCast_nonneg _)⟩

/-- Every query of every head has a program and a row. -/
theorem exists_row (hBM : 0 < p.BM) (hL : p.tilesLen = q_len) (hH : p.heads = heads)
    (b : Fin batches) (h : Fin heads) {x : Nat} (hx : x < q_len) : ∃ (pid : Int) (i : Nat),
      0 ≤ pid ∧ pid < (numTiles q_len p.BM * (batches * heads) : Nat) ∧ i < p.BM ∧
      p.batch pid = b ∧ p.head pid = h ∧ p.row pid i = x := by
  have hT := tiles_eq (p := p) hBM hL
  have ht : x / p.BM < numTiles q_len p.BM := by
    rw [numTiles, Nat.lt_div_iff_mul_lt hBM]
    have := Nat.div_mul_le_self x p.BM
    omega
  obtain ⟨pid, h₀, h₁, e₁, e₂, e₃⟩ := exists_place (p := p) (batches := batches) (b := b) (h := h)
    (Int.natCast_nonneg (x / p.BM)) (hT ▸ Int.ofNat_lt.mpr ht) (Int.natCast_nonneg _)
    (Int.ofNat_lt.mpr b.isLt) (Int.natCast_nonneg _) (Int.ofNat_lt.mpr h.isLt) hH
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
  have hT' : 0 ≤ p.tiles := hT ▸ Int.natCast_nonneg _
  obtain ⟨_, _, _, e⟩ := Problem.place h₀ h₁ hT' hH
  obtain ⟨_, _, _, e'⟩ := Problem.place h₀' h₁' hT' hH
  obtain ⟨et, ei⟩ := row_inj hi hi' ex
  exact ⟨by rw [e, e', eb, eh, et], ei⟩

end Attention.Kernel.Problem
