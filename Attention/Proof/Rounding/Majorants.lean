module

public import Attention.Proof.Rounding.Gamma

public section

/-! # Sums and products of numbers that are off

A number x, of size at most b, and what was computed for it, off by at most a − b: so its size is at
most a. Sums and products of such pairs are such pairs, of the sums and products of their bounds.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## Factors -/

/-- A number that is not negative bounds itself. -/
theorem atMost_self {x : R} (h : 0 ≤ x) : AtMost x x := ⟨by grind, Std.le_refl _⟩

/-- k roundings in a row are a factor of at most 1 + γ. -/
theorem pow_le_gamma {u : R} (hu : 0 ≤ u) {j k : Nat} (hj : j ≤ k)
    (hk : numeral k * u < 1) : (1 + u) ^ j ≤ 1 + gamma k u := by
  have := pow_sub_one_le_gamma hu hj hk
  grind

/-- Such a factor is not negative. -/
theorem nonneg_of_one_le {x : R} (h : 1 ≤ x) : 0 ≤ x := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-! ## Pairs of bounds -/

/-- `y` was computed for `x`: |x| ≤ b and |y − x| ≤ a − b. -/
structure Majorised (a b y x : R) : Prop where
  /-- How far off it is. -/
  error : AtMost (a - b) (y - x)
  /-- The size of the exact number. -/
  size : AtMost b x

namespace Majorised

variable {a b c d x x' y y' : R}

/-- The size of the computed number. -/
theorem computed (h : Majorised a b x' x) : AtMost a x' := by
  have h₁ := h.error.add h.size
  rwa [show a - b + b = a by grind, show x' - x + x = x' by grind] at h₁

/-- A larger bound. -/
theorem mono (h : Majorised a b x' x) (hac : a ≤ c) : Majorised c b x' x :=
  ⟨h.error.mono (by grind), h.size⟩

/-- An exact number. -/
theorem exact (h : AtMost b x) : Majorised b b x x := by
  refine ⟨?_, h⟩
  rw [show b - b = 0 by grind, show x - x = 0 by grind]
  exact .zero (Std.le_refl _)

/-- A relative error. -/
theorem factor {t : R} (h : AtMost a (t - 1)) : Majorised (1 + a) 1 t 1 := by
  refine ⟨?_, ⟨?_, Std.le_refl _⟩⟩
  · rwa [show 1 + a - 1 = a by grind]
  · have := OrderedRing.zero_lt_one (R := R)
    grind

/-- Products. -/
theorem mul (hx : Majorised a b x' x) (hy : Majorised c d y' y) :
    Majorised (a * c) (b * d) (x' * y') (x * y) := by
  refine ⟨?_, hx.size.mul hy.size⟩
  have h := (hx.error.mul hy.computed).add (hx.size.mul hy.error)
  rwa [show (a - b) * c + b * (c - d) = a * c - b * d by grind,
    show (x' - x) * y' + x * (y' - y) = x' * y' - x * y by grind] at h

/-- A product with a relative error. -/
theorem mul_factor (hx : Majorised a b x' x) {t : R} (h : AtMost c (t - 1)) :
    Majorised (a * (1 + c)) b (x' * t) x := by
  have := hx.mul (factor h)
  rwa [Semiring.mul_one, Semiring.mul_one] at this

/-- One rounding. -/
theorem rounded (hx : Majorised a b x' x) {u : R} (h : Rounded u x' y) :
    Majorised (a * (1 + u)) b y x := by
  obtain ⟨θ, hθ, rfl⟩ := h
  exact hx.mul_factor (by rwa [show 1 + θ - 1 = θ by grind])

/-- Roundings in a row. -/
theorem roundedTimes (hx : Majorised a b x' x) {u : R} {k : Nat} (h : RoundedTimes u k x' y) :
    Majorised (a * (1 + u) ^ k) b y x := by
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor h
  have := hx.mul_factor ht
  rwa [show 1 + ((1 + u) ^ k - 1) = (1 + u) ^ k by grind] at this

/-- Sums. -/
theorem sum {α : Type v} {a b f g : α → R} {xs : List α}
    (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) :
    Majorised (sumOver a xs) (sumOver b xs) (sumOver f xs) (sumOver g xs) := by
  refine ⟨?_, sumOver_atMost fun x hx => (h x hx).size⟩
  rw [← sumOver_sub, ← sumOver_sub]
  exact sumOver_atMost fun x hx => (h x hx).error

/-- Sums that are rounded. -/
theorem roundedSum {α : Type v} {u z : R} (hu : 0 ≤ u) {k : Nat} {a b f g : α → R} {xs : List α}
    (hz : RoundedSum u k (xs.map f) z) (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) :
    Majorised ((1 + u) ^ k * sumOver a xs) (sumOver b xs) z (sumOver g xs) := by
  have hs := sum h
  refine ⟨?_, hs.size⟩
  have h₁ := roundedSum_error hu hz
  rw [sumOver_map, sumOver_map] at h₁
  have h₂ : sumOver (fun x => absolute (f x)) xs ≤ sumOver a xs :=
    sumOver_le_sumOver fun x hx => absolute_le (h x hx).computed
  have h₃ := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := (1 + u) ^ k - 1) (by grind)
  have h₅ := (h₁.mono h₄).add hs.error
  simp only [id] at h₅
  generalize sumOver f xs = s at *
  generalize sumOver a xs = A at *
  rwa [show ((1 + u) ^ k - 1) * A + (A - sumOver b xs) = (1 + u) ^ k * A - sumOver b xs by grind,
    show z - s + (s - sumOver g xs) = z - sumOver g xs by grind] at h₅

end Majorised

end Attention.Proof
