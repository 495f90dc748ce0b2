module

public import Attention.Algebra.Floor
public import Attention.Proof.Rounding.Sum
public import Attention.Spec.Format

public section

/-! # The nearest integer, and the nearest multiple of a power of 2 -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {floor : R → Int}

attribute [local instance] Ring.intCast Semiring.natCast

/-! ## Integers -/

/-- The nearest integer is off by at most 1/2. -/
theorem nearest_close (hf : IsFloor floor) (x : R) :
    AtMost 1 (((nearest floor x : R) - x) + ((nearest floor x : R) - x)) := by
  have ⟨h₁, h₂⟩ := hf x
  simp only [nearest]
  split
  · next h₃ =>
    split
    · next h₄ =>
      have : floor x - 2 * (floor x / 2) = 0 ∨ floor x - 2 * (floor x / 2) = 1 := by omega
      rcases this with h | h <;> rw [h, Ring.intCast_add]
      · rw [Ring.intCast_zero]
        exact ⟨by grind, by grind⟩
      · rw [Ring.intCast_one]
        exact ⟨by grind, by grind⟩
    · exact ⟨by grind, by grind⟩
  · rw [Ring.intCast_add, Ring.intCast_one]
    exact ⟨by grind, by grind⟩

/-- The nearest integer of a number within less than 1/2 of an integer is that one. -/
theorem nearest_eq (hf : IsFloor floor) {n : Int} {x : R} (h₁ : (n : R) - x + (n - x) < 1)
    (h₂ : -1 < (n : R) - x + (n - x)) : nearest floor x = n := by
  have ⟨h₃, h₄⟩ := nearest_close hf x
  have h₅ : (nearest floor x : R) < ((n + 1 : Int) : R) := by
    rw [Ring.intCast_add, Ring.intCast_one]
    grind
  have h₆ : (n : R) < ((nearest floor x + 1 : Int) : R) := by
    rw [Ring.intCast_add, Ring.intCast_one]
    grind
  have := intCast_lt_iff.mp h₅
  have := intCast_lt_iff.mp h₆
  omega

/-- No integer is nearer than the nearest. -/
theorem nearest_nearest (hf : IsFloor floor) {x c : R} {n : Int} (h : AtMost c ((n : R) - x)) :
    AtMost c ((nearest floor x : R) - x) := by
  have ⟨h₁, h₂⟩ := nearest_close hf x
  obtain ⟨h₃, h₄⟩ := h
  by_cases h₅ : (n : R) - x + (n - x) < 1 ∧ -1 < (n : R) - x + (n - x)
  · rw [nearest_eq hf h₅.1 h₅.2]
    exact ⟨h₃, h₄⟩
  · exact ⟨by grind, by grind⟩

/-- An integer is its own nearest one. -/
theorem nearest_intCast (hf : IsFloor floor) (n : Int) : nearest floor (n : R) = n := by
  have := OrderedRing.zero_lt_one (R := R)
  exact nearest_eq hf (by grind) (by grind)

/-- Halfway between two integers the nearest is even. -/
theorem nearest_even (hf : IsFloor floor) {x : R} {n : Int} (h : x + x = (n : R) + n + 1) :
    2 * (nearest floor x / 2) = nearest floor x := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : floor x = n := hf.eq_of (by grind) (by grind)
  have e₁ : x - (n : R) + (x - n) = 1 := by grind
  simp only [nearest, e, e₁, Std.le_refl, if_true]
  omega

/-- The nearest integers of a number and of its negative are negatives. -/
theorem nearest_neg (hf : IsFloor floor) (x : R) :
    nearest floor (-x) = -nearest floor x := by
  have ⟨h₁, h₂⟩ := nearest_close hf x
  by_cases h : (nearest floor x : R) - x + (nearest floor x - x) < 1 ∧
      -1 < (nearest floor x : R) - x + (nearest floor x - x)
  · exact nearest_eq hf (by rw [Ring.intCast_neg]; grind) (by rw [Ring.intCast_neg]; grind)
  have even : ∃ n : Int, x + x = (n : R) + n + 1 := by
    by_cases h₃ : (nearest floor x : R) - x + (nearest floor x - x) < 1
    · exact ⟨nearest floor x, by grind⟩
    · refine ⟨nearest floor x - 1, ?_⟩
      rw [Ring.intCast_sub, Ring.intCast_one]
      grind
  obtain ⟨n, hn⟩ := even
  have h₃ := nearest_even hf hn
  have hn' : -x + -x = ((-n - 1 : Int) : R) + ((-n - 1 : Int) : R) + 1 := by
    rw [Ring.intCast_sub, Ring.intCast_neg, Ring.intCast_one]
    grind
  have h₄ := nearest_even hf hn'
  have ⟨h₅, h₆⟩ := nearest_close hf (-x)
  have h₇ : (nearest floor (-x) : R) ≤ ((-nearest floor x + 1 : Int) : R) := by
    rw [Ring.intCast_add, Ring.intCast_neg, Ring.intCast_one]
    grind
  have h₈ : ((-nearest floor x : Int) : R) ≤ ((nearest floor (-x) + 1 : Int) : R) := by
    rw [Ring.intCast_add, Ring.intCast_neg, Ring.intCast_one]
    grind
  have := intCast_le_iff.mp h₇
  have := intCast_le_iff.mp h₈
  omega

/-! ## Exponents -/

/-- 2^log₂ n ≤ n < 2^(log₂ n + 1), of positive integers, in `R`. -/
private theorem log2_bounds {n : Int} (h : 0 < n) :
    (2 : R) ^ (n.toNat.log2 : Int) ≤ (n : R) ∧
      ((n + 1 : Int) : R) ≤ (2 : R) ^ ((n.toNat.log2 : Int) + 1) := by
  have h₁ := Nat.log2_self_le (n := n.toNat) (by omega)
  have h₂ := Nat.lt_log2_self (n := n.toNat)
  have e : ((n.toNat.log2 : Int) + 1) = ((n.toNat.log2 + 1 : Nat) : Int) := by omega
  rw [e, two_zpow_natCast, two_zpow_natCast, intCast_le_iff, intCast_le_iff]
  have h₃ : (2 ^ n.toNat.log2 : Int) ≤ n.toNat := by exact_mod_cast h₁
  have h₄ : (n.toNat : Int) < (2 ^ (n.toNat.log2 + 1) : Int) := by exact_mod_cast h₂
  exact ⟨by omega, by omega⟩

/-- 2^e ≤ x < 2^(e + 1) for the exponent e of x. -/
theorem exponent_spec (hf : IsFloor floor) {x : R} (hx : 0 < x) :
    (2 : R) ^ exponent floor x ≤ x ∧ x < (2 : R) ^ (exponent floor x + 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  simp only [exponent]
  split
  · next h =>
    have h₁ : 1 ≤ floor x := hf.le_iff.mpr (by rwa [Ring.intCast_one])
    have ⟨h₂, h₃⟩ := hf x
    have ⟨h₄, h₅⟩ := log2_bounds (R := R) (n := floor x) (by omega)
    rw [Ring.intCast_add, Ring.intCast_one] at h₅
    exact ⟨Std.le_trans h₄ h₂, Std.lt_of_lt_of_le h₃ h₅⟩
  · next h =>
    have e : x * (1 / x) = 1 := by grind
    have ⟨h₁, h₂⟩ := hf (0 - 1 / x)
    have hb : 1 < 1 / x := by
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 / x) (b := 1) (by grind)
        (Std.le_of_lt hx)
      grind
    have hpos : 0 < 0 - floor (0 - 1 / x) - 1 := by
      have : ((1 : Int) : R) < ((0 - floor (0 - 1 / x) : Int) : R) := by
        rw [Ring.intCast_sub, Ring.intCast_zero, Ring.intCast_one]
        grind
      have := intCast_lt_iff.mp this
      omega
    have ⟨h₃, h₄⟩ := log2_bounds (R := R) hpos
    generalize ((0 - floor (0 - 1 / x) - 1).toNat.log2 : Int) = k at h₃ h₄
    have h₅ : (2 : R) ^ k < 1 / x := by
      refine Std.lt_of_le_of_lt h₃ ?_
      rw [Ring.intCast_sub, Ring.intCast_sub, Ring.intCast_zero, Ring.intCast_one]
      grind
    have h₆ : 1 / x ≤ (2 : R) ^ (k + 1) := by
      refine Std.le_trans ?_ h₄
      rw [Ring.intCast_add, Ring.intCast_sub, Ring.intCast_sub, Ring.intCast_zero,
        Ring.intCast_one]
      grind
    have e₁ : (0 : Int) - (k + 1) + 1 = -k := by omega
    have p₁ := two_zpow_pos (R := R) (0 - (k + 1))
    have p₂ := two_zpow_pos (R := R) (-k)
    have q₁ := two_zpow_add (R := R) (k + 1) (0 - (k + 1))
    have q₂ := two_zpow_add (R := R) k (-k)
    rw [show k + 1 + (0 - (k + 1)) = 0 by omega, Field.zpow_zero] at q₁
    rw [Int.add_right_neg, Field.zpow_zero] at q₂
    rw [e₁]
    generalize (2 : R) ^ (0 - (k + 1)) = a, (2 : R) ^ (k + 1) = b, (2 : R) ^ (-k) = c,
      (2 : R) ^ k = d at *
    constructor
    · have := OrderedRing.mul_le_mul_of_nonneg_left h₆ (Std.le_of_lt (OrderedRing.mul_pos hx p₁))
      have e₂ : x * a * (1 / x) = a := by grind
      have e₃ : x * a * b = x := by grind
      rwa [e₂, e₃] at this
    · have := OrderedRing.mul_lt_mul_of_pos_left h₅ (OrderedRing.mul_pos hx p₂)
      have e₂ : x * c * (1 / x) = c := by grind
      have e₃ : x * c * d = x := by grind
      rwa [e₂, e₃] at this

/-- The exponent is the only number with this property. -/
theorem exponent_eq (hf : IsFloor floor) {x : R} {e : Int} (h₁ : (2 : R) ^ e ≤ x)
    (h₂ : x < (2 : R) ^ (e + 1)) : exponent floor x = e := by
  have ⟨h₃, h₄⟩ := exponent_spec hf (Std.lt_of_lt_of_le (two_zpow_pos e) h₁)
  have := lt_of_two_zpow_lt (Std.lt_of_le_of_lt h₁ h₄)
  have := lt_of_two_zpow_lt (Std.lt_of_le_of_lt h₃ h₂)
  omega

/-! ## Multiples of a power of 2 -/

/-- A bound multiplied by a positive number. -/
private theorem atMost_scale {c x s : R} (hs : 0 < s) (h : AtMost c x) :
    AtMost (c * s) (x * s) := by
  have := OrderedRing.mul_le_mul_of_nonneg_right h.1 (Std.le_of_lt hs)
  have := OrderedRing.mul_le_mul_of_nonneg_right h.2 (Std.le_of_lt hs)
  exact ⟨by grind, by grind⟩

/-- Rounding to multiples of 2^(e + 1) errs by at most 2^e. -/
theorem roundAt_close (hf : IsFloor floor) (e : Int) (x : R) :
    AtMost ((2 : R) ^ e) (roundAt floor (e + 1) x - x) := by
  have h := atMost_scale (two_zpow_pos e) (nearest_close hf (x / (2 : R) ^ (e + 1)))
  have h₁ := two_zpow_pos (R := R) (e + 1)
  have e₁ : x / (2 : R) ^ (e + 1) * (2 : R) ^ (e + 1) = x := by grind
  simp only [roundAt]
  generalize (nearest floor (x / (2 : R) ^ (e + 1)) : R) = n at *
  generalize x / (2 : R) ^ (e + 1) = y at *
  rw [two_zpow_succ] at *
  obtain ⟨h₂, h₃⟩ := h
  exact ⟨by grind, by grind⟩

/-- No multiple of 2^e is nearer. -/
theorem roundAt_nearest (hf : IsFloor floor) {e n : Int} {x c : R}
    (h : AtMost c ((n : R) * (2 : R) ^ e - x)) : AtMost c (roundAt floor e x - x) := by
  have h₁ := two_zpow_pos (R := R) e
  have e₁ : x / (2 : R) ^ e * (2 : R) ^ e = x := by grind
  have e₂ : c / (2 : R) ^ e * (2 : R) ^ e = c := by grind
  have h₂ := atMost_scale h₁ (nearest_nearest hf (x := x / (2 : R) ^ e) (c := c / (2 : R) ^ e)
    (n := n) (by
      obtain ⟨h₄, h₅⟩ := h
      exact ⟨le_of_mul_le_mul_right h₁ (by grind), le_of_mul_le_mul_right h₁ (by grind)⟩))
  simp only [roundAt]
  obtain ⟨h₄, h₅⟩ := h₂
  exact ⟨by grind, by grind⟩

/-- A multiple of 2^e is left as it is. -/
theorem roundAt_multiple (hf : IsFloor floor) (n e : Int) :
    roundAt floor e ((n : R) * (2 : R) ^ e) = (n : R) * (2 : R) ^ e := by
  have h₁ := two_zpow_pos (R := R) e
  have e₁ : (n : R) * (2 : R) ^ e / (2 : R) ^ e = n := by grind
  rw [roundAt, e₁, nearest_intCast hf]

/-- Rounding commutes with the sign. -/
theorem roundAt_neg (hf : IsFloor floor) (e : Int) (x : R) :
    roundAt floor e (-x) = -roundAt floor e x := by
  have e₁ : -x / (2 : R) ^ e = -(x / (2 : R) ^ e) := by grind
  rw [roundAt, roundAt, e₁, nearest_neg hf, Ring.intCast_neg, Ring.neg_mul]

end Attention.Proof
