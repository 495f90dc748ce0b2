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
a sum that it is part of, is stored in the format of the output before the whole is. -/
@[expose] def tiledGradientError (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale : R) (terms : List (GradientTerm R)) : R :=
  let sums := (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores * power (1 + p.output) tiles - 1
  absolute scale
    * sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms

end Attention.Spec
