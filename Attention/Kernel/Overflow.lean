module

public import Attention.Kernel.Sized
public import Attention.Kernel.Texts

public section

/-! # No integer of the forward kernel overflows

`Full.NoOverflow` and its kin ask that the value of each integer operation of the text fits its
type, in every lane and in every iteration that is run, and that no divisor is 0. `Within` is what a
launch guarantees for it. -/

namespace Attention.Kernel

open Spec

universe u

namespace Problem

variable {R : Type u} {d d_v q_len kv_len batches num_kv_heads group : Nat}

/-- All strides. -/
@[expose] def strides (p : Problem R) : List Int :=
  [p.qb, p.qh, p.qm, p.kb, p.kh, p.kn, p.vb, p.vh, p.vn, p.ob, p.oh, p.om, p.lb, p.lh]

/-- What the launcher sees to, and Triton (`BM`, `BN`: a tile has at most 2²⁰ elements).
Source: `pyimpl/kernels/_launch.py`. -/
structure Within (p : Problem R) (batches heads q_len : Nat) : Prop where
  BM : p.BM ≤ 2 ^ 20
  BN : p.BN ≤ 2 ^ 20
  /-- `MAX_HEAD_DIM`. -/
  BD : p.BD ≤ 256
  BV : p.BV ≤ 256
  /-- `check_length`. -/
  qLen : p.qLen < 2 ^ 29
  kvLen : p.kvLen < 2 ^ 29
  /-- `check_programs`. -/
  programs : numTiles q_len p.BM * (batches * heads) < 2 ^ 31
  /-- `is_far` is false. -/
  keys : p.BN * p.kn + 256 ≤ 2 ^ 31
  values : p.BN * p.vn + 256 ≤ 2 ^ 31
  /-- PyTorch has no strides below 0, and for one that passes 32 bits Triton makes another text. -/
  strides : ∀ s ∈ p.strides, 0 ≤ s ∧ s < 2 ^ 31
  /-- `window_arguments`; a bound that excludes nothing is not given. -/
  shift : -2 ^ 29 < p.shift ∧ p.shift < 2 ^ 29
  left : ∀ l, p.left = some l → 0 ≤ l ∧ 0 < p.qLen - 1 + p.shift - l
  right : ∀ r, p.right = some r → 0 ≤ r ∧ p.shift + r < p.kvLen - 1

variable {p : Problem R} {pid : Int}

/-! Powers of 2 as numerals, which are compared faster. -/

private theorem fitsI32_iff {x : Int} : FitsI32 x ↔ -2147483648 ≤ x ∧ x < 2147483648 := Iff.rfl

private theorem fitsI64_iff {x : Int} :
    FitsI64 x ↔ -9223372036854775808 ≤ x ∧ x < 9223372036854775808 := Iff.rfl

private theorem fits32 {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2147483648) : FitsI32 x :=
  ⟨Int.le_trans (by decide) h₀, h₁⟩

private theorem fits64 {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 9223372036854775808) : FitsI64 x :=
  ⟨Int.le_trans (by decide) h₀, h₁⟩

/-- Bounds of what the other integers are made of. -/
structure Facts (p : Problem R) (pid : Int) : Prop where
  BM : 0 < p.BM ∧ p.BM ≤ 1048576
  BN : 0 < p.BN ∧ p.BN ≤ 1048576
  BD : p.BD ≤ 256
  BV : p.BV ≤ 256
  heads : p.heads ≠ 0
  group : p.group ≠ 0
  packed : p.packed = none
  qLen : 0 ≤ p.qLen ∧ p.qLen < 536870912
  kvLen : 0 ≤ p.kvLen ∧ p.kvLen < 536870912
  program : 0 ≤ pid ∧ pid < 2147483648
  tiles : 0 < p.tiles ∧ p.tiles < 1073741824
  tile : 0 ≤ p.tile pid ∧ p.tile pid < p.tiles
  quotient : 0 ≤ Int.tdiv pid p.tiles ∧ Int.tdiv pid p.tiles < 2147483648
  remainder : 0 ≤ Int.tmod pid p.tiles ∧ Int.tmod pid p.tiles < 2147483648
  /-- Of batch and head together, since there is a program for each pair. -/
  places : 0 ≤ p.batch pid ∧ 0 ≤ p.head pid ∧ p.batch pid + p.head pid < 2147483648
  kvHead : 0 ≤ p.kvHead pid ∧ p.kvHead pid ≤ p.head pid
  rowFirst : 0 ≤ p.rowFirst pid ∧ p.rowFirst pid < p.qLen
  rowNext : (p.tile pid + 1) * p.BM = p.rowFirst pid + p.BM
  shift : -536870912 < p.shift ∧ p.shift < 536870912
  left : ∀ l, p.left = some l → 0 ≤ l ∧ l < 1073741824
  right : ∀ r, p.right = some r → 0 ≤ r ∧ r < 1073741824 ∧ p.shift + r < 536870912
  keys : p.BN * p.kn + 256 ≤ 2147483648
  values : p.BN * p.vn + 256 ≤ 2147483648
  strides : ∀ s ∈ p.strides, 0 ≤ s ∧ s < 2147483648

private theorem tdiv_bounds {x b : Int} (hb : 0 < b) (hx : 0 ≤ x) :
    0 ≤ Int.tdiv x b ∧ Int.tdiv x b ≤ x ∧ Int.tdiv x b * b ≤ x := by
  rw [Int.tdiv_eq_ediv_of_nonneg hx]
  exact ⟨Int.ediv_nonneg hx (by omega), Int.ediv_le_self _ hx, Int.ediv_mul_le _ (by omega)⟩

private theorem sum_lt {b h B H N : Int} (hb : 0 ≤ b ∧ b < B) (hh : 0 ≤ h ∧ h < H)
    (hN : B * H < N) : b + h < N := by
  have h₁ : (b + 1) * (h + 1) ≤ B * H := Int.mul_le_mul (by omega) (by omega) (by omega) (by omega)
  have h₂ := Int.mul_nonneg hb.1 hh.1
  rw [Int.add_mul, Int.mul_add] at h₁
  omega

private theorem tile_bounds {n b t : Int} (hb : 0 < b) (ht : 0 ≤ t ∧ t < Int.tdiv (n + (b - 1)) b)
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

private theorem Within.facts (W : p.Within batches (num_kv_heads * group) q_len)
    (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) : Facts p pid := by
  obtain ⟨ht, hb, hh, hk⟩ := S.place hp
  have hBM : (0 : Int) < p.BM ∧ (p.BM : Int) ≤ 1048576 :=
    ⟨Int.natCast_pos.mpr S.BM, Int.ofNat_le.mpr W.BM⟩
  have hq : 0 ≤ p.qLen ∧ p.qLen < 536870912 := ⟨S.qLen ▸ Int.natCast_nonneg _, W.qLen⟩
  have hkv : 0 ≤ p.kvLen ∧ p.kvLen < 536870912 := ⟨S.kvLen ▸ Int.natCast_nonneg _, W.kvLen⟩
  have hT : 0 < p.tiles := Int.lt_of_le_of_lt ht.1 ht.2
  have hL : p.tiles = Int.tdiv (p.qLen + (p.BM - 1 : Int)) p.BM := by
    rw [tiles, S.tilesLen, S.qLen]
  have hpid : pid < 2147483648 := Int.lt_trans hp.2 (Int.ofNat_lt.mpr W.programs)
  have hgroup : group ≠ 0 := fun h => by
    rw [h, Nat.mul_zero] at hh
    exact absurd hh.2 (Int.not_lt.mpr hh.1)
  have hplaces : (batches : Int) * (num_kv_heads * group : Nat) < 2147483648 := by
    have h : 1 ≤ numTiles q_len p.BM := by
      have := tiles_eq (p := p) S.BM S.tilesLen
      rw [this] at hT
      exact Int.natCast_pos.mp hT
    rw [← Int.natCast_mul]
    exact Int.ofNat_lt.mpr (Nat.lt_of_le_of_lt (Nat.le_mul_of_pos_left _ h) W.programs)
  have hquot := tdiv_bounds hT hp.1
  refine
    { BM := ⟨S.BM, W.BM⟩, BN := ⟨S.BN, W.BN⟩, BD := W.BD, BV := W.BV, qLen := hq, kvLen := hkv
      heads := S.numHeads ▸ Int.ne_of_gt (Int.lt_of_le_of_lt hh.1 hh.2)
      group := S.perHead ▸ Int.natCast_ne_zero.mpr hgroup
      packed := S.packed
      program := ⟨hp.1, hpid⟩
      tiles := ⟨hT, hL ▸ tiles_lt hBM hq⟩
      tile := ht
      quotient := ⟨hquot.1, Int.lt_of_le_of_lt hquot.2.1 hpid⟩
      remainder := ⟨Int.tmod_nonneg _ hp.1, Int.lt_trans (Int.tmod_lt_of_pos pid hT)
        (Int.lt_trans (hL ▸ tiles_lt hBM hq) (by decide))⟩
      places := ⟨hb.1, hh.1, sum_lt hb hh hplaces⟩
      kvHead := ⟨hk.1, (tdiv_bounds (S.perHead ▸ Int.natCast_pos.mpr (Nat.pos_of_ne_zero hgroup))
        hh.1).2.1⟩
      rowFirst := tile_bounds hBM.1 ⟨ht.1, hL ▸ ht.2⟩ hq.1
      rowNext := by rw [Int.add_mul, Int.one_mul]; rfl
      shift := W.shift, keys := W.keys, values := W.values, strides := W.strides
      left := fun l hl => ?_, right := fun r hr => ?_ }
  all_goals have hs : -536870912 < p.shift ∧ p.shift < 536870912 := W.shift
  · have h := W.left l hl
    clear hb hh hk hplaces hquot hpid ht
    omega
  · have h := W.right r hr
    clear hb hh hk hplaces hquot hpid ht
    omega

private theorem mul_bounds {x s : Int} (hx : 0 ≤ x) (hs : 0 ≤ s ∧ s < 2147483648) :
    0 ≤ x * s ∧ x * s ≤ x * 2147483648 :=
  ⟨Int.mul_nonneg hx hs.1, Int.mul_le_mul_of_nonneg_left (by omega) hx⟩

private theorem lane_bounds {n i : Nat} {s : Int} (hi : i < n) (h₀ : 0 ≤ s)
    (h : n * s + 256 ≤ 2147483648) : 0 ≤ (i : Int) * s ∧ (i : Int) * s ≤ 2147483648 - 256 := by
  have h₁ : ((i : Int) + 1) * s ≤ n * s := Int.mul_le_mul_of_nonneg_right (by omega) h₀
  rw [Int.add_mul] at h₁
  exact ⟨Int.mul_nonneg (by omega) h₀, by omega⟩

/-- Batch and head times strides. -/
private theorem base_bounds {b h sb sh : Int} (hp : 0 ≤ b ∧ 0 ≤ h ∧ b + h < 2147483648)
    (hb : 0 ≤ sb ∧ sb < 2147483648) (hh : 0 ≤ sh ∧ sh < 2147483648) :
    FitsI64 (b * sb) ∧ FitsI64 (h * sh) ∧ FitsI64 (b * sb + h * sh) ∧
    FitsI64 (0 + (b * sb + h * sh)) ∧ 0 ≤ b * sb + h * sh ∧
    b * sb + h * sh ≤ 4611686018427387904 := by
  have b₁ := mul_bounds hp.1 hb
  have b₂ := mul_bounds hp.2.1 hh
  have b₃ : b * sb + h * sh ≤ 4611686018427387904 := by omega
  have b₄ : 0 ≤ b * sb + h * sh := by omega
  clear hp hb hh
  exact ⟨fits64 b₁.1 (by omega), fits64 b₂.1 (by omega), fits64 b₄ (by omega),
    fits64 (by omega) (by omega), b₄, b₃⟩

private theorem query_strides (p : Problem R) :
    p.qb ∈ p.strides ∧ p.qh ∈ p.strides ∧ p.qm ∈ p.strides := by simp [Problem.strides]

private theorem out_strides (p : Problem R) :
    p.ob ∈ p.strides ∧ p.oh ∈ p.strides ∧ p.om ∈ p.strides := by simp [Problem.strides]

/-! Below each theorem adds conjuncts, in the texts' order, to what is left of them, `P`. -/

section

variable (F : Facts p pid) {P : Prop}

include F

private theorem Facts.head (hP : P) :
    FitsI32 (p.qLen + (p.BM - 1 : Int)) ∧ FitsI32 p.tiles ∧ (p.BM : Int) ≠ 0 ∧
    FitsI32 (p.tiles - 1) ∧ FitsI32 (Int.tmod pid p.tiles) ∧ p.tiles ≠ 0 ∧
    FitsI32 (Int.tdiv pid p.tiles) ∧ FitsI32 (p.tile pid) ∧ FitsI32 (Int.tdiv pid p.tiles) ∧
    p.tiles ≠ 0 ∧ FitsI32 (p.batch pid) ∧ p.heads ≠ 0 ∧ FitsI32 (p.head pid) ∧ p.heads ≠ 0 ∧
    FitsI32 (p.batch pid) ∧ FitsI64 (p.kvHead pid) ∧ p.group ≠ 0 ∧ FitsI32 (p.rowFirst pid) ∧
    P := by
  have tiles := F.tiles
  have sum := F.qLen
  have BM := F.BM
  have places := F.places
  have batch : FitsI32 (p.batch pid) := fits32 places.1 (by omega)
  have head : FitsI32 (p.head pid) := fits32 places.2.1 (by omega)
  have quotient := fits32 F.quotient.1 F.quotient.2
  have nonzero : p.tiles ≠ 0 := Int.ne_of_gt tiles.1
  exact ⟨fits32 (by omega) (by omega), fits32 (by omega) (by omega), by omega,
    fits32 (by omega) (by omega), fits32 F.remainder.1 F.remainder.2, nonzero, quotient,
    fits32 F.tile.1 (Int.lt_trans F.tile.2 (by omega)), quotient, nonzero, batch, F.heads, head,
    F.heads, batch, fits64 F.kvHead.1 (Int.lt_of_le_of_lt F.kvHead.2 (by omega)), F.group,
    fits32 F.rowFirst.1 (Int.lt_trans F.rowFirst.2 (by omega)), hP⟩

private theorem Facts.rowLast (hP : P) : FitsI32 (p.tile pid + 1) ∧
    FitsI32 ((p.tile pid + 1) * p.BM) ∧ FitsI32 (p.rowLast pid) ∧ P := by
  have h := F.rowNext
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.tile
  have h₄ := F.tiles
  have h₅ := F.qLen
  simp only [fitsI32_iff, Problem.rowLast, h]
  exact ⟨by omega, by omega, by omega, hP⟩

private theorem Facts.row_bounds {i : Nat} (hi : i < p.BM) :
    0 ≤ p.row pid i ∧ p.row pid i < 536870912 + 1048576 := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₅ := F.qLen
  simp only [row]
  omega

private theorem Facts.queries (hP : P) : (∀ i < p.BM, FitsI32 (p.row pid i)) ∧ P :=
  ⟨fun _ hi => fits32 (F.row_bounds hi).1 (Int.lt_trans (F.row_bounds hi).2 (by decide)), hP⟩

private theorem Facts.shifted (hP : P) : (∀ i < p.BM, FitsI32 (p.row pid i + p.shift)) ∧ P := by
  have h₄ := F.shift
  refine ⟨fun i hi => ?_, hP⟩
  have h₁ := F.row_bounds hi
  simp only [fitsI32_iff]
  omega

/-- The offsets of rows of a tensor that has queries' heads. -/
private theorem Facts.rows {width : Nat} (hw : width ≤ 256) {sb sh sm : Int}
    (hs : sb ∈ p.strides ∧ sh ∈ p.strides ∧ sm ∈ p.strides)
    (hP : P) :
    FitsI64 (p.batch pid * sb) ∧ FitsI64 (p.head pid * sh) ∧
    FitsI64 (p.batch pid * sb + p.head pid * sh) ∧
    FitsI64 (0 + (p.batch pid * sb + p.head pid * sh)) ∧
    (∀ i < p.BM, FitsI64 (p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ j < (1 : Nat),
      FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ n < width,
      FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm + (n : Int))) ∧ P := by
  obtain ⟨c₁, c₂, c₃, c₄, c₅, c₆⟩ := base_bounds F.places (F.strides sb hs.1) (F.strides sh hs.2.1)
  have b₃ : ∀ i < p.BM, 0 ≤ p.row pid i * sm ∧ p.row pid i * sm ≤ 1155173304420532224 := by
    intro i hi
    have h := F.row_bounds hi
    have := mul_bounds h.1 (F.strides sm hs.2.2)
    omega
  generalize p.batch pid * sb + p.head pid * sh = base at *
  refine ⟨c₁, c₂, c₃, c₄, fun i hi => ?_, fun i hi _ _ => ?_, fun i hi n hn => ?_, hP⟩
  all_goals
    have := b₃ i hi
    exact fits64 (by omega) (by omega)

/-- And of the log-sum-exp. -/
private theorem Facts.lse : FitsI64 (p.batch pid * p.lb) ∧ FitsI64 (p.head pid * p.lh) ∧
    FitsI64 (p.batch pid * p.lb + p.head pid * p.lh) ∧
    FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh)) ∧
    (∀ i < p.BM, FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh) + p.row pid i)) := by
  obtain ⟨c₁, c₂, c₃, c₄, c₅, c₆⟩ := base_bounds F.places
    (F.strides p.lb (by simp [Problem.strides])) (F.strides p.lh (by simp [Problem.strides]))
  refine ⟨c₁, c₂, c₃, c₄, fun i hi => ?_⟩
  have := F.row_bounds hi
  exact fits64 (by omega) (by omega)

private theorem Facts.kvPlaces :
    0 ≤ p.batch pid ∧ 0 ≤ p.kvHead pid ∧ p.batch pid + p.kvHead pid < 2147483648 := by
  have h₅ := F.places
  have h₆ := F.kvHead
  omega

private theorem Facts.keyHeads (hP : P) :
    FitsI64 (p.batch pid * p.kb) ∧ FitsI64 (p.kvHead pid * p.kh) ∧
    FitsI64 (p.batch pid * p.vb) ∧ FitsI64 (p.kvHead pid * p.vh) ∧ P := by
  have h := F.kvPlaces
  have k := base_bounds h (F.strides p.kb (by simp [Problem.strides]))
    (F.strides p.kh (by simp [Problem.strides]))
  have v := base_bounds h (F.strides p.vb (by simp [Problem.strides]))
    (F.strides p.vh (by simp [Problem.strides]))
  exact ⟨k.1, k.2.1, v.1, v.2.1, hP⟩

/-! ### The tiles of keys -/

private theorem Facts.floor {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2147483648) (hP : P) :
    FitsI32 (Int.tdiv x p.BN) ∧ (p.BN : Int) ≠ 0 ∧ P := by
  have h₂ := F.BN
  have h₃ := tdiv_bounds (b := p.BN) (by omega) h₀
  exact ⟨by simp only [fitsI32_iff]; omega, by omega, hP⟩

private theorem Facts.ceil {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 1073741824) (hP : P) :
    FitsI32 (x + (p.BN - 1 : Int)) ∧ FitsI32 (Int.tdiv (x + (p.BN - 1 : Int)) p.BN) ∧
    (p.BN : Int) ≠ 0 ∧ P := by
  have h₂ := F.BN
  exact ⟨by simp only [fitsI32_iff]; omega, F.floor (by omega) (by omega) hP⟩

private theorem Facts.stopKey : 0 ≤ p.stopKey pid ∧ p.stopKey pid < 1073741824 := by
  have h := F.kvLen
  unfold Problem.stopKey
  split <;> omega

private theorem Facts.rowLast_bounds : 0 ≤ p.rowLast pid ∧ p.rowLast pid < p.qLen := by
  have h := F.rowNext
  have h₁ := F.rowFirst
  have h₂ := F.BM
  simp only [Problem.rowLast, h]
  omega

/-- Without a window. -/
private theorem Facts.noWindow (hP : P) : FitsI32 (p.kvLen + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (p.kvLen + (p.BN - 1 : Int)) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (Int.tdiv p.kvLen p.BN) ∧ (p.BN : Int) ≠ 0 ∧ P := by
  have h := F.kvLen
  exact F.ceil (by omega) (by omega) (F.floor (by omega) (by omega) hP)

/-- With a right edge. -/
private theorem Facts.rightEdge {r : Int} (hr : p.right = some r) (hP : P) :
    FitsI32 (p.rowLast pid + p.shift) ∧ FitsI32 (p.rowLast pid + p.shift + r) ∧
    FitsI32 (p.rowLast pid + p.shift + r + 1) ∧ FitsI32 (p.stopKey pid + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (p.stopKey pid + (p.BN - 1 : Int)) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.kvLen + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (p.kvLen + (p.BN - 1 : Int)) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.rowFirst pid + p.shift) ∧ FitsI32 (p.rowFirst pid + p.shift + r) ∧
    FitsI32 (p.rowFirst pid + p.shift + r + 1) ∧
    FitsI32 (Int.tdiv (max (p.rowFirst pid + p.shift + r + 1) 0) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (Int.tdiv p.kvLen p.BN) ∧ (p.BN : Int) ≠ 0 ∧ P := by
  have h₁ := F.rowFirst
  have h₂ := F.rowLast_bounds
  have h₃ := F.shift
  have h₄ := F.right r hr
  have h₅ := F.qLen
  have h₆ := F.kvLen
  have h₇ := F.stopKey
  refine ⟨?_, ?_, ?_, F.ceil h₇.1 h₇.2 <| F.ceil (by omega) (by omega) ⟨?_, ?_, ?_,
    F.floor (by omega) (by omega) <| F.floor (by omega) (by omega) hP⟩⟩
  all_goals
    simp only [fitsI32_iff]
    omega

/-- With both edges. -/
private theorem Facts.window {l r : Int} (hl : p.left = some l) (hr : p.right = some r) (hP : P) :
    FitsI32 (p.rowFirst pid + p.shift) ∧ FitsI32 (p.rowFirst pid + p.shift - l) ∧
    FitsI32 (p.rowLast pid + p.shift) ∧ FitsI32 (p.rowLast pid + p.shift + r) ∧
    FitsI32 (p.rowLast pid + p.shift + r + 1) ∧
    FitsI32 (Int.tdiv (max (p.rowFirst pid + p.shift - l) 0) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.stopKey pid + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (p.stopKey pid + (p.BN - 1 : Int)) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.kvLen + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (p.kvLen + (p.BN - 1 : Int)) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.rowLast pid + p.shift - l) ∧
    FitsI32 (max (p.rowLast pid + p.shift - l) 0 + (p.BN - 1 : Int)) ∧
    FitsI32 (Int.tdiv (max (p.rowLast pid + p.shift - l) 0 + (p.BN - 1 : Int)) p.BN) ∧
    (p.BN : Int) ≠ 0 ∧
    FitsI32 (p.rowFirst pid + p.shift + r) ∧ FitsI32 (p.rowFirst pid + p.shift + r + 1) ∧
    FitsI32 (Int.tdiv (max (p.rowFirst pid + p.shift + r + 1) 0) p.BN) ∧ (p.BN : Int) ≠ 0 ∧
    FitsI32 (Int.tdiv p.kvLen p.BN) ∧ (p.BN : Int) ≠ 0 ∧ P := by
  have h₁ := F.rowFirst
  have h₂ := F.rowLast_bounds
  have h₃ := F.shift
  have h₄ := F.right r hr
  have h₅ := F.qLen
  have h₆ := F.kvLen
  have h₇ := F.stopKey
  have h₈ := F.left l hl
  refine ⟨?_, ?_, ?_, ?_, ?_, F.floor (by omega) (by omega) <| F.ceil h₇.1 h₇.2 <|
    F.ceil (by omega) (by omega) ⟨?_, F.ceil (by omega) (by omega) ⟨?_, ?_,
    F.floor (by omega) (by omega) <| F.floor (by omega) (by omega) hP⟩⟩⟩
  all_goals
    simp only [fitsI32_iff]
    omega

/-- A tile that is visited begins at a key. -/
private theorem Facts.tileBegin {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    0 ≤ t * (p.BN : Int) ∧ t * (p.BN : Int) < 536870912 := by
  have hb := F.BN
  have hk := F.kvLen
  have h₀ := (p.first_le pid hb.1).1
  have hs := F.stopKey
  have hs' := p.stopKey_le pid
  refine ⟨Int.mul_nonneg (by omega) (by omega), ?_⟩
  simp only [stop] at h₂
  split at h₂
  · have h := (tdiv_bounds (x := p.stopKey pid + (p.BN - 1 : Int)) (b := p.BN) (by omega)
      (by omega)).2.2
    have h' : (t + 1) * (p.BN : Int) ≤ _ := Int.mul_le_mul_of_nonneg_right (c := p.BN) h₂ (by omega)
    rw [Int.add_mul] at h'
    omega
  · omega

private theorem Facts.begin {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    FitsI32 (t * p.BN) := by
  have h := F.tileBegin h₁ h₂
  simp only [fitsI32_iff]
  omega

private theorem Facts.keyAt {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ j < p.BN, FitsI32 (t * p.BN + (j : Int)) := by
  have h := F.tileBegin h₁ h₂
  have hb := F.BN
  intro j hj
  simp only [fitsI32_iff]
  omega

/-- A tile's base in a tensor of keys or values. -/
private theorem Facts.base {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) {sb sh sn : Int}
    (hs : sb ∈ p.strides ∧ sh ∈ p.strides ∧ sn ∈ p.strides) :
    (0 ≤ t * p.BN * sn ∧ t * p.BN * sn ≤ 1152921504606846976) ∧
    (0 ≤ p.kvHead pid * sh + t * p.BN * sn ∧
      p.kvHead pid * sh + t * p.BN * sn ≤ 5764607523034234880) ∧
    (0 ≤ p.batch pid * sb + (p.kvHead pid * sh + t * p.BN * sn) ∧
      p.batch pid * sb + (p.kvHead pid * sh + t * p.BN * sn) ≤ 5764607523034234880) := by
  have b₁ := mul_bounds F.kvPlaces.1 (F.strides sb hs.1)
  have b₂ := mul_bounds F.kvPlaces.2.1 (F.strides sh hs.2.1)
  have b₃ := mul_bounds (F.tileBegin h₁ h₂).1 (F.strides sn hs.2.2)
  have h := (F.tileBegin h₁ h₂).2
  have h₅ := F.kvPlaces
  refine ⟨?_, ?_, ?_⟩ <;> omega

/-- The addresses of a tile of keys and values but the last ones. -/
private theorem Facts.addresses {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) (hP : P) :
    FitsI64 (t * p.BN * p.kn) ∧ FitsI64 (p.kvHead pid * p.kh + t * p.BN * p.kn) ∧
    FitsI64 (p.batch pid * p.kb + (p.kvHead pid * p.kh + t * p.BN * p.kn)) ∧
    FitsI64 (0 + (p.batch pid * p.kb + (p.kvHead pid * p.kh + t * p.BN * p.kn))) ∧
    FitsI64 (t * p.BN * p.vn) ∧ FitsI64 (p.kvHead pid * p.vh + t * p.BN * p.vn) ∧
    FitsI64 (p.batch pid * p.vb + (p.kvHead pid * p.vh + t * p.BN * p.vn)) ∧
    FitsI64 (0 + (p.batch pid * p.vb + (p.kvHead pid * p.vh + t * p.BN * p.vn))) ∧
    (∀ j < p.BN, FitsI32 ((j : Int) * p.kn)) ∧ (∀ j < p.BN, FitsI32 ((j : Int) * p.vn)) ∧
    (∀ n < p.BD, ∀ j < p.BN, FitsI32 ((n : Int) + (j : Int) * p.kn)) ∧
    (∀ n < p.BD, ∀ j < p.BN, FitsI64 (p.keyPtr pid t n j)) ∧
    (∀ j < p.BN, ∀ c < p.BV, FitsI32 ((j : Int) * p.vn + (c : Int))) ∧ P := by
  have bk := F.base h₁ h₂ (sb := p.kb) (sh := p.kh) (sn := p.kn) (by simp [Problem.strides])
  have bv := F.base h₁ h₂ (sb := p.vb) (sh := p.vh) (sn := p.vn) (by simp [Problem.strides])
  have lk := fun j (hj : j < p.BN) =>
    lane_bounds hj (F.strides p.kn (by simp [Problem.strides])).1 F.keys
  have lv := fun j (hj : j < p.BN) =>
    lane_bounds hj (F.strides p.vn (by simp [Problem.strides])).1 F.values
  have hd := F.BD
  have hv := F.BV
  simp only [fitsI32_iff, fitsI64_iff, keyPtr, F.packed]
  refine ⟨by omega, by omega, by omega, by omega, by omega, by omega, by omega, by omega,
    fun j hj => ?_, fun j hj => ?_, fun n hn j hj => ?_, fun n hn j hj => ?_, fun j hj c hc => ?_,
    hP⟩
  · have := lk j hj; omega
  · have := lv j hj; omega
  · have := lk j hj; omega
  · have := lk j hj; omega
  · have := lv j hj; omega

private theorem Facts.valuePtrs {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ j < p.BN, ∀ c < p.BV, FitsI64 (p.valuePtr pid t j c) := by
  have bv := F.base h₁ h₂ (sb := p.vb) (sh := p.vh) (sn := p.vn) (by simp [Problem.strides])
  have hd := F.BV
  intro j hj c hc
  have := lane_bounds hj (F.strides p.vn (by simp [Problem.strides])).1 F.values
  simp only [fitsI64_iff, valuePtr, F.packed]
  omega

private theorem Facts.edges {i : Nat} (hi : i < p.BM) :
    (∀ l, p.left = some l → FitsI32 (p.row pid i + p.shift - l)) ∧
      ∀ r, p.right = some r → FitsI32 (p.row pid i + p.shift + r) := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.shift
  have h₅ := F.qLen
  simp only [fitsI32_iff, row]
  refine ⟨fun l hl => ?_, fun r hr => ?_⟩
  · have := F.left l hl; omega
  · have := F.right r hr; omega

end

end Problem

/-! ## The texts -/

open Problem

variable {R : Type u} [OrderedField R] [Exp R R]
variable {d d_v q_len kv_len batches num_kv_heads group : Nat} {pid : Int}

/-- **No integer overflows** in the text without a window: in every program of a launch the value of
each integer operation fits its type. -/
theorem Full.noOverflow {a : Full.Args R}
    (S : (Full.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Full.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.NoOverflow a pid := by
  have F := W.facts S hp
  have o := (Full.problem a).first_le pid S.BN
  have first : (Full.problem a).wholeFirst pid = Full.loop1.firstTile a pid := rfl
  have stop : (Full.problem a).wholeStop pid = Full.loop1.stopTile a pid := rfl
  have start : (Full.problem a).first pid ≤ Full.loop2.firstTile a pid := by
    show _ ≤ Full.loop1.stopTile a pid
    omega
  exact F.head <| F.queries <| F.rows F.BD (query_strides _) <| F.keyHeads <| F.noWindow
    ⟨fun t h h' => ⟨F.begin (by omega) (by omega),
      F.addresses (by omega) (by omega) (F.valuePtrs (by omega) (by omega))⟩,
    fun t h h' =>
      have h : (Full.problem a).first pid ≤ t := Int.le_trans start h
      ⟨F.begin h h', F.keyAt h h', F.addresses h h' (F.valuePtrs h h')⟩,
    F.rows F.BV (out_strides _) F.lse⟩

/-- **No integer overflows** in the text with a right edge: in every program of a launch the value
of each integer operation fits its type. -/
theorem Causal.noOverflow {a : Causal.Args R}
    (S : (Causal.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Causal.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.NoOverflow a pid := by
  have F := W.facts S hp
  have o := (Causal.problem a).first_le pid S.BN
  have first : (Causal.problem a).wholeFirst pid = Causal.loop1.firstTile a pid := rfl
  have stop : (Causal.problem a).wholeStop pid = Causal.loop1.stopTile a pid := rfl
  have start : (Causal.problem a).first pid ≤ Causal.loop2.firstTile a pid := by
    show _ ≤ Causal.loop1.stopTile a pid
    omega
  exact F.head <| F.rowLast <| F.queries <| F.rows F.BD (query_strides _) <| F.shifted <|
    F.keyHeads <| F.rightEdge rfl
    ⟨fun t h h' => ⟨F.begin (by omega) (by omega),
      F.addresses (by omega) (by omega) (F.valuePtrs (by omega) (by omega))⟩,
    fun t h h' =>
      have h : (Causal.problem a).first pid ≤ t := Int.le_trans start h
      ⟨F.begin h h', F.keyAt h h', F.addresses h h'
        ⟨F.valuePtrs h h', fun _ hi _ _ => (F.edges hi).2 _ rfl⟩⟩,
    F.rows F.BV (out_strides _) F.lse⟩

/-- **No integer overflows** in the text with both edges: in every program of a launch the value of
each integer operation fits its type. -/
theorem Window.noOverflow {a : Window.Args R}
    (S : (Window.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Window.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.NoOverflow a pid := by
  have F := W.facts S hp
  have o := (Window.problem a).first_le pid S.BN
  have e₁ : Window.loop1.firstTile a pid = (Window.problem a).first pid := rfl
  have e₂ : Window.loop1.stopTile a pid = (Window.problem a).wholeFirst pid := rfl
  have e₃ : Window.loop2.stopTile a pid = (Window.problem a).wholeStop pid := rfl
  have e₄ : Window.loop3.stopTile a pid = (Window.problem a).stop pid := rfl
  refine F.head <| F.rowLast <| F.queries <| F.rows F.BD (query_strides _) <| F.shifted <|
    F.keyHeads <| F.window (l := a.left) (r := a.right) rfl rfl
    ⟨fun t h h' => ?_, fun t h h' => ?_, fun t h h' => ?_, F.rows F.BV (out_strides _) F.lse⟩
  · have h : (Window.problem a).first pid ≤ t := by omega
    have h' : t < (Window.problem a).stop pid := by omega
    exact ⟨F.begin h h', F.keyAt h h', F.addresses h h' ⟨F.valuePtrs h h',
      fun _ hi _ _ => (F.edges hi).1 a.left rfl, fun _ hi _ _ => (F.edges hi).2 a.right rfl⟩⟩
  · replace h : Window.loop1.stopTile a pid ≤ t := h
    have h : (Window.problem a).first pid ≤ t := by omega
    have h' : t < (Window.problem a).stop pid := by omega
    exact ⟨F.begin h h', F.addresses h h' (F.valuePtrs h h')⟩
  · replace h : Window.loop2.stopTile a pid ≤ t := h
    have h : (Window.problem a).first pid ≤ t := by omega
    have h' : t < (Window.problem a).stop pid := by omega
    exact ⟨F.begin h h', F.keyAt h h', F.addresses h h' ⟨F.valuePtrs h h',
      fun _ hi _ _ => (F.edges hi).1 a.left rfl, fun _ hi _ _ => (F.edges hi).2 a.right rfl⟩⟩

end Attention.Kernel
