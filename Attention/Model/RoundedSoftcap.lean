module

public import Attention.Model.RoundedChanges
public import Attention.Model.RoundedGradients
public import Attention.Model.Underflow
public import Attention.Spec.SoftcapTolerance

public section

/-! # The slope of softcap, rounded

What a backward pass may compute for 1 − tanh² (x / cap) from a score x that it computed. The
quotient and the square of tanh may be below the normal numbers. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `t` is what a function may compute for tanh (x / cap). The quotient is rounded up to 3 times, a
change of base counted, and off by `tiny` below the normal numbers; its tanh is off by at most 4 u,
and stays between −1 and 1. -/
@[expose] def ComputedTanh [Exp R R] (unit tiny cap x t : R) : Prop :=
  ∃ (a : Nat) (z : R), a ≤ 3 ∧ TinyTimes unit tiny a (x / cap) z ∧
    AtMost (numeral 4 * unit) (t - tanh z) ∧ AtMost 1 t

/-- `z` is what a function may compute for the slope of softcap, the square and the difference
rounded; quotient and square may be off by `tiny` below the normal numbers. -/
@[expose] def ComputedSlope [Exp R R] (unit tiny cap x z : R) : Prop :=
  ∃ t y : R, ComputedTanh unit tiny cap x t ∧ StoredBelow unit tiny (t * t) y ∧
    Rounded unit (1 - y) z

end Attention.Model
