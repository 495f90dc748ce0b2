module

public import Attention.Proof.Enclosure

public section

/-! # Wrong twins of interval arithmetic -/

namespace Attention.Twins

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

end Attention.Twins
