module

public import Attention.Kernel.Bounds
public import Attention.Spec.Masks

public section

/-! # Where tensors lie, and what the forward kernel loads of them -/

namespace Attention.Kernel.Problem

open Spec Flt

universe u

variable {R : Type u} {d d_v q_len kv_len : Nat}

/-- The mask of a window around x + shift, on the axis of the keys. -/
@[expose] def mask (p : Problem R) : Mask q_len kv_len := fun x y =>
  p.left.all (fun l => decide ((x : Int) + p.shift - l ≤ y)) &&
    p.right.all fun r => decide ((y : Int) ≤ x + p.shift + r)

/-- The assumptions of the kernel for one head of queries, `Q`, and its head of keys and values, `K`
and `V`: sizes are as given, and their elements lie where the strides say. -/
structure Holds [OrderedField R] (p : Problem R) (pid : Int) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (sc : R) : Prop where
  BM : 0 < p.BM
  BN : 0 < p.BN
  even : p.even = true → p.BD = d
  fits : d ≤ p.BD
  fitsValue : d_v ≤ p.BV
  dim : p.dim = d
  valueDim : p.valueDim = d_v
  qLen : p.qLen = q_len
  kvLen : p.kvLen = kv_len
  scale : p.scale = num sc
  scale_nonneg : 0 ≤ sc
  query : ∀ (x : Fin q_len) (n : Fin d), p.query (p.queryBase pid + x * p.qm + n) = num Q[x][n]
  key : ∀ (y : Fin kv_len) (n : Fin d), p.key (p.keyBase pid + y * p.kn + n) = num K[y][n]
  value : ∀ (y : Fin kv_len) (c : Fin d_v), p.value (p.valueBase pid + y * p.vn + c) = num V[y][c]

variable [OrderedField R]

/-! ## Loads and products -/

/-- A vector, and 0 beyond. -/
@[expose] def ext (v : Vec R d) (n : Nat) : R := if h : n < d then v[n] else 0

private theorem sum_range_ext (F : Nat → R) {m n : Nat} (hmn : m ≤ n)
    (h : ∀ y, m ≤ y → F y = 0) : sumOver F (List.range n) = sumOver F (List.range m) := by
  obtain ⟨k, rfl⟩ := Nat.exists_eq_add_of_le hmn
  rw [List.range_add, sumOver_append, sumOver_map,
    sumOver_eq_zero (xs := List.range k) fun y _ => h (m + y) (by omega)]
  grind

theorem dot_ext {D : Nat} (hD : d ≤ D) {a b : Nat → Flt R} {v w : Vec R d}
    (ha : ∀ n < D, a n = num (ext v n)) (hb : ∀ n < D, b n = num (ext w n)) :
    Flt.dot D a b (num 0) = num (Vec.dot v w) := by
  have e : sumOver (fun n => ext v n * ext w n) (List.range D) = Vec.dot v w := by
    rw [sum_range_ext _ hD fun y hy => by
      simp only [ext, show ¬ y < d by omega, dif_neg, not_false_eq_true]; grind]
    have hr : (List.finRange d).map (fun n : Fin d => (n : Nat)) = List.range d :=
      List.ext_getElem (by simp) fun i _ _ => by simp
    rw [← hr, sumOver_map, Vec.dot]
    exact sumOver_congr fun n _ => by simp [ext]
  rw [dot_num ha hb rfl, e]
  congr 1
  grind

variable {p : Problem R} {pid : Int} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
variable {V : Matrix R kv_len d_v} {sc : R}

theorem Holds.queryTile (H : Holds p pid Q K V sc) {i : Nat} {x : Fin q_len}
    (hx : p.row pid i = x) (n : Nat) : p.queryTile pid i n = num (ext Q[x] n) := by
  have h₁ : decide (p.row pid i < p.qLen) = true := by
    have := x.isLt
    have := H.qLen
    exact decide_eq_true (by omega)
  by_cases hn : n < d
  · have h₂ : decide ((n : Int) < p.dim) = true := decide_eq_true (by have := H.dim; omega)
    rw [Problem.queryTile, h₁, h₂]
    simp only [Bool.and_self, if_true, queryAt, hx, Int.zero_add, ext, hn, dif_pos]
    exact H.query x ⟨n, hn⟩
  · have h₂ : decide ((n : Int) < p.dim) = false := decide_eq_false (by have := H.dim; omega)
    simp [Problem.queryTile, h₂, ext, hn]

theorem Holds.keyPtr (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) {n : Nat} (hn : n < d) :
    p.key (p.keyPtr pid t n j) = num K[y][n] := by
  have e : p.keyPtr pid t n j = p.keyBase pid + y * p.kn + n := by
    rw [← hy]
    simp only [Problem.keyPtr, keyBase, keyAt]
    split <;> grind
  rw [e]
  exact H.key y ⟨n, hn⟩

theorem Holds.valuePtr (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) {c : Nat} (hc : c < d_v) :
    p.value (p.valuePtr pid t j c) = num V[y][c] := by
  have e : p.valuePtr pid t j c = p.valueBase pid + y * p.vn + c := by
    rw [← hy]
    simp only [Problem.valuePtr, valueBase, keyAt]
    split <;> grind
  rw [e]
  exact H.value y ⟨c, hc⟩

theorem Holds.wholeKey (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) {n : Nat} (hn : n < p.BD) :
    p.wholeKey pid t n j = num (ext K[y] n) := by
  unfold Problem.wholeKey
  split
  · rename_i h
    have hn' : n < d := by have := H.even h; omega
    simp only [H.keyPtr hy hn', ext, hn', dif_pos]
  · by_cases hn' : n < d
    · have h₂ : decide ((n : Int) < p.dim) = true := decide_eq_true (by have := H.dim; omega)
      simp only [h₂, if_true, H.keyPtr hy hn', ext, hn', dif_pos]
    · have h₂ : decide ((n : Int) < p.dim) = false := decide_eq_false (by have := H.dim; omega)
      simp [h₂, ext, hn']

theorem Holds.wholeValue (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) {c : Nat} (hc : c < d_v) : p.wholeValue pid t j c = num V[y][c] := by
  unfold Problem.wholeValue
  split
  · exact H.valuePtr hy hc
  · have h₂ : decide ((c : Int) < p.valueDim) = true :=
      decide_eq_true (by have := H.valueDim; omega)
    simp only [h₂, if_true, H.valuePtr hy hc]

theorem Holds.checkedKey (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) (hin : p.inside pid t j = true) (n : Nat) :
    p.checkedKey pid t n j = num (ext K[y] n) := by
  by_cases hn : n < d
  · have h₂ : decide ((n : Int) < p.dim) = true := decide_eq_true (by have := H.dim; omega)
    simp only [Problem.checkedKey, h₂, hin, Bool.and_self, if_true, H.keyPtr hy hn, ext, hn,
      dif_pos]
  · have h₂ : decide ((n : Int) < p.dim) = false := decide_eq_false (by have := H.dim; omega)
    simp [Problem.checkedKey, h₂, ext, hn]

theorem Holds.checkedValue (H : Holds p pid Q K V sc) {t : Int} {j : Nat} {y : Fin kv_len}
    (hy : p.keyAt t j = y) (hin : p.inside pid t j = true) {c : Nat} (hc : c < d_v) :
    p.checkedValue pid t j c = num V[y][c] := by
  have h₂ : decide ((c : Int) < p.valueDim) = true := decide_eq_true (by have := H.valueDim; omega)
  simp only [Problem.checkedValue, h₂, hin, Bool.and_self, if_true, H.valuePtr hy hc]

end Attention.Kernel.Problem
