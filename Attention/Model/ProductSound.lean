module

public import Attention.Model.IntervalSound

public section

/-! # Every product of intervals contains the products of the numbers in them -/

namespace Attention.Model.Interval

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p : Nat}

/-- A product is at least one of the four products of bounds. -/
theorem corner_le_mul {a b c d X Y : R} (ha : a ≤ X) (hb : X ≤ b) (hc : c ≤ Y) (hd : Y ≤ d) :
    a * c ≤ X * Y ∨ a * d ≤ X * Y ∨ b * c ≤ X * Y ∨ b * d ≤ X * Y := by
  rcases Std.le_total (a := (0 : R)) (b := Y) with hY | hY
  · have h := OrderedRing.mul_le_mul_of_nonneg_right ha hY
    rcases Std.le_total (a := (0 : R)) (b := a) with h₀ | h₀
    · exact .inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc h₀) h)
    · exact .inr (.inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left hd h₀) h))
  · have h := OrderedRing.mul_le_mul_of_nonpos_right hb hY
    rcases Std.le_total (a := (0 : R)) (b := b) with h₀ | h₀
    · exact .inr (.inr (.inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc h₀) h)))
    · exact .inr (.inr (.inr (Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left hd h₀) h)))

/-- A product is at most one of the four products of bounds. -/
theorem mul_le_corner {a b c d X Y : R} (ha : a ≤ X) (hb : X ≤ b) (hc : c ≤ Y) (hd : Y ≤ d) :
    X * Y ≤ a * c ∨ X * Y ≤ a * d ∨ X * Y ≤ b * c ∨ X * Y ≤ b * d := by
  have := corner_le_mul (neg_le_neg hb) (neg_le_neg ha) hc hd
  simp only [Ring.neg_mul] at this
  rcases this with h | h | h | h
  · exact .inr (.inr (.inl (le_of_neg_le_neg h)))
  · exact .inr (.inr (.inr (le_of_neg_le_neg h)))
  · exact .inl (le_of_neg_le_neg h)
  · exact .inr (.inl (le_of_neg_le_neg h))

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
      have hU : (0 : Int) < 2 ^ p := Int.pow_pos (by decide)
      have e : x * unit R p * (y * unit R p) = x * y * unit R p * unit R p := by grind
      have lo := corner_le_mul h₁ h₂ h₃ h₄
      have hi := mul_le_corner h₁ h₂ h₃ h₄
      simp only [← Ring.intCast_mul, e] at lo hi
      refine ⟨le_of_mul_unit_le (p := p) (Std.le_trans (floor_mul_le _ hU) ?_),
        le_of_mul_unit_le (p := p) (Std.le_trans ?_ (le_ceil_mul _ hU))⟩
      · have h₁ := Int.min_le_left (min (a * c) (a * d)) (min (b * c) (b * d))
        have h₂ := Int.min_le_right (min (a * c) (a * d)) (min (b * c) (b * d))
        rcases lo with h | h | h | h <;> refine Std.le_trans (intCast_le ?_) h
        · exact Int.le_trans h₁ (Int.min_le_left _ _)
        · exact Int.le_trans h₁ (Int.min_le_right _ _)
        · exact Int.le_trans h₂ (Int.min_le_left _ _)
        · exact Int.le_trans h₂ (Int.min_le_right _ _)
      · have h₁ := Int.le_max_left (max (a * c) (a * d)) (max (b * c) (b * d))
        have h₂ := Int.le_max_right (max (a * c) (a * d)) (max (b * c) (b * d))
        rcases hi with h | h | h | h <;> refine Std.le_trans h (intCast_le ?_)
        · exact Int.le_trans (Int.le_max_left _ _) h₁
        · exact Int.le_trans (Int.le_max_right _ _) h₁
        · exact Int.le_trans (Int.le_max_left _ _) h₂
        · exact Int.le_trans (Int.le_max_right _ _) h₂

end Attention.Model.Interval
