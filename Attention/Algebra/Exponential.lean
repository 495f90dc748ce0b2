module

public import Attention.Algebra.Ordered

public section

/-! # The exponential

`Exp` is the bare operation that a Spec definition asks for; `Exponential` adds the laws that a
proof needs. Scores and values are two types, so that `exp k = 2 ^ k : Int → Rat` is a model in
which everything can be computed exactly. -/

namespace Attention

universe u v

/-- An operation `exp` from scores to values; no laws. -/
class Exp (S : Type u) (R : Type v) where
  /-- The exponential of a score. -/
  exp : S → R

export Exp (exp)

/-- An exponential: it turns sums into products, is positive, and is strictly monotone. -/
class Exponential (S : Type u) (R : Type v) [OrderedCommRing S] [OrderedField R]
    extends Exp S R where
  /-- Sums become products. -/
  exp_add : ∀ a b : S, (exp (a + b) : R) = exp a * exp b
  /-- Every exponential is positive. -/
  exp_pos : ∀ a : S, (0 : R) < exp a
  /-- A larger score has a larger exponential. -/
  exp_lt : ∀ a b : S, a < b → (exp a : R) < exp b

/-- The natural exponential, of numbers to numbers of the same kind. Its one law more tells it from
2 ^ x and every other base, and gives rational bounds; the real exponential is its model. -/
class NaturalExp (R : Type u) [OrderedField R] extends Exponential R R where
  /-- The tangent at 0 lies below. -/
  one_add_le_exp : ∀ x : R, 1 + x ≤ exp x

namespace Exponential

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- No exponential is zero, so one may divide by it. -/
theorem exp_ne_zero (a : S) : (exp a : R) ≠ 0 := by
  have := exp_pos (R := R) a
  grind

/-- `exp 0 = 1`. -/
theorem exp_zero : (exp (0 : S) : R) = 1 := by
  have h := exp_add (R := R) (0 : S) 0
  have := exp_ne_zero (R := R) (0 : S)
  have h0 : (0 : S) + 0 = 0 := by grind
  rw [h0] at h
  grind

/-- A change of reference point: `exp (a - b) · exp b = exp a`. -/
theorem exp_sub_mul (a b : S) : (exp (a - b) : R) * exp b = exp a := by
  rw [← exp_add]
  congr 1
  grind

/-- Two changes of reference point compose: `exp (b - c) · exp (a - b) = exp (a - c)`. -/
theorem exp_sub_mul_sub (a b c : S) : (exp (b - c) : R) * exp (a - b) = exp (a - c) := by
  rw [← exp_add]
  congr 1
  grind

/-- `exp` is monotone. -/
theorem exp_le {a b : S} (h : a ≤ b) : (exp a : R) ≤ exp b := by
  by_cases hab : a = b
  · subst hab
    exact Std.le_refl _
  · have := exp_lt (R := R) a b (by grind)
    grind

/-- `exp` is injective. -/
theorem exp_inj {a b : S} : (exp a : R) = exp b ↔ a = b := by
  refine ⟨fun h => ?_, fun h => h ▸ rfl⟩
  have h₁ := exp_lt (R := R) a b
  have h₂ := exp_lt (R := R) b a
  grind

end Exponential

end Attention
