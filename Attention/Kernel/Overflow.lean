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

variable {R : Type u} {d q_len kv_len batches num_kv_heads group : Nat}

/-- What the launcher sees to, and Triton (`BM`, `BN`: a tile has at most 2²⁰ elements).
Source: `pyimpl/kernels/_launch.py`. -/
structure Within (p : Problem R) (batches heads q_len : Nat) : Prop where
  BM : p.BM ≤ 2 ^ 20
  BN : p.BN ≤ 2 ^ 20
  /-- `MAX_HEAD_DIM`. -/
  BD : p.BD ≤ 256
  /-- `check_length`. -/
  qLen : p.qLen < 2 ^ 29
  kvLen : p.kvLen < 2 ^ 29
  /-- `check_programs`. -/
  programs : numTiles q_len p.BM * (batches * heads) < 2 ^ 31
  /-- `is_far` is false. -/
  keys : p.BN * p.kn + 256 ≤ 2 ^ 31
  values : p.BN * p.vn + 256 ≤ 2 ^ 31
  /-- PyTorch has no strides below 0, and for one that passes 32 bits Triton makes another text. -/
  strides : ∀ s ∈ [p.qb, p.qh, p.qm, p.kb, p.kh, p.kn, p.vb, p.vh, p.vn, p.ob, p.oh, p.om, p.lb,
    p.lh], 0 ≤ s ∧ s < 2 ^ 31
  /-- `window_arguments`; a bound that excludes nothing is not given. -/
  shift : -2 ^ 29 < p.shift ∧ p.shift < 2 ^ 29
  left : ∀ l, p.left = some l → 0 ≤ l ∧ 0 < p.qLen - 1 + p.shift - l
  right : ∀ r, p.right = some r → 0 ≤ r ∧ p.shift + r < p.kvLen - 1

variable {p : Problem R} {pid : Int}

/-- Bounds of what the other integers are made of. -/
structure Facts (p : Problem R) (pid : Int) : Prop where
  BM : 0 < p.BM ∧ p.BM ≤ 2 ^ 20
  BN : 0 < p.BN ∧ p.BN ≤ 2 ^ 20
  BD : p.BD ≤ 256
  heads : p.heads ≠ 0
  group : p.group ≠ 0
  qLen : 0 ≤ p.qLen ∧ p.qLen < 2 ^ 29
  kvLen : 0 ≤ p.kvLen ∧ p.kvLen < 2 ^ 29
  program : 0 ≤ pid ∧ pid < 2 ^ 31
  tiles : 0 < p.tiles ∧ p.tiles < 2 ^ 30
  tile : 0 ≤ p.tile pid ∧ p.tile pid < p.tiles
  quotient : 0 ≤ Int.tdiv pid p.tiles ∧ Int.tdiv pid p.tiles < 2 ^ 31
  remainder : 0 ≤ Int.tmod pid p.tiles ∧ Int.tmod pid p.tiles < 2 ^ 31
  /-- Of batch and head together, since there is a program for each pair. -/
  places : 0 ≤ p.batch pid ∧ 0 ≤ p.head pid ∧ p.batch pid + p.head pid < 2 ^ 31
  kvHead : 0 ≤ p.kvHead pid ∧ p.kvHead pid ≤ p.head pid
  rowFirst : 0 ≤ p.rowFirst pid ∧ p.rowFirst pid < p.qLen
  rowNext : (p.tile pid + 1) * p.BM = p.rowFirst pid + p.BM
  shift : -2 ^ 29 < p.shift ∧ p.shift < 2 ^ 29
  left : ∀ l, p.left = some l → 0 ≤ l ∧ l < 2 ^ 30
  right : ∀ r, p.right = some r → 0 ≤ r ∧ r < 2 ^ 30 ∧ p.shift + r < 2 ^ 29

private theorem tdiv_bounds {x b : Int} (hb : 0 < b) (hx : 0 ≤ x) :
    0 ≤ Int.tdiv x b ∧ Int.tdiv x b ≤ x ∧ Int.tdiv x b * b ≤ x := by
  rw [Int.tdiv_eq_ediv_of_nonneg hx]
  exact ⟨Int.ediv_nonneg hx (by omega), Int.ediv_le_self _ hx, Int.ediv_mul_le _ (by omega)⟩

private theorem Within.facts (W : p.Within batches (num_kv_heads * group) q_len)
    (S : p.Sized batches num_kv_heads group q_len kv_len d)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) : Facts p pid := by
  obtain ⟨ht, hb, hh, hk⟩ := S.place hp
  obtain ⟨h₀, h₁⟩ := hp
  have hBM := S.BM
  have hBM' := W.BM
  have hq := S.qLen
  have hq' := W.qLen
  have hT := tiles_eq (p := p) S.BM S.qLen
  have hT' := tdiv_bounds (x := p.qLen + (p.BM - 1 : Int)) (b := p.BM) (by omega) (by omega)
  have hP := W.programs
  have hquot := tdiv_bounds (x := pid) (b := p.tiles) (by omega) h₀
  have hrem := Int.tmod_nonneg p.tiles h₀
  have hrem' := Int.tmod_lt_of_pos pid (b := p.tiles) (by omega)
  have hBB : 1 ≤ numTiles q_len p.BM := by omega
  have hBH : batches * (num_kv_heads * group) < 2 ^ 31 :=
    Nat.lt_of_le_of_lt (Nat.le_mul_of_pos_left _ hBB) hP
  have hplaces : ((p.batch pid + 1) * (p.head pid + 1)) ≤
      (batches : Int) * (num_kv_heads * group : Nat) :=
    Int.mul_le_mul (by omega) (by omega) (by omega) (by omega)
  have hprod := Int.mul_nonneg hb.1 hh.1
  rw [← Int.natCast_mul, Int.add_mul, Int.mul_add] at hplaces
  have hle : p.kvHead pid ≤ p.head pid := by
    have hg : 0 < p.group := by
      rw [S.perHead]
      rcases Nat.eq_zero_or_pos group with h | h
      · rw [h, Nat.mul_zero] at hh; omega
      · omega
    exact (tdiv_bounds hg hh.1).2.1
  have hgr : group ≠ 0 := fun h => by rw [h, Nat.mul_zero] at hh; omega
  have hrow : (p.tile pid + 1) * (p.BM : Int) ≤ p.tiles * p.BM :=
    Int.mul_le_mul_of_nonneg_right (by omega) (by omega)
  have hnext : (p.tile pid + 1) * (p.BM : Int) = p.rowFirst pid + p.BM := by
    rw [Int.add_mul, Int.one_mul]; rfl
  have hfirst : 0 ≤ p.rowFirst pid := Int.mul_nonneg ht.1 (by omega)
  have htiles : p.tiles * p.BM ≤ p.qLen + (p.BM - 1 : Int) := hT'.2.2
  have htiles' : p.tiles ≤ p.qLen + (p.BM - 1 : Int) := hT'.2.1
  have hBN := S.BN
  have hBN' := W.BN
  have hkv := S.kvLen
  have hkv' := W.kvLen
  have hsh := W.shift
  constructor
  case left => intro l hl; have := W.left l hl; omega
  case right => intro r hr; have := W.right r hr; omega
  case BD => exact W.BD
  case heads => have := S.numHeads; omega
  case group => have := S.perHead; omega
  all_goals omega

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
  obtain ⟨_, _, _, heads, group, _, _, _, _, _, _, _, _, _, _, _, _, _, _⟩ := F
  simp only [FitsI32, FitsI64]
  refine ⟨?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, heads, ?_, heads, ?_, ?_, group, ?_, hP⟩
  all_goals omega

private theorem Facts.rowLast (hP : P) : FitsI32 (p.tile pid + 1) ∧
    FitsI32 ((p.tile pid + 1) * p.BM) ∧ FitsI32 (p.rowLast pid) ∧ P := by
  have h := F.rowNext
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.tile
  have h₄ := F.tiles
  have h₅ := F.qLen
  simp only [FitsI32, Problem.rowLast, h]
  exact ⟨by omega, by omega, by omega, hP⟩

private theorem Facts.queries (hP : P) : (∀ i < p.BM, FitsI32 (p.row pid i)) ∧ P := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₅ := F.qLen
  refine ⟨fun i hi => ?_, hP⟩
  simp only [FitsI32, row]
  omega

private theorem Facts.shifted (hP : P) : (∀ i < p.BM, FitsI32 (p.row pid i + p.shift)) ∧ P := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₄ := F.shift
  have h₅ := F.qLen
  refine ⟨fun i hi => ?_, hP⟩
  simp only [FitsI32, row]
  omega

private theorem mul_bounds {x s : Int} (hx : 0 ≤ x) (hs : 0 ≤ s ∧ s < 2 ^ 31) :
    0 ≤ x * s ∧ x * s ≤ x * 2 ^ 31 :=
  ⟨Int.mul_nonneg hx hs.1, Int.mul_le_mul_of_nonneg_left (by omega) hx⟩

/-- The offsets of rows of a tensor that has queries' heads. -/
private theorem Facts.rows {sb sh sm : Int} (hb : 0 ≤ sb ∧ sb < 2 ^ 31) (hh : 0 ≤ sh ∧ sh < 2 ^ 31)
    (hm : 0 ≤ sm ∧ sm < 2 ^ 31) (hP : P) :
    FitsI64 (p.batch pid * sb) ∧ FitsI64 (p.head pid * sh) ∧
    FitsI64 (p.batch pid * sb + p.head pid * sh) ∧
    FitsI64 (0 + (p.batch pid * sb + p.head pid * sh)) ∧
    (∀ i < p.BM, FitsI64 (p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ j < 1, FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ n < p.BD,
      FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm + (n : Int))) ∧ P := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.places
  have h₅ := F.qLen
  have h₆ := F.BD
  have b₁ := mul_bounds h₃.1 hb
  have b₂ := mul_bounds h₃.2.1 hh
  have b₃ : ∀ i < p.BM, 0 ≤ p.row pid i * sm ∧ p.row pid i * sm ≤ 2 ^ 61 := by
    intro i hi
    have h : 0 ≤ p.row pid i ∧ p.row pid i < 2 ^ 30 := by simp only [row]; omega
    have := mul_bounds h.1 hm
    omega
  simp only [FitsI64]
  refine ⟨by omega, by omega, by omega, by omega, fun i hi => ?_, fun i hi _ _ => ?_,
    fun i hi n hn => ?_, hP⟩
  all_goals
    have := b₃ i hi
    omega

/-- And of the log-sum-exp. -/
private theorem Facts.lse {sb sh : Int} (hb : 0 ≤ sb ∧ sb < 2 ^ 31) (hh : 0 ≤ sh ∧ sh < 2 ^ 31) :
    FitsI64 (p.batch pid * sb) ∧ FitsI64 (p.head pid * sh) ∧
    FitsI64 (p.batch pid * sb + p.head pid * sh) ∧
    FitsI64 (0 + (p.batch pid * sb + p.head pid * sh)) ∧
    (∀ i < p.BM, FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i)) := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.places
  have h₅ := F.qLen
  have b₁ := mul_bounds h₃.1 hb
  have b₂ := mul_bounds h₃.2.1 hh
  simp only [FitsI64, row]
  exact ⟨by omega, by omega, by omega, by omega, fun i hi => by omega⟩

private theorem Facts.keyHeads {kb kh vb vh : Int} (h₁ : 0 ≤ kb ∧ kb < 2 ^ 31)
    (h₂ : 0 ≤ kh ∧ kh < 2 ^ 31) (h₃ : 0 ≤ vb ∧ vb < 2 ^ 31) (h₄ : 0 ≤ vh ∧ vh < 2 ^ 31) (hP : P) :
    FitsI64 (p.batch pid * kb) ∧ FitsI64 (p.kvHead pid * kh) ∧ FitsI64 (p.batch pid * vb) ∧
    FitsI64 (p.kvHead pid * vh) ∧ P := by
  have h₅ := F.places
  have h₆ := F.kvHead
  have b₁ := mul_bounds h₅.1 h₁
  have b₂ := mul_bounds h₆.1 h₂
  have b₃ := mul_bounds h₅.1 h₃
  have b₄ := mul_bounds h₆.1 h₄
  simp only [FitsI64]
  exact ⟨by omega, by omega, by omega, by omega, hP⟩

/-! ### The tiles of keys -/

private theorem Facts.floor {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2 ^ 31) (hP : P) :
    FitsI32 (Int.tdiv x p.BN) ∧ (p.BN : Int) ≠ 0 ∧ P := by
  have h₂ := F.BN
  have h₃ := tdiv_bounds (b := p.BN) (by omega) h₀
  exact ⟨by simp only [FitsI32]; omega, by omega, hP⟩

private theorem Facts.ceil {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2 ^ 30) (hP : P) :
    FitsI32 (x + (p.BN - 1 : Int)) ∧ FitsI32 (Int.tdiv (x + (p.BN - 1 : Int)) p.BN) ∧
    (p.BN : Int) ≠ 0 ∧ P := by
  have h₂ := F.BN
  exact ⟨by simp only [FitsI32]; omega, F.floor (by omega) (by omega) hP⟩

private theorem Facts.stopKey : 0 ≤ p.stopKey pid ∧ p.stopKey pid < 2 ^ 30 := by
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
    simp only [FitsI32]
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
    simp only [FitsI32]
    omega

/-- A tile that is visited begins at a key. -/
private theorem Facts.tileBegin {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    0 ≤ t * (p.BN : Int) ∧ t * (p.BN : Int) < 2 ^ 29 := by
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

end

end Problem

end Attention.Kernel
