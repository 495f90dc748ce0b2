module

public import Attention.Spec.GradientTolerance

public section

/-! # How far gradients may be off that are added up in a small format

A backward pass may store what each tile adds to a gradient, and the sums of it, in the format of
the output. `Proof/Rounding/StoredGradients.lean` proves that no sum of
`Model/RoundedStoredGradients.lean` exceeds the bound.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- The error of scale · Σ x · y, as `gradientError`, where up to `tiles` times what a tile adds, or
a sum that it is part of, is stored in the format of the output before the whole is. There are at
most `tiles` + 1 tiles, which `tiles` additions put together, and 2 `tiles` stores of what they add
and of sums together. No product of the last parts of the scale, which multiply the sum of a tile or
the whole, is larger than `reach`, nor is 1. -/
@[expose] def tiledGradientError (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : R :=
  let sums := (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores * power (1 + p.output) tiles - 1
  let lost := numeral 3 * p.tiny + numeral stores * p.operandsTiny
  absolute scale
      * sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms
    + (1 + sums) * reach
      * (lost * (sumOver (fun t => t.size + t.error) terms + numeral (tiles + 1))
        + (numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny))

end Attention.Spec
