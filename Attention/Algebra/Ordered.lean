module

public section

/-! # Ordered rings and fields

The two kinds of numbers that the library speaks of: scores live in an ordered commutative ring,
values in an ordered field. Both are core Lean's `Lean.Grind` algebra with a decidable linear order,
so `grind` reasons about them. -/

namespace Attention

universe u

/-- An ordered commutative ring: the type of scores. -/
class OrderedCommRing (S : Type u) extends Lean.Grind.CommRing S, LE S, LT S, Std.IsLinearOrder S,
    Std.LawfulOrderLT S, Lean.Grind.OrderedRing S where
  /-- The order can be decided, so that maxima can be computed. -/
  decLE : DecidableLE S

/-- An ordered field: the type of values. As in `Lean.Grind.Field`, `0⁻¹ = 0`. -/
class OrderedField (R : Type u) extends Lean.Grind.Field R, LE R, LT R, Std.IsLinearOrder R,
    Std.LawfulOrderLT R, Lean.Grind.OrderedRing R where
  /-- The order can be decided. -/
  decLE : DecidableLE R

attribute [instance] OrderedCommRing.decLE OrderedField.decLE

instance : OrderedCommRing Int where decLE := inferInstance

instance : OrderedField Rat where decLE := inferInstance

/-- Every ordered field is an ordered commutative ring, so values can serve as scores. -/
instance (priority := low) OrderedField.toOrderedCommRing {R : Type u} [h : OrderedField R] :
    OrderedCommRing R where
  decLE := h.decLE

/-! ## Instances without a detour

Each call of `grind` asks for two dozen classes of its type. Through the classes above, instances
are found by a search: 0 as `Zero.toOfNat0`, of a zero that is `Zero.ofOfNat0`, of the semiring's;
the ring of a field through `OrderedField.toOrderedCommRing`. Here they are by one step, which makes
a small call of `grind` a third cheaper. For types with instances of their own, those come first, by
the priority. -/

section Direct

open Lean.Grind

variable {S : Type u} [OrderedCommRing S]

instance (priority := 500) : CommSemiring S := CommRing.toCommSemiring
instance (priority := 500) : Semiring S := CommSemiring.toSemiring
instance (priority := 500) : Ring S := CommRing.toRing
instance (priority := 500) (n : Nat) : OfNat S n := Semiring.ofNat n
instance (priority := 500) : Add S := Semiring.toAdd
instance (priority := 500) : Mul S := Semiring.toMul
instance (priority := 500) : Sub S := Ring.toSub
instance (priority := 500) : Neg S := Ring.toNeg
instance (priority := 500) : HPow S Nat S := Semiring.npow
instance (priority := 500) : Zero S := Zero.ofOfNat0
instance (priority := 500) : One S := One.ofOfNat1
instance : NatModule S := Semiring.toNatModule
instance : IntModule S := Ring.toIntModule
instance (priority := 500) : SMul Nat S := NatModule.nsmul
instance (priority := 500) : SMul Int S := IntModule.zsmul
instance : OrderedAdd S := OrderedRing.toOrderedAdd
instance : IsCharP S 0 := OrderedRing.instIsCharPOfNatNatOfLawfulOrderLT
instance : Std.IsPreorder S := Std.IsLinearPreorder.toIsPreorder
instance : Std.IsLinearPreorder S := Std.IsLinearOrder.toIsLinearPreorder
instance : Std.IsPartialOrder S := Std.IsLinearOrder.toIsPartialOrder

variable {R : Type u} [OrderedField R]

instance (priority := 500) : CommRing R := Field.toCommRing
instance (priority := 500) : CommSemiring R := CommRing.toCommSemiring
instance (priority := 500) : Semiring R := CommSemiring.toSemiring
instance (priority := 500) : Ring R := CommRing.toRing
instance (priority := 500) (n : Nat) : OfNat R n := Semiring.ofNat n
instance (priority := 500) : Add R := Semiring.toAdd
instance (priority := 500) : Mul R := Semiring.toMul
instance (priority := 500) : Sub R := Ring.toSub
instance (priority := 500) : Neg R := Ring.toNeg
instance (priority := 500) : HPow R Nat R := Semiring.npow
instance (priority := 500) : Zero R := Zero.ofOfNat0
instance (priority := 500) : One R := One.ofOfNat1
instance : NatModule R := Semiring.toNatModule
instance : IntModule R := Ring.toIntModule
instance (priority := 500) : SMul Nat R := NatModule.nsmul
instance (priority := 500) : SMul Int R := IntModule.zsmul
instance : OrderedAdd R := OrderedRing.toOrderedAdd
instance : IsCharP R 0 := OrderedRing.instIsCharPOfNatNatOfLawfulOrderLT
instance : Std.IsPreorder R := Std.IsLinearPreorder.toIsPreorder
instance : Std.IsLinearPreorder R := Std.IsLinearOrder.toIsLinearPreorder
instance : Std.IsPartialOrder R := Std.IsLinearOrder.toIsPartialOrder
instance (priority := 500) : Inv R := Field.toInv
instance (priority := 500) : Div R := Field.toDiv

end Direct

/-- The larger of two numbers, by their order. -/
instance (priority := low) OrderedField.toMax {R : Type u} [OrderedField R] : Max R := maxOfLe

/-- The larger of two numbers is the second, unless it is less than the first. -/
theorem OrderedField.max_def {R : Type u} [OrderedField R] (a b : R) :
    max a b = if a ≤ b then b else a := rfl

/-- A sum of two numbers that are not negative is not negative. -/
theorem OrderedField.add_nonneg {R : Type u} [OrderedField R] {a b : R} (ha : 0 ≤ a) (hb : 0 ≤ b) :
    0 ≤ a + b := by grind

/-- A non-negative number divided by a positive one is non-negative. -/
theorem OrderedField.div_nonneg {R : Type u} [OrderedField R] {a b : R} (ha : 0 ≤ a) (hb : 0 < b) :
    0 ≤ a / b := by
  rw [Lean.Grind.Field.div_eq_mul_inv]
  have := Lean.Grind.Field.IsOrdered.inv_nonneg_iff (a := b)
  exact Lean.Grind.OrderedRing.mul_nonneg ha (by grind)

/-- A common factor cancels; division by 0 gives 0 on both sides. -/
theorem OrderedField.mul_div_mul_left {R : Type u} [OrderedField R] {c : R} (hc : c ≠ 0)
    (a b : R) : c * a / (c * b) = a / b := by
  by_cases hb : b = 0
  · subst hb
    grind
  · grind

/-- a ≤ c / b if and only if b · a ≤ c, for a positive b. -/
theorem OrderedField.le_div_iff {R : Type u} [OrderedField R] {a b c : R} (hb : 0 < b) :
    a ≤ c / b ↔ b * a ≤ c := by
  have h₁ : b * (c / b) = c := by grind
  constructor
  · intro h
    have := Lean.Grind.OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt hb)
    grind
  · intro h
    refine Classical.byContradiction fun hn => ?_
    have := Lean.Grind.OrderedRing.mul_lt_mul_of_pos_left (a := c / b) (b := a) (by grind) hb
    grind

/-- c / b ≤ a if and only if c ≤ b · a, for a positive b. -/
theorem OrderedField.div_le_iff {R : Type u} [OrderedField R] {a b c : R} (hb : 0 < b) :
    c / b ≤ a ↔ c ≤ b * a := by
  have h₁ : b * (c / b) = c := by grind
  constructor
  · intro h
    have := Lean.Grind.OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt hb)
    grind
  · intro h
    refine Classical.byContradiction fun hn => ?_
    have := Lean.Grind.OrderedRing.mul_lt_mul_of_pos_left (a := a) (b := c / b) (by grind) hb
    grind

/-- A quotient times its divisor. -/
theorem OrderedField.mul_div_cancel {R : Type u} [OrderedField R] {b : R} (hb : b ≠ 0) (a : R) :
    b * (a / b) = a := by
  grind

end Attention
