module

public import Attention.Spec.LogSumExpTolerance

public section

/-! # The tolerance where products, quotients, exponentials and sums underflow

The part of an output's tolerance that is due to numbers below the normal ones of the format in
which a function computes. Each of them is off by `ν` at most, and never by more than it is. As
shares of the sum of the weights these errors are next to nothing.
Source: docs/tolerances.md, sections 3 and 4. -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [LE R]
variable [DecidableLE R]

/-- ν h: an error of `ν` in a function's own terms, in which its largest weight is 1, as a share of
the sum of the weights. -/
@[expose] def underflowShare (p : Precision R) (ν : R) (rescalings : Nat)
    (keys : List (BoundedWeight R)) : R :=
  tinyShare { p with storedTiny := ν } rescalings keys

/-- A key whose score is further off where differences of scores of `ν` at most are flushed to 0:
by ν for its difference from the reference point, and for each rise of that. -/
@[expose] def BoundedKey.flushed (ν : R) (rescalings : Nat) (key : BoundedKey R) : BoundedKey R :=
  { key with error := key.error + numeral (rescalings + 1) * ν }

/-- The error of a weight where its exponential, those of its rescalings and its product with a
factor of dropout underflow, as a share of the sum of the weights, which is at least `low`: twice,
since a weight that is stored anew may double such an error. Each may be off by as much as it is;
one of them alone is by no more than `tiny`. -/
@[expose] def lostShare (rescalings : Nat) (low tiny : R) (k : BoundedWeight R) : R :=
  numeral 2 * smaller (power (numeral 3) (rescalings + 2) * (k.weight * k.factor / low))
    (numeral (rescalings + 2) * tiny)

/-- The underflow of a sum of weights times the numbers `f`, which are sizes of values or 1, as a
share of the sum of the weights: of the exponentials of each weight and its product with a factor,
and for each unmasked key of a product and an addition, of a product for each rescaling, and of that
of the value with a factor, which a weight of up to 4 multiplies. -/
@[expose] def underflowCost [Exp R R] (p : Precision R) (ν : R) (rescalings : Nat)
    (row : List (BoundedKey R)) (f : BoundedWeight R → R) : R :=
  let keys := boundedWeights p rescalings row
  let tiny := underflowShare p ν rescalings keys
  sumOver (fun k => lostShare rescalings (lowTotal keys) tiny k * f k) keys
    + sumOver (fun key => match key.score with
      | none => 0
      | some _ => numeral (rescalings + 6) * tiny) row

/-- The least share of the sum of the weights that is left in a denominator: it is off by its
roundings, by weights that are stored, and by what underflows. -/
@[expose] def underflowLeft [Exp R R] (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  1 - denominatorError p roundings rescalings (boundedWeights p rescalings row)
    - (1 + gamma (roundings + 1) p.unit) * underflowCost p ν rescalings row (fun _ => 1)

/-- The sum of the exponentials, exp m · l, as computed is off by this factor at most, up or down,
where numbers underflow: `logSumExpFactor` with what is left of the denominator then. -/
@[expose] def underflowLogSumExpFactor [Exp R R] (p : Precision R) (ν : R)
    (roundings rescalings : Nat) (row : List (BoundedKey R)) : R :=
  let keys := boundedWeights p rescalings row
  sumOver (fun k => k.weight * k.factor) keys / sumOver (fun k => k.weight) keys
    / underflowLeft p ν roundings rescalings row

/-- The tolerance of a log-sum-exp where numbers underflow: `logSumExpTolerance` of an E that the
factor above has, up to eight products that change a base, of maximum, logarithm and sum, and the
sum itself, which may be flushed to 0. -/
@[expose] def underflowLogSumExpTolerance (p : Precision R) (ν E logTotal maximum Δ : R) : R :=
  logSumExpTolerance p E logTotal maximum Δ + (1 + gamma 4 p.unit) * (numeral 9 * ν)

/-- How much further off the output may be where numbers underflow: what that does to the numerator
and to the denominator, over what is left of this, and up to five roundings of the quotient. -/
@[expose] def underflowError [Exp R R] (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  let most := absolute (exactOutput (boundedWeights p rescalings row))
    + tolerance p roundings rescalings negligible row
  (1 + gamma (roundings + 6) p.accumulation)
    * ((underflowCost p ν rescalings row (fun k => absolute k.value)
        + most * ((1 + gamma (roundings + 1) p.unit)
          * underflowCost p ν rescalings row (fun _ => 1)))
        / underflowLeft p ν roundings rescalings row
      + numeral 5 * ν)

/-- The tolerance of one component of the output of one row, all in all: the sum of
`toleranceTerms`, what underflows in the accumulator by `ν` at most, and the result stored in a
format of unit roundoff `u`, whose numbers below the normal ones are off by `η` at most. -/
@[expose] def outputTolerance [Exp R R] (p : Precision R) (ν u η : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  let error := tolerance p roundings rescalings negligible row
    + underflowError p ν roundings rescalings negligible row
  error + u * (absolute (exactOutput (boundedWeights p rescalings row)) + error) + η

end Attention.Spec
