module

public import Attention.Model.Real.Exponential
public import Attention.Model.Real.Supremum

public section

/-! # Logarithms and roots of real numbers

The logarithm of y is the least upper bound of the x with exp x ≤ y: if exp s were below y, then
s + (1 − exp s / y) would be such an x too; if above, s − (1 − y / exp s) would be a lesser bound.
The root of y is exp (log y / 2). -/

namespace Attention.Model.Real

open Lean.Grind Exponential

private theorem exp_neg_mul (x : Real) : (exp (-x) : Real) * exp x = 1 := by
  rw [← exp_add, Ring.neg_add_cancel, exp_zero]

/-- exp (x − h) ≥ (1 − h) · exp x. -/
private theorem mul_le_exp_sub (x h : Real) : (1 - h) * exp x ≤ (exp (x - h) : Real) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right (NaturalExp.one_add_le_exp (-h))
    (Std.le_of_lt (exp_pos (R := Real) x))
  have e : (exp (-h) : Real) * exp x = exp (x - h) := by
    rw [← exp_add]
    congr 1
    grind
  rw [e] at h₁
  grind

/-- **real-logarithm**: every positive real number is an exponential. -/
theorem exists_log {y : Real} (hy : 0 < y) : ∃ x : Real, (exp x : Real) = y := by
  have hS : ∃ x : Real, (exp x : Real) ≤ y := by
    refine ⟨-(1 / y), ?_⟩
    have e₁ := OrderedField.mul_div_cancel (b := y) (by grind) 1
    have e₂ := exp_neg_mul (1 / y)
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (NaturalExp.one_add_le_exp (1 / y))
      (Std.le_of_lt (exp_pos (R := Real) (-(1 / y))))
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ (Std.le_of_lt hy)
    have h₃ := OrderedRing.mul_pos hy (exp_pos (R := Real) (-(1 / y)))
    generalize (exp (-(1 / y)) : Real) = a at *
    rw [e₂] at h₂
    have e₃ : y * (a * (1 + 1 / y)) = y * a + y * (1 / y) * a := by grind
    rw [e₃, e₁] at h₂
    grind
  obtain ⟨s, hs, least⟩ := exists_supremum hS ⟨y, fun x (hx : exp x ≤ y) => by
    have := NaturalExp.one_add_le_exp x
    have := OrderedRing.zero_lt_one (R := Real)
    grind⟩
  have hE := exp_pos (R := Real) s
  refine ⟨s, Classical.byContradiction fun hne => ?_⟩
  by_cases hlt : (exp s : Real) < y
  · have e := OrderedField.mul_div_cancel (b := y) (by grind) (exp s)
    have h₀ := (OrderedField.le_div_iff hy (a := 1) (c := exp s)).mp
    have h₁ := mul_le_exp_sub (s + (1 - exp s / y)) (1 - exp s / y)
    have e₁ : s + (1 - exp s / y) - (1 - exp s / y) = s := by grind
    have e₂ : 1 - (1 - exp s / y) = exp s / y := by grind
    rw [e₁, e₂] at h₁
    have hq : 0 < exp s / y := by
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_nonneg (a := y) (b := -(exp s / y)) (by grind) (by grind)
      grind
    have h₂ : (exp (s + (1 - exp s / y)) : Real) ≤ y := by
      refine (Field.IsOrdered.mul_le_mul_iff_of_pos_left hq).mp (Std.le_trans h₁ ?_)
      rw [CommSemiring.mul_comm (exp s / y), e]
      exact Std.le_refl _
    have h₃ := hs _ h₂
    grind
  · have hgt : y < exp s := by grind
    have e := OrderedField.mul_div_cancel (b := (exp s : Real)) (by grind) y
    have h₁ := mul_le_exp_sub s (1 - y / exp s)
    have e₂ : (1 - (1 - y / exp s)) * exp s = y := by rw [← e]; grind
    rw [e₂] at h₁
    have h₂ := least (s - (1 - y / exp s)) fun x hx => Classical.byContradiction fun hn => by
      have := exp_lt (R := Real) (s - (1 - y / exp s)) x (by grind)
      grind
    have h₃ := (OrderedField.le_div_iff hE (a := 1) (c := y)).mp (by grind)
    grind

open Classical in
/-- The logarithm of a positive number; 0 for others. -/
noncomputable def log (y : Real) : Real := if h : 0 < y then (exists_log h).choose else 0

/-- exp (log y) = y. -/
theorem exp_log {y : Real} (hy : 0 < y) : (exp (log y) : Real) = y := by
  rw [log, dif_pos hy]
  exact (exists_log hy).choose_spec

/-- log (exp x) = x. -/
theorem log_exp (x : Real) : log (exp x) = x :=
  (exp_inj (R := Real)).mp (exp_log (exp_pos x))

/-- log 2 is above 0. -/
theorem log_two_pos : 0 < log 2 := by
  have h : (exp (log 2) : Real) = 2 := exp_log (by grind)
  refine Classical.byContradiction fun hn => ?_
  have h₁ := exp_le (S := Real) (R := Real) (show log 2 ≤ 0 by grind)
  rw [h, exp_zero] at h₁
  grind

open Classical in
/-- The root of a number that is not negative; 0 for others. -/
noncomputable def sqrt (y : Real) : Real := if 0 < y then exp (log y / 2) else 0

/-- The root of a positive number is positive. -/
theorem sqrt_pos {y : Real} (hy : 0 < y) : 0 < sqrt y := by
  rw [sqrt, if_pos hy]
  exact exp_pos _

/-- A root is not negative. -/
theorem sqrt_nonneg (y : Real) : 0 ≤ sqrt y := by
  by_cases hy : 0 < y
  · exact Std.le_of_lt (sqrt_pos hy)
  · rw [sqrt, if_neg hy]
    exact Std.le_refl _

/-- **real-root**: the root of y, squared, is y, for y ≥ 0. -/
theorem sqrt_mul_self {y : Real} (hy : 0 ≤ y) : sqrt y * sqrt y = y := by
  by_cases h : 0 < y
  · have e : log y / 2 + log y / 2 = log y := by grind
    rw [sqrt, if_pos h, ← exp_add, e, exp_log h]
  · rw [sqrt, if_neg h]
    grind

/-- A larger number has a larger root. -/
theorem sqrt_le {x y : Real} (hx : 0 ≤ x) (hxy : x ≤ y) : sqrt x ≤ sqrt y := by
  refine Classical.byContradiction fun hn => ?_
  have h₁ := sqrt_mul_self hx
  have h₂ := sqrt_mul_self (Std.le_trans hx hxy)
  have h₃ := sqrt_nonneg y
  have := OrderedRing.mul_pos (a := sqrt x - sqrt y) (b := sqrt x + sqrt y) (by grind) (by grind)
  grind

end Attention.Model.Real
