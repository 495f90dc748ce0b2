module

public import Attention.Proof.Rounding.Sum

public section

/-! # Powers, magnitudes and repeated rounding

What the tolerances are computed with, and the error of roundings in a row: Higham 2002, "Accuracy
and Stability of Numerical Algorithms", lemma 3.1. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] {α : Type v}

/-! ## Magnitudes -/

/-- |x| is not negative. -/
theorem absolute_nonneg (x : R) : 0 ≤ absolute x := (atMost_absolute x).nonneg

/-- A number that is not negative is its own absolute value. -/
theorem absolute_of_nonneg {x : R} (h : 0 ≤ x) : absolute x = x := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- A product with a non-negative number. -/
theorem atMost_mul_left {a c x : R} (ha : 0 ≤ a) (h : AtMost c x) : AtMost (a * c) (a * x) :=
  AtMost.mul ⟨by grind, Std.le_refl _⟩ h

/-- The largest of some numbers and of those of a list that are counted. -/
theorem le_foldl_max (f : α → R) (q : α → Prop) [DecidablePred q] (a : R)
    (xs : List α) :
    a ≤ xs.foldl (fun y x => if q x then y else max y (f x)) a ∧
      ∀ x ∈ xs, ¬ q x → f x ≤ xs.foldl (fun y x => if q x then y else max y (f x)) a := by
  induction xs generalizing a with
  | nil => exact ⟨Std.le_refl _, fun x hx => nomatch hx⟩
  | cons z xs ih =>
    simp only [List.foldl_cons]
    have h₁ : a ≤ (if q z then a else max a (f z)) ∧
        (¬ q z → f z ≤ (if q z then a else max a (f z))) := by
      rw [OrderedField.max_def]
      by_cases h : q z
      · rw [if_pos h]
        exact ⟨Std.le_refl _, fun hn => (hn h).elim⟩
      · rw [if_neg h]
        split <;> exact ⟨by grind, fun _ => by grind⟩
    have h₂ := ih (if q z then a else max a (f z))
    refine ⟨Std.le_trans h₁.1 h₂.1, fun x hx hq => ?_⟩
    rcases List.mem_cons.mp hx with rfl | hx
    · exact Std.le_trans (h₁.2 hq) h₂.1
    · exact h₂.2 x hx hq

/-! ## Numbers -/

/-- Equal numbers are at most each other. -/
theorem le_of_eq {x y : R} (h : x = y) : x ≤ y := h ▸ Std.le_refl x

/-- The factor of an error is at least 1. -/
theorem one_le_one_plus {x : R} (h : 0 ≤ x) : 1 ≤ 1 + x := by grind

/-- A product of factors of errors is one. -/
theorem one_le_mul {x y : R} (hx : 1 ≤ x) (hy : 1 ≤ y) : 1 ≤ x * y := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) hx (c := 1) (Std.le_of_lt h₀) hy
  grind

/-- The factors of additions and stores come to at least 1. -/
theorem stored_growth {u σ : R} (hu : 0 ≤ u) (hσ : 0 ≤ σ) (k m : Nat) :
    1 ≤ (1 + u) ^ k * (1 + σ) ^ m :=
  one_le_mul (OrderedField.one_le_pow (one_le_one_plus hu) k)
    (OrderedField.one_le_pow (one_le_one_plus hσ) m)

/-! ## Powers -/

/-- `numeral n` is n. -/
theorem numeral_eq (n : Nat) : (numeral n : R) = (n : R) := by
  rw [numeral, sumOver_const, List.length_range, Semiring.mul_one]

/-- A numeral is not negative. -/
theorem numeral_nonneg (n : Nat) : (0 : R) ≤ numeral n := by
  rw [numeral_eq]
  exact OrderedRing.natCast_nonneg

/-- The numeral of the next number. -/
theorem numeral_succ (n : Nat) : (numeral (n + 1) : R) = numeral n + 1 := by
  rw [numeral_eq, numeral_eq, Semiring.natCast_add, Semiring.natCast_one]

/-- The numeral of 2. -/
theorem numeral_two : (numeral 2 : R) = 2 := by
  rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
  grind

/-- The numeral of 3. -/
theorem numeral_three : (numeral 3 : R) = 3 := by
  rw [numeral_succ, numeral_two]
  grind

/-- The numeral of 4. -/
theorem numeral_four : (numeral 4 : R) = 4 := by
  rw [numeral_succ, numeral_three]
  grind

/-- The numeral of 5. -/
theorem numeral_five : (numeral 5 : R) = 5 := by
  rw [numeral_succ, numeral_four]
  grind

/-- The numeral of 8. -/
theorem numeral_eight : (numeral 8 : R) = 8 := by
  rw [numeral_succ, numeral_succ, numeral_succ, numeral_five]
  grind

/-- `power x n` is xⁿ. -/
theorem power_eq (x : R) (n : Nat) : power x n = x ^ n := by
  induction n with
  | zero => rw [Semiring.pow_zero]; rfl
  | succ n ih =>
    rw [Semiring.pow_succ, ← ih, power, power, List.range_succ, List.foldl_append]
    rfl

/-- (1 + u)ᵏ (1 − k u) ≤ 1. -/
theorem pow_mul_one_sub_le {u : R} (hu : 0 ≤ u) (k : Nat) :
    (1 + u) ^ k * (1 - numeral k * u) ≤ 1 := by
  induction k with
  | zero =>
    rw [Semiring.pow_zero, numeral_eq, Semiring.natCast_zero]
    grind
  | succ k ih =>
    have h₁ := OrderedRing.zero_lt_one (R := R)
    have h₂ := OrderedField.pow_pos (x := 1 + u) (by grind) k
    have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (k + 1)) (mul_self_nonneg u)
    have h₄ : (1 + u) * (1 - numeral (k + 1) * u) ≤ 1 - numeral k * u := by
      rw [numeral_succ] at h₃ ⊢
      grind
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (Std.le_of_lt h₂)
    rw [Semiring.pow_succ, Semiring.mul_assoc]
    exact Std.le_trans h₅ ih

/-- k roundings in a row are a relative error of at most k · u / (1 − k · u). -/
theorem pow_sub_one_le_gamma {u : R} (hu : 0 ≤ u) {j k : Nat} (hj : j ≤ k)
    (hk : numeral k * u < 1) : (1 + u) ^ j - 1 ≤ gamma k u := by
  have h₀ := OrderedField.pow_le_pow (x := 1 + u) (by grind) hj
  have h₁ := pow_mul_one_sub_le hu k
  rw [gamma, OrderedField.le_div_iff (by grind)]
  generalize numeral (R := R) k * u = a at *
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₀ (c := 1 - a) (by grind)
  grind

/-- γ is not negative. -/
theorem gamma_nonneg {u : R} (hu : 0 ≤ u) {k : Nat} (hk : numeral k * u < 1) :
    0 ≤ gamma k u :=
  OrderedField.div_nonneg (OrderedRing.mul_nonneg (numeral_nonneg k) hu) (by grind)

/-- γ < 1 where k · u < 1/2. -/
theorem gamma_lt_one {u : R} {k : Nat} (hk : 2 * numeral k * u < 1) (h : numeral k * u < 1) :
    gamma k u < 1 := by
  rw [gamma]
  generalize he : numeral (R := R) k * u = a at *
  have h₁ : 2 * a < 1 := by rw [← he]; grind
  refine Classical.byContradiction fun hn => ?_
  have := (OrderedField.le_div_iff (a := 1) (b := 1 - a) (c := a) (by grind)).mp (by grind)
  grind

/-! ## Roundings in a row -/

/-- A number rounded k times is off by a relative error of at most (1 + u)ᵏ − 1. -/
theorem roundedTimes_factor {u : R} {k : Nat} {x y : R}
    (h : RoundedTimes u k x y) : ∃ t, y = x * t ∧ AtMost ((1 + u) ^ k - 1) (t - 1) := by
  induction k generalizing y with
  | zero =>
    refine ⟨1, ?_, ?_⟩
    · rw [Semiring.mul_one]
      exact h
    · rw [Semiring.pow_zero]
      exact ⟨by grind, by grind⟩
  | succ k ih =>
    obtain ⟨z, hz, θ, hθ, rfl⟩ := h
    obtain ⟨t, rfl, ht⟩ := ih hz
    refine ⟨t * (1 + θ), by rw [Semiring.mul_assoc], ?_⟩
    have h₁ := (AtMost.mul ht hθ).add (ht.add hθ)
    have e₁ : (t - 1) * θ + (t - 1 + θ) = t * (1 + θ) - 1 := by grind
    have e₂ : ((1 + u) ^ k - 1) * u + ((1 + u) ^ k - 1 + u) = (1 + u) ^ (k + 1) - 1 := by
      rw [Semiring.pow_succ]
      grind
    rwa [e₁, e₂] at h₁

/-- A number that is off by a relative error, and then rounded. -/
theorem atMost_mul_sub {A B s x e t : R} (hx : AtMost s x)
    (he : AtMost ((A - 1) * s) (e - x)) (ht : AtMost (B - 1) (t - 1)) :
    AtMost ((A * B - 1) * s) (e * t - x) := by
  have h₁ : AtMost B t := ⟨by have := ht.1; grind, by have := ht.2; grind⟩
  have h₂ := (he.mul h₁).add (hx.mul ht)
  have e₁ : (e - x) * t + x * (t - 1) = e * t - x := by grind
  have e₂ : (A - 1) * s * B + s * (B - 1) = (A * B - 1) * s := by grind
  rwa [e₁, e₂] at h₂

end Attention.Proof
