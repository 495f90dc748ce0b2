module

public import Attention.Model.Interval

public section

/-! # What an interval contains; sums, differences and maxima

Products, quotients, exponentials, inverse roots and logarithms follow in `ProductSound`,
`QuotientSound`, `ExpSound`, `RootSound` and `LogSound`: for every ordered field, and for every
natural exponential over it; none has to be at hand. -/

namespace Attention.Model

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

namespace Interval

variable {R : Type u} [OrderedField R] {p : Nat}

/-- 2^p as a number. -/
@[expose] def unit (R : Type u) [OrderedField R] (p : Nat) : R := ((2 ^ p : Int) : R)

/-- The interval contains the number. -/
@[expose] def Contains : Interval p → R → Prop
  | all, _ => True
  | between lo hi, x => (lo : R) ≤ x * unit R p ∧ x * unit R p ≤ (hi : R)

/-! ## Integers as numbers -/

/-- The order of integers is that of the numbers. -/
theorem intCast_le {a b : Int} (h : a ≤ b) : (a : R) ≤ (b : R) := by
  have := OrderedRing.nonneg_intCast_of_nonneg (R := R) (b - a) (by omega)
  rw [Ring.intCast_sub] at this
  grind

/-- 2^p is positive. -/
theorem unit_pos : 0 < unit R p :=
  OrderedRing.pos_intCast_of_pos _ (Int.pow_pos (by decide))

/-- A quotient rounded down. -/
theorem floor_mul_le (n : Int) {m : Int} (hm : 0 < m) :
    ((n / m : Int) : R) * (m : R) ≤ (n : R) := by
  rw [← Ring.intCast_mul]
  exact intCast_le (Int.ediv_mul_le n (by omega))

/-- A quotient rounded up. -/
theorem le_ceil_mul (n : Int) {m : Int} (hm : 0 < m) :
    (n : R) ≤ ((ceilDiv n m : Int) : R) * (m : R) := by
  have := floor_mul_le (R := R) (-n) hm
  rw [ceilDiv, Ring.intCast_neg]
  rw [Ring.intCast_neg] at this
  grind

/-- Divided by 2^k and rounded down, as a shift does it. -/
theorem shift_mul_le (n : Int) (k : Nat) :
    ((n >>> k : Int) : R) * ((2 ^ k : Int) : R) ≤ (n : R) := by
  rw [Int.shiftRight_eq_div_pow, Int.natCast_pow]
  exact floor_mul_le n (Int.pow_pos (by decide))

/-- A positive number is not 0. -/
theorem ne_of_pos {a : R} (h : 0 < a) : a ≠ 0 := by grind

/-- Negation turns the order round. -/
theorem neg_le_neg {a b : R} (h : a ≤ b) : -b ≤ -a := by grind

/-- Negation turns the order round. -/
theorem le_of_neg_le_neg {a b : R} (h : -a ≤ -b) : b ≤ a := by grind

/-- Negation turns the order round. -/
theorem le_neg_of_le_neg {a b : R} (h : a ≤ -b) : b ≤ -a := by grind

/-- 2^p may be divided out. -/
theorem le_of_mul_unit_le {a b : R} (h : a * unit R p ≤ b * unit R p) : a ≤ b :=
  (Field.IsOrdered.mul_le_mul_iff_of_pos_right unit_pos).mp h

/-! ## Sums, differences -/

/-- A numeral contains its number. -/
theorem contains_ofNat (n : Nat) [OfNat R n] (h : (OfNat.ofNat n : R) = ((n : Int) : R)) :
    (OfNat.ofNat n : Interval p).Contains (OfNat.ofNat n : R) := by
  show ((_ : Int) : R) ≤ _ ∧ _ ≤ ((_ : Int) : R)
  rw [Ring.intCast_mul, ← h]
  exact ⟨Std.le_refl _, Std.le_refl _⟩

/-- An integer contains its number. -/
theorem contains_intCast (n : Int) : (IntCast.intCast n : Interval p).Contains (n : R) := by
  show ((_ : Int) : R) ≤ _ ∧ _ ≤ ((_ : Int) : R)
  rw [Ring.intCast_mul]
  exact ⟨Std.le_refl _, Std.le_refl _⟩

/-- Sums of numbers lie in the sum of their intervals. -/
theorem contains_add {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I + J).Contains (x + y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      obtain ⟨h₁, h₂⟩ := hx
      obtain ⟨h₃, h₄⟩ := hy
      show ((a + c : Int) : R) ≤ _ ∧ _ ≤ ((b + d : Int) : R)
      rw [Ring.intCast_add, Ring.intCast_add, Semiring.right_distrib]
      exact ⟨OrderedAdd.add_le_add h₁ h₃, OrderedAdd.add_le_add h₂ h₄⟩

/-- Negated numbers lie in the negated interval. -/
theorem contains_neg {I : Interval p} {x : R} (hx : I.Contains x) : (-I).Contains (-x) := by
  cases I with
  | all => trivial
  | between a b =>
    obtain ⟨h₁, h₂⟩ := hx
    show ((-b : Int) : R) ≤ _ ∧ _ ≤ ((-a : Int) : R)
    rw [Ring.intCast_neg, Ring.intCast_neg, Ring.neg_mul]
    exact ⟨neg_le_neg h₂, neg_le_neg h₁⟩

/-- Differences of numbers lie in the difference of their intervals. -/
theorem contains_sub {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I - J).Contains (x - y) := by
  rw [Ring.sub_eq_add_neg]
  exact contains_add hx (contains_neg hy)

/-! ## Maxima -/

/-- The larger of two integers as a number is at most what both are at most. -/
theorem intCast_max_le {a b : Int} {x : R} (ha : (a : R) ≤ x) (hb : (b : R) ≤ x) :
    ((max a b : Int) : R) ≤ x := by
  rcases Int.le_total a b with h | h
  · rwa [Int.max_eq_right h]
  · rwa [Int.max_eq_left h]

/-- **max-enclosed**: the larger of two numbers lies in the larger of their intervals. -/
theorem contains_max {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (max I J).Contains (max x y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      obtain ⟨h₁, h₂⟩ := hx
      obtain ⟨h₃, h₄⟩ := hy
      have hU := Std.le_of_lt (unit_pos (R := R) (p := p))
      show ((max a c : Int) : R) ≤ _ ∧ _ ≤ ((max b d : Int) : R)
      rw [OrderedField.max_def]
      split
      · next h =>
        exact ⟨intCast_max_le (Std.le_trans h₁ (OrderedRing.mul_le_mul_of_nonneg_right h hU)) h₃,
          Std.le_trans h₄ (intCast_le (Int.le_max_right _ _))⟩
      · next h =>
        have h := Std.le_of_lt (Std.not_le.mp h)
        exact ⟨intCast_max_le h₁ (Std.le_trans h₃ (OrderedRing.mul_le_mul_of_nonneg_right h hU)),
          Std.le_trans h₂ (intCast_le (Int.le_max_left _ _))⟩

end Interval

end Attention.Model
