module

public import Attention.Spec.Tolerance

public section

/-! # Tolerances of log-sum-exps

How far the log-sum-exp that a function writes beside its output may be from the exact one. There is
no logarithm here: E, ln l and the log-sum-exp itself are whatever numbers have the exponentials
that they must have. `Proof/Rounding/LogSumExp.lean` proves that no function of
`Model/RoundedLogSumExp.lean` exceeds it.
Source: docs/tolerances.md, "Log-sum-exp". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [Max R] [LE R] [DecidableLE R]
  [OfNat R 0] [OfNat R 1]

/-- How far the denominator of a function that rounds may be off, as a share of the sum of the
weights that it computed. -/
@[expose] def denominatorError (p : Precision R) (roundings rescalings : Nat)
    (keys : List (BoundedWeight R)) : R :=
  match p.denominator with
  | .unrounded => gamma (roundings + 1) p.unit
  | .rounded => gamma (roundings + 1) p.unit + storingErrors p rescalings keys

/-- The sum of the exponentials, exp m · l, as computed is off by this factor at most, up or down:
Σ p exp ε / (1 − γ(roundings + 1)), where p are the exact shares of the weights. Where the
denominator adds stored weights, their errors count with γ. Its logarithm is E. -/
@[expose] def logSumExpFactor [Exp R R] (p : Precision R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  let keys := boundedWeights p rescalings row
  sumOver (fun k => k.weight * k.factor) keys / sumOver (fun k => k.weight) keys
    / (1 - denominatorError p roundings rescalings keys)

/-- The tolerance of a log-sum-exp: E and, for the logarithm, changes of base and the sum of maximum
and logarithm, 4 roundings of each: E + γ(4) (ln l + 1 + |m| + E + 2 Δ), with the exact maximum m of
the row, l = Σ exp (s − m), and the largest error Δ of a score, by which the computed maximum may be
off. The 1 is for a logarithm whose error is absolute where its argument is near 1. -/
@[expose] def logSumExpTolerance (p : Precision R) (E logTotal maximum Δ : R) : R :=
  E + gamma 4 p.unit * (logTotal + 1 + absolute maximum + E + numeral 2 * Δ)

end Attention.Spec
