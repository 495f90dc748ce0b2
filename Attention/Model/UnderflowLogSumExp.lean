module

public import Attention.Model.RoundedLogSumExp
public import Attention.Model.Underflow

public section

/-! # Log-sum-exps whose products and sum underflow -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `L` is what a function may compute for m + ln l, as `ComputedLogSumExp` has it, where products
that change a base underflow by `ν`, and the sum may be off by `ν` too, as where it is flushed to
0. -/
@[expose] def TinyLogSumExp [Exp R R] (u ν m l L : R) : Prop :=
  ∃ (a b c k : Nat) (logl x y z s : R), a + k + c ≤ 4 ∧ b + c ≤ 4 ∧ exp logl = l ∧
    AtMost (numeral a * u * (absolute logl + 1)) (y - logl) ∧ TinyTimes u ν k y z ∧
    TinyTimes u ν b m x ∧ AtMost ν (s - (x + z)) ∧ TinyTimes u ν c s L

end Attention.Model
