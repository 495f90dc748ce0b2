module

public import Attention.Spec.Combine
public import Attention.Vectors.Natural

public section

/-! # One case of outputs and log-sum-exps of splits, to be combined -/

namespace Attention.Vectors

open Spec Model

/-- What a split has written. -/
structure PartialResult where
  /-- The output of the split. -/
  output : List Rat
  /-- Its log-sum-exp; none: nothing was visible. -/
  logSumExp : Option Rat

/-- Results of splits, with the reason why they are worth testing. -/
structure CombineCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- Number of columns of the outputs. -/
  value_dim : Nat
  /-- The splits. -/
  parts : List PartialResult

namespace CombineCase

/-- Runs the Spec over intervals, with the logarithm of the enclosed denominator for the
log-sum-exp of the whole. -/
def run (c : CombineCase) : Except String EnclosedRow := do
  checkExact (c.parts.flatMap fun part => part.output ++ part.logSumExp.toList)
  let parts ← c.parts.mapM fun part => do
    let O ← toMatrix 1 c.value_dim [part.output.map ofRat]
    return (⟨O[0], part.logSumExp.map ofRat⟩ : Partial (Interval working) (Interval working) _)
  let lses := parts.map (·.lse)
  let L := if lses.all (·.isNone) then none else some (Interval.log (denominator lses))
  enclosedRow lses (combine L parts)

end CombineCase

end Attention.Vectors
