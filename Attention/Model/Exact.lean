module

public import Attention.Algebra.Exponential

public section

/-! # The exact model: integer scores, rational values, exp k = 2 ^ k

Everything can be computed exactly here, and every law of `Exponential` holds, so what is proved of
the Spec holds of the numbers that it yields over this model. A kernel with the natural exponential
computes the same when its scale is multiplied by ln 2. -/

namespace Attention.Model

private theorem two_ne_zero : (2 : Rat) ≠ 0 := by decide +kernel

private theorem two_zpow_pos (k : Int) : (0 : Rat) < 2 ^ k := Rat.zpow_pos (by decide +kernel)

private theorem one_le_two_pow (n : Nat) : (1 : Rat) ≤ 2 ^ (n : Int) := by
  induction n with
  | zero => decide +kernel
  | succ n ih =>
    have h : (2 : Rat) ^ (1 : Int) = 2 := by decide +kernel
    rw [Int.natCast_succ, Rat.zpow_add two_ne_zero]
    grind

private theorem two_zpow_lt {a b : Int} (h : a < b) : (2 : Rat) ^ a < 2 ^ b := by
  obtain ⟨n, rfl⟩ : ∃ n : Nat, b = a + 1 + n := ⟨(b - a - 1).toNat, by omega⟩
  have h₁ : (2 : Rat) ^ (1 : Int) = 2 := by decide +kernel
  have h₂ := two_zpow_pos a
  have h₃ : (0 : Rat) ≤ 2 ^ a * (2 ^ (n : Int) - 1) :=
    Rat.mul_nonneg (by grind) (by have := one_le_two_pow n; grind)
  rw [Rat.zpow_add two_ne_zero, Rat.zpow_add two_ne_zero, h₁]
  grind

/-- The exact exponential: exp k = 2 ^ k. -/
instance exactExp : Exp Int Rat where
  exp k := 2 ^ k

/-- The exact exponential obeys every law of an exponential. -/
instance exact : Exponential Int Rat where
  exp_add := by exact Rat.zpow_add two_ne_zero
  exp_pos := by exact two_zpow_pos
  exp_lt := by exact fun _ _ => two_zpow_lt

end Attention.Model
