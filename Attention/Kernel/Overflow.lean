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
  keys : p.BN * p.kn + 256 ≤ 2 ^ 31
  values : p.BN * p.vn + 256 ≤ 2 ^ 31
  strides : ∀ s ∈ p.strides, 0 ≤ s ∧ s < 2 ^ 31

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
  case keys => exact W.keys
  case values => exact W.values
  case strides => exact W.strides
  case heads => have := S.numHeads; omega
  case group => have := S.perHead; omega
  all_goals omega

private theorem mul_bounds {x s : Int} (hx : 0 ≤ x) (hs : 0 ≤ s ∧ s < 2 ^ 31) :
    0 ≤ x * s ∧ x * s ≤ x * 2 ^ 31 :=
  ⟨Int.mul_nonneg hx hs.1, Int.mul_le_mul_of_nonneg_left (by omega) hx⟩

private theorem lane_bounds {n i : Nat} {s : Int} (hi : i < n) (h₀ : 0 ≤ s)
    (h : n * s + 256 ≤ 2 ^ 31) : 0 ≤ (i : Int) * s ∧ (i : Int) * s ≤ 2 ^ 31 - 256 := by
  have h₁ : ((i : Int) + 1) * s ≤ n * s := Int.mul_le_mul_of_nonneg_right (by omega) h₀
  rw [Int.add_mul] at h₁
  exact ⟨Int.mul_nonneg (by omega) h₀, by omega⟩

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
  obtain ⟨_, _, _, heads, group, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _⟩ := F
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

/-- The offsets of rows of a tensor that has queries' heads. -/
private theorem Facts.rows {sb sh sm : Int} (hs : sb ∈ p.strides ∧ sh ∈ p.strides ∧ sm ∈ p.strides)
    (hP : P) :
    FitsI64 (p.batch pid * sb) ∧ FitsI64 (p.head pid * sh) ∧
    FitsI64 (p.batch pid * sb + p.head pid * sh) ∧
    FitsI64 (0 + (p.batch pid * sb + p.head pid * sh)) ∧
    (∀ i < p.BM, FitsI64 (p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ j < (1 : Nat),
      FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm)) ∧
    (∀ i < p.BM, ∀ n < p.BD,
      FitsI64 (0 + (p.batch pid * sb + p.head pid * sh) + p.row pid i * sm + (n : Int))) ∧ P := by
  have hb := F.strides sb hs.1
  have hh := F.strides sh hs.2.1
  have hm := F.strides sm hs.2.2
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
private theorem Facts.lse : FitsI64 (p.batch pid * p.lb) ∧ FitsI64 (p.head pid * p.lh) ∧
    FitsI64 (p.batch pid * p.lb + p.head pid * p.lh) ∧
    FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh)) ∧
    (∀ i < p.BM, FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh) + p.row pid i)) := by
  have hb := F.strides p.lb (by simp [Problem.strides])
  have hh := F.strides p.lh (by simp [Problem.strides])
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.places
  have h₅ := F.qLen
  have b₁ := mul_bounds h₃.1 hb
  have b₂ := mul_bounds h₃.2.1 hh
  simp only [FitsI64, row]
  exact ⟨by omega, by omega, by omega, by omega, fun i hi => by omega⟩

private theorem Facts.keyHeads (hP : P) :
    FitsI64 (p.batch pid * p.kb) ∧ FitsI64 (p.kvHead pid * p.kh) ∧
    FitsI64 (p.batch pid * p.vb) ∧ FitsI64 (p.kvHead pid * p.vh) ∧ P := by
  have h₅ := F.places
  have h₆ := F.kvHead
  have b₁ := mul_bounds h₅.1 (F.strides p.kb (by simp [Problem.strides]))
  have b₂ := mul_bounds h₆.1 (F.strides p.kh (by simp [Problem.strides]))
  have b₃ := mul_bounds h₅.1 (F.strides p.vb (by simp [Problem.strides]))
  have b₄ := mul_bounds h₆.1 (F.strides p.vh (by simp [Problem.strides]))
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

private theorem Facts.begin {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    FitsI32 (t * p.BN) := by
  have h := F.tileBegin h₁ h₂
  simp only [FitsI32]
  omega

private theorem Facts.keyAt {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ j < p.BN, FitsI32 (t * p.BN + (j : Int)) := by
  have h := F.tileBegin h₁ h₂
  have hb := F.BN
  intro j hj
  simp only [FitsI32]
  omega

/-- A tile's base in a tensor of keys or values. -/
private theorem Facts.base {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) {sb sh sn : Int}
    (hs : sb ∈ p.strides ∧ sh ∈ p.strides ∧ sn ∈ p.strides) :
    (0 ≤ t * p.BN * sn ∧ t * p.BN * sn ≤ 2 ^ 60) ∧
    (0 ≤ p.kvHead pid * sh + t * p.BN * sn ∧ p.kvHead pid * sh + t * p.BN * sn ≤ 2 ^ 62 + 2 ^ 60) ∧
    (0 ≤ p.batch pid * sb + (p.kvHead pid * sh + t * p.BN * sn) ∧
      p.batch pid * sb + (p.kvHead pid * sh + t * p.BN * sn) ≤ 2 ^ 62 + 2 ^ 60) := by
  have h := F.tileBegin h₁ h₂
  have h₅ := F.places
  have h₆ := F.kvHead
  have b₁ := mul_bounds h₅.1 (F.strides sb hs.1)
  have b₂ := mul_bounds h₆.1 (F.strides sh hs.2.1)
  have b₃ := mul_bounds h.1 (F.strides sn hs.2.2)
  omega

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
    (∀ j < p.BN, ∀ c < p.BD, FitsI32 ((j : Int) * p.vn + (c : Int))) ∧ P := by
  have bk := F.base h₁ h₂ (sb := p.kb) (sh := p.kh) (sn := p.kn) (by simp [Problem.strides])
  have bv := F.base h₁ h₂ (sb := p.vb) (sh := p.vh) (sn := p.vn) (by simp [Problem.strides])
  have lk := fun j (hj : j < p.BN) =>
    lane_bounds hj (F.strides p.kn (by simp [Problem.strides])).1 F.keys
  have lv := fun j (hj : j < p.BN) =>
    lane_bounds hj (F.strides p.vn (by simp [Problem.strides])).1 F.values
  have hd := F.BD
  simp only [FitsI32, FitsI64, keyPtr]
  refine ⟨by omega, by omega, by omega, by omega, by omega, by omega, by omega, by omega,
    fun j hj => ?_, fun j hj => ?_, fun n hn j hj => ?_, fun n hn j hj => ?_, fun j hj c hc => ?_,
    hP⟩
  · have := lk j hj; omega
  · have := lv j hj; omega
  · have := lk j hj; omega
  · have := lk j hj; omega
  · have := lv j hj; omega

private theorem Facts.valuePtrs {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ j < p.BN, ∀ c < p.BD, FitsI64 (p.valuePtr pid t j c) := by
  have bv := F.base h₁ h₂ (sb := p.vb) (sh := p.vh) (sn := p.vn) (by simp [Problem.strides])
  have hd := F.BD
  intro j hj c hc
  have := lane_bounds hj (F.strides p.vn (by simp [Problem.strides])).1 F.values
  simp only [FitsI64, valuePtr]
  omega

private theorem Facts.edges {i : Nat} (hi : i < p.BM) :
    (∀ l, p.left = some l → FitsI32 (p.row pid i + p.shift - l)) ∧
      ∀ r, p.right = some r → FitsI32 (p.row pid i + p.shift + r) := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.shift
  have h₅ := F.qLen
  simp only [FitsI32, row]
  refine ⟨fun l hl => ?_, fun r hr => ?_⟩
  · have := F.left l hl; omega
  · have := F.right r hr; omega

end

end Problem

/-! ## The texts -/

open Problem

variable {R : Type u} [OrderedField R] [Exp R R]
variable {d q_len kv_len batches num_kv_heads group : Nat} {pid : Int}

/-- **No integer overflows** in the text without a window: in every program of a launch the value of
each integer operation fits its type. -/
theorem Full.noOverflow {a : Full.Args R}
    (S : (Full.problem a).Sized batches num_kv_heads group q_len kv_len d)
    (W : (Full.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : (Full.problem a).Program batches (num_kv_heads * group) q_len pid) :
    Full.NoOverflow a pid := by
  have F := W.facts S hp
  have o := (Full.problem a).first_le pid S.BN
  have first := Full.wholeFirst_eq a pid
  have stop := Full.wholeStop_eq a pid
  have start : (Full.problem a).first pid ≤ Full.loop2.firstTile a pid := by
    show _ ≤ Full.loop1.stopTile a pid
    omega
  exact F.head <| F.queries <| F.rows (query_strides _) <| F.keyHeads <| F.noWindow
    ⟨fun t h h' => ⟨F.begin (by omega) (by omega),
      F.addresses (by omega) (by omega) (F.valuePtrs (by omega) (by omega))⟩,
    fun t h h' =>
      have h : (Full.problem a).first pid ≤ t := Int.le_trans start h
      ⟨F.begin h h', F.keyAt h h', F.addresses h h' (F.valuePtrs h h')⟩,
    F.rows (out_strides _) F.lse⟩

/-- **No integer overflows** in the text with a right edge: in every program of a launch the value
of each integer operation fits its type. -/
theorem Causal.noOverflow {a : Causal.Args R}
    (S : (Causal.problem a).Sized batches num_kv_heads group q_len kv_len d)
    (W : (Causal.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : (Causal.problem a).Program batches (num_kv_heads * group) q_len pid) :
    Causal.NoOverflow a pid := by
  have F := W.facts S hp
  have o := (Causal.problem a).first_le pid S.BN
  have first := Causal.wholeFirst_eq a pid
  have stop := Causal.wholeStop_eq a pid
  have start : (Causal.problem a).first pid ≤ Causal.loop2.firstTile a pid := by
    show _ ≤ Causal.loop1.stopTile a pid
    omega
  exact F.head <| F.rowLast <| F.queries <| F.rows (query_strides _) <| F.shifted <| F.keyHeads <|
    F.rightEdge rfl
    ⟨fun t h h' => ⟨F.begin (by omega) (by omega),
      F.addresses (by omega) (by omega) (F.valuePtrs (by omega) (by omega))⟩,
    fun t h h' =>
      have h : (Causal.problem a).first pid ≤ t := Int.le_trans start h
      ⟨F.begin h h', F.keyAt h h', F.addresses h h'
        ⟨F.valuePtrs h h', fun _ hi _ _ => (F.edges hi).2 _ rfl⟩⟩,
    F.rows (out_strides _) F.lse⟩

/-- **No integer overflows** in the text with both edges: in every program of a launch the value of
each integer operation fits its type. -/
theorem Window.noOverflow {a : Window.Args R}
    (S : (Window.problem a).Sized batches num_kv_heads group q_len kv_len d)
    (W : (Window.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : (Window.problem a).Program batches (num_kv_heads * group) q_len pid) :
    Window.NoOverflow a pid := by
  have F := W.facts S hp
  obtain ⟨_, o₁, o₂, o₃⟩ := (Window.problem a).first_le pid S.BN
  have checked : ∀ t, (Window.problem a).first pid ≤ t → t < (Window.problem a).stop pid → _ :=
    fun t h h' => And.intro (F.begin h h') <| And.intro (F.keyAt h h') <| F.addresses h h' <|
      And.intro (F.valuePtrs h h') <| And.intro
        (fun i hi (j : Nat) (_ : j < 1) => (F.edges (i := i) hi).1 _ rfl)
        (fun i hi (j : Nat) (_ : j < 1) => (F.edges (i := i) hi).2 _ rfl)
  exact F.head <| F.rowLast <| F.queries <| F.rows (query_strides _) <| F.shifted <| F.keyHeads <|
    F.window rfl rfl
    ⟨fun t h h' => checked t h (Int.lt_of_lt_of_le h' (Int.le_trans o₂ o₃)),
    fun t h h' =>
      have h : (Window.problem a).first pid ≤ t := Int.le_trans o₁ h
      have h' : t < (Window.problem a).stop pid := Int.lt_of_lt_of_le h' o₃
      ⟨F.begin h h', F.addresses h h' (F.valuePtrs h h')⟩,
    fun t h h' => checked t (Int.le_trans (Int.le_trans o₁ o₂) h) h',
    F.rows (out_strides _) F.lse⟩

end Attention.Kernel
