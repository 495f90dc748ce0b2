module

public import Attention.Algebra.Exponential
public import Attention.Algebra.Magnitude

public section

/-! # An Archimedean field has at most one natural exponential

Of two, let h x = exp x · exp' (−x). It turns sums into products, and h x ≥ (1 + x) (1 − x). If
c (1 − h x) ≤ x² for all x, then so with 2c for c, since h x = h (x/2)²; so 1 ≤ h x, and the same
with −x. -/

namespace Attention

open Lean.Grind Exponential

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] (e e' : NaturalExp R)

/-- exp x · exp' (−x). -/
private def ratio (x : R) : R := e.exp x * e'.exp (-x)

private theorem ratio_pos (x : R) : 0 < ratio e e' x :=
  OrderedRing.mul_pos (e.exp_pos x) (e'.exp_pos (-x))

private theorem ratio_add (x y : R) : ratio e e' (x + y) = ratio e e' x * ratio e e' y := by
  have h : -(x + y) = -x + -y := by grind
  rw [ratio, ratio, ratio, h, e.exp_add, e'.exp_add]
  grind

/-- 1 − h x ≤ x². -/
private theorem one_sub_ratio_le (x : R) : 1 - ratio e e' x ≤ x * x := by
  have h₀ := ratio_pos e e' x
  by_cases hx : 0 ≤ 1 + x ∧ 0 ≤ 1 - x
  · have h₁ := e.one_add_le_exp x
    have h₂ := e'.one_add_le_exp (-x)
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (c := 1 + -x) (by grind)
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (Std.le_of_lt (e.exp_pos x))
    rw [ratio]
    grind
  · have h₁ := OrderedRing.zero_lt_one (R := R)
    by_cases h : 0 ≤ 1 + x
    · have := OrderedRing.mul_pos (a := x - 1) (b := x + 1) (by grind) (by grind)
      grind
    · have := OrderedRing.mul_pos (a := -x - 1) (b := -x + 1) (by grind) (by grind)
      grind

/-- c (1 − h x) ≤ x², with c as large as one likes. -/
private theorem exists_mul_one_sub_ratio_le (n : Nat) :
    ∃ c : R, (n : R) + 1 ≤ c ∧ ∀ x, c * (1 - ratio e e' x) ≤ x * x := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  induction n with
  | zero =>
    refine ⟨1, by rw [Semiring.natCast_zero]; grind, fun x => ?_⟩
    have := one_sub_ratio_le e e' x
    grind
  | succ n ih =>
    obtain ⟨c, hc, h⟩ := ih
    have hn : (0 : R) ≤ (n : R) := OrderedRing.natCast_nonneg
    refine ⟨2 * c, by rw [Semiring.natCast_add, Semiring.natCast_one]; grind, fun x => ?_⟩
    have h₂ := h (x / 2)
    have h₃ := ratio_add e e' (x / 2) (x / 2)
    have e₁ : x / 2 + x / 2 = x := by grind
    have e₂ : x / 2 * (x / 2) * 4 = x * x := by grind
    rw [e₁] at h₃
    rw [h₃, ← e₂]
    generalize x / 2 * (x / 2) = q at *
    generalize ratio e e' (x / 2) = r at *
    have := OrderedRing.mul_nonneg (a := c) (by grind) (mul_self_nonneg (1 - r))
    grind

/-- **natural-exp-unique**: an Archimedean field has at most one natural exponential. -/
theorem naturalExp_unique (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (x : R) :
    e.exp x = e'.exp x := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have ge_one : ∀ (e e' : NaturalExp R) (x : R), 1 ≤ ratio e e' x := fun e e' x => by
    refine Classical.byContradiction fun hn => ?_
    obtain ⟨N, hN⟩ := archimedean (x * x + 1) (1 - ratio e e' x) (by grind)
    obtain ⟨c, hc, h⟩ := exists_mul_one_sub_ratio_le e e' N
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (c := 1 - ratio e e' x) hc (by grind)
    have h₃ := h x
    grind
  have le : ∀ e e' : NaturalExp R, e'.exp x ≤ e.exp x := fun e e' => by
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (ge_one e e' x) (Std.le_of_lt (e'.exp_pos x))
    have h₃ : e'.exp x * e'.exp (-x) = 1 := by
      rw [← e'.exp_add, AddCommGroup.add_neg_cancel]
      exact e'.toExponential.exp_zero
    have h₄ : e'.exp x * ratio e e' x = e.exp x := by rw [ratio]; grind
    rwa [h₄, Semiring.mul_one] at h₂
  exact Std.le_antisymm (le e' e) (le e e')

end Attention
