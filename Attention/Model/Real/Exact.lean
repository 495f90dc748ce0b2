module

public import Attention.Model.Exact
public import Attention.Model.Real.Logarithm

public section

/-! # The exact model within the real numbers

The numbers of the exact model are real ones, and 2^k = exp (k · log 2): the exact exponential is
the natural one of a score that is multiplied by log 2. -/

namespace Attention.Model.Real

open Lean.Grind Exponential

/-- Different rationals are different reals. -/
theorem ofRat_inj {p q : Rat} : ofRat p = ofRat q ↔ p = q := by
  refine ⟨fun h => ?_, fun h => h ▸ rfl⟩
  have h₁ : ofRat p ≤ ofRat q := by rw [h]; exact Std.le_refl _
  have h₂ : ofRat q ≤ ofRat p := by rw [h]; exact Std.le_refl _
  exact Std.le_antisymm (ofRat_le.mp h₁) (ofRat_le.mp h₂)

/-- A quotient of rationals. -/
theorem ofRat_div (p q : Rat) : ofRat (p / q) = ofRat p / ofRat q := by
  by_cases hq : q = 0
  · subst hq
    have h₁ : p / 0 = 0 := by grind
    rw [h₁, ← zero_eq]
    grind
  · have h₁ : ofRat q ≠ 0 := fun h => hq (ofRat_inj.mp (h.trans zero_eq))
    have h₂ : ofRat (q * (p / q)) = ofRat q * ofRat (p / q) := ofRat_mul _ _
    rw [OrderedField.mul_div_cancel hq] at h₂
    grind

/-- An integer as a real number. -/
@[expose] def ofInt (n : Int) : Real := ofRat n

/-- A sum of integers. -/
theorem ofInt_add (m n : Int) : ofInt (m + n) = ofInt m + ofInt n := by
  rw [ofInt, Rat.intCast_add, ofRat_add, ofInt, ofInt]

/-- A product of integers. -/
theorem ofInt_mul (m n : Int) : ofInt (m * n) = ofInt m * ofInt n := by
  rw [ofInt, Rat.intCast_mul, ofRat_mul, ofInt, ofInt]

/-- **real-powers-of-two**: exp (k · log 2) = 2^k, for every integer k. -/
theorem exp_mul_log_two (k : Int) : (exp (ofInt k * log 2) : Real) = ofRat (exp k) := by
  have add : ∀ a b : Int, (exp (ofInt (a + b) * log 2) : Real)
      = exp (ofInt a * log 2) * exp (ofInt b * log 2) := fun a b => by
    rw [← exp_add, ofInt_add]
    congr 1
    grind
  have add' : ∀ a b : Int, ofRat (exp (a + b)) = ofRat (exp a) * ofRat (exp b) := fun a b => by
    rw [exp_add, ofRat_mul]
  have one : (exp (ofInt 1 * log 2) : Real) = ofRat (exp (1 : Int)) := by
    have e₁ : ofInt 1 * log 2 = log 2 := Semiring.one_mul (log 2)
    have e₂ : (exp (1 : Int) : Rat) = 2 := by decide +kernel
    have h₀ : (0 : Real) < 2 := by
      have := OrderedRing.zero_lt_one (R := Real)
      grind
    rw [e₁, e₂, exp_log h₀]
    rfl
  have nat : ∀ n : Nat, (exp (ofInt n * log 2) : Real) = ofRat (exp (n : Int)) := fun n => by
    induction n with
    | zero =>
      have e₁ : ofInt (0 : Nat) * log 2 = 0 := Semiring.zero_mul (log 2)
      have e₂ : (exp ((0 : Nat) : Int) : Rat) = 1 := by decide +kernel
      rw [e₁, e₂, exp_zero]
      rfl
    | succ n ih => rw [Int.natCast_succ, add, add', ih, one]
  obtain ⟨n, rfl | rfl⟩ := Int.eq_nat_or_neg k
  · exact nat n
  · have h₁ := add (-n) n
    have h₂ := add' (-n) n
    rw [Int.add_left_neg] at h₁ h₂
    have h₃ := nat 0
    have h₄ := exp_ne_zero (R := Real) (ofInt n * log 2)
    rw [Int.natCast_zero] at h₃
    rw [← h₃, h₁, ← nat n] at h₂
    grind

end Attention.Model.Real
