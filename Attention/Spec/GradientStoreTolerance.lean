module

public import Attention.Spec.StoredGradientTolerance

public section

/-! # How far a gradient may be off that is stored at the end

A gradient is a sum of products, and is rounded at the end to the format that it is stored in. What
is made of no product but 0 must be 0. `Proof/Rounding/GradientStores.lean` proves that no gradient
of `Model/RoundedStoredGradients.lean`, once stored, exceeds the bound.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1] [LE R]
variable [DecidableLE R]

/-- The error of scale · Σ x · y, of which `error` is a bound: 0 where every product is 0, as in a
sum over keys that are all masked. -/
@[expose] def presentError (scale error : R) (terms : List (GradientTerm R)) : R :=
  if absolute scale * sumOver (fun t => (t.size + t.error) * absolute t.other) terms ≤ 0 then 0
  else error

/-- A gradient scale · Σ x · y as a number that is off itself, where it is added to those of other
heads. -/
@[expose] def presentGradientTerm (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : GradientTerm R :=
  ⟨absolute scale * sumOver (fun t => t.size * absolute t.other) terms,
    presentError scale (tiledGradientError p roundings stores tiles scale reach terms) terms, 1⟩

/-- The error of the gradient by a key or a value of which these are the gradients of the heads that
share it: those of several heads are stored in the format of the output, where they may be off by
`tiny` below its normal numbers, and then added. -/
@[expose] def sharedGradientError (p : GradientPrecision R) (tiny : R) (roundings : Nat)
    (heads : List (GradientTerm R)) : R :=
  match heads with
  | [head] => head.error
  | heads => presentError 1 (totalError p.accumulation p.output p.tiny tiny roundings heads) heads

/-- How far a gradient may be off that is `exact`, computed up to `error`, and stored at the end in
a format of unit roundoff `stored` whose numbers below the normal ones are off by at most
`storedTiny`: a 0 that is known to be exact is stored as 0. -/
@[expose] def storedGradientError (stored storedTiny exact error : R) : R :=
  if absolute exact + error ≤ 0 then 0
  else error + stored * (absolute exact + error) + storedTiny

end Attention.Spec
