module

public import Attention.Algebra.Power

public section

/-! # Whole parts, and powers of 2 -/

namespace Attention

open Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

attribute [local instance] Ring.intCast Semiring.natCast

/-- `floor` gives the whole part of each number. -/
@[expose] def IsFloor (floor : R → Int) : Prop :=
  ∀ x, (floor x : R) ≤ x ∧ x < (floor x : R) + 1

/-- Integers are ordered as their images are. -/
theorem intCast_le_iff {a b : Int} : (a : R) ≤ (b : R) ↔ a ≤ b := by
  have key : ∀ {a b : Int}, a < b → (a : R) < (b : R) := fun {a b} h => by
    have h₁ : (0 : R) < ((b - a : Int) : R) := OrderedRing.pos_intCast_of_pos _ (by omega)
    rw [Ring.intCast_sub] at h₁
    grind
  refine ⟨fun h => ?_, fun h => ?_⟩
  · by_cases hab : a ≤ b
    · exact hab
    · have := key (a := b) (b := a) (by omega)
      grind
  · rcases Int.lt_or_eq_of_le h with h | h
    · exact Std.le_of_lt (key h)
    · rw [h]
      exact Std.le_refl _

/-- Integers are ordered as their images are. -/
theorem intCast_lt_iff {a b : Int} : (a : R) < (b : R) ↔ a < b := by
  have := intCast_le_iff (R := R) (a := b) (b := a)
  grind

/-- Different integers have different images. -/
theorem intCast_inj {a b : Int} : (a : R) = (b : R) ↔ a = b := by
  have h₁ := intCast_le_iff (R := R) (a := a) (b := b)
  have h₂ := intCast_le_iff (R := R) (a := b) (b := a)
  refine ⟨fun h => ?_, fun h => by rw [h]⟩
  rw [h] at h₁ h₂
  have := h₁.mp (Std.le_refl _)
  have := h₂.mp (Std.le_refl _)
  omega

section
variable {floor : R → Int}

/-- An integer is at most `x` if and only if it is at most the whole part of `x`. -/
theorem IsFloor.le_iff (h : IsFloor floor) {n : Int} {x : R} : n ≤ floor x ↔ (n : R) ≤ x := by
  have ⟨h₁, h₂⟩ := h x
  refine ⟨fun hn => ?_, fun hn => ?_⟩
  · exact Std.le_trans (intCast_le_iff.mpr hn) h₁
  · have h₃ : (n : R) < ((floor x + 1 : Int) : R) := by
      rw [Ring.intCast_add, Ring.intCast_one]
      exact Std.lt_of_le_of_lt hn h₂
    have := intCast_lt_iff.mp h₃
    omega

/-- There is one whole part. -/
theorem IsFloor.eq_of (h : IsFloor floor) {n : Int} {x : R} (h₁ : (n : R) ≤ x)
    (h₂ : x < (n : R) + 1) : floor x = n := by
  have h₃ := h.le_iff.mpr h₁
  have h₄ : ¬ n + 1 ≤ floor x := fun hn => by
    have := h.le_iff.mp hn
    rw [Ring.intCast_add, Ring.intCast_one] at this
    grind
  omega

end

/-! ## Powers of 2 -/

/-- A positive factor cancels. -/
theorem le_of_mul_le_mul_right {a b c : R} (hc : 0 < c) (h : a * c ≤ b * c) : a ≤ b := by
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_lt_mul_of_pos_right (a := b) (b := a) (by grind) hc
  grind

theorem two_ne_zero : (2 : R) ≠ 0 := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-- 2^(a + b) = 2^a · 2^b. -/
theorem two_zpow_add (a b : Int) : (2 : R) ^ (a + b) = 2 ^ a * 2 ^ b :=
  Field.zpow_add two_ne_zero a b

/-- 2^(a + 1) = 2 · 2^a. -/
theorem two_zpow_succ (a : Int) : (2 : R) ^ (a + 1) = 2 * 2 ^ a := by
  have h := Field.zpow_succ (2 : R) 0
  have h₀ := Field.zpow_zero (2 : R)
  have h₁ : (2 : R) ^ (1 : Int) = 2 := by
    have e : ((0 : Nat) : Int) + 1 = 1 := by omega
    rw [e] at h
    rw [h]
    show (2 : R) ^ (0 : Int) * 2 = 2
    rw [h₀, Semiring.one_mul]
  rw [two_zpow_add, h₁, CommSemiring.mul_comm]

/-- A power of 2 with a natural exponent is an integer. -/
theorem two_zpow_natCast (n : Nat) : (2 : R) ^ (n : Int) = ((2 ^ n : Int) : R) := by
  induction n with
  | zero =>
    rw [Int.pow_zero, Ring.intCast_one]
    exact Field.zpow_zero _
  | succ n ih =>
    rw [Int.natCast_succ, two_zpow_succ, ih, Int.pow_succ, Ring.intCast_mul, Ring.intCast_ofNat,
      CommSemiring.mul_comm]

/-- Powers of 2 are positive. -/
theorem two_zpow_pos (e : Int) : (0 : R) < 2 ^ e := by
  have key : ∀ n : Nat, (0 : R) < 2 ^ (n : Int) := fun n => by
    rw [two_zpow_natCast]
    exact OrderedRing.pos_intCast_of_pos _ (Int.pow_pos (by omega))
  rcases Int.le_total 0 e with h | h
  · have := key e.toNat
    rwa [Int.toNat_of_nonneg h] at this
  · have h₁ := key (-e).toNat
    rw [Int.toNat_of_nonneg (by omega)] at h₁
    have h₂ := two_zpow_add (R := R) e (-e)
    rw [Int.add_right_neg, Field.zpow_zero] at h₂
    refine Classical.byContradiction fun hn => ?_
    have h₃ := OrderedRing.mul_nonneg (a := -(2 : R) ^ e) (by grind) (Std.le_of_lt h₁)
    have := OrderedRing.zero_lt_one (R := R)
    grind

/-- A power of 2 with an exponent that is not negative is at least 1. -/
theorem one_le_two_zpow {e : Int} (h : 0 ≤ e) : (1 : R) ≤ 2 ^ e := by
  rw [← Int.toNat_of_nonneg h, two_zpow_natCast, ← Ring.intCast_one, intCast_le_iff]
  exact Int.pow_pos (by omega)

/-- Powers of 2 are ordered as their exponents. -/
theorem two_zpow_le {a b : Int} (h : a ≤ b) : (2 : R) ^ a ≤ 2 ^ b := by
  have e : b = (b - a) + a := by omega
  rw [e, two_zpow_add]
  have := OrderedRing.mul_le_mul_of_nonneg_right (one_le_two_zpow (R := R) (e := b - a) (by omega))
    (Std.le_of_lt (two_zpow_pos (R := R) a))
  grind

/-- Powers of 2 are ordered as their exponents. -/
theorem lt_of_two_zpow_lt {a b : Int} (h : (2 : R) ^ a < 2 ^ b) : a < b := by
  by_cases hab : a < b
  · exact hab
  · have := two_zpow_le (R := R) (a := b) (b := a) (by omega)
    grind

end Attention
