module

public import Attention.Spec.ScoreTolerance
public import Attention.Spec.ScoreMods

public section

/-! # Tolerances of scores that are changed

How far a score may be off after softcap, after a number is added to it, and that of a sink.
`Proof/Rounding/Changes.lean` proves that no score of `Model/RoundedChanges.lean` exceeds it.
Source: docs/tolerances.md, section 1. -/

namespace Attention.Spec

universe u

/-- What becomes of the score of a query and a key before the softmax, in this order. -/
structure ScoreChange (R : Type u) where
  /-- The score is squeezed into (−cap, cap) by softcap. -/
  cap : Option R
  /-- A number that is added, of a bias or of ALiBi. -/
  added : Option R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [OfNat R 0] [OfNat R 1]

/-- The score after its changes. -/
@[expose] def ScoreChange.apply [Exp R R] (change : ScoreChange R) (s : R) : R :=
  let s := match change.cap with
    | none => s
    | some cap => cap * tanh (s / cap)
  match change.added with
  | none => s
  | some a => s + a

variable [Max R]

/-- How far a score may be off after softcap, where it is off by `error` before. The slope of tanh
is at most 1; a quotient by the cap, a tanh and a product with the cap are off by 8 roundings of the
cap together, and the result is stored. -/
@[expose] def softcapError (p : Precision R) (f : ScoreFormats R) (cap error : R) : R :=
  error + (numeral 8 * p.unit + f.scores) * cap

/-- How far a score may be off after `a` is added, where `s` is the exact score before and `error`
how far off that one is: both numbers, with their errors, and their sum are rounded twice and
stored, each by (1 + u)² (1 + u_s) at most. -/
@[expose] def addedError (p : Precision R) (f : ScoreFormats R) (a s error : R) : R :=
  let growth := (1 + p.unit) * (1 + p.unit) * (1 + f.scores) - 1
  (error + growth * absolute a) * (1 + growth) + growth * absolute (s + a)

/-- How far the score of a sink may be off, a number that is given and rounded twice:
((1 + u)² − 1) |sink|. -/
@[expose] def sinkError (p : Precision R) (sink : R) : R :=
  ((1 + p.unit) * (1 + p.unit) - 1) * absolute sink

/-- How far a score may be off after its changes, where `s` is the exact score before them and
`error` how far off that one is. -/
@[expose] def changedError [Exp R R] (p : Precision R) (f : ScoreFormats R)
    (change : ScoreChange R) (s error : R) : R :=
  let error := match change.cap with
    | none => error
    | some cap => softcapError p f cap error
  match change.added with
  | none => error
  | some a => addedError p f a ({ change with added := none }.apply s) error

end Attention.Spec
