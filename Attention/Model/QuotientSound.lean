module

public import Attention.Model.IntervalSound

public section

/-! # Every quotient of intervals contains the quotients of the numbers in them -/

namespace Attention.Model.Interval

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p : Nat}

/-- `divLower` is a lower bound of the quotient. -/
theorem divLower_mul_le {a c d : Int} {X Y : R} (hc : 0 < c) (ha : (a : R) ≤ X)
    (h₁ : (c : R) ≤ Y) (h₂ : Y ≤ (d : R)) :
    ((divLower p a c d : Int) : R) * Y ≤ X * unit R p := by
  have hc' : (0 : R) < c := OrderedRing.pos_intCast_of_pos c hc
  have hd : 0 < d := by
    have : (0 : R) < (d : Int) := Std.lt_of_lt_of_le hc' (Std.le_trans h₁ h₂)
    exact OrderedRing.lt_of_intCast_lt_intCast (R := R) 0 d (by rwa [Ring.intCast_zero])
  have hX : ((a * 2 ^ p : Int) : R) ≤ X * unit R p := by
    rw [Ring.intCast_mul]
    exact OrderedRing.mul_le_mul_of_nonneg_right ha (Std.le_of_lt unit_pos)
  have hU : (0 : Int) < 2 ^ p := Int.pow_pos (by decide)
  unfold divLower
  split
  · next h₀ =>
    have hq : 0 ≤ a * 2 ^ p / d := Int.ediv_nonneg (Int.mul_nonneg h₀ (by omega)) (by omega)
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left h₂
      (OrderedRing.nonneg_intCast_of_nonneg _ hq)) (Std.le_trans (floor_mul_le _ hd) hX)
  · next h₀ =>
    have hq : a * 2 ^ p / c ≤ 0 := Int.ediv_nonpos_of_nonpos_of_neg
      (Int.mul_nonpos_of_nonpos_of_nonneg (by omega) (Int.le_of_lt hU)) hc
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left h₁
      (OrderedRing.nonpos_intCast_of_nonpos _ hq)) (Std.le_trans (floor_mul_le _ hc) hX)

/-- Quotients of numbers lie in the quotient of their intervals; where the divisor may be 0 nothing
is known. -/
theorem contains_div {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I / J).Contains (x / y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      show Contains (if 0 < c then _ else _) _
      split
      · next hc =>
        obtain ⟨h₁, h₂⟩ := hx
        obtain ⟨h₃, h₄⟩ := hy
        have hY : 0 < y * unit R p :=
          Std.lt_of_lt_of_le (OrderedRing.pos_intCast_of_pos (R := R) c hc) h₃
        have hy0 : y ≠ 0 := fun h => ne_of_pos hY (by rw [h, Semiring.zero_mul])
        have e : x / y * unit R p * (y * unit R p) = x * unit R p * unit R p := by
          have h := OrderedField.mul_div_cancel hy0 x
          generalize x / y = z at h
          grind only
        have lo := divLower_mul_le (p := p) hc h₁ h₃ h₄
        have hi := divLower_mul_le (p := p) (a := -b) (X := -(x * unit R p)) hc
          (by rw [Ring.intCast_neg]; exact neg_le_neg h₂) h₃ h₄
        rw [← e] at lo
        rw [Ring.neg_mul, ← e] at hi
        refine ⟨(Field.IsOrdered.mul_le_mul_iff_of_pos_right hY).mp lo,
          (Field.IsOrdered.mul_le_mul_iff_of_pos_right hY).mp ?_⟩
        rw [Ring.intCast_neg, Ring.neg_mul]
        exact le_neg_of_le_neg hi
      · trivial

end Attention.Model.Interval
