module

public import Attention.Spec.Tolerance

public section

/-! # Tolerances with dropout

A weight is multiplied by 1 / (1 − q) or by 0 where it meets its value: the same as the value
multiplied by it, so the tolerance is that of such values, with more roundings of the numerator.
`Proof/Rounding/Dropout.lean` proves that no function of `Model/RoundedDropout.lean` exceeds it.
Source: docs/tolerances.md, "Dropout". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [Max R] [LE R] [DecidableLE R]
  [OfNat R 0] [OfNat R 1]

/-- A precision whose `roundings` roundings of the numerator count for `more` roundings more. -/
@[expose] def moreRoundings (p : Precision R) (roundings : Nat) (more : R) : Precision R :=
  { p with
    accumulation := p.accumulation * (numeral roundings + more) / numeral roundings }

/-- The tolerance of one component of the output of a row with dropout, whose values are multiplied
by their factors, of which `z` is the largest. The factor has 5 roundings and its product with
weight or value one; the probability is rounded as it is given, which moves z by z − 1 units: z + 5
roundings more. -/
@[expose] def dropoutTolerance [Exp R R] (p : Precision R) (z : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  tolerance (moreRoundings p (roundings + 6) (z + numeral 5)) roundings rescalings negligible row

end Attention.Spec
