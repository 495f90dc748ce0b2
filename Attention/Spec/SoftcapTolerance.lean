module

public import Attention.Spec.GradientTolerance
public import Attention.Spec.ScoreChangeTolerance

public section

/-! # Tolerances of softcap where scores are far off

tanh lies between −1 and 1, so an error of its argument makes one of at most 2: the scores and the
slopes that a backward pass computes again have bounds however large that error is.
`Proof/Rounding/Softcap.lean` proves that no function of `Model/RoundedSoftcap.lean` exceeds them.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [OfNat R 0] [OfNat R 1]
variable [LE R] [DecidableLE R]

/-- How far tanh (s / cap) may be off, where the score s is off by `error`: no more than s / cap is,
and no more than 2; and 8 roundings, and three of a quotient below the normal numbers, which are off
by `tiny` each and rounded. -/
@[expose] def tanhError (unit tiny cap error : R) : R :=
  smaller (error / cap) (numeral 2) + numeral 8 * unit + numeral 4 * tiny

/-- How far cap · tanh (s / cap) may be off once it is stored: no more than s is, and no more than
2 cap; 8 roundings of the cap and a store of it. -/
@[expose] def cappedError (p : Precision R) (f : ScoreFormats R) (cap error : R) : R :=
  smaller error (numeral 2 * cap) + (numeral 8 * p.unit + f.scores) * cap + f.scoresTiny

variable [Exp R R] [Max R]

/-- How far a score may be off after its changes, as `changedError`, with `cappedError` for
softcap. -/
@[expose] def cappedChangeError (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (s error : R) : R :=
  let error := match change.cap with
    | none => error
    | some cap => cappedError p f cap error
  match change.added with
  | none => error
  | some a => addedError p f a ({ change with added := none }.apply s) error

/-- How far 1 − tanh² (s / cap), the slope of softcap, may be off, where s is off by `error`, and
quotient and square by `tiny` below the normal numbers. -/
@[expose] def cappedSlopeError (unit tiny cap s error : R) : R :=
  softcapSlopeError unit tiny (tanh (s / cap)) (tanhError unit tiny cap error)

end Attention.Spec
