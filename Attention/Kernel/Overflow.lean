module

public import Attention.Kernel.Sized
public import Attention.Kernel.Texts

public section

/-! # No integer of the forward kernel overflows

`Full.NoOverflow` and its kin ask that the value of each integer operation of the text fits its
type, in every lane and in every iteration that is run, and that no divisor is 0. What a launch
guarantees for it is `Full.ArgumentsFit`, which the types of the arguments say, and `Within`. -/

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
  /-- PyTorch has no strides below 0. -/
  strides : 0 ≤ p.qb ∧ 0 ≤ p.qh ∧ 0 ≤ p.qm ∧ 0 ≤ p.kb ∧ 0 ≤ p.kh ∧ 0 ≤ p.kn ∧ 0 ≤ p.vb ∧
    0 ≤ p.vh ∧ 0 ≤ p.vn ∧ 0 ≤ p.ob ∧ 0 ≤ p.oh ∧ 0 ≤ p.om ∧ 0 ≤ p.lb ∧ 0 ≤ p.lh
  /-- `window_arguments`; a bound that excludes nothing is not given. -/
  shift : -2 ^ 29 < p.shift ∧ p.shift < 2 ^ 29
  left : ∀ l, p.left = some l → 0 ≤ l ∧ 0 < p.qLen - 1 + p.shift - l
  right : ∀ r, p.right = some r → 0 ≤ r ∧ p.shift + r < p.kvLen - 1

variable {p : Problem R} {pid : Int}

/-- Bounds of what the other integers are made of. -/
private structure Facts (p : Problem R) (pid : Int) : Prop where
  BM : 0 < p.BM ∧ p.BM ≤ 2 ^ 20
  BN : 0 < p.BN ∧ p.BN ≤ 2 ^ 20
  BD : p.BD ≤ 256
  heads : p.heads ≠ 0
  group : p.group ≠ 0
  qLen : 0 ≤ p.qLen ∧ p.qLen < 2 ^ 29
  kvLen : 0 ≤ p.kvLen ∧ p.kvLen < 2 ^ 29
  pid : 0 ≤ pid ∧ pid < 2 ^ 31
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

end Problem

end Attention.Kernel
