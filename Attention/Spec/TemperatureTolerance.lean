module

public import Attention.Spec.GradientTolerance

public section

/-! # How far the gradient by a temperature may be off

The gradient by the queries times their temperature is stored; that by the queries is this times the
temperature, and that by the temperature the sum of this times the queries. Their bounds are
`totalError` of the terms below. `Proof/Rounding/Temperature.lean` proves that no function of
`Model/RoundedTemperature.lean` exceeds them.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Max R] [OfNat R 0]

/-- A component of the gradient by queries times their temperature, `exact`, of size `size` at most
and computed up to `error`, that is stored in a format of unit roundoff `stored` whose numbers below
the normal ones are off by at most `storedTiny`. It meets `other`: the temperature in the gradient
by the query, and the query in that by the temperature. -/
@[expose] def storedGradientTerm (stored storedTiny exact size error other : R) :
    GradientTerm R :=
  ⟨size, error + stored * (absolute exact + error) + storedTiny, other⟩

end Attention.Spec
