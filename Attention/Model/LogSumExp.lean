module

public import Attention.Model.Interval
public import Attention.Spec.Softmax

public section

/-! # The log-sum-exp of a row of intervals -/

namespace Attention.Model.Interval

/-- The logarithm of the denominator; `none` (−∞) where every score is masked. -/
@[expose] def logSumExp {p : Nat} (row : List (Option (Interval p))) : Option (Interval p) :=
  if row.all (·.isNone) then none else some (log (Spec.denominator row))

end Attention.Model.Interval
