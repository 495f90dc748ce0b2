module

public import Attention.Model.RootSound
public import Attention.Proof.Enclosure.Basic

public section

/-! # Wrong variants of interval arithmetic -/

namespace Attention.WrongVariants

open Model Interval

/-- A product with both bounds rounded down. -/
@[expose] def mulRoundedDown {p : Nat} : Interval p → Interval p → Interval p
  | between a b, between c d => between (min (min (a * c) (a * d)) (min (b * c) (b * d)) / 2 ^ p)
      (max (max (a * c) (a * d)) (max (b * c) (b * d)) / 2 ^ p)
  | _, _ => all

theorem mulRoundedDown_refuted : ¬ ∀ (I J : Interval 1) (x y : Rat), I.Contains x → J.Contains y →
    (mulRoundedDown I J).Contains (x * y) :=
  fun h => absurd (h (between 1 1) (between 1 1) (1 / 2) (1 / 2)
    ⟨by decide +kernel, by decide +kernel⟩ ⟨by decide +kernel, by decide +kernel⟩).2
    (by decide +kernel)

/-- A product of the lower and of the upper bounds, right for positive numbers only. -/
@[expose] def mulOfPositive {p : Nat} : Interval p → Interval p → Interval p
  | between a b, between c d => between (a * c / 2 ^ p) (ceilDiv (b * d) (2 ^ p))
  | _, _ => all

theorem mulOfPositive_refuted : ¬ ∀ (I J : Interval 0) (x y : Rat), I.Contains x → J.Contains y →
    (mulOfPositive I J).Contains (x * y) :=
  fun h => absurd (h (between (-1) 1) (between (-1) 1) 1 (-1)
    ⟨by decide +kernel, by decide +kernel⟩ ⟨by decide +kernel, by decide +kernel⟩).1
    (by decide +kernel)

/-- A quotient that takes any divisor. -/
@[expose] def divByAny {p : Nat} : Interval p → Interval p → Interval p
  | between a b, between c d => between (divLower p a c d) (-divLower p (-b) c d)
  | _, _ => all

theorem divByAny_refuted : ¬ ∀ (I J : Interval 0) (x y : Rat), I.Contains x → J.Contains y →
    (divByAny I J).Contains (x / y) :=
  fun h => absurd (h (between 1 1) (between (-1) 1) 1 (-1)
    ⟨by decide +kernel, by decide +kernel⟩ ⟨by decide +kernel, by decide +kernel⟩).1
    (by decide +kernel)

/-! ## Maxima -/

/-- The claim of `contains_max`, made of any operation of two intervals. -/
abbrev EnclosesMax (max' : Interval 0 → Interval 0 → Interval 0) : Prop :=
  ∀ (I J : Interval 0) (x y : Rat), I.Contains x → J.Contains y → (max' I J).Contains (max x y)

/-- Positive control: the larger of the lower bounds, and of the upper ones. -/
theorem max_enclosesMax : EnclosesMax max := fun _ _ _ _ hx hy => contains_max hx hy

/-- The interval with the larger lower bound. -/
@[expose] def maxByLower : Interval 0 → Interval 0 → Interval 0
  | between a b, between c d => if a ≤ c then between c d else between a b
  | _, _ => all

theorem maxByLower_refuted : ¬ EnclosesMax maxByLower := fun h =>
  absurd (h (between 0 5) (between 1 2) 5 1 ⟨by decide +kernel, by decide +kernel⟩
    ⟨by decide +kernel, by decide +kernel⟩).2 (by decide +kernel)

/-! ## Roots -/

/-- The claim of `contains_sqrt`, made of any function of an interval. -/
abbrev EnclosesSqrt (sqrt' : Interval 0 → Interval 0) : Prop :=
  ∀ (I : Interval 0) (r : Rat), 0 ≤ r → I.Contains (r * r) → (sqrt' I).Contains r

/-- Positive control: the lower bound rounded down, the upper one rounded up. -/
theorem sqrt_enclosesSqrt : EnclosesSqrt sqrt := fun _ _ h₀ h => contains_sqrt h₀ h

/-- The integer nearest to √n. -/
@[expose] def sqrtNear (n : Int) : Int :=
  let r := sqrtFloor n
  if n ≤ r * r + r then r else r + 1

/-- The roots of both bounds, rounded to nearest. -/
@[expose] def sqrtNearest : Interval 0 → Interval 0
  | between a b => if 0 ≤ a then between (sqrtNear a) (sqrtNear b) else all
  | all => all

theorem sqrtNearest_refuted : ¬ EnclosesSqrt sqrtNearest := fun h =>
  absurd (h (between 3 4) (7 / 4) (by decide +kernel) ⟨by decide +kernel, by decide +kernel⟩).1
    (by decide +kernel)

/-- The roots of both bounds, rounded down. -/
@[expose] def sqrtRoundedDown : Interval 0 → Interval 0
  | between a b => if 0 ≤ a then between (sqrtFloor a) (sqrtFloor b) else all
  | all => all

theorem sqrtRoundedDown_refuted : ¬ EnclosesSqrt sqrtRoundedDown := fun h =>
  absurd (h (between 2 3) (3 / 2) (by decide +kernel) ⟨by decide +kernel, by decide +kernel⟩).2
    (by decide +kernel)

end Attention.WrongVariants
