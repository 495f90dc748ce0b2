module

public import Attention.Proof.Derivative.Softcap

public section

/-! # The hyperbolic tangent of numbers that are off

In an Archimedean field the slope of tanh is at most 1, and a relative error of its argument makes
an absolute one of tanh that is hardly larger. -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- tanh moves by no more than its argument and 64 h². -/
private theorem tanh_add_le (x : R) {h : R} (hh : 0 ≤ h) :
    tanh (x + h) - tanh x - h ≤ 64 * (h * h) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  by_cases hle : h ≤ 1 / 4
  · have h₁ := (tanh_isDerivative x (z := h) (ζ := h) ⟨by grind, Std.le_refl _⟩ hle).2
    have h₂ := OrderedRing.mul_nonneg hh (mul_self_nonneg (tanh x : R))
    generalize (tanh (x + h) : R) = a at *
    generalize (tanh x : R) = t at *
    grind
  · have h₁ := tanh_lt_one (x + h)
    have h₂ := neg_one_lt_tanh x
    have h₃ := OrderedRing.mul_pos (a := h - 1 / 4) (b := h) (by grind) (by grind)
    generalize (tanh (x + h) : R) = a at *
    generalize (tanh x : R) = t at *
    grind

/-- c (tanh (x + h) − tanh x − h) ≤ 64 h², with c as large as one likes. -/
private theorem exists_mul_tanh_le (n : Nat) : ∃ c : R, (n : R) + 1 ≤ c ∧
    ∀ x h : R, 0 ≤ h → c * (tanh (x + h) - tanh x - h) ≤ 64 * (h * h) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  induction n with
  | zero =>
    refine ⟨1, by rw [Semiring.natCast_zero]; grind, fun x h hh => ?_⟩
    rw [Semiring.one_mul]
    exact tanh_add_le x hh
  | succ n ih =>
    obtain ⟨c, hc, half⟩ := ih
    have hn : (0 : R) ≤ (n : R) := OrderedRing.natCast_nonneg
    refine ⟨2 * c, by rw [Semiring.natCast_add, Semiring.natCast_one]; grind, fun x h hh => ?_⟩
    have h₁ := half x (h / 2) (by grind)
    have h₂ := half (x + h / 2) (h / 2) (by grind)
    have e : x + h / 2 + h / 2 = x + h := by grind
    rw [e] at h₂
    generalize (tanh (x + h) : R) = a at *
    generalize (tanh (x + h / 2) : R) = m at *
    grind

/-- tanh moves by no more than its argument. -/
theorem tanh_sub_le (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {x y : R}
    (hxy : x ≤ y) : tanh y - tanh x ≤ y - x := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine Classical.byContradiction fun hn => ?_
  obtain ⟨N, hN⟩ := archimedean (64 * ((y - x) * (y - x)) + 1) (tanh y - tanh x - (y - x))
    (by grind)
  obtain ⟨c, hc, h⟩ := exists_mul_tanh_le (R := R) N
  have h₁ := h x (y - x) (by grind)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (c := tanh y - tanh x - (y - x))
    (Std.le_trans (by grind : (N : R) ≤ (N : R) + 1) hc) (by grind)
  rw [show x + (y - x) = y by grind] at h₁
  grind

omit [NaturalExp R] in
/-- The difference of two values of tanh. -/
private theorem tanh_sub_eq [Exponential R R] (x h : R) :
    tanh (x + h) - tanh x = tanh h * (1 - tanh x * tanh (x + h)) := by
  have h₁ := exp_pos (R := R) (x + x)
  have h₂ := exp_pos (R := R) (h + h)
  have h₃ := OrderedRing.mul_pos h₁ h₂
  have e : (exp (x + h + (x + h)) : R) = exp (x + x) * exp (h + h) := by
    rw [← exp_add]
    congr 1
    grind
  simp only [tanh, e]
  have h₀ := OrderedRing.zero_lt_one (R := R)
  generalize (exp (x + x) : R) = a at *
  generalize (exp (h + h) : R) = b at *
  have k₁ : a + 1 ≠ 0 := by grind
  have k₂ : b + 1 ≠ 0 := by grind
  have k₃ : a * b + 1 ≠ 0 := by grind
  clear h₀ h₁ h₂ h₃ e
  grind

/-- x (1 − tanh² x) is at most 1. -/
private theorem mul_tanh_slope_le {x : R} (hx : 0 ≤ x) : x * (1 - tanh x * tanh x) ≤ 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : (1 + x) * (1 + x) ≤ exp (x + x) := by
    have h := NaturalExp.one_add_le_exp x
    have k₁ := OrderedRing.mul_le_mul_of_nonneg_right h (c := 1 + x) (by grind)
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt (exp_pos (R := R) x))
    rw [exp_add]
    grind
  have h₂ := exp_pos (R := R) (x + x)
  have h₃ := one_add_tanh x
  have h₄ : (1 - tanh x) * (exp (x + x) + 1) = 2 := by grind
  generalize (exp (x + x) : R) = e at *
  generalize (tanh x : R) = t at *
  have e₁ : (1 - t * t) * ((e + 1) * (e + 1)) = 4 * e := by grind
  have h₅ := OrderedRing.mul_nonneg (Std.le_of_lt h₂) (b := e - (1 + x) * (1 + x)) (by grind)
  have h₆ := OrderedRing.mul_nonneg (Std.le_of_lt h₂) (mul_self_nonneg (x - 1))
  have h₇ := OrderedRing.mul_pos (a := e + 1) (b := e + 1) (by grind) (by grind)
  refine Classical.byContradiction fun hn => ?_
  have h₈ := OrderedRing.mul_pos (a := x * (1 - t * t) - 1) (by grind) h₇
  have e₂ : (x * (1 - t * t) - 1) * ((e + 1) * (e + 1)) = x * (4 * e) - (e + 1) * (e + 1) := by
    rw [← e₁]
    grind
  rw [e₂] at h₈
  grind

/-- tanh does not fall. -/
private theorem tanh_le {x y : R} (h : x ≤ y) : tanh x ≤ tanh y := by
  by_cases e : x = y
  · rw [e]
    exact Std.le_refl _
  · exact Std.le_of_lt (tanh_lt (Std.lt_of_le_of_ne h e))

/-- From a number that is not negative on, tanh rises by no more than its slope there. -/
private theorem tanh_sub_le_slope
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {x h : R} (hx : 0 ≤ x)
    (hh : 0 ≤ h) : tanh (x + h) - tanh x ≤ h * (1 - tanh x * tanh x) := by
  have e : (tanh (0 : R) : R) = 0 := by
    have := tanh_neg (0 : R)
    rw [show (-0 : R) = 0 by grind] at this
    generalize (tanh (0 : R) : R) = t at this
    grind
  have h₁ := tanh_sub_le archimedean hh
  have h₂ := tanh_le hx
  have h₃ := tanh_le (show x ≤ x + h by grind)
  have h₄ := tanh_lt_one (x + h)
  rw [e] at h₁ h₂
  rw [tanh_sub_eq]
  clear archimedean e
  generalize (tanh (x + h) : R) = b at *
  generalize (tanh x : R) = a at *
  generalize (tanh h : R) = c at *
  have h₅ := OrderedRing.mul_nonneg h₂ (b := b - a) (by grind)
  have h₆ := OrderedRing.mul_nonneg (a := b) (b := 1 - a) (by grind) (by grind)
  have h₇ := OrderedRing.mul_nonneg (a := h - c) (b := 1 - a * b) (by grind) (by grind)
  have h₈ := OrderedRing.mul_nonneg hh h₅
  grind

/-- Of numbers that are not negative. -/
private theorem tanh_mul_sub_nonneg
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {ρ τ x : R}
    (hτ : AtMost ρ (τ - 1)) (hρ : ρ < 1) (hx : 0 ≤ x) :
    AtMost (ρ / (1 - ρ)) (tanh (x * τ) - tanh x) := by
  obtain ⟨h₁, h₂⟩ := hτ
  have key : ∀ {D : R}, 0 ≤ D → (1 - ρ) * D ≤ ρ → D ≤ ρ / (1 - ρ) := fun {D} _ h =>
    (OrderedField.le_div_iff (by grind)).mpr (by grind)
  by_cases h : 1 ≤ τ
  · have h₃ := OrderedRing.mul_nonneg hx (b := τ - 1) (by grind)
    have h₄ := tanh_sub_le_slope archimedean hx h₃
    have h₅ := tanh_le (show x ≤ x * τ by grind)
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_right (mul_tanh_slope_le hx) (c := τ - 1) (by grind)
    rw [show x + x * (τ - 1) = x * τ by grind] at h₄
    clear archimedean
    generalize (tanh (x * τ) : R) = b at *
    generalize (tanh x : R) = a at *
    have h₇ := OrderedRing.mul_nonneg (a := ρ) (b := b - a) (by grind) (by grind)
    have h₈ := key (D := b - a) (by grind) (by grind)
    exact ⟨by grind, h₈⟩
  · have h₀ : 0 ≤ x * τ := OrderedRing.mul_nonneg hx (by grind)
    have h₃ := OrderedRing.mul_nonneg hx (b := 1 - τ) (by grind)
    have h₄ := tanh_sub_le_slope archimedean h₀ h₃
    have h₅ := tanh_le (show x * τ ≤ x by grind)
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_right (mul_tanh_slope_le h₀) (c := 1 - τ) (by grind)
    rw [show x * τ + x * (1 - τ) = x by grind] at h₄
    clear archimedean
    generalize (tanh (x * τ) : R) = a at *
    generalize (tanh x : R) = b at *
    have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := τ) (by grind)
    have h₈ := OrderedRing.mul_nonneg (a := τ - (1 - ρ)) (b := b - a) (by grind) (by grind)
    have h₉ := key (D := b - a) (by grind) (by grind)
    exact ⟨by grind, by grind⟩

/-- A relative error ρ of the argument moves tanh by at most ρ / (1 − ρ). -/
theorem tanh_mul_sub (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {ρ τ : R}
    (hτ : AtMost ρ (τ - 1)) (hρ : ρ < 1) (x : R) :
    AtMost (ρ / (1 - ρ)) (tanh (x * τ) - tanh x) := by
  by_cases hx : 0 ≤ x
  · exact tanh_mul_sub_nonneg archimedean hτ hρ hx
  · obtain ⟨h₁, h₂⟩ := tanh_mul_sub_nonneg archimedean hτ hρ (x := -x) (by grind)
    rw [show -x * τ = -(x * τ) by grind, tanh_neg, tanh_neg] at h₁ h₂
    exact ⟨by grind, by grind⟩

/-- What tanh makes of a number that is off, it is off by no more than that. -/
theorem tanh_atMost (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {x y δ : R}
    (h : AtMost δ (y - x)) : AtMost δ (tanh y - tanh x) := by
  obtain ⟨h₁, h₂⟩ := h
  rcases Std.le_total (a := x) (b := y) with h | h
  · have h₃ := tanh_sub_le archimedean h
    have h₄ := tanh_le h
    exact ⟨by grind, by grind⟩
  · have h₃ := tanh_sub_le archimedean h
    have h₄ := tanh_le h
    exact ⟨by grind, by grind⟩

end Attention.Proof
