module

public import Attention.Kernel.Launch

public section

/-! # What a launch of the forward kernel is told of its tensors' sizes

As in `Given`, without what lies in memory. -/

namespace Attention.Kernel.Problem

open Spec

universe u

variable {R : Type u} {d q_len kv_len batches num_kv_heads group : Nat}

/-- Sizes are as given: of `batches` batches, `num_kv_heads` heads of keys and `group` times as many
of queries, all vectors with d components. -/
structure Sized (p : Problem R) (batches num_kv_heads group q_len kv_len d : Nat) : Prop where
  BM : 0 < p.BM
  BN : 0 < p.BN
  /-- A text without masks for the width of a tile is of tiles as wide as a head. -/
  even : p.even = true → p.BD = d
  numHeads : p.heads = (num_kv_heads * group : Nat)
  perHead : p.group = group
  dim : p.dim = d
  valueDim : p.valueDim = d
  qLen : p.qLen = q_len
  kvLen : p.kvLen = kv_len

/-- The programs that a launch starts: one for each tile of queries of each head. -/
@[expose] def Program (p : Problem R) (batches heads q_len : Nat) (pid : Int) : Prop :=
  0 ≤ pid ∧ pid < (numTiles q_len p.BM * (batches * heads) : Nat)

variable {p : Problem R} {pid : Int}

theorem Given.sized [OrderedField R]
    {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
    {K V : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches} {sc : R}
    (G : p.Given Q K V sc) : p.Sized batches num_kv_heads group q_len kv_len d :=
  ⟨G.BM, G.BN, G.even, G.numHeads, G.perHead, G.dim, G.valueDim, G.qLen, G.kvLen⟩

/-- A program's tile, batch and heads are within their bounds. -/
theorem Sized.place (S : p.Sized batches num_kv_heads group q_len kv_len d)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) :
    (0 ≤ p.tile pid ∧ p.tile pid < p.tiles) ∧ (0 ≤ p.batch pid ∧ p.batch pid < batches) ∧
      (0 ≤ p.head pid ∧ p.head pid < (num_kv_heads * group : Nat)) ∧
      0 ≤ p.kvHead pid ∧ p.kvHead pid < num_kv_heads := by
  obtain ⟨h₀, h₁⟩ := hp
  have hT := tiles_eq (p := p) S.BM S.qLen
  rw [Int.natCast_mul, ← hT] at h₁
  obtain ⟨ht, hb, hh, _⟩ := Problem.place h₀ h₁ (by omega) S.numHeads
  refine ⟨ht, hb, hh, ?_⟩
  rw [kvHead, S.perHead, Int.tdiv_eq_ediv_of_nonneg hh.1]
  refine ⟨Int.ediv_nonneg hh.1 (by omega), Int.ediv_lt_of_lt_mul ?_ (by
    rw [← Int.natCast_mul]; exact hh.2)⟩
  rcases Nat.eq_zero_or_pos group with h | h
  · rw [h, Nat.mul_zero] at hh; omega
  · omega

theorem Sized.row_nonneg (S : p.Sized batches num_kv_heads group q_len kv_len d)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) (i : Nat) : 0 ≤ p.row pid i := by
  have := Int.mul_nonneg (S.place hp).1.1 (b := (p.BM : Int)) (by omega)
  simp only [row, rowFirst]
  omega

end Attention.Kernel.Problem
