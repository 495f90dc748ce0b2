module

public import Attention.Spec.Online

public section

/-! # The log-sum-exp

There is no logarithm here: that `L` is the log-sum-exp of a row is a relation. It can be decided
where numbers can be compared.
Source: Dao 2023, "FlashAttention-2", Algorithm 1, line 13 (L = m + ln l). -/

namespace Attention.Spec

open Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}

variable (R) in
/-- `L` is the log-sum-exp of a row of scores, ln Σ exp s: the one score that weighs as much as the
whole row. It is `none` (−∞) when nothing weighs anything. -/
@[expose] def IsLogSumExp [Add R] [OfNat R 0] [base : Exp S R] (L : Option S)
    (row : List (Option S)) : Prop :=
  (weight L : R) = denominator row

instance [Add R] [OfNat R 0] [Exp S R] [DecidableEq R] (L : Option S) (row : List (Option S)) :
    Decidable (IsLogSumExp R L row) :=
  inferInstanceAs (Decidable (_ = _))

/-- `L` is what a kernel writes beside the output, m + ln l, and −∞ for a state without a maximum:
ln l is L − m. -/
@[expose] def Online.State.HasLogSumExp [Sub S] [Exp S R] (s : State S R d) (L : Option S) : Prop :=
  match s.m, L with
  | some m, some L => exp (L - m) = s.l
  | none, none => True
  | _, _ => False

end Attention.Spec
