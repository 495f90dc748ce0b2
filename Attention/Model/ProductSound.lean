module

public import Attention.Model.IntervalSound

public section

/-! # Every product of intervals contains the products of the numbers in them -/

namespace Attention.Model.Interval

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p : Nat}

/-- No product of numbers between bounds is less. -/
theorem leastProduct_le {a b c d : Int} {X Y : R} (ha : (a : R) ≤ X) (hb : X ≤ (b : R))
    (hc : (c : R) ≤ Y) (hd : Y ≤ (d : R)) : ((leastProduct a b c d : Int) : R) ≤ X * Y := by
  have nonneg {n : Int} (h : 0 ≤ n) : 0 ≤ (n : R) := OrderedRing.nonneg_intCast_of_nonneg n h
  have nonpos {n : Int} (h : n ≤ 0) : (n : R) ≤ 0 := OrderedRing.nonpos_intCast_of_nonpos n h
  have above (h : 0 ≤ Y) (h' : a ≤ 0) : ((a * d : Int) : R) ≤ X * Y := by
    rw [Ring.intCast_mul]
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left hd (nonpos h'))
      (OrderedRing.mul_le_mul_of_nonneg_right ha h)
  have below (h : Y ≤ 0) (h' : 0 ≤ b) : ((b * c : Int) : R) ≤ X * Y := by
    rw [Ring.intCast_mul]
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc (nonneg h'))
      (OrderedRing.mul_le_mul_of_nonpos_right hb h)
  unfold leastProduct
  split
  · next h₀ =>
    have hX := Std.le_trans (nonneg h₀) ha
    split
    · next h =>
      rw [Ring.intCast_mul]
      exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc (nonneg h₀))
        (OrderedRing.mul_le_mul_of_nonneg_right ha (Std.le_trans (nonneg h) hc))
    · next h =>
      rw [Ring.intCast_mul]
      exact Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_right hb (nonpos (by omega)))
        (OrderedRing.mul_le_mul_of_nonneg_left hc hX)
  · next h₀ =>
    split
    · next h₁ =>
      have hX := Std.le_trans hb (nonpos h₁)
      split
      · next h =>
        rw [Ring.intCast_mul]
        exact Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_right hb (nonpos h))
          (OrderedRing.mul_le_mul_of_nonpos_left hd hX)
      · next h =>
        rw [Ring.intCast_mul]
        exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right ha (nonneg (by omega)))
          (OrderedRing.mul_le_mul_of_nonpos_left hd hX)
    · next h₁ =>
      split
      · next h => exact above (Std.le_trans (nonneg h) hc) (by omega)
      · split
        · next h => exact below (Std.le_trans hd (nonpos h)) (by omega)
        · rcases Std.le_total (a := (0 : R)) (b := Y) with h | h
          · exact Std.le_trans (intCast_le (Int.min_le_left _ _)) (above h (by omega))
          · exact Std.le_trans (intCast_le (Int.min_le_right _ _)) (below h (by omega))

/-- Products of numbers lie in the product of their intervals. -/
theorem contains_mul {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I * J).Contains (x * y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      obtain ⟨h₁, h₂⟩ := hx
      obtain ⟨h₃, h₄⟩ := hy
      have lo := leastProduct_le h₁ h₂ h₃ h₄
      have hi := leastProduct_le (a := -b) (b := -a) (X := -(x * unit R p))
        (by rw [Ring.intCast_neg]; exact neg_le_neg h₂)
        (by rw [Ring.intCast_neg]; exact neg_le_neg h₁) h₃ h₄
      have e : x * unit R p * (y * unit R p) = x * y * unit R p * unit R p := by grind
      rw [Ring.neg_mul, e, ← Ring.neg_mul] at hi
      rw [e] at lo
      refine ⟨le_of_mul_unit_le (Std.le_trans (shift_mul_le _ p) lo), ?_⟩
      rw [Ring.intCast_neg]
      exact le_neg_of_le_neg (le_of_mul_unit_le (Std.le_trans (shift_mul_le _ p) hi))

end Attention.Model.Interval
