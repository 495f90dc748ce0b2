module

public import Attention.Kernel.Conditions
public import Attention.Kernel.Grid

public section

/-! # The integers that say which queries a program has

From bounds of what they are made of, `Started`, which a launch gives: that each integer that is
computed before a program may return fits its type. Powers of 2 are numerals here, which are
compared faster. -/

namespace Attention.Kernel.Problem

open Spec

universe u

variable {R : Type u} {p : Problem R} {pid : Int}

/-- With numerals. -/
theorem fitsI32_iff {x : Int} : FitsI32 x ↔ -2147483648 ≤ x ∧ x < 2147483648 := Iff.rfl

/-- A number that is not below 0 fits 32 bits if it is below 2³¹. -/
theorem fits32 {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2147483648) : FitsI32 x :=
  ⟨Int.le_trans (by decide) h₀, h₁⟩

/-- A number that is not below 0 fits 64 bits if it is below 2⁶³. -/
theorem fits64 {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 9223372036854775808) : FitsI64 x :=
  ⟨Int.le_trans (by decide) h₀, h₁⟩

/-- A quotient, and what of the dividend it makes up. -/
theorem tdiv_bounds {x b : Int} (hb : 0 < b) (hx : 0 ≤ x) :
    0 ≤ Int.tdiv x b ∧ Int.tdiv x b ≤ x ∧ Int.tdiv x b * b ≤ x := by
  rw [Int.tdiv_eq_ediv_of_nonneg hx]
  exact ⟨Int.ediv_nonneg hx (by omega), Int.ediv_le_self _ hx, Int.ediv_mul_le _ (by omega)⟩

/-- A product with a stride. -/
theorem mul_bounds {x s : Int} (hx : 0 ≤ x) (hs : 0 ≤ s ∧ s < 2147483648) :
    0 ≤ x * s ∧ x * s ≤ x * 2147483648 :=
  ⟨Int.mul_nonneg hx hs.1, Int.mul_le_mul_of_nonneg_left (by omega) hx⟩

/-- Bounds of what says which tile, head and batch a program has. -/
structure Started (p : Problem R) (pid : Int) : Prop where
  BM : 0 < p.BM ∧ p.BM ≤ 1048576
  tilesLen : 0 ≤ p.tilesLen ∧ p.tilesLen < 536870912
  heads : p.heads ≠ 0
  group : p.group ≠ 0
  tiles : 0 < p.tiles ∧ p.tiles < 1073741824
  tile : 0 ≤ p.tile pid ∧ p.tile pid < p.tiles
  quotient : 0 ≤ Int.tdiv pid p.tiles ∧ Int.tdiv pid p.tiles < 2147483648
  remainder : 0 ≤ Int.tmod pid p.tiles ∧ Int.tmod pid p.tiles < 2147483648
  /-- Of batch and head together, since there is a program for each pair. -/
  places : 0 ≤ p.batch pid ∧ 0 ≤ p.head pid ∧ p.batch pid + p.head pid < 2147483648
  kvHead : 0 ≤ p.kvHead pid ∧ p.kvHead pid ≤ p.head pid
  rowFirst : 0 ≤ p.rowFirst pid ∧ p.rowFirst pid < p.tilesLen

private theorem sum_lt {b h B H N : Int} (hb : 0 ≤ b ∧ b < B) (hh : 0 ≤ h ∧ h < H)
    (hN : B * H < N) : b + h < N := by
  have h₁ : (b + 1) * (h + 1) ≤ B * H := Int.mul_le_mul hb.2 hh.2
    (Int.add_nonneg hh.1 (by decide)) (Int.le_of_lt (Int.lt_of_le_of_lt hb.1 hb.2))
  have h₂ := Int.mul_nonneg hb.1 hh.1
  rw [Int.add_mul, Int.mul_add] at h₁
  omega

/-- Where a tile begins of those that cover n things. -/
theorem tile_bounds {n b t : Int} (hb : 0 < b) (ht : 0 ≤ t ∧ t < Int.tdiv (n + (b - 1)) b)
    (hn : 0 ≤ n) : 0 ≤ t * b ∧ t * b < n := by
  have h₁ : (t + 1) * b ≤ Int.tdiv (n + (b - 1)) b * b :=
    Int.mul_le_mul_of_nonneg_right ht.2 (by omega)
  have h₂ := (tdiv_bounds (x := n + (b - 1)) hb (by omega)).2.2
  rw [Int.add_mul] at h₁
  exact ⟨Int.mul_nonneg ht.1 (by omega), by omega⟩

private theorem tiles_lt {n b : Int} (hb : 0 < b ∧ b ≤ 1048576) (hn : 0 ≤ n ∧ n < 536870912) :
    Int.tdiv (n + (b - 1)) b < 1073741824 := by
  have := (tdiv_bounds (x := n + (b - 1)) hb.1 (by omega)).2.1
  omega

/-- Of a launch with as many programs as the launcher starts. -/
theorem started {len batches num_kv_heads group : Nat} (hBM : 0 < p.BM ∧ p.BM ≤ 1048576)
    (hL : p.tilesLen = len) (hlen : len < 536870912) (hH : p.heads = (num_kv_heads * group : Nat))
    (hG : p.group = group)
    (hn : numTiles len p.BM * (batches * (num_kv_heads * group)) < 2147483648) (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles len p.BM * (batches * (num_kv_heads * group)) : Nat)) :
    Started p pid := by
  have eT := tiles_eq (p := p) hBM.1 hL
  have hBM' : (0 : Int) < p.BM ∧ (p.BM : Int) ≤ 1048576 :=
    ⟨Int.natCast_pos.mpr hBM.1, Int.ofNat_le.mpr hBM.2⟩
  have hpid : pid < 2147483648 := Int.lt_trans h₁ (Int.ofNat_lt.mpr hn)
  have h₂ := h₁
  rw [Int.natCast_mul, ← eT] at h₂
  obtain ⟨ht, hb, hh, _⟩ := Problem.place h₀ h₂ (eT ▸ Int.natCast_nonneg _) hH
  have hlen' : 0 ≤ p.tilesLen ∧ p.tilesLen < 536870912 :=
    hL ▸ ⟨Int.natCast_nonneg _, Int.ofNat_lt.mpr hlen⟩
  have hT : 0 < p.tiles := Int.lt_of_le_of_lt ht.1 ht.2
  have hL' : p.tiles = Int.tdiv (p.tilesLen + (p.BM - 1 : Int)) p.BM := rfl
  have hgroup : (0 : Int) < group := by
    rcases Nat.eq_zero_or_pos group with h | h
    · rw [h, Nat.mul_zero] at hh; exact absurd (Int.lt_of_le_of_lt hh.1 hh.2) (Int.lt_irrefl _)
    · exact Int.natCast_pos.mpr h
  have hplaces : (batches : Int) * (num_kv_heads * group : Nat) < 2147483648 := by
    rw [← Int.natCast_mul]
    exact Int.ofNat_lt.mpr (Nat.lt_of_le_of_lt
      (Nat.le_mul_of_pos_left _ (Int.natCast_pos.mp (eT ▸ hT))) hn)
  have hquot := tdiv_bounds hT h₀
  refine
    { BM := hBM, tilesLen := hlen', tile := ht
      heads := hH ▸ Int.ne_of_gt (Int.lt_of_le_of_lt hh.1 hh.2)
      group := hG ▸ Int.ne_of_gt hgroup
      tiles := ⟨hT, hL' ▸ tiles_lt hBM' hlen'⟩
      quotient := ⟨hquot.1, Int.lt_of_le_of_lt hquot.2.1 hpid⟩
      remainder := ⟨Int.tmod_nonneg _ h₀, Int.lt_trans (Int.tmod_lt_of_pos pid hT)
        (Int.lt_trans (hL' ▸ tiles_lt hBM' hlen') (by decide))⟩
      places := ⟨hb.1, hh.1, sum_lt hb hh hplaces⟩
      kvHead := ?_
      rowFirst := tile_bounds hBM'.1 ⟨ht.1, hL' ▸ ht.2⟩ hlen'.1 }
  rw [kvHead, hG]
  exact ⟨(tdiv_bounds hgroup hh.1).1, (tdiv_bounds hgroup hh.1).2.1⟩

/-- The numbers that a program computes of its own number fit. -/
theorem Started.program (F : Started p pid) : ∀ P ∈ p.programIntegers pid, P := by
  have tiles := F.tiles
  have sum := F.tilesLen
  have BM := F.BM
  have places := F.places
  have kvHead := F.kvHead
  have tile := F.tile
  have rowFirst := F.rowFirst
  have sum' : 0 ≤ p.tilesLen + (p.BM - 1 : Int) ∧ p.tilesLen + (p.BM - 1 : Int) < 2147483648 := by
    clear tiles places kvHead tile rowFirst; omega
  have head := Int.lt_of_le_of_lt (Int.le_add_of_nonneg_left places.1) places.2.2
  have tiles' := Int.lt_trans tiles.2 (show (1073741824 : Int) < 2147483648 by decide)
  have batch : FitsI32 (p.batch pid) := fits32 places.1
    (Int.lt_of_le_of_lt (Int.le_add_of_nonneg_right places.2.1) places.2.2)
  have quotient := fits32 F.quotient.1 F.quotient.2
  have nonzero : p.tiles ≠ 0 := Int.ne_of_gt tiles.1
  exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ from
    ⟨fits32 sum'.1 sum'.2, fits32 (Int.le_of_lt tiles.1) tiles',
    Int.ne_of_gt (Int.natCast_pos.mpr BM.1), fits32 (Int.sub_nonneg_of_le tiles.1)
      (Int.lt_of_le_of_lt (Int.sub_le_self _ (by decide)) tiles'),
    fits32 F.remainder.1 F.remainder.2, nonzero, quotient,
    fits32 tile.1 (Int.lt_trans tile.2 tiles'), quotient, nonzero, batch, F.heads,
    fits32 places.2.1 head, F.heads, batch,
    fits64 kvHead.1 (Int.lt_of_le_of_lt kvHead.2 (Int.lt_trans head (by decide))), F.group,
    fits32 rowFirst.1 (Int.lt_trans rowFirst.2 (Int.lt_trans sum.2 (by decide)))⟩)

/-- Where a sequence begins and ends. -/
theorem sequence {b sx sy : Int} (hb : 0 ≤ b ∧ b < 2147483648) (hx : 0 ≤ sx ∧ sx < 2147483648)
    (hy : 0 ≤ sy ∧ sy < 2147483648) (hq : 0 ≤ p.qLen ∧ p.qLen < 536870912)
    (hk : 0 ≤ p.kvLen ∧ p.kvLen < 536870912) : ∀ P ∈ p.sequenceIntegers b sx sy, P := by
  have fits : ∀ {c s : Int}, 0 ≤ c → c ≤ 2147483648 → 0 ≤ s ∧ s < 2147483648 →
      FitsI64 (c * s) := fun h h' hs =>
    fits64 (mul_bounds h hs).1 (Int.lt_of_le_of_lt (Int.le_trans (mul_bounds h hs).2
      (Int.mul_le_mul_of_nonneg_right h' (by decide))) (by decide))
  have next : 0 ≤ b + 1 ∧ b + 1 ≤ 2147483648 :=
    ⟨Int.add_nonneg hb.1 (by decide), Int.add_one_le_of_lt hb.2⟩
  have b₁ := fits hb.1 (Int.le_of_lt hb.2) hx
  have b₂ := fits next.1 next.2 hx
  have b₃ := fits hb.1 (Int.le_of_lt hb.2) hy
  have b₄ := fits next.1 next.2 hy
  have b₅ : FitsI64 (b + 1) := fits64 next.1 (Int.lt_of_le_of_lt next.2 (by decide))
  simp only [sequenceIntegers, Int.zero_add]
  exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ from
    ⟨b₁, b₁, b₅, b₂, b₂, fits32 hq.1 (Int.lt_trans hq.2 (by decide)), b₃, b₃, b₄, b₄,
      fits32 hk.1 (Int.lt_trans hk.2 (by decide))⟩)

end Attention.Kernel.Problem
