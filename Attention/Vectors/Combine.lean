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

/-- Runs the Spec over intervals. -/
def run (c : CombineCase) : Except String EnclosedRow := do
  checkExact (c.parts.flatMap fun part => part.output ++ part.logSumExp.toList)
  let parts ← c.parts.mapM fun part => do
    let O ← toMatrix 1 c.value_dim [part.output.map ofRat]
    return (⟨O[0], part.logSumExp.map ofRat⟩ : Partial (Interval working) (Interval working) _)
  let lses := parts.map (·.lse)
  enclosedRow lses (combine (Interval.logSumExp lses) parts)

end CombineCase

end Attention.Vectors
