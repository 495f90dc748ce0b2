module

public import Attention.Model.Rounding
public import Attention.Spec.LogSumExpTolerance

public section

/-! # Log-sum-exps that are rounded

What a function may write for m + ln l: the logarithm, factors of another base, and the sum, each
rounded. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `L` is what a function may compute for m + ln l, in an arithmetic with unit roundoff `u`. The
logarithm is off by at most a u (|ln l| + 1), so that near 1 its error may be absolute; it is
rounded `k` times and m `b` times where their base is changed, and their sum `c` times. -/
@[expose] def ComputedLogSumExp [Exp R R] (u m l L : R) : Prop :=
  ∃ (a b c k : Nat) (logl x y z : R), a + k + c ≤ 4 ∧ b + c ≤ 4 ∧ exp logl = l ∧
    AtMost (numeral a * u * (absolute logl + 1)) (y - logl) ∧ RoundedTimes u k y z ∧
    RoundedTimes u b m x ∧ RoundedTimes u c (x + z) L

end Attention.Model
