module

public import Attention.Model.Rounding

public section

/-! # Numbers that round

Arithmetic in which each operation is the exact one, rounded: the floating-point numbers of one
format, as long as nothing overflows or underflows. The Spec's definitions can be taken over these
numbers; what they then compute is what `Model.Run` allows (`Proof/Rounding/Online.lean`). -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] [Exp R R]

/-- How one format rounds: any way at all within a relative error. -/
structure FloatingPoint (R : Type u) [OrderedField R] [Exp R R] where
  /-- The unit roundoff: the largest relative error of an operation. -/
  unit : R
  /-- The largest relative error of an exponential. -/
  exponential : R
  /-- The result of an operation, from the exact one. -/
  round : R → R
  /-- The computed exponential. -/
  roundedExp : R → R
  /-- The largest relative error of `round`. -/
  round_rounded : ∀ x, Rounded unit x (round x)
  /-- The largest relative error of `roundedExp`. -/
  exp_rounded : ∀ x, Rounded exponential (exp x) (roundedExp x)

/-- A number of a format. -/
structure FloatingPoint.Number (F : FloatingPoint R) where
  /-- Which number it is. -/
  val : R

namespace FloatingPoint

variable {F : FloatingPoint R}

/-- The precision of a function that computes in this format throughout. -/
@[expose] def precision (F : FloatingPoint R) : Precision R :=
  ⟨F.unit, F.unit, F.exponential, 0, 0, .unrounded⟩

/-- Exact arithmetic is one way to round. -/
@[expose] def exact (R : Type u) [OrderedField R] [Exp R R] : FloatingPoint R where
  unit := 0
  exponential := 0
  round := id
  roundedExp := exp
  round_rounded x := ⟨0, .zero (Std.le_refl _), by simp only [id]; grind⟩
  exp_rounded x := ⟨0, .zero (Std.le_refl _), by grind⟩

/-- A unit roundoff is not negative. -/
theorem unit_nonneg (F : FloatingPoint R) : 0 ≤ F.unit := by
  obtain ⟨θ, h, -⟩ := F.round_rounded 0
  exact h.nonneg

/-- The precision of a format means something, if a rounded exponential stays positive. -/
theorem precise (F : FloatingPoint R) (h : F.exponential < 1) : Precise F.precision where
  unit := F.unit_nonneg
  accumulation := F.unit_nonneg
  exponential := by
    obtain ⟨θ, h, -⟩ := F.exp_rounded 0
    exact h.nonneg
  exponential_lt := h
  stored := Std.le_refl _
  storedTiny := Std.le_refl _

namespace Number

instance : OfNat F.Number 0 where ofNat := ⟨0⟩

/-- A rounded sum. -/
instance : Add F.Number where add a b := ⟨F.round (a.val + b.val)⟩

/-- A rounded difference. -/
instance : Sub F.Number where sub a b := ⟨F.round (a.val - b.val)⟩

/-- A rounded product. -/
instance : Mul F.Number where mul a b := ⟨F.round (a.val * b.val)⟩

/-- A rounded quotient. -/
instance : Div F.Number where div a b := ⟨F.round (a.val / b.val)⟩

/-- The computed exponential. -/
instance : Exp F.Number F.Number where exp a := ⟨F.roundedExp a.val⟩

/-- Comparisons are exact. -/
instance : LE F.Number where le a b := a.val ≤ b.val

instance : DecidableLE F.Number := fun a b => inferInstanceAs (Decidable (a.val ≤ b.val))

theorem le_def {a b : F.Number} : a ≤ b ↔ a.val ≤ b.val := Iff.rfl

@[simp] theorem zero_val : (0 : F.Number).val = 0 := rfl

theorem add_val (a b : F.Number) : (a + b).val = F.round (a.val + b.val) := rfl

theorem sub_val (a b : F.Number) : (a - b).val = F.round (a.val - b.val) := rfl

theorem mul_val (a b : F.Number) : (a * b).val = F.round (a.val * b.val) := rfl

theorem div_val (a b : F.Number) : (a / b).val = F.round (a.val / b.val) := rfl

theorem exp_val (a : F.Number) : (exp a : F.Number).val = F.roundedExp a.val := rfl

/-- A sum is rounded once. -/
theorem add_rounded (a b : F.Number) : Rounded F.unit (a.val + b.val) (a + b).val :=
  F.round_rounded _

/-- A difference is rounded once. -/
theorem sub_rounded (a b : F.Number) : Rounded F.unit (a.val - b.val) (a - b).val :=
  F.round_rounded _

/-- A product is rounded once. -/
theorem mul_rounded (a b : F.Number) : Rounded F.unit (a.val * b.val) (a * b).val :=
  F.round_rounded _

/-- A quotient is rounded once. -/
theorem div_rounded (a b : F.Number) : Rounded F.unit (a.val / b.val) (a / b).val :=
  F.round_rounded _

/-- 0 times a number is 0: what rounds by a factor leaves 0 alone. -/
theorem zero_mul_val (a : F.Number) : ((0 : F.Number) * a).val = 0 := by
  obtain ⟨θ, -, h⟩ := mul_rounded 0 a
  rw [h, zero_val]
  grind

end Number

end FloatingPoint

end Attention.Model
