module

public import Attention.Model.IntervalSound

public section

/-! # Dyadic numbers going in, and bounds of another precision coming out

What is computed with intervals begins with inputs n / 2^e, and ends with bounds that are written
down with fewer digits than were computed with. -/

namespace Attention.Model.Interval

open Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R]

private theorem unit_add (p q : Nat) : unit R (p + q) = unit R p * unit R q := by
  rw [unit, unit, unit, Int.pow_add, Ring.intCast_mul]

/-- **dyadic-enclosed**: the interval of n / 2^e contains it. -/
theorem contains_ofDyadic {p : Nat} {n : Int} {e : Nat} {x : R}
    (h : x * ((2 ^ e : Int) : R) = (n : R)) : (ofDyadic n e : Interval p).Contains x := by
  have he : (0 : Int) < 2 ^ e := Int.pow_pos (by decide)
  have he' : (0 : R) < ((2 ^ e : Int) : R) := OrderedRing.pos_intCast_of_pos _ he
  have hx : ((n * 2 ^ p : Int) : R) = x * unit R p * ((2 ^ e : Int) : R) := by
    rw [Ring.intCast_mul, ← h, Semiring.mul_assoc, Semiring.mul_assoc,
      CommSemiring.mul_comm ((2 ^ e : Int) : R)]
    rfl
  have lo := floor_mul_le (R := R) (n * 2 ^ p) he
  have hi := le_ceil_mul (R := R) (n * 2 ^ p) he
  rw [hx] at lo hi
  exact ⟨(Field.IsOrdered.mul_le_mul_iff_of_pos_right he').mp lo,
    (Field.IsOrdered.mul_le_mul_iff_of_pos_right he').mp hi⟩

/-- **bounds-enclosed**: bounds of a precision, divided by 2^q and rounded outward, are bounds of a
precision lower by q. -/
theorem contains_rounded {p q : Nat} {lo hi : Int} {x : R}
    (h : (between lo hi : Interval (p + q)).Contains x) :
    (between (lo / 2 ^ q) (ceilDiv hi (2 ^ q)) : Interval p).Contains x := by
  have hq : (0 : Int) < 2 ^ q := Int.pow_pos (by decide)
  obtain ⟨h₁, h₂⟩ := h
  rw [unit_add, ← Semiring.mul_assoc] at h₁ h₂
  exact ⟨le_of_mul_unit_le (p := q) (Std.le_trans (floor_mul_le lo hq) h₁),
    le_of_mul_unit_le (p := q) (Std.le_trans h₂ (le_ceil_mul hi hq))⟩

end Attention.Model.Interval
